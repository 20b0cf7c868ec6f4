#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "unmoor/hal/device.h"
#include "unmoor/ops/op.h"

namespace unmoor::bench {

// One operator made ready on a device, with weights, inputs and outputs of its own.
struct Subject {
  std::function<void()> run;  // Returns when the result is there.
  std::string kernel;         // That computes it; "planned" where the operator is expanded.
  Cost cost;
};

// From a case's text, such as "Softmax f32[2,17,3]~small axis=1": one, or as many as together move `bytes`. By the first kernel
// that takes it; where none does, by a plan of its expansion, which also copies inputs and outputs. Fails with InvalidArgument on
// a text that does not parse.
std::vector<Subject> make_subjects(const std::shared_ptr<Device>& device, std::string_view text, size_t bytes);

}  // namespace unmoor::bench
