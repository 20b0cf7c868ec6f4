#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "unmoor/hal/device.h"

namespace unmoor {

// What one planted case came to. Each is tried as a kernel's result, as a value of a dump, and as a model's output.
struct SelfTestCase {
  std::string name;       // "one element of a million is off"
  std::string node;       // Where it was planted.
  bool is_defect = true;  // Else a difference that must not be called a defect.
  // By way, in the order of self_test_ways(): "found", "missed" of defects, "passed", "flagged" of the others; empty where the
  // way does not apply.
  std::vector<std::string> results;
  bool right() const;
};

struct SelfTestResult {
  std::vector<SelfTestCase> cases;

  size_t wrong() const;  // Cases with a defect missed or a difference flagged.
  nlohmann::json to_json() const;
  std::string text() const;
};

std::vector<std::string> self_test_ways();  // "kernel", "dump", "output"

// Runs a small model on the device, a host device with every operator, plants each case in what the target gives, and aligns.
SelfTestResult self_test(const std::shared_ptr<Device>& host, const std::function<void(const std::string&, size_t, size_t)>& progress);

}  // namespace unmoor
