#include "unmoor/runtime/constants.h"

namespace unmoor {
namespace {

// Element-aligned bytes of a tensor of any type.
const std::byte* aligned_bytes(const Tensor& tensor) {
  switch (bits_of(tensor.dtype())) {
    case 16: return reinterpret_cast<const std::byte*>(tensor.span<uint16_t>().data());
    case 32: return reinterpret_cast<const std::byte*>(tensor.span<uint32_t>().data());
    case 64: return reinterpret_cast<const std::byte*>(tensor.span<uint64_t>().data());
    default: return tensor.bytes().data();
  }
}

}  // namespace

// Kernels get one kind of pointer; those to inputs are only read.
TensorBuffer::TensorBuffer(Tensor tensor) : tensor_(std::move(tensor)), data_(const_cast<std::byte*>(aligned_bytes(tensor_))) {}

std::shared_ptr<Buffer> constant_buffer(const Tensor& tensor, Device& device) {
  if (device.info().host) return std::make_shared<TensorBuffer>(tensor);
  auto buffer = device.allocate(tensor.bytes().size());
  const auto stream = device.make_stream();
  stream->upload(*buffer, 0, tensor.bytes());
  stream->synchronize();
  return buffer;
}

}  // namespace unmoor
