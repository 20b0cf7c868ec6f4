#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unmoor/runtime/runner.h"

namespace unmoor {

// One item of a data set: what the model reads, and what else is known of it, such as the right answer.
struct TaskSample {
  std::string name;  // "dog.npz", "sample 7"
  NamedData inputs;
  NamedData labels;
};

// Yields the samples of a data set in order. One thread at a time.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual std::optional<TaskSample> next() = 0;      // Nothing at the end.
  virtual size_t total() const { return 0; }         // How many there are; 0 if nobody knows before the end.
};

// A folder of .npz files, one a sample, in order of their names; or a Python file with samples(). Arrays that are named as inputs
// are these, converted to the dtype that the model declares where only the width differs; all others are labels. Opening and
// next() fail with InvalidArgument, naming the sample, where an input is missing or of another kind; with Io and Device.
std::unique_ptr<SampleSource> open_samples(const std::string& path, std::vector<ValueInfo> inputs, const std::string& python);

}  // namespace unmoor
