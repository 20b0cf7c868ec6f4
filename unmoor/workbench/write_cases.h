#pragma once

#include <string>
#include <vector>

#include "unmoor/workbench/conformance.h"

namespace unmoor {

// Writes conformance cases in ONNX's own test layout, so that other runtimes can answer them: FOLDER/N/model.onnx, test_data_set_0 with inputs
// and the reference's outputs, and case.txt with the case's text. Cases that ONNX files cannot hold (operators of our own, maps as outputs)
// are left out. Returns how many were written. Fails with Io, and with InvalidArgument if the folder exists and is not empty.
size_t write_cases(const std::vector<std::string>& cases, const std::string& folder, const Progress& progress);

}  // namespace unmoor
