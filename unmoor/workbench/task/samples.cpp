#include "unmoor/workbench/task/samples.h"

#include <algorithm>
#include <filesystem>

#include "unmoor/base/error.h"
#include "unmoor/engines/sample_script.h"
#include "unmoor/formats/npy.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

namespace fs = std::filesystem;

// The tensor in the declared dtype: floats of another width are rounded, integers must fit.
Tensor fitted(const Tensor& tensor, DType wanted, const std::string& where) {
  if (tensor.dtype() == wanted) return tensor;
  const bool floats = is_float(tensor.dtype()) && is_float(wanted);
  const bool whole = is_integer(tensor.dtype()) && is_integer(wanted);
  if (!floats && !whole) fail(ErrorKind::InvalidArgument, where, " is ", tensor.dtype(), ", and the model reads ", wanted);
  Tensor result(TensorType{wanted, tensor.shape()});
  if (floats) {
    store(result, std::span<const double>(doubles(tensor)));
    return result;
  }
  const auto numbers = integers(tensor);
  store(result, std::span<const int64_t>(numbers));
  if (integers(result) != numbers) fail(ErrorKind::InvalidArgument, where, " has numbers that ", wanted, " cannot hold");
  return result;
}

TaskSample sorted_out(std::string name, NamedData arrays, const std::vector<ValueInfo>& inputs) {
  TaskSample sample{std::move(name), {}, {}};
  for (const ValueInfo& input : inputs) {
    const auto found = arrays.find(input.name);
    if (found == arrays.end()) fail(ErrorKind::InvalidArgument, "'", sample.name, "' has no array '", input.name, "', which the model reads");
    const auto* const type = std::get_if<TensorType>(&input.type);
    const bool is_tensor = found->second.is_tensor() && type != nullptr;
    sample.inputs[input.name] = is_tensor ? Data(fitted(found->second.tensor(), type->dtype, cat("'", input.name, "' of '", sample.name, "'"))) : found->second;
    arrays.erase(found);
  }
  sample.labels = std::move(arrays);
  return sample;
}

class FolderSource : public SampleSource {
 public:
  FolderSource(const std::string& folder, std::vector<ValueInfo> inputs) : inputs_(std::move(inputs)) {
    std::error_code problem;
    for (fs::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem)) {
      if (at->path().extension() == ".npz") files_.push_back(at->path());
    }
    if (problem) fail(ErrorKind::Io, "cannot read the folder '", folder, "': ", problem.message());
    if (files_.empty()) fail(ErrorKind::InvalidArgument, "the folder '", folder, "' has no .npz file; each is to be a sample, with an array for every input");
    std::ranges::sort(files_);
  }

  size_t total() const override { return files_.size(); }
  std::optional<TaskSample> next() override {
    if (at_ == files_.size()) return std::nullopt;
    const fs::path& file = files_[at_++];
    NamedData arrays;
    for (auto& [name, tensor] : read_npz(file.string())) arrays[name] = std::move(tensor);
    return sorted_out(file.filename().string(), std::move(arrays), inputs_);
  }

 private:
  std::vector<ValueInfo> inputs_;
  std::vector<fs::path> files_;
  size_t at_ = 0;
};

class ScriptSource : public SampleSource {
 public:
  ScriptSource(const std::string& file, std::vector<ValueInfo> inputs, const std::string& python) : inputs_(std::move(inputs)), script_(file, python) {}

  std::optional<TaskSample> next() override {
    auto arrays = script_.next();
    if (!arrays) return std::nullopt;
    return sorted_out(cat("sample ", ++count_), std::move(*arrays), inputs_);
  }

 private:
  std::vector<ValueInfo> inputs_;
  SampleScript script_;
  size_t count_ = 0;
};

}  // namespace

std::unique_ptr<SampleSource> open_samples(const std::string& path, std::vector<ValueInfo> inputs, const std::string& python) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return std::make_unique<FolderSource>(path, std::move(inputs));
  if (fs::path(path).extension() == ".py") return std::make_unique<ScriptSource>(path, std::move(inputs), python);
  fail(ErrorKind::InvalidArgument, "'", path, "' is neither a folder of .npz files nor a Python file (.py) with samples()");
}

}  // namespace unmoor
