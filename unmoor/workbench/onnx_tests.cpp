#include "unmoor/workbench/onnx_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/onnx.h"
#include "unmoor/runtime/place.h"
#include "unmoor/runtime/session.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/compare.h"

namespace unmoor {
namespace {

namespace fs = std::filesystem;

constexpr Tolerance onnx_tolerance{1e-7, 1e-3, false};

// ONNX's own runner compares bfloat16 to two units in the last place.
Tolerance tolerance_for(DType stored) {
  Tolerance tolerance = onnx_tolerance;
  if (stored == DType::BF16) tolerance.relative = 0x1p-6;
  return tolerance;
}

// What a case read from its folder.
struct DataSet {
  NamedData inputs;
  std::vector<Data> expected;  // By output.
};

// STEM_0.pb, STEM_1.pb, …: as many as there are.
std::vector<std::string> numbered(const fs::path& folder, const char* stem) {
  std::vector<std::string> files;
  for (fs::path file = folder / cat(stem, "_0.pb"); fs::exists(file); file = folder / cat(stem, "_", files.size(), ".pb")) files.push_back(file);
  return files;
}

DataSet read_set(const Graph& graph, const fs::path& folder) {
  DataSet set;
  const auto inputs = numbered(folder, "input");
  const auto outputs = numbered(folder, "output");
  if (inputs.size() != graph.inputs().size()) {
    fail(ErrorKind::InvalidModel, folder.string(), " has ", inputs.size(), " inputs, and the model takes ", graph.inputs().size());
  }
  if (outputs.size() != graph.outputs().size()) {
    fail(ErrorKind::InvalidModel, folder.string(), " has ", outputs.size(), " outputs, and the model makes ", graph.outputs().size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph.value(graph.inputs()[i]);
    set.inputs[value.name] = read_onnx_tensor(inputs[i], &value.type);
  }
  for (size_t i = 0; i < outputs.size(); ++i) set.expected.push_back(read_onnx_tensor(outputs[i], &graph.value(graph.outputs()[i]).type));
  return set;
}

std::vector<fs::path> set_folders(const std::string& folder) {
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("test_data_set_")) sets.push_back(entry.path());
  }
  std::ranges::sort(sets);
  return sets;
}

// Whether the graph draws random numbers somewhere.
bool draws(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) {
    const Op* const op = all_ops().find(node.op);
    if (op != nullptr && op->category == Category::Sampling) return true;
    if (node.op == "Dropout" && node.inputs.size() > 2 && node.inputs[2] != no_value) return true;
    return std::ranges::any_of(node.attributes, [](const auto& attribute) {
      const auto* const body = std::get_if<SubGraph>(&attribute.second);
      return body != nullptr && draws(**body);
    });
  });
}

// Which kernels ran.
class KernelList : public Observer {
 public:
  bool wants_steps() override { return true; }
  void on_step(const StepTrace& step) override {
    if (!step.kernel.empty()) names_.insert(step.kernel);
  }
  const std::set<std::string>& names() const { return names_; }

 private:
  std::set<std::string> names_;
};

// Empty if dtypes and shapes agree.
std::string compare_types(const Data& expected, const Data& actual) {
  if (!expected.is_tensor() || !actual.is_tensor() || expected.tensor().type() == actual.tensor().type()) return "";
  return fmt::format("it is {}, not {}", to_text(actual.tensor().type()), to_text(expected.tensor().type()));
}

// Two draws of the same distribution: where both are not zero they agree, and about as many are zero, within five deviations.
std::string compare_draws(const Tensor& expected, const Tensor& actual) {
  const auto e = doubles(expected);
  const auto a = doubles(actual);
  double e_zeros = 0;
  double a_zeros = 0;
  for (size_t i = 0; i < e.size(); ++i) {
    if (e[i] == 0) ++e_zeros;
    if (a[i] == 0) ++a_zeros;
    if (e[i] != 0 && a[i] != 0 && std::fabs(e[i] - a[i]) > onnx_tolerance.absolute + onnx_tolerance.relative * std::fabs(e[i])) {
      return fmt::format("element {} is {}, neither 0 nor {}", i, a[i], e[i]);
    }
  }
  const auto count = static_cast<double>(e.size());
  const double share = count == 0 ? 0 : (e_zeros + a_zeros) / (2 * count);
  const double deviation = std::sqrt(2 * count * share * (1 - share));
  if (std::fabs(e_zeros - a_zeros) <= 5 * deviation) return "";
  return fmt::format("{} of {} elements are zero, where {} were expected", a_zeros, count, e_zeros);
}

