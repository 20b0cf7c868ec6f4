#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "unmoor/backends/gpu/gpu.h"
#include "unmoor/hal/kernel.h"

namespace unmoor::gpu {

// The first OpenCL device, opened once; null with the reason printed if there is none.
std::shared_ptr<Device> test_device();

// Output tensors of a kernel on the test device. Operands lie in one buffer at offsets, as in an arena, with guard bytes between
// them that must survive.
std::vector<Tensor> run_prepared(Device& device, const Prepared& prepared, const OpCall& call, const std::vector<Data>& inputs);
std::vector<Tensor> run_on_device(Device& device, const Kernel& kernel, const OpCall& call, const std::vector<Data>& inputs);

#define UNMOOR_NEED_DEVICE()                                    \
  const auto device = ::unmoor::gpu::test_device();             \
  if (device == nullptr) GTEST_SKIP() << "no OpenCL device here"

}  // namespace unmoor::gpu
