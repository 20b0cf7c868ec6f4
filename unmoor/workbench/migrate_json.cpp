#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "unmoor/ops/op.h"
#include "unmoor/workbench/migrate.h"

namespace unmoor {
namespace {

using nlohmann::json;

// The nodes of the report's axis: the steps of the plan, in order.
class Document {
 public:
  Document(const Migration& migration, const Verdict& verdict) : migration_(migration), verdict_(verdict) {
    if (!migration.plan.result) return;
    for (const PlacementInfo& placed : migration.plan.result->placements) {
      if (index_.emplace(placed.node, nodes_.size()).second) nodes_.push_back(&placed);
    }
  }

  json make() {
    json data{{"schema", 1},        {"verdict", verdict_.verdict}, {"sentence", verdict_.sentence}, {"source", migration_.source},
              {"target", migration_.target}, {"next", json::array()}};
    if (migration_.align.result) data["dtype"] = name(common_dtype(*migration_.align.result));
    for (const NextStep& step : verdict_.next) {
      data["next"].push_back({{"text", step.text}, {"command", step.command}, {"effect", step.effect}, {"see", step.see}});
    }
    if (migration_.doctor.result) data["doctor"] = migration_.doctor.result->to_json();
    if (!nodes_.empty()) {
      add_graph(data);
      add_plan(data);
    }
    if (migration_.scan.result) add_scan(data);
    if (migration_.align.result) add_align(data);
    if (migration_.bench.result) data["bench"] = migration_.bench.result->to_json();
    if (migration_.steps.result) add_profile(data);
    add_words(data);
    add_tools(data);
    return data;
  }

 private:
  // The floating type that most values have; float32 if there is none.
  static DType common_dtype(const AlignResult& align) {
    std::map<DType, size_t> counts;
    for (const AlignedValue& value : align.values) {
      if (is_float(value.dtype) && value.entire) ++counts[value.dtype];
    }
    const auto most = std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
    return most == counts.end() ? DType::F32 : most->first;
  }

  void add_graph(json& data) const {
    json graph{{"name", json::array()}, {"op", json::array()}, {"category", json::array()}, {"block", json::array()}};
    for (const PlacementInfo* node : nodes_) {
      graph["name"].push_back(node->node);
      graph["op"].push_back(node->op);
      graph["category"].push_back(node->category);
      graph["block"].push_back(block_of(node->node));
    }
    data["graph"] = std::move(graph);
  }

  // The part of a hierarchical name that repeats: "encoder/layer.3" of "/encoder/layer.3/attention/MatMul".
  static std::string block_of(const std::string& name) {
    const size_t last = name.rfind('/');
    if (last == std::string::npos || last == 0) return "";
    const std::string path = name.substr(name[0] == '/' ? 1 : 0, last - (name[0] == '/' ? 1 : 0));
    size_t end = 0;
    for (int level = 0; level < 3 && end != std::string::npos; ++level) end = path.find('/', end == 0 ? 0 : end + 1);
    return path.substr(0, end);
  }

  void add_plan(json& data) const {
    const PlanInfo& plan = *migration_.plan.result;
    const auto device_index = [&](const std::string& device) { return std::ranges::find(plan.devices, device) - plan.devices.begin(); };
    json shown{{"devices", plan.devices}, {"device", json::array()}, {"choice", json::array()}, {"kernel", json::array()},
               {"refusals", json::array()}, {"copies", json::array()}};
    for (const PlacementInfo* node : nodes_) {
      shown["device"].push_back(device_index(node->device));
      shown["choice"].push_back(node->state == "choice" || node->state == "host");
      shown["kernel"].push_back(node->kernel);
      json refusals = json::array();
      for (const auto& refused : node->refusals) {
        refusals.push_back({{"device", refused.device}, {"kernel", refused.kernel}, {"reason", refused.reason}, {"detail", refused.detail}});
      }
      shown["refusals"].push_back(std::move(refusals));
    }
    std::vector<const StepTrace*> timed;
    if (migration_.steps.result) {
      for (const StepTrace& step : *migration_.steps.result) {
        if (step.node.empty()) timed.push_back(&step);
      }
    }
    for (size_t i = 0; i < plan.copies.size(); ++i) {
      const CopyInfo& copy = plan.copies[i];
      const auto before = index_.find(copy.before);
      const json ms = timed.size() == plan.copies.size() ? measured(timed[i]->milliseconds) : json(nullptr);
      shown["copies"].push_back({{"before", before == index_.end() ? nodes_.size() - 1 : before->second}, {"from", device_index(copy.from)},
                                 {"to", device_index(copy.to)}, {"bytes", copy.bytes}, {"ms", ms}});
    }
    data["plan"] = std::move(shown);
  }

