#include <CLI/CLI.hpp>
#include <sstream>
#include <string_view>

#include "cli/options.h"
#include "unmoor/workbench/result.h"
#include "unmoor/workbench/task/task.h"

namespace unmoor::cli {
namespace {

constexpr const char* footer =
    "Exit status: 0 fine, 1 a finding (differs, unsupported), 2 wrong use or bad input, 3 something is missing on this machine, "
    "4 an error of ours. Ctrl-C stops a run at its next step; that ends by the signal, which shells call 130.";
constexpr const char* variables =
    "Environment: UNMOOR_MEMORY_LIMIT is how much memory tensors may hold together (512M, 8G); what the machine has, if it is not set. "
    "UNMOOR_LOOP_LIMIT is how many rounds a Loop may run before it is taken for one that never ends; 10000000, if it is not set. "
    "UNMOOR_WEIGHTS_CACHE is how much the cpu device's packed weights may take in the cache folder, or off; 8G, if it is not set. --set "
    "cpu.weights_cache goes before it. UNMOOR_CATALOG is a folder of your own catalogue files; unmoor/catalog in the config folder, if it is not set.";

constexpr size_t terminal = 80;
constexpr size_t indent = 26;  // Of what an option does.

// Words in lines of at most `width`, the lines after the first behind `margin` spaces. Line breaks of the text stay.
std::string wrapped(const std::string& text, size_t width, size_t margin) {
  std::string result;
  std::istringstream lines(text);
  std::string line;
  std::string word;
  const std::string next_line = "\n" + std::string(margin, ' ');
  while (std::getline(lines, line)) {
    if (!result.empty()) result += line.empty() ? "\n" : next_line;
    std::istringstream words(line);
    size_t column = 0;
    while (words >> word) {
      const bool fits = column + 1 + word.size() <= width;
      if (column > 0) result += fits ? " " : next_line;
      column = column == 0 || !fits ? word.size() : column + 1 + word.size();
      result += word;
    }
  }
  return result;
}

std::string two_columns(const std::string& name, const std::string& what) {
  std::string head = "  " + name;
  head += head.size() + 2 > indent ? "\n" + std::string(indent, ' ') : std::string(indent - head.size(), ' ');
  return head + wrapped(what, terminal - indent, indent) + "\n";
}

// Help that fits a terminal of 80 columns; docs/cli.md is made of it.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override { return wrapped(app->get_description(), terminal, 0) + ".\n\n"; }
  std::string make_subcommand(const CLI::App* tool) const override { return two_columns(tool->get_name(), tool->get_description()); }
  std::string make_footer(const CLI::App* app) const override { return wrapped(app->get_footer(), terminal, 0) + "\n"; }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();  // With what its checks say behind a colon.
    return option->get_type_size() == 0 || option->get_positional() ? "" : " " + type.substr(0, type.find(':'));
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string what = option->get_description();
    if (!option->get_default_str().empty()) what += " (default: " + option->get_default_str() + ")";
    if (!is_positional && option->get_required()) what += " (required)";
    return two_columns(make_option_name(option, is_positional) + make_option_opts(option), what);
  }
};

// A number from 0 to `most`; NaN is none.
CLI::Validator number_up_to(double most) {
  const auto problem = [most](std::string& text) {
    double value = 0;
    const bool read = CLI::detail::lexical_cast(text, value) && value >= 0 && value <= most;
    return read ? std::string() : "'" + text + "' is no number from 0 to " + CLI::detail::to_string(most);
  };
  return {problem, ""};
}
constexpr double most_seconds = 86400;

// Defines the flags that tools share.
class Flags {
 public:
  Flags(CLI::App& tool, Options& options) : tool_(tool), options_(options) {}

