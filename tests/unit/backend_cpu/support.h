#pragma once

#include <functional>
#include <string>
#include <vector>

#include "unmoor/hal/kernel.h"

namespace unmoor::test {

// An operator call built by hand: values that are constants, values that come at run time, the output types.
struct ByHand {
  std::string op;
  std::vector<Tensor> inputs;         // An empty tensor is an absent input.
  std::vector<bool> constant = {};    // By input; missing ones are false.
  std::vector<TensorType> outputs = {};
  Attributes attributes = {};
};

// Float tensors of a fixed pseudo-random sequence in [-1, 1].
Tensor random_floats(Shape shape, uint32_t seed);

// The cpu device with this many threads.
std::shared_ptr<Device> open_cpu(size_t threads);

// Runs the call by this kernel (one that works on values gets them as they are), or by the first that takes it where `kernel` is null. Outputs and workspace lie between guard bytes, which are
// checked. Inputs that the kernel says it does not use are not given. With `in_place` output 0 lies where input 0 does. Fails the test if there
// is no kernel.
std::vector<Tensor> run_kernel(Device& device, const OpCall& call, const std::vector<Tensor>& inputs, const Kernel* kernel = nullptr,
                               bool in_place = false);
std::vector<Tensor> run_by_hand(Device& device, const ByHand& by_hand);

// ||a - b|| / ||b|| over finite elements; infinite if one is finite and the other is not, or if infinities or NaNs differ.
double relative_error(const Tensor& found, const std::vector<double>& wanted);

// Calls `body` with every instruction set that kernels were built for and this machine has, by name.
void for_each_target(const std::function<void(const std::string&)>& body);

}  // namespace unmoor::test
