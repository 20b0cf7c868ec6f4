#include "cli/align_bisect.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "unmoor/backends/cpu/cpu.h"
#include "unmoor/base/error.h"
#include "unmoor/workbench/bisect.h"
#include "unmoor/workbench/dump.h"

namespace unmoor::cli {
namespace {

bool is_off(const AlignedValue& value) { return value.verdict == ValueVerdict::Differ || value.verdict == ValueVerdict::Suspicious; }

// Why the target runs no parts of a model; empty if it does.
std::string why_no_parts(const std::string& target) {
  if (!is_device(target) && is_dump(target)) return cat("'", target, "' is a folder of values");
  const auto engine = parse_engine(target);
  return engine && engine->engine == "torch" ? cat(engine->text(), " runs PyTorch's own model, of which no part can be cut out") : "";
}

class OutputsOnly : public Runner {
 public:
  explicit OutputsOnly(std::unique_ptr<Runner> runner) : runner_(std::move(runner)) {}
  std::string name() const override { return runner_->name(); }
  std::vector<ValueInfo> inputs() const override { return runner_->inputs(); }
  std::vector<ValueInfo> outputs() const override { return runner_->outputs(); }
  std::vector<ValueInfo> values() const override { return {}; }
  NamedData run(const NamedData& inputs, Observer*) override { return runner_->run(inputs); }
  std::vector<double> time_runs(const NamedData& inputs, size_t count, double seconds) override {
    return runner_->time_runs(inputs, count, seconds);
  }
  PlanInfo plan() override { return runner_->plan(); }

 private:
  std::unique_ptr<Runner> runner_;
};

// The target opened anew on another file: an engine in a process of its own.
NamedData run_part(const Options& options, const std::string& path, const NamedData& inputs) {
  Options part = options;
  part.model = path;
  part.inputs.clear();
  part.shapes.clear();
  part.keep_float32.clear();
  part.is_part = true;
  const Lab lab(part, inputs);
  return align_side(lab, part.target, false, true)->run(inputs);
}

}  // namespace

void check_bisect(const Options& options) {
  if (!options.bisect) return;
  const auto refuse = [](bool given, const char* flag, const char* why) {
    if (given) fail(ErrorKind::InvalidArgument, flag, " does not go with --bisect, which ", why);
  };
  if (const std::string why = why_no_parts(options.target); !why.empty()) fail(ErrorKind::InvalidArgument, "--bisect runs parts of the model on the target, and ", why);
  refuse(!options.nodes.empty() || !options.ops.empty(), "running nodes alone", "looks at outputs only");
  refuse(!options.values.empty() || options.every > 1, "a choice of values", "looks at outputs only");
  refuse(!options.keep_curve.empty(), "--keep-curve", "looks at outputs only");
  refuse(!options.keep_float32.empty(), "--keep-float32", "runs parts of the model, in which these nodes are not all there");
  refuse(!options.reproductions.empty(), "--reproductions", "looks at outputs only");
}

std::unique_ptr<Runner> outputs_only(std::unique_ptr<Runner> runner) { return std::make_unique<OutputsOnly>(std::move(runner)); }

void add_bisection(const Lab& lab, Runner& reference, const NamedData& inputs, AlignResult& found, nlohmann::json& result, std::string& text) {
  const Options& options = lab.options();
  const auto wrong = std::ranges::find_if(found.outputs, is_off);
  const bool is_narrowed = !options.values.empty() || options.every > 1;  // Then that no value shows is the user's choice.
  if (is_narrowed || !found.values.empty() || wrong == found.outputs.end()) return;
  if (const std::string why = why_no_parts(options.target); !why.empty()) {
    text += wrapped(cat("which node goes wrong first cannot be searched: ", why));
    return;
  }
  const size_t threads = options.threads > 0 ? options.threads : usable_threads();
  const Float64Help help = float64_help(std::make_shared<ThreadPool>(threads));
  const Float64Scope scope(help);
  BisectOptions bisect_options;
  bisect_options.run_part = [&options](const std::string& path, const NamedData& given) { return run_part(options, path, given); };
  bisect_options.progress = show_progress;
  bisect_options.tolerance = found.tolerance;
  try {
    const Bisection bisection = bisect(lab.model(), lab.typed(), reference, inputs, wrong->name, bisect_options);
    found.first_divergent = bisection.node;
    result["bisection"] = bisection.to_json();
    text += bisection.text();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Stopped) throw;
    result["bisection"] = {{"output", wrong->name}, {"runs", 0}, {"trials", nlohmann::json::array()}, {"node", nullptr}, {"stopped", error.what()}};
    text += wrapped(cat("no part of the model could be run to find where '", wrong->name, "' goes wrong: ", error.what()));
  }
}

}  // namespace unmoor::cli
