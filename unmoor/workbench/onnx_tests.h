#pragma once

#include <memory>
#include <string>
#include <vector>

#include "unmoor/hal/device.h"

namespace unmoor {

// ONNX's own test layout: a folder a case, with model.onnx and test_data_set_N/input_M.pb, output_M.pb.

// The folders of all cases below `folder`, itself included, sorted; only those whose path holds `part`, if it is not empty. Fails with
// Io if the folder cannot be read, with InvalidArgument if there is no case.
std::vector<std::string> find_onnx_tests(const std::string& folder, const std::string& part);

// How one case went on devices of which only the first and the host's control flow may run a node.
struct OnnxTestResult {
  std::string verdict;   // passed, failed, refused
  std::string detail;    // What is wrong, or the kernels that ran; whether it was judged as random.
  bool generic = false;  // Some node ran by the plain path of the cpu.
};

// Asks the first device to prepare the kernels that a case needs, so that its next finish_preparation compiles those of many cases
// together. What cannot be prepared is left for run_onnx_test to tell.
void prepare_onnx_test(const std::string& folder, const std::vector<std::shared_ptr<Device>>& devices);

// Runs every data set of a case. Outputs must have the dtype, the shape and, within |actual - expected| <= 1e-7 + 1e-3 |expected| (what
// onnx.backend.test asks; of bfloat16 it asks 2^-6), the values of the files; integers, bools and strings exactly. A case whose values come from a random
// generator is judged by shape, dtype, the set of values and the share of zeros. Never throws on a broken case.
OnnxTestResult run_onnx_test(const std::string& folder, const std::vector<std::shared_ptr<Device>>& devices);

}  // namespace unmoor
