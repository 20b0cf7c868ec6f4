#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unmoor/base/file.h"
#include "unmoor/tensor/tensor.h"

namespace unmoor::onnx {

struct NamedTensor {
  std::string_view name;  // In the file.
  Tensor tensor;
};

// Reads the tensors of one file. Their bytes stay where they are, in this file or in external ones beside it; only what the file
// encodes number by number is decoded. Keeps note of where the bytes lie. One thread at a time.
class TensorReader {
 public:
  // A file with the bytes of weights in it.
  struct Weights {
    std::shared_ptr<const MappedFile> file;  // Shared with the tensors that view it.
    std::vector<std::span<const std::byte>> spans;
  };

  explicit TensorReader(std::shared_ptr<const MappedFile> file) : own_{std::move(file), {}} {}

  // A TensorProto or a SparseTensorProto, which becomes dense. Fails with InvalidModel, Unsupported or Io.
  NamedTensor read(std::string_view bytes);
  NamedTensor read_sparse(std::string_view bytes);

  // In the file itself, and by location in other files.
  const Weights& own() const { return own_; }
  const std::map<std::string, Weights, std::less<>>& external() const { return external_; }

 private:
  struct Fields;
  Tensor decode(const Fields& fields, TensorType type);
  Tensor in_place(TensorType type, std::string_view bytes);
  void read_ahead(const std::byte* from);
  Tensor external_tensor(const Fields& fields, TensorType type);
  Weights& open_external(const std::string& location);

  Weights own_;
  std::map<std::string, Weights, std::less<>> external_;
  const std::byte* read_until_ = nullptr;  // The system was asked to read ahead up to here,
  size_t window_ = 0;                      // this much at a time.
  size_t dense_bytes_ = 0;                 // Of all sparse tensors so far.
};

}  // namespace unmoor::onnx
