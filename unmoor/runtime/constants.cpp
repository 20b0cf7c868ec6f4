#include "unmoor/runtime/constants.h"

#include <complex>

#include "unmoor/base/file_pages.h"

namespace unmoor {
namespace {

// Element-aligned bytes of a tensor of any type.
const std::byte* aligned_bytes(const Tensor& tensor) {
  switch (bits_of(tensor.dtype())) {
    case 16: return reinterpret_cast<const std::byte*>(tensor.span<uint16_t>().data());
    case 32: return reinterpret_cast<const std::byte*>(tensor.span<uint32_t>().data());
    case 64: return reinterpret_cast<const std::byte*>(tensor.span<uint64_t>().data());
    case 128: return reinterpret_cast<const std::byte*>(tensor.span<std::complex<double>>().data());
    default: return tensor.bytes().data();
  }
}

}  // namespace

// Kernels get one kind of pointer; those to inputs are only read. What an aligned copy was made of is not read again.
TensorBuffer::TensorBuffer(Tensor tensor) : tensor_(std::move(tensor)), data_(const_cast<std::byte*>(aligned_bytes(tensor_))) {
  if (data_ != tensor_.bytes().data()) release_file_pages(tensor_.bytes());
}

std::shared_ptr<Buffer> SharedConstants::find(const Device& device, const Tensor& constant) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find({&device, constant.bytes().data(), constant.bytes().size()});
  const auto entry = found == entries_.end() ? nullptr : found->second.lock();
  return entry == nullptr ? nullptr : std::shared_ptr<Buffer>(entry, entry->copy.get());
}

std::shared_ptr<Buffer> SharedConstants::keep(const Device& device, const Tensor& constant, std::shared_ptr<Buffer> copy) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const auto& item) { return item.second.expired(); });
  auto& known = entries_[{&device, constant.bytes().data(), constant.bytes().size()}];
  auto entry = known.lock();
  if (entry == nullptr) {
    entry = std::make_shared<const Entry>(Entry{constant, std::move(copy)});
    known = entry;
  }
  return {entry, entry->copy.get()};
}

void ConstantLoader::load(std::shared_ptr<Buffer>& to, const Tensor& constant, Device& device) {
  if (device.info().host) {
    to = std::make_shared<TensorBuffer>(constant);
    return;
  }
  to = shared_ == nullptr ? nullptr : shared_->find(device, constant);
  if (to != nullptr) return;
  to = device.allocate(constant.bytes().size());
  auto& stream = streams_[&device];
  if (stream == nullptr) stream = device.make_stream();
  uploads_.push_back({constant, &device, &to});
  stream->upload(*to, 0, constant.bytes());
}

void ConstantLoader::finish() {
  for (const auto& [device, stream] : streams_) stream->synchronize();
  for (const Upload& upload : uploads_) {
    if (shared_ != nullptr) *upload.to = shared_->keep(*upload.device, upload.constant, *upload.to);
  }
  uploads_.clear();
}

}  // namespace unmoor
