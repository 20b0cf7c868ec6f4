#include "cli/lab.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/runtime/session.h"
#include "unmoor/workbench/inputs.h"
#include "unmoor/workbench/keep_list.h"

namespace unmoor::cli {
namespace {

std::optional<std::pair<double, double>> parse_range(const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::pair<double, double> range;
  const size_t comma = text.find(',');
  const char* const end = text.data() + text.size();
  const auto low = std::from_chars(text.data(), text.data() + std::min(comma, text.size()), range.first);
  const auto high = comma == std::string::npos ? low : std::from_chars(text.data() + comma + 1, end, range.second);
  const bool read = comma != std::string::npos && low.ec == std::errc() && low.ptr == text.data() + comma && high.ec == std::errc() && high.ptr == end;
  if (!read || !std::isfinite(range.second - range.first) || range.first > range.second) {
    fail(ErrorKind::InvalidArgument, "'", text, "' is no range; write it as LOW,HIGH");
  }
  return range;
}

std::unique_ptr<ModelRunner> local_runner(std::shared_ptr<const Model> model, const DeviceName& device, const Settings& settings,
                                          const Settings& cpu_settings, PlanOptions options, double load_ms) {
  const auto* const graph = &model->graph;
  auto runner = std::make_unique<ModelRunner>(std::shared_ptr<const Graph>(std::move(model), graph),
                                              open_devices(device, settings, cpu_settings), std::move(options));
  runner->set_load_ms(load_ms);
  return runner;
}

}  // namespace

std::vector<ValueInfo> declared_inputs(const Model& model) {
  std::vector<ValueInfo> inputs;
  for (const ValueId id : model.graph.inputs()) inputs.push_back({model.graph.value(id).name, model.graph.value(id).type, "", ""});
  return inputs;
}

namespace {

struct Setting {
  std::string runner;  // A backend or an engine.
  std::string which;   // Its device, "0" or "cuda:0"; empty: every one.
  std::string key;
  std::string value;
};

// Fails with InvalidArgument.
Setting parse_setting(const std::string& text) {
  const size_t dot = text.find('.');
  const size_t equals = text.find('=');
  if (dot == std::string::npos || equals == std::string::npos || equals < dot) {
    fail(ErrorKind::InvalidArgument, "'", text, "' is no setting; write it as DEVICE.KEY=VALUE");
  }
  const std::string device = text.substr(0, dot);
  const size_t colon = device.find(':');
  const std::string runner = device.substr(0, colon);
  Setting setting{runner, "", text.substr(dot + 1, equals - dot - 1), text.substr(equals + 1)};
  if (!is_device(device) && runner != "py") (void)make_backend(device);  // Says which devices there are.
  if (colon != std::string::npos) setting.which = is_engine(device) ? device.substr(colon + 1) : std::to_string(parse_device(device).index);
  return setting;
}

bool is_for(const Setting& setting, const DeviceName& device) {
  return setting.runner == device.backend && (setting.which.empty() || setting.which == std::to_string(device.index));
}

bool is_for(const Setting& setting, const EngineName& engine) {
  return setting.runner == engine.engine && (setting.which.empty() || setting.which == engine.device);
}

bool is_for(const Setting& setting, const std::string& runner) {
  const auto engine = parse_engine(runner);
  return engine ? is_for(setting, *engine) : is_for(setting, parse_device(runner));
}

}  // namespace

Settings settings_of(const Options& options, const DeviceName& device) {
  Settings settings;
  if (options.exact) settings["exact"] = "on";
  for (const std::string& text : options.settings) {
    const Setting setting = parse_setting(text);
    if (is_for(setting, device)) settings[setting.key] = setting.value;
  }
  if (device.backend == "cpu" && options.threads > 0) settings["threads"] = std::to_string(options.threads);
  return settings;
}

Settings settings_of(const Options& options, const EngineName& engine) {
  Settings settings;
  for (const std::string& text : options.settings) {
    const Setting setting = parse_setting(text);
    if (is_for(setting, engine)) settings[setting.key] = setting.value;
  }
  return settings;
}

void check_settings(const Options& options) {
  std::vector<std::string> used = options.devices;
  used.emplace_back("cpu");  // What a device refuses runs there.
  for (const std::string& side : {options.reference, options.target, options.baseline}) {
    if ((options.tool == "align" || options.tool == "migrate") && is_device(side)) used.push_back(side);
  }
  for (const std::string& text : options.settings) {
    const Setting setting = parse_setting(text);
    if (std::ranges::none_of(used, [&](const std::string& runner) { return is_for(setting, runner); })) {
      fail(ErrorKind::InvalidArgument, "'", text, "' is for a device that is not used here");
    }
  }
}

void add_versions(nlohmann::json& result, const PlanInfo& plan) {
  for (size_t i = 0; i < plan.versions.size() && i < plan.devices.size(); ++i) {
    for (const auto& [what, version] : plan.versions[i]) result["environment"]["versions"][cat(plan.devices[i], " ", what)] = version;
  }
  for (const std::string& note : plan.notes) result["environment"]["notes"].push_back(note);
}

Lab::Lab(const Options& options, std::optional<NamedData> given) : options_(options) {
  check_settings(options);
  const auto start = std::chrono::steady_clock::now();
  model_ = std::make_shared<const Model>(read_onnx(options.model));
  load_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const auto wanted = declared_inputs(*model_);
  given_ = given ? std::move(*given) : read_inputs(options.inputs, wanted);
  InputShapes shapes = parse_shapes(options.shapes);
  for (const auto& given : shapes) {
    const bool known = std::ranges::any_of(wanted, [&](const ValueInfo& input) { return input.name == given.first; });
    if (!known) fail(ErrorKind::InvalidArgument, "the model has no input '", given.first, "' (in --shapes)");
  }
  for (const auto& [name, data] : given_) {
    if (data.is_tensor()) shapes[name] = data.tensor().shape();
  }
  chosen_ = choose_shapes(model_->graph, shapes);
  if (!options.keep_float32.empty()) keep_ = read_keep_list(options.keep_float32, model_->graph);
}

PlanOptions Lab::plan_options() const {
  PlanOptions options;
  options.fallback = options_.fallback == "forbid" ? Fallback::Forbid : Fallback::Report;
  options.shapes = chosen_.shapes;
  options.passes.fuse = !options_.no_fuse;
  options.keep_float32 = keep_;
  return options;
}

std::unique_ptr<Runner> Lab::runner(const std::string& device, PlanOptions options, bool apart) const {
  if (const auto engine = parse_engine(device)) return engine_runner(*engine);
  const DeviceName name = parse_device(device);
  const Settings settings = settings_of(options_, name);
  if (!apart && !needs_worker(name)) return local_runner(model_, name, settings, settings, std::move(options), load_ms_);
  WorkerRequest request;
  request.model = model_->path;
  request.device = name.text();
  request.options = std::move(options);
  request.settings = settings;
  for (const auto& [key, value] : settings_of(options_, DeviceName{"cpu", 0})) request.settings[cat("cpu.", key)] = value;
  return make_worker_runner(request);
}

std::unique_ptr<ModelRunner> Lab::float32_runner() const {
  PlanOptions options = plan_options();
  options.passes.fuse = false;
  options.keep_float32 = all_node_names(model_->graph);
  Settings settings = settings_of(options_, DeviceName{"cpu", 0});
  settings["exact"] = "on";
  return local_runner(model_, DeviceName{"cpu", 0}, settings, settings, std::move(options), load_ms_);
}

PlanInfo Lab::placement(const std::string& device) const {
  if (const auto engine = parse_engine(device)) return engine_placement(*engine);
  PlanOptions options = plan_options();
  options.place_only = true;
  return runner(device, options)->plan();
}

Graph Lab::typed() const { return with_shapes(model_->graph, chosen_.shapes); }

NamedData Lab::inputs() const {
  NamedData inputs = given_;
  const GeneratorOptions generator{options_.seed, parse_range(options_.range), chosen_.shapes};
  for (const ValueInfo& input : declared_inputs(*model_)) {
    if (!inputs.contains(input.name)) inputs[input.name] = generate_input(input, generator);
  }
  return inputs;
}

std::unique_ptr<ModelRunner> open_for_worker(const WorkerRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  auto model = std::make_shared<const Model>(read_onnx(request.model));
  const double load_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const DeviceName device = parse_device(request.device);
  Settings settings;
  Settings cpu_settings;
  for (const auto& [key, value] : request.settings) {
    if (key.starts_with("cpu.")) {
      cpu_settings[key.substr(4)] = value;
    } else {
      settings[key] = value;
    }
  }
  return local_runner(std::move(model), device, settings, cpu_settings, request.options, load_ms);
}

}  // namespace unmoor::cli
