#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

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

// Constants on devices, by device and by the constant's memory: the plans of one model hold one copy. It lives as long as a plan holds it,
// and keeps the constant alive, so that its memory names it. Any thread.
class SharedConstants {
 public:
  std::shared_ptr<Buffer> find(const Device& device, const Tensor& constant) const;  // Null if there is none.
  // Notes a copy that is complete. Returns it, or the one that another plan noted meanwhile.
  std::shared_ptr<Buffer> keep(const Device& device, const Tensor& constant, std::shared_ptr<Buffer> copy);

 private:
  struct Entry {
    Tensor constant;
    std::shared_ptr<Buffer> copy;
  };
  using Key = std::tuple<const Device*, const std::byte*, size_t>;

  mutable std::mutex mutex_;
  std::map<Key, std::weak_ptr<const Entry>> entries_;
};

// Puts a plan's constants where its devices can read them. Uploads go on side by side until `finish`. One thread.
class ConstantLoader {
 public:
  explicit ConstantLoader(std::shared_ptr<SharedConstants> shared) : shared_(std::move(shared)) {}
  // In place on host devices (or an aligned copy). On others a copy, which may be read after `finish`.
  void load(std::shared_ptr<Buffer>& to, const Tensor& constant, Device& device);
  void finish();

 private:
  struct Upload {
    Tensor constant;
    Device* device;
    std::shared_ptr<Buffer>* to;
  };
  std::shared_ptr<SharedConstants> shared_;  // Shared by the plans of a model.
  std::vector<Upload> uploads_;              // Kept until the streams below are done.
  std::map<Device*, std::unique_ptr<Stream>> streams_;
};

}  // namespace unmoor
