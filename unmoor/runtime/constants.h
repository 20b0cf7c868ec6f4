#pragma once

#include <memory>

#include "unmoor/hal/device.h"
#include "unmoor/tensor/tensor.h"

namespace unmoor {

// A host tensor as a buffer, without a copy. Keeps the tensor alive.
class TensorBuffer : public Buffer {
 public:
  explicit TensorBuffer(Tensor tensor);
  size_t bytes() const override { return tensor_.bytes().size(); }
  std::byte* host() override { return data_; }

 private:
  Tensor tensor_;
  std::byte* data_ = nullptr;
};

// A constant where the device can read it: in place on host devices (or an aligned copy), uploaded on others.
std::shared_ptr<Buffer> constant_buffer(const Tensor& tensor, Device& device);

}  // namespace unmoor
