#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace unmoor::cli {
namespace {

constexpr const char* footer =
    "Exit status: 0 fine, 1 a finding (differs, unsupported), 2 wrong use or bad input, 3 something is missing on this machine, "
    "4 an error of ours.";

// Defines the flags that tools share.
class Flags {
 public:
  Flags(CLI::App& tool, Options& options) : tool_(tool), options_(options) {}

  Flags& model() {
    tool_.add_option("MODEL", options_.model, "an ONNX file")->required();
    return *this;
  }
  Flags& on(const char* otherwise) {
    tool_.add_option("--on", options_.devices, "devices, as backend[:index]: cpu, opencl, reference")->delimiter(',')->default_val(otherwise);
    return *this;
  }
  Flags& to() {
    tool_.add_option("--to", options_.devices, "the device to move to, as backend[:index]")->required()->expected(1);
    return *this;
  }
  Flags& fallback() {
    tool_.add_option("--fallback", options_.fallback, "what to do with nodes that the device refuses: run them on the cpu and say so, or fail")
        ->check(CLI::IsMember({"report", "forbid"}))
        ->capture_default_str();
    return *this;
  }
  Flags& inputs() {
    tool_.add_option("-i,--input", options_.inputs, "NAME=FILE (.npy, .pb), FILE.npz by name, or one FILE.npy; what is not given is generated");
    tool_.add_option("--shapes", options_.shapes, "shapes of generated inputs: x:1x3x224x224, x:[1,3,224,224] or 'x:1,3;y:2'");
    tool_.add_option("--seed", options_.seed, "for generated inputs")->capture_default_str();
    tool_.add_option("--range", options_.range, "LOW,HIGH: generated floats are uniform in it, not normal");
    return *this;
  }
  Flags& settings() {
    tool_.add_option("--set", options_.settings, "a device's option: DEVICE.KEY=VALUE, such as cpu.threads=2");
    return *this;
  }
  Flags& threads() {
    tool_.add_option("--threads", options_.threads, "threads of the cpu device; 0: one a core")->capture_default_str();
    return *this;
  }
  Flags& narrowed() {
    tool_.add_option("--node", options_.nodes, "only these nodes")->delimiter(',');
    tool_.add_option("--op", options_.ops, "only these operators")->delimiter(',');
    return *this;
  }
  Flags& html() {
    tool_.add_option("--html", options_.html, "writes the result as one self-contained page");
    return *this;
  }
  Flags& results() {
    tool_.add_flag("--json", options_.json, "prints the result as one JSON object");
    tool_.add_flag("--exit-zero", options_.exit_zero, "findings do not change the exit status");
    return *this;
  }
  Flags& hash() {
    tool_.add_flag("--hash", options_.hash, "adds the whole file's SHA-256 to the result");
    return *this;
  }
  CLI::App& tool() { return tool_; }

 private:
  CLI::App& tool_;
  Options& options_;
};

Flags add_tool(CLI::App& app, Options& options, const char* name, const char* what, const char* example) {
  CLI::App* const tool = app.add_subcommand(name, what);
  tool->footer(std::string("Example: ") + example + "\n\n" + footer);
  return {*tool, options};
}

void add_model_tools(CLI::App& app, Options& options) {
  add_tool(app, options, "migrate", "The main job: what a device takes, whether numbers agree, how fast it is, one verdict",
           "unmoor migrate model.onnx --to opencl --html report.html")
      .model().to().inputs().threads().settings().html().hash().results()
      .tool().add_option("--seconds", options.seconds, "of warm runs for each device")->capture_default_str();
  add_tool(app, options, "scan", "Which nodes a device takes, which it refuses and why; runs nothing",
           "unmoor scan model.onnx --on opencl,cpu")
      .model().on("cpu").narrowed().settings().html().hash().results()
      .tool().add_option("--shapes", options.shapes, "input shapes: x:1x3x224x224");
  auto& run = add_tool(app, options, "run", "One inference",
                       "unmoor run model.onnx -i x=image.npy -o out.npz --on opencl --fallback forbid")
                  .model().on("cpu").fallback().inputs().threads().settings().html().hash().results().tool();
  run.add_option("-o,--output", options.output, "writes the outputs: FILE.npz");
  run.add_option("--dump", options.dump, "writes every value of the run into this folder");
  run.add_flag("--explain", options.explain, "prints where each node runs, and why not elsewhere");
  run.add_flag("--kernels", options.kernels, "as --explain, with every kernel that was asked");
  run.add_flag("--no-fuse", options.no_fuse, "keeps every value of the file visible; other kernels run then");
  auto& align = add_tool(app, options, "align", "Where two devices first disagree, and by how much",
                         "unmoor align model.onnx --reference reference --target opencl")
                    .model().inputs().threads().settings().html().hash().results().narrowed().tool();
  align.add_option("--reference", options.reference, "a device, or a folder written by run --dump")->capture_default_str();
  align.add_option("--target", options.target, "a device, or a folder written by run --dump")->capture_default_str();
  align.add_option("--atol", options.atol, "absolute tolerance, instead of the table's");
  align.add_option("--rtol", options.rtol, "relative tolerance, instead of the table's");
  align.add_flag("--no-fuse", options.no_fuse, "keeps every value of the file visible; other kernels run then");
  auto& bench = add_tool(app, options, "bench", "Load, preparation, first run and warm runs, apart",
                         "unmoor bench model.onnx --on cpu,opencl --threads 2")
                    .model().on("cpu").inputs().threads().settings().html().hash().results().tool();
  bench.add_option("--seconds", options.seconds, "of warm runs for each device, at least five runs")->capture_default_str();
  bench.add_flag("--serve", options.serve, "answers 'run N' on standard input with N times in milliseconds; 'quit' ends");
}

void add_device_tools(CLI::App& app, Options& options) {
  add_tool(app, options, "doctor", "Which devices are here, or why not; each runs and checks a real operator", "unmoor doctor")
      .html().results();
  auto& conformance = add_tool(app, options, "conformance", "Every operator's cases on a device against the reference",
                               "unmoor conformance --on opencl --op Softmax,MatMul")
                          .on("cpu").settings().threads().results().tool();
  conformance.add_option("--op", options.ops, "only these operators")->delimiter(',');
  conformance.add_option("--category", options.category, "only operators of this category: conv, matmul, …");
  conformance.add_option("--case", options.case_text, "one case: \"Softmax f32[2,17,3] axis=1\"");
}

}  // namespace

std::optional<int> parse(int argc, char** argv, Options& options) {
  for (int i = 0; i < argc; ++i) options.command_line += (i == 0 ? std::string("unmoor") : std::string(" ") + argv[i]);
  CLI::App app("Unmoor moves a trained model from the machine it was built on to another accelerator.");
  app.set_version_flag("--version", "unmoor " UNMOOR_VERSION);
  app.require_subcommand(1);
  app.footer(footer);
  add_model_tools(app, options);
  add_device_tools(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? Status::fine : Status::usage;
  }
  for (const CLI::App* tool : app.get_subcommands()) options.tool = tool->get_name();
  return std::nullopt;
}

}  // namespace unmoor::cli