  void add_scan(json& data) const {
    const ScannedPlatform& platform = *migration_.scan.result;
    json scan = ScanResult{{platform}}.to_json();
    scan["platforms"][0]["role"] = "target";
    scan["platforms"][0]["source"] = "plan";
    std::set<std::string> categories;
    for (const ScannedNode& node : platform.nodes) categories.insert(node.category);
    scan["categories"] = json::array();
    for (const std::string& category : categories) {
      scan["categories"].push_back({{"name", category}, {"difficulty", difficulty(category)}, {"alternative", alternative(category)}});
    }
    for (size_t i = 0; i < platform.nodes.size(); ++i) scan["nodes"][i]["category"] = platform.nodes[i].category;
    data["scan"] = std::move(scan);
  }

  void add_align(json& data) const {
    const AlignResult& align = *migration_.align.result;
    json shown = align.to_json();
    std::vector<json> single(nodes_.size());
    std::vector<json> entire(nodes_.size());
    std::vector<json> excess(nodes_.size());
    std::vector<json> excess_entire(nodes_.size());
    for (const AlignedValue& value : align.values) {
      const auto at = index_.find(value.node);
      if (at == index_.end() || !excess[at->second].is_null()) continue;
      fill(value.single, value.single_verdict, value.dtype, single[at->second], excess[at->second]);
      fill(value.entire, value.entire_verdict, value.dtype, entire[at->second], excess_entire[at->second]);
    }
    shown["single"] = single;
    shown["entire"] = entire;
    shown["excess"] = excess;
    shown["excess_entire"] = excess_entire;
    shown["metrics"] = {"kernel alone", "whole run"};
    shown["heat"] = json::array({excess, excess_entire});  // Two lists that begin with a text would be an object.
    json hidden = json::array();
    std::set<size_t> listed;
    for (const std::string& node : align.hidden) {
      const auto at = index_.find(node);
      if (at != index_.end() && listed.insert(at->second).second) hidden.push_back(at->second);
    }
    shown["hidden"] = std::move(hidden);
    data["align"] = std::move(shown);
  }

  static void fill(const std::optional<Metrics>& metrics, ValueVerdict verdict, DType stored, json& error, json& excess) {
    if (!metrics) return;
    const bool broken = !metrics->problem.empty() || metrics->class_mismatch > 0;
    error = broken ? json("inf") : measured(metrics->rel_l2);
    excess = broken ? json("inf") : measured(shown_excess(*metrics, verdict, stored));
  }

  void add_profile(json& data) const {
    std::vector<double> ms(nodes_.size());
    std::map<std::string, std::pair<double, std::vector<size_t>>> groups;
    for (const StepTrace& step : *migration_.steps.result) {
      const auto at = index_.find(step.node);
      if (at == index_.end()) continue;
      ms[at->second] += step.milliseconds;
      auto& [total, members] = groups[step.op];
      total += step.milliseconds;
      if (members.empty() || members.back() != at->second) members.push_back(at->second);
    }
    json listed = json::array();
    for (const auto& [op, group] : groups) listed.push_back({{"op", op}, {"label", op}, {"nodes", group.second}, {"ms", measured(group.first)}});
    json each = json::array();
    for (const double one : ms) each.push_back(measured(one));
    data["profile"] = {{"ms", std::move(each)}, {"groups", std::move(listed)}};
  }

  void add_words(json& data) const {
    json figures = json::array();
    json answers = json::object();
    if (migration_.scan.result) {
      const ScannedPlatform& scan = *migration_.scan.result;
      const size_t taken = scan.native + scan.expanded;
      const double share = scan.nodes.empty() ? 100 : 100.0 * static_cast<double>(taken) / static_cast<double>(scan.nodes.size());
      figures.push_back({{"id", "scan"}, {"value", fmt::format("{:.0f} %", share)}, {"label", "of the nodes run there"},
                         {"note", fmt::format("{} of {}", taken, scan.nodes.size())},
                         {"state", scan.unsupported > 0 ? "bad" : scan.p0 + scan.p1 > 0 ? "warn" : "ok"}});
      answers["scan"] = fmt::format("{} takes {} of {} nodes; {} P0, {} P1, {} P2.", scan.name, taken, scan.nodes.size(), scan.p0, scan.p1, scan.p2);
    }
    if (migration_.align.result) add_align_words(figures, answers);
    if (migration_.bench.result) add_bench_words(figures, answers);
    if (migration_.plan.result) {
      const PlanInfo& plan = *migration_.plan.result;
      size_t bytes = 0;
      for (const CopyInfo& copy : plan.copies) bytes += copy.bytes;
      answers["plan"] = fmt::format("{} steps after fusing, {} on the host, {} copies of {}.", plan.placements.size(), plan.fallback_nodes,
                                    plan.copies.size(), short_bytes(static_cast<double>(bytes)));
    }
    if (migration_.doctor.result) {
      const auto ready = std::ranges::count(migration_.doctor.result->devices, "ready", &DoctorResult::Found::state);
      answers["doctor"] = fmt::format("{} ready here; each ran an operator and was checked.", ready == 1 ? "1 device is" : fmt::format("{} devices are", ready));
    }
    if (migration_.steps.result) {
      double total = 0;
      for (const StepTrace& step : *migration_.steps.result) total += step.milliseconds;
      answers["profile"] = fmt::format("{:.3g} ms in {} steps, measured one by one.", total, migration_.steps.result->size());
    }
    data["figures"] = std::move(figures);
    data["answers"] = std::move(answers);
  }