  Flags& model(const char* what = "an ONNX file") {
    tool_.add_option("MODEL", options_.model, what)->required();
    return *this;
  }
  // A model, or the folder of a model's code.
  Flags& model_or_source(const char* what) {
    auto* const model = tool_.add_option("MODEL", options_.model, what);
    auto* const source = tool_.add_option("--source", options_.code,
                                          "in place of a model: finds what ties the PyTorch code of this folder to one vendor's devices, and what to write instead");
    source->type_name("FOLDER")->excludes(model);
    tool_.add_option("--diff", options_.patch, "with --source: writes the safe changes as a patch for 'git apply' in that folder")->type_name("FILE")->needs(source);
    return *this;
  }
  Flags& on(const char* otherwise) { return on(otherwise, "devices, as backend[:index]: cpu, opencl, reference; or engines: ort:cpu, torch:cuda:0, py:FILE"); }
  Flags& on_own_devices(const char* otherwise) { return on(otherwise, "Unmoor's devices, as backend[:index]: cpu, opencl, reference"); }
  Flags& on(const char* otherwise, const char* what) {
    tool_.add_option("--on", options_.devices, what)
        ->type_name("DEVICE,...")
        ->allow_extra_args(false)
        ->delimiter(',')
        ->default_val(otherwise);
    return *this;
  }
  Flags& on_platforms(const char* otherwise) {
    tool_.add_option("--on", options_.devices,
                     "devices that are here (cpu, opencl, reference), engines (ort:cpu, torch:cuda:0, py:FILE) and platforms of the catalogue, with "
                     "@VERSION for an older one; all: every platform of the catalogue ('unmoor catalog list')")
        ->type_name("PLATFORM,...")
        ->allow_extra_args(false)
        ->delimiter(',')
        ->default_val(otherwise);
    return *this;
  }
  Flags& to() {
    tool_.add_option("--to", options_.devices, "the device to move to, as backend[:index], or an engine: ort:cpu, torch:cuda:0, py:FILE")->type_name("DEVICE")->required()->expected(1);
    return *this;
  }
  Flags& fallback() {
    tool_.add_option("--fallback", options_.fallback, "nodes that the device refuses: 'report' runs them on the cpu and says so, 'forbid' fails")
        ->type_name("POLICY")
        ->check(CLI::IsMember({"report", "forbid"}))
        ->capture_default_str();
    return *this;
  }
  Flags& inputs() {
    tool_.add_option("-i,--input", options_.inputs, "NAME=FILE (.npy, .pb), FILE.npz by name, or one FILE.npy; what is not given is generated")
        ->type_name("INPUT")
        ->allow_extra_args(false);
    tool_.add_option("--shapes", options_.shapes, "shapes of generated inputs: x:1x3x224x224, x:[1,3,224,224] or 'x:1,3;y:2'")->type_name("SHAPES");
    tool_.add_option("--seed", options_.seed, "for generated inputs")->type_name("N")->check(CLI::NonNegativeNumber)->capture_default_str();
    tool_.add_option("--range", options_.range, "generated floats are uniform in this range, not normal")->type_name("LOW,HIGH");
    return *this;
  }
  Flags& settings(const char* what = "an option of a device or an engine, such as cpu.threads=2 or ort.optimize=off") {
    tool_.add_option("--set", options_.settings, what)->type_name("DEVICE.KEY=VALUE")->allow_extra_args(false);
    tool_.add_flag("--exact", options_.exact, "only kernels that differ from plain arithmetic by the order of sums alone: no Winograd, no f32x6");
    return *this;
  }
  Flags& python() {
    tool_.add_option("--python", options_.python, "the interpreter for ort, torch and py; else UNMOOR_PYTHON, the active environment's, python3")->type_name("FILE");
    return *this;
  }
  Flags& threads(const char* what = "threads of the cpu device and of engines; 0: one a core") {
    tool_.add_option("--threads", options_.threads, what)->type_name("N")->check(CLI::NonNegativeNumber)->capture_default_str();
    return *this;
  }
  Flags& narrowed() {
    tool_.add_option("--node", options_.nodes, "only this node; may be repeated")->type_name("NAME")->allow_extra_args(false);
    tool_.add_option("--op", options_.ops, "only these operators")->type_name("TYPE,...")->allow_extra_args(false)->delimiter(',');
    return *this;
  }
  Flags& selected(const char* what) {
    tool_.add_option("--values", options_.values, std::string("only values of these names ") + what + "; * stands for any text, ? for one character; may be repeated")
        ->type_name("GLOB")
        ->allow_extra_args(false);
    tool_.add_option("--every", options_.every, "of these values only the first and every Nth after it")->type_name("N")->check(CLI::PositiveNumber)->capture_default_str();
    return *this;
  }
  Flags& html() {
    auto* const page = tool_.add_option("--html", options_.html, "writes the result as one self-contained page");
    page->type_name("FILE");
    return language(page);
  }
  // Of the page that another option writes, or of the tool's only page.
  Flags& language(CLI::Option* page = nullptr) {
    auto* const option = tool_.add_option("--lang", options_.language, "language of the page: en or zh; names, numbers and commands stay");
    option->type_name("LANGUAGE")->check(CLI::IsMember({"en", "zh"}))->capture_default_str();
    if (page != nullptr) option->needs(page);
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

// Runs many samples and compares what comes out of them, so that what is about one run has no place.
void add_task(CLI::App& align, Options& options) {
  auto* const data = align.add_option("--data", options.data,
                                      "compares a task's metrics over a data set instead: a folder of .npz files, one a sample, or a Python file with samples() "
                                      "that yields dicts of arrays; arrays that are no inputs are labels");
  data->type_name("FOLDER|FILE.py");
  auto* const task = align.add_option("--task", options.task, "with --data: classification, detection, segmentation, regression, embedding or generation");
  task->type_name("TASK")->check(CLI::IsMember(task_names()))->needs(data);
  data->needs(task);
  align.add_option("--task-output", options.task_output, "with --data: the output to judge, if not the first that fits the task")->type_name("NAME")->needs(data);
  for (const char* const other : {"--input", "--shapes", "--seed", "--range", "--node", "--op", "--values", "--every", "--baseline", "--bisect", "--atol", "--rtol", "--keep-curve", "--keep-error", "--html", "--reproductions"})
    data->excludes(align.get_option(other));
}

// It runs a model of its own, so that none has to be given.
void add_self_test(CLI::App& align, Options& options) {
  align.get_option("MODEL")->required(false);
  auto* const test = align.add_flag("--self-test", options.self_test, "plants defects in a model of its own, and says which of them the comparison finds; takes no MODEL");
  for (CLI::Option* const other : align.get_options()) {
    const bool goes_along = other == test || other->check_name("--json") || other->check_name("--junit") || other->check_name("--exit-zero") || other->check_name("--help");
    if (!goes_along) test->excludes(other);
  }
}

void add_model_tools(CLI::App& app, Options& options) {
  add_tool(app, options, "migrate", "The main job: what a device takes, whether numbers agree, how fast it is, one verdict",
           "unmoor migrate model.onnx --to opencl --html report.html")
      .model().to().inputs().threads().settings().python().html().hash().results()
      .tool().add_option("--seconds", options.seconds, "of warm runs for each device")->type_name("S")->check(number_up_to(most_seconds))->capture_default_str();
  auto& scan = add_tool(app, options, "scan", "Which nodes a device or platform takes, which it refuses and why; runs nothing",
                        "unmoor scan model.onnx --on opencl,ort-cuda,torch-npu@26.1")
                   .model_or_source("an ONNX file; a program of torch.export (.pt2), TorchScript (.pt) or checkpoint (.pth, .safetensors), read without PyTorch")
                   .on_platforms("cpu").narrowed().settings().python().html().hash().results().tool();
  scan.add_option("--shapes", options.shapes, "input shapes: x:1x3x224x224")->type_name("SHAPES");
  scan.add_option("--memory", options.memory, "memory of the target, such as 16G: says which batch fits")->type_name("SIZE");
  scan.add_option("--link", options.link, "bytes a second between host and target, such as 12G: says what copies cost")->type_name("SIZE");
  auto& run = add_tool(app, options, "run", "One inference",
                       "unmoor run model.onnx -i x=image.npy -o out.npz --on opencl --fallback forbid")
                  .model().on("cpu").fallback().inputs().threads().settings().python().html().hash().results().narrowed().selected("are dumped").tool();
  run.add_option("-o,--output", options.output, "writes the outputs: FILE.npz")->type_name("FILE");
  auto* const dump = run.add_option("--dump", options.dump, "writes every value of the run into this folder");
  dump->type_name("FOLDER");
  run.add_flag("--dump-stats", options.dump_stats, "writes statistics of the values there instead, of inputs and outputs all: for models whose values are too large; align takes it")->needs(dump);
  run.get_option("--values")->needs(dump);
  run.get_option("--every")->needs(dump);
  run.add_option("--keep-float32", options.keep_float32, "runs the nodes that this file names, one a line, in float32 inside a 16-bit model")->type_name("FILE");
  run.add_flag("--explain", options.explain, "prints where each node runs, and why not elsewhere; so do --node and --op");
  run.add_flag("--kernels", options.kernels, "as --explain, with every other kernel of the device for the operator, and why it was not taken");
  run.add_flag("--no-fuse", options.no_fuse, "keeps every value of the file visible; other kernels run then");
  auto& align = add_tool(app, options, "align", "Where two devices first disagree, and by how much",
                         "unmoor align model.onnx --reference reference --target opencl")
                    .model().inputs().threads().settings().python().html().hash().results().narrowed().selected("are compared").tool();
  align.add_option("--reference", options.reference, "a device, an engine, or a folder written by run --dump")->type_name("DEVICE|FOLDER")->capture_default_str();
  align.add_option("--target", options.target, "a device, an engine, or a folder written by run --dump")->type_name("DEVICE|FOLDER")->capture_default_str();
  align.add_option("--baseline", options.baseline,
                   "the platform that the model comes from: a device, an engine, or a folder written by run --dump; where it is as far off, the "
                   "target is not blamed")
      ->type_name("DEVICE|FOLDER");
  align.add_option("--atol", options.atol, "absolute tolerance, instead of the table's")->type_name("X")->check(number_up_to(1e300));
  align.add_option("--rtol", options.rtol, "relative tolerance, instead of the table's")->type_name("X")->check(number_up_to(1e300));
  align.add_option("--keep-float32", options.keep_float32, "runs the nodes that this file names, one a line, in float32 on the target of a 16-bit model")->type_name("FILE");
  auto* const curve = align.add_option("--keep-curve", options.keep_curve,
                                       "of a 16-bit model: how the error falls as more nodes are kept in float32, tried on the target; the nodes to keep "
                                       "are written for --keep-float32");
  curve->type_name("FILE");
  align.add_option("--keep-error", options.keep_error, "with --keep-curve: keeps the fewest nodes that bring the error to this part of what it is")
      ->type_name("X")->check(number_up_to(1))->capture_default_str()->needs(curve);
  align.add_option("--reproductions", options.reproductions,
                   "writes each value that is off here: its node as a model of its own with its inputs and outputs in ONNX's test layout, and a "
                   "script that runs it under ONNX Runtime; beside --html FILE, if not given")
      ->type_name("FOLDER");
  align.add_flag("--no-fuse", options.no_fuse, "keeps every value of the file visible; other kernels run then");
  align.add_flag("--no-causes", options.no_causes, "only judges: looks for no causes and no patterns of errors, which is faster");
  align.add_flag("--bisect", options.bisect,
                 "looks at outputs only; where one is off, runs parts of the model on the target to find the first wrong node. Without it that is "
                 "done where the target shows nothing but outputs");
  add_task(align, options);
  align.add_option("--junit", options.junit, "writes a test case for every output and value, as JUnit XML")->type_name("FILE");
  align.add_flag("--write-dump-script", options.write_dump_script,
                 "only prints a Python script that writes the PyTorch model's values on another machine, as a folder for --reference or --target");
  add_self_test(align, options);
  auto& bench = add_tool(app, options, "bench", "Load, preparation, first run and warm runs, apart",
                         "unmoor bench model.onnx --on cpu,opencl --threads 2")
                    .model().on("cpu").inputs().threads().settings().python().html().hash().results().tool();
  bench.add_option("--seconds", options.seconds, "of warm runs for each device, at least six runs")->type_name("S")->check(number_up_to(most_seconds))->capture_default_str();
  bench.add_flag("--serve", options.serve, "answers 'run N' on standard input with N times in milliseconds; 'quit' ends");
}

void add_catalog_tool(CLI::App& app, Options& options) {
  auto& catalog = add_tool(app, options, "catalog", "What is known of platforms that are not here: their operators, versions and sources",
                           "unmoor catalog diff torch-npu@7.3 torch-npu")
                      .results().tool();
  catalog.add_option("ACTION", options.action, "list; show PLATFORM[@VERSION] [OPERATOR...]; diff PLATFORM PLATFORM; import FILE (CSV, Markdown or HTML table)")
      ->required()->check(CLI::IsMember({"list", "show", "diff", "import"}));
  catalog.add_option("NAME", options.names, "what the action is about");
  catalog.add_option("--as", options.platform, "import: what the table is about")->type_name("NAME@VERSION");
  catalog.add_option("--source", options.source, "import: where the table is from; the file's name, if it is not told")->type_name("TEXT");
  catalog.add_option("-o,--output", options.output, "import: the file to write; otherwise one in $UNMOOR_CATALOG or the config folder")->type_name("FILE");
}

void add_report_tool(CLI::App& app, Options& options) {
  auto& report = add_tool(app, options, "report", "One page from stored results, made at different times or on different machines",
                          "unmoor report migrate.json bench-laptop.json -o page.html")
                     .language().results().tool();
  auto* const files = report.add_option("FILE", options.results, "results of tools, as --json printed them; of one model");
  auto* const output = report.add_option("-o,--output", options.output, "the page to write")->type_name("FILE");
  report.add_flag("--open", options.open, "shows the page in a browser; where there is no display, only says where it lies");
  auto* const serve = report.add_option("--serve", options.serve_folder,
                                        "instead: a page for this machine's browser that lists the results in a folder, and shows one or "
                                        "several of them; reads only, until Ctrl-C");
  serve->type_name("FOLDER")->excludes(files)->excludes(output);
  report.add_option("--port", options.port, "of that page on 127.0.0.1; 0 takes a free one, and the address is printed")
      ->type_name("PORT")->check(CLI::Range(0, 65535))->capture_default_str()->needs(serve);
}

void add_device_tools(CLI::App& app, Options& options) {
  auto& doctor = add_tool(app, options, "doctor", "Which devices are here, or why not; each runs and checks a real operator", "unmoor doctor --lock unmoor.lock")
                     .python().html().results().tool();
  doctor.add_flag("--kernels", options.kernels, "lists every device's kernels by operator, first those that are asked first");
  auto* const lock = doctor.add_option("--lock", options.lock,
                                       "writes what decides here: Unmoor, system, processor, devices, drivers, libraries, engines and their Python "
                                       "packages, with hashes; requirements.txt beside it");
  lock->type_name("FILE");
  doctor.add_option("--verify", options.verify, "names what differs here from such a file, the worst first, and the commands that would mend it; status 1 if anything does")
      ->type_name("FILE")->excludes(lock);
  auto* const from_dump = doctor.add_option("--from-dump", options.from_dump, "judges what the collector wrote on another machine: a folder or an archive");
  from_dump->type_name("PATH");
  auto* const collector = doctor.add_flag("--collector", options.collector,
                                          "only prints a script for a POSIX shell that collects, on a machine without Unmoor, what is judged here");
  collector->excludes(from_dump);
  for (const char* const other : {"--lock", "--verify", "--kernels"}) {
    from_dump->excludes(doctor.get_option(other));
    collector->excludes(doctor.get_option(other));
  }
  auto& conformance = add_tool(app, options, "conformance", "Every operator's cases on a device against the reference",
                               "unmoor conformance --on opencl --op Softmax,MatMul")
                          .on_own_devices("cpu").settings("an option of a device, such as cpu.threads=2").threads("threads of the cpu device; 0: one a core").results().tool();
  auto* const tests = conformance.add_option("--onnx-tests", options.onnx_tests, "runs ONNX's own test layout instead: every folder below this one with model.onnx and test_data_set_N/*.pb");
  tests->type_name("FOLDER");
  conformance.add_option("--op", options.ops, "only these operators")->type_name("TYPE,...")->allow_extra_args(false)->delimiter(',')->excludes(tests);
  conformance.add_option("--category", options.category, "only operators of this category: conv, matmul, …")->type_name("NAME")->excludes(tests);
  conformance.add_option("--case", options.case_text, "one case: \"Softmax f32[2,17,3] axis=1\"; with --onnx-tests, what a folder's path must contain")
      ->type_name("CASE");
  auto* const dry = conformance.add_flag("--dry-run", options.dry_run, "only says where the planner would put each case; runs nothing");
  dry->excludes(tests);
  conformance.add_option("--write", options.write_cases, "writes the cases in ONNX's test layout, with the reference's outputs, for other runtimes")
      ->type_name("FOLDER")->excludes(tests)->excludes(dry);
}

}  // namespace

std::optional<int> parse(int argc, char** argv, Options& options) {
  for (int i = 0; i < argc; ++i) options.command_line += i == 0 ? std::string("unmoor") : " " + shell_word(argv[i]);
  CLI::App app("Unmoor moves a trained model from the machine it was built on to another accelerator", "unmoor");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", "unmoor " UNMOOR_VERSION);
  app.require_subcommand(1);
  app.footer(std::string(footer) + "\n\n" + variables);
  add_model_tools(app, options);
  add_catalog_tool(app, options);
  add_device_tools(app, options);
  add_report_tool(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    for (const CLI::App* tool : app.get_subcommands([&](const CLI::App* each) { return argc > 1 && each->get_name() == argv[1]; })) {
      options.tool = tool->get_name();
    }
    for (int i = 1; i < argc; ++i) options.json = options.json || std::string_view(argv[i]) == "--json";
    options.wrong_use = error.what();
    return Status::usage;
  }
  for (const CLI::App* tool : app.get_subcommands()) options.tool = tool->get_name();
  return std::nullopt;
}

}  // namespace unmoor::cli
