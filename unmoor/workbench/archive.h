#pragma once

#include <map>
#include <string>

#include "unmoor/tensor/tensor.h"

namespace unmoor {

using NamedTensors = std::map<std::string, Tensor, std::less<>>;

// Adds a value to what an .npz holds: a tensor as NAME, the items of a sequence as NAME/0, NAME/1, …, a map as NAME/keys and
// NAME/values. Maps of single numbers have one array of values, and a sequence of such maps with equal keys has one of a row a
// map.
void add_to_archive(const std::string& name, const Data& data, NamedTensors& tensors);

// A value as people read it, cut after about `width` characters: "{no: 0.25, yes: 0.75}", "[1, 2, 3]".
std::string short_value(const Data& data, size_t width);

}  // namespace unmoor
