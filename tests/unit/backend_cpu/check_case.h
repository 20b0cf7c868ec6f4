#pragma once

#include <set>
#include <string>

#include "unmoor/hal/kernel.h"
#include "unmoor/ops/cases.h"

namespace unmoor::test {

struct Count {
  size_t run = 0;
  std::set<std::string> kernels = {};
};

// Runs the case by each kernel of the device that takes it, in place too where it may, and compares with the reference. Cases of
// sequences, maps and optionals are left out. `where` is for messages.
void check_case(Device& device, const Op& op, const Case& one, const std::string& where, Count& count);

}  // namespace unmoor::test
