#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "unmoor/hal/kernel.h"
#include "unmoor/ops/cases.h"
#include "unmoor/workbench/result.h"

namespace unmoor {

struct CaseResult {
  std::string text;     // The case; can be pasted back.
  std::string verdict;  // passed, failed, refused; or a state, see serve_placements
  std::string detail;   // Why; the kernels that passed.
  bool generic = false;  // Passed by the plain path only.
};

struct ConformanceResult {
  std::string device;
  std::vector<CaseResult> cases;
  size_t count(std::string_view verdict) const;
  nlohmann::json to_json() const;
  std::string text() const;
};

// The texts of all cases of the operators asked for (all, if none is named), for every dtype that the test set covers.
// Fails with InvalidArgument on an unknown operator or category.
std::vector<std::string> case_texts(const std::vector<std::string>& ops, const std::string& category);

// Runs cases in child processes: `command` is what starts one (serve_cases or serve_onnx_tests reads them on its standard input). A child that dies fails the case it was at, and
// the rest goes on in a new one.
using Progress = std::function<void(const std::string&, size_t, size_t)>;
ConformanceResult conformance(const std::string& device, const std::vector<std::string>& cases, const std::vector<std::string>& command,
                              const Progress& progress);

// The child's side: every kernel of the first device that takes a case runs it, with guard bytes behind its outputs.
// Returns the exit status.
using OpenDevices = std::function<std::vector<std::shared_ptr<Device>>()>;
int serve_cases(const OpenDevices& open);
// Likewise, but only says where the planner would put each case: native, generic, expanded, host, fallback (with the first refusal) or unsupported.
int serve_placements(const OpenDevices& open);
// Likewise for folders of ONNX's test layout (onnx_tests.h), a path a line.
int serve_onnx_tests(const OpenDevices& open);

}  // namespace unmoor