std::string compare_values(const Data& expected, const Data& actual, bool random) {
  std::string problem = compare_types(expected, actual);
  if (!problem.empty()) return problem;
  if (random && expected.is_tensor() && actual.is_tensor()) return compare_draws(expected.tensor(), actual.tensor());
  const DType stored = expected.is_tensor() ? expected.tensor().dtype() : DType::F32;
  const Metrics metrics = compare(expected, actual, stored, tolerance_for(stored));
  if (metrics.fine()) return "";
  if (!metrics.problem.empty()) return metrics.problem;
  if (metrics.class_mismatch > 0) return fmt::format("{} elements are NaN or infinite on one side only", metrics.class_mismatch);
  return fmt::format("element {} is off: {:.3g} times its tolerance (largest error {:.3g})", metrics.worst, metrics.over, metrics.max_abs);
}

// Empty if the outputs are as expected.
std::string run_set(const Graph& graph, ModelRunner& runner, const fs::path& folder, bool random, KernelList& kernels) {
  const DataSet set = read_set(graph, folder);
  const NamedData outputs = runner.run(set.inputs, &kernels);
  for (size_t i = 0; i < set.expected.size(); ++i) {
    const std::string& name = graph.output_names().at(i);
    const std::string problem = compare_values(set.expected[i], outputs.at(name), random);
    if (!problem.empty()) return fmt::format("{}: output {} ('{}'): {}", folder.filename().string(), i, name, problem);
  }
  return "";
}

std::shared_ptr<const Graph> read_graph(const std::string& folder) {
  const auto model = std::make_shared<const Model>(read_onnx(folder + "/model.onnx"));
  return {model, &model->graph};
}

OnnxTestResult run_sets(const std::string& folder, const std::vector<std::shared_ptr<Device>>& devices) {
  const auto graph = read_graph(folder);
  PlanOptions options;
  options.fallback = Fallback::Forbid;
  ModelRunner runner(graph, devices, options);
  KernelList kernels;
  const bool random = draws(*graph);
  const auto sets = set_folders(folder);
  if (sets.empty()) return {"failed", "it has no test_data_set_N", false};
  for (const fs::path& set : sets) {
    const std::string problem = run_set(*graph, runner, set, random, kernels);
    if (!problem.empty()) return {"failed", problem, false};
  }
  OnnxTestResult result{"passed", random ? "random: judged by shape, dtype, values and rate" : "", kernels.names().contains("cpu.generic")};
  if (!random) result.detail = fmt::format("{}", fmt::join(kernels.names(), ", "));
  return result;
}

// Prepares each node on the first device as the planner would, and drops what it made: the device remembers the kernels.
void ask_for_kernels(const Graph& graph, const NamedData& inputs, const std::vector<std::shared_ptr<Device>>& devices) {
  InputShapes shapes;
  for (const auto& [name, data] : inputs) {
    if (data.is_tensor()) shapes[name] = data.tensor().shape();
  }
  const PlanOptions options;
  const Graph shaped = with_shapes(preoptimized(graph, options.passes), shapes);
  const PlacedGraph placed = place(optimized(shaped, options.passes), devices, options);
  for (const Placement& placement : placed.placements) {
    if (placement.device != 0 || placement.kernel.empty()) continue;
    const OpCall call = call_for(placed.graph, placed.graph.node(placement.node));
    const Kernel* const kernel = choose_kernel(call, *devices[0], options.only_kernel).kernel;
    if (kernel != nullptr && kernel->prepare) (void)kernel->prepare(call, *devices[0]);
  }
}

}  // namespace

std::vector<std::string> find_onnx_tests(const std::string& folder, const std::string& part) {
  std::vector<std::string> found;
  std::error_code error;
  const auto take = [&](const fs::path& place) {
    const std::string path = place.string();
    if (path.find('\n') == std::string::npos && path.find(part) != std::string::npos && fs::exists(place / "model.onnx")) found.push_back(path);
  };
  take(folder);
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->is_directory()) take(at->path());
  }
  if (error) fail(ErrorKind::Io, "the folder ", folder, " cannot be read: ", error.message());
  if (found.empty()) {
    fail(ErrorKind::InvalidArgument, "there is no model.onnx with test_data_set_N", part.empty() ? "" : cat(" and '", part, "' in its path"),
         " below ", folder);
  }
  std::ranges::sort(found);
  return found;
}

void prepare_onnx_test(const std::string& folder, const std::vector<std::shared_ptr<Device>>& devices) {
  try {
    const auto graph = read_graph(folder);
    for (const fs::path& set : set_folders(folder)) ask_for_kernels(*graph, read_set(*graph, set).inputs, devices);
  } catch (const std::exception&) {
    return;  // It fails again when it runs.
  }
}

OnnxTestResult run_onnx_test(const std::string& folder, const std::vector<std::shared_ptr<Device>>& devices) {
  try {
    return run_sets(folder, devices);
  } catch (const Error& error) {
    return {error.kind() == ErrorKind::Unsupported ? "refused" : "failed", error.what(), false};
  } catch (const std::exception& error) {
    return {"failed", error.what(), false};
  }
}

}  // namespace unmoor