  void add_align_words(json& figures, json& answers) const {
    const AlignResult& align = *migration_.align.result;
    double worst = 0;
    bool broken = false;
    for (const AlignedValue& output : align.outputs) {
      if (output.entire) {
        worst = std::max(worst, output.entire->rel_l2);
        broken = broken || !output.entire->problem.empty() || output.entire->class_mismatch > 0;
      }
    }
    const bool fine = align.verdict != "differ";
    figures.push_back({{"id", "align"}, {"value", broken ? "NaN or shape" : fmt::format("{:.1e}", worst)}, {"label", "error of the outputs, relative"},
                       {"note", fine ? "explained by rounding" : "more than rounding"}, {"state", fine ? "ok" : "bad"}});
    answers["align"] = fine ? fmt::format("Yes: every kernel that could be checked alone, and every output, agrees with {}.", align.reference)
                            : align.first_divergent.empty() ? std::string("No: outputs differ.")
                                                            : fmt::format("No: they first part at '{}'.", align.first_divergent);
  }

  void add_bench_words(json& figures, json& answers) const {
    const auto& runs = migration_.bench.result->runs;
    const auto target = std::ranges::find(runs, migration_.target, &BenchRun::runner);
    if (target == runs.end()) return;
    const double ms = percentile(target->warm, 0.5);
    const auto other = std::ranges::find_if(runs, [&](const BenchRun& run) { return run.runner != migration_.target; });
    const double ratio = other == runs.end() ? 1 : ms / percentile(other->warm, 0.5);
    figures.push_back({{"id", "bench"}, {"value", fmt::format("{:.3g} ms", ms)}, {"label", "a warm run, median"},
                       {"note", other == runs.end() ? std::string() : fmt::format("{}: {:.3g} ms", other->runner, percentile(other->warm, 0.5))},
                       {"state", ratio > 1.2 ? "warn" : "ok"}});
    answers["bench"] = fmt::format("{:.3g} ms warm; {:.3g} ms to load, {:.3g} ms to prepare, {:.3g} ms for the first run.", ms, target->load_ms,
                                   target->prepare_ms, target->first_ms);
  }

  void add_tools(json& data) const {
    json tools = json::array();
    const auto add = [&](std::string_view tool, bool ran, const std::string& failure, std::string command) {
      tools.push_back({{"name", tool}, {"state", ran ? "ran" : failure.empty() ? "not run" : "failed"}, {"command", std::move(command)}, {"note", failure}});
    };
    const std::string& target = migration_.target;
    const auto command = [&](std::string_view tool, std::string rest) { return command_for(migration_, tool, rest); };
    add("doctor", migration_.doctor.result.has_value(), migration_.doctor.failure, "unmoor doctor");
    add("scan", migration_.scan.result.has_value(), migration_.scan.failure, command("scan", fmt::format("--on {}", target)));
    add("plan", migration_.plan.result.has_value(), migration_.plan.failure, command("run", fmt::format("--on {} --explain", target)));
    add("align", migration_.align.result.has_value(), migration_.align.failure, command("align", fmt::format("--target {}", target)));
    add("bench", migration_.bench.result.has_value(), migration_.bench.failure, command("bench", fmt::format("--on {},{}", target, migration_.source)));
    add("profile", migration_.steps.result.has_value(), migration_.steps.failure, command("migrate", fmt::format("--to {}", target)));
    for (const char* const later : {"tune", "regress", "matrix", "journal"}) {
      tools.push_back({{"name", later}, {"state", "not run"}, {"command", ""}, {"note", "this version of Unmoor does not have it"}});
    }
    data["tools"] = std::move(tools);
  }

  const Migration& migration_;
  const Verdict& verdict_;
  std::vector<const PlacementInfo*> nodes_;
  std::map<std::string, size_t, std::less<>> index_;
};

}  // namespace

json migration_json(const Migration& migration, const Verdict& verdict) { return Document(migration, verdict).make(); }

}  // namespace unmoor
