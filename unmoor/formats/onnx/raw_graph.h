#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace unmoor::onnx {

// What messages of a model's file say about names, without reading anything else of them. All fail with InvalidModel.

// The text in one field of a message of this kind; empty if there is none.
std::string name_in(std::string_view bytes, const char* kind, uint32_t field);
std::string name_of_sparse(std::string_view bytes);  // A SparseTensorProto.

// Of a NodeProto: the names it reads, those that graphs inside of it read or give too; and those it makes, none empty.
std::vector<std::string> reads_of(std::string_view node);
std::vector<std::string> makes_of(std::string_view node);

// Adds the files outside of the model's that tensors lie in, as the model calls them.
void add_locations_of_tensor(std::string_view tensor, std::set<std::string>& locations);
void add_locations_of_node(std::string_view node, std::set<std::string>& locations);
void add_locations_of_function(std::string_view function, std::set<std::string>& locations);

}  // namespace unmoor::onnx
