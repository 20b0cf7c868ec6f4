#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "unmoor/base/error.h"
#include "unmoor/catalog/catalog.h"
#include "unmoor/ops/builder.h"
#include "unmoor/workbench/scan.h"
#include "unmoor/workbench/scan_nodes.h"

namespace unmoor {
namespace {

constexpr int deepest_expansion = 3;
constexpr size_t most_parts = 2000;  // Of one node; what is longer is no form that anybody rewrites.

// A simpler operator that stands for a part of a node.
struct Part {
  CatalogQuestion question;
  std::vector<Part> parts = {};  // What it can be taken apart into in turn.
};

// The parts of a call, as its operator's expansion says; empty if it has none or they cannot be told.
std::vector<Part> parts_of(const OpCall& call, int64_t opset, int depth, size_t& budget) {
  std::vector<Part> parts;
  const Op* const op = all_ops().find(call.node.op);
  if (op == nullptr || !op->expand || depth >= deepest_expansion) return parts;
  try {
    const Graph graph = expanded(call);
    for (const Node& node : graph.nodes()) {
      if (budget == 0) return {};
      --budget;
      Part part{question_of(graph, node, node.op, opset)};
      part.parts = parts_of(call_for(graph, node), opset, depth + 1, budget);
      parts.push_back(std::move(part));
    }
  } catch (const Error& error) {
    if (!is_misfit(error)) throw;
    return {};  // Shapes that are not known, or a form that the expansion does not have.
  }
  return parts;
}

// Distinct names in order: "Mul, Sigmoid".
template <class Items, class NameOf>
std::string list_of(const Items& items, const NameOf& name_of) {
  std::vector<std::string> names;
  for (const auto& item : items) {
    const std::string each = name_of(item);
    if (std::ranges::find(names, each) == names.end()) names.push_back(each);
  }
  std::string text;
  for (const auto& each : names) text += fmt::format("{}{}", text.empty() ? "" : ", ", each);
  return text;
}

bool takes(Claim claim) { return claim == Claim::Native || claim == Claim::Constrained; }

// A kind of node: all nodes with the same question get the same answers.
struct Kind {
  CatalogQuestion question;
  const FileNode* example = nullptr;
  std::optional<std::vector<Part>> parts = std::nullopt;  // Once asked for.
};

// What one kind of node is on one platform.
struct Verdict {
  std::string state;
  std::string reason;
  std::string detail;
  std::string advice;
  std::string form;
  std::string source;
};

class CatalogScan {
 public:
  CatalogScan(const FileNodes& nodes, const Catalog& catalog, const ScanOptions& options)
      : nodes_(nodes), catalog_(catalog), options_(options) {
    for (const FileNode& node : nodes.all()) {
      CatalogQuestion question = nodes.question(node);
      const auto [place, fresh] = places_.emplace(signature(question), kinds_.size());
      if (fresh) kinds_.push_back({std::move(question), &node});
      kind_of_.push_back(place->second);
    }
  }

  ScannedPlatform run(const Facts& facts, const std::string& shown) {
    ScannedPlatform result;
    result.name = shown;
    result.version = facts.header().version;
    result.source = "catalogue";
    std::vector<std::optional<Verdict>> verdicts(kinds_.size());
    const bool any_heavy = nodes_.any_heavy();
    for (size_t i = 0; i < nodes_.all().size(); ++i) {
      const FileNode& file = nodes_.all()[i];
      if (!is_asked_for(options_, file.name, file.op)) continue;
      auto& verdict = verdicts[kind_of_[i]];
      if (!verdict) verdict = judge(facts, kinds_[kind_of_[i]]);
      ScannedNode node{file.name,       file.op, shown,         verdict->state, verdict->reason, verdict->detail,
                       verdict->advice, "",      file.category, verdict->form,  verdict->source};
      const bool beside = node.state == "fallback" && file.small_integers && !file.heavy;
      node.priority = beside ? "" : priority_of(file, node.state, any_heavy, node.form == "rewrite");
      if (beside) node.advice = "a few integers: the host makes them beside the work";
      add_node(result, std::move(node), file.flop);
    }
    add_effort(result);
    add_lacking(result);
    add_copies(result);
    return result;
  }

 private:
  bool takes_all(const Facts& facts, const std::vector<Part>& parts) const {
    return !parts.empty() && std::ranges::all_of(parts, [&](const Part& part) {
      return takes(catalog_.answer(facts, part.question).claim) || takes_all(facts, part.parts);
    });
  }

  bool is_function(const Facts& facts, const CatalogQuestion& question) const {
    return question.op.find(':') == std::string::npos && catalog_.is_function(question.op, question.opset) &&
           catalog_.answer(facts, question).as_function;
  }

  // As takes_all, by what the platform does itself: only what ONNX defines as a function is taken apart.
  bool runs_all(const Facts& facts, const std::vector<Part>& parts) const {
    return !parts.empty() && std::ranges::all_of(parts, [&](const Part& part) {
      return takes(catalog_.answer(facts, part.question).claim) ||
             (is_function(facts, part.question) && runs_all(facts, part.parts));
    });
  }

  const std::vector<Part>& parts(Kind& kind) const {
    if (kind.parts) return *kind.parts;
    kind.parts.emplace();
    const FileNode& node = *kind.example;
    const Graph* const typed = node.typed;
    if (typed == nullptr) return *kind.parts;
    // Parts stand in the model's own opset of ai.onnx, of which a node of another domain does not tell: then in the newest.
    const bool is_standard = kind.question.op.find(':') == std::string::npos;
    const auto same = std::ranges::find_if(
        typed->nodes(), [&](const Node& each) { return each.op == node.node->op && each.origin.name == node.node->origin.name; });
    size_t budget = most_parts;
    if (same != typed->nodes().end())
      kind.parts = parts_of(call_for(*typed, *same), is_standard ? kind.question.opset : model_opset(), 0, budget);
    return *kind.parts;
  }

  int64_t model_opset() const {
    for (const FileNode& node : nodes_.all()) {
      if (node.op.find(':') == std::string::npos && node.node->origin.opset > 0) return node.node->origin.opset;
    }
    constexpr int64_t widespread = 17;
    return widespread;
  }

  Verdict judge(const Facts& facts, Kind& kind) {
    const CatalogAnswer answer = catalog_.answer(facts, kind.question);
    Verdict verdict{std::string(name(answer.claim)), answer.reason, answer.detail, "", "", answer.source};
    if (answer.claim == Claim::Constrained) verdict.advice = "check that the conditions hold for this node";
    if (answer.claim == Claim::Unknown) verdict.advice = "ask the vendor, or try it: the catalogue has no word on it";
    if (answer.claim != Claim::Unsupported && answer.claim != Claim::Fallback) return verdict;
    if (answer.claim == Claim::Unsupported && by_function(facts, kind, verdict)) return verdict;  // The platform behind goes first.
    if (by_library(facts, kind, verdict) || by_expansion(facts, kind, verdict) || by_rewrite(facts, kind, verdict) ||
        by_version(facts, kind, verdict))
      return verdict;
    verdict.advice = answer.claim == Claim::Fallback ? "it runs on the host; a kernel for the platform would save the copies"
                                                     : "write a kernel, or leave the operator out of the model";
    return verdict;
  }

  // The platform takes apart what ONNX defines as a function.
  bool by_function(const Facts& facts, Kind& kind, Verdict& verdict) const {
    if (!facts.header().runs_functions || !is_function(facts, kind.question)) return false;
    std::string listed;
    if (const auto& own = parts(kind); !own.empty()) {
      if (!runs_all(facts, own)) return false;
      listed = list_of(own, [](const Part& part) { return part.question.op; });
    } else if (!takes_names(facts, kind, listed)) {
      return false;
    }
    verdict = {"expanded",
               verdict.reason,
               fmt::format("no kernel; the platform runs its ONNX function: {}", listed),
               "runs as simpler operators; a kernel of its own would be faster",
               "function",
               verdict.source};
    return true;
  }

  // Operators that stand around the arithmetic of a function, in types of their own.
  bool is_of_other_types(const std::string& op) const {
    const auto entry = catalog_.standard(op);
    const std::string category = entry.is_object() ? entry.value("category", std::string()) : "";
    return op == "Where" || category == "shape_layout" || category == "control_flow" || category == "sequence_string_optional" ||
           category == "logical";
  }

  // ONNX's own list of simpler operators, all of them taken in the element type of the node.
  bool takes_names(const Facts& facts, const Kind& kind, std::string& listed) const {
    const auto entry = catalog_.standard(kind.question.op);
    if (!entry.is_object() || !entry.contains("decomposes_to")) return false;
    std::vector<std::string> names;
    for (const auto& each : entry["decomposes_to"]) {
      const auto text = each.template get<std::string>();
      names.push_back(text);
      CatalogQuestion part{text.substr(0, text.find(' ')), kind.question.opset, {}, {}, {}};
      if (part.op == "Constant" || part.op == "CastLike") continue;
      if (!kind.question.inputs.empty()) part.inputs.push_back({kind.question.inputs[0].dtype, -1, true, false, true});
      if (is_of_other_types(part.op)) part.inputs.clear();
      if (!takes(catalog_.answer(facts, part).claim)) return false;
    }
    listed = list_of(names, [](const std::string& each) { return each; });
    return true;
  }

  // The same operator among the platform's own, beyond ONNX.
  bool by_library(const Facts& facts, const Kind& kind, Verdict& verdict) const {
    if (facts.header().vocabulary != "onnx" || kind.question.op.find(':') != std::string::npos) return false;
    CatalogQuestion own = kind.question;
    own.op = "com.microsoft:" + own.op;
    own.opset = 1;
    if (!takes(catalog_.answer(facts, own).claim)) return false;
    verdict.advice = fmt::format("use {}, which the platform has", own.op);
    verdict.form = "rewrite";
    return true;
  }

  bool by_expansion(const Facts& facts, Kind& kind, Verdict& verdict) const {
    const auto& own = parts(kind);
    if (!takes_all(facts, own)) return false;
    const std::string listed = list_of(own, [](const Part& part) { return part.question.op; });
    verdict.detail += fmt::format("{}it can be written as {}", verdict.detail.empty() ? "" : "; ", listed);
    verdict.state = "expanded";
    verdict.advice = fmt::format("write it as {}, all of which the platform takes", listed);
    verdict.form = "rewrite";
    return true;
  }

  // Another element type, another opset, or a decomposition by names.
  bool by_rewrite(const Facts& facts, const Kind& kind, Verdict& verdict) const {
    if (verdict.reason == "dtype" && by_cast(facts, kind, verdict)) return true;
    if (verdict.reason == "opset" && by_opset(facts, kind, verdict)) return true;
    std::string listed;
    if (verdict.reason == "dtype" || !takes_names(facts, kind, listed)) return false;
    verdict.advice = fmt::format("write it as {}", listed);
    verdict.form = "rewrite";
    return true;
  }

  bool by_cast(const Facts& facts, const Kind& kind, Verdict& verdict) const {
    struct Change {
      const char* from;
      std::vector<const char*> to;
    };
    static const std::vector<Change> changes{
        {"float64", {"float32"}},        {"bfloat16", {"float32", "float16"}}, {"float16", {"float32"}},
        {"int64", {"int32", "float32"}}, {"int8", {"int32", "float32"}},       {"uint8", {"int32", "float32"}},
        {"int16", {"int32", "float32"}}, {"uint16", {"int32", "float32"}},     {"uint32", {"int64", "float32"}},
        {"uint64", {"int64"}},           {"int32", {"int64", "float32"}},      {"bool", {"int32", "float32", "uint8"}}};
    for (const Change& change : changes) {
      for (const char* to : change.to) {
        CatalogQuestion other = kind.question;
        bool changed = false;
        for (auto* side : {&other.inputs, &other.outputs}) {
          for (AskedValue& value : *side) {
            if (value.dtype == change.from) value.dtype = to, changed = true;
          }
        }
        if (!changed || !takes(catalog_.answer(facts, other).claim)) continue;
        verdict.advice = fmt::format("cast {} to {} before it and back behind it, if the values allow that", change.from, to);
        verdict.form = "rewrite";
        return true;
      }
    }
    return false;
  }

  bool by_opset(const Facts& facts, const Kind& kind, Verdict& verdict) const {
    CatalogQuestion other = kind.question;
    constexpr int64_t oldest = 7;
    for (other.opset = kind.question.opset - 1; other.opset >= oldest; --other.opset) {
      if (!takes(catalog_.answer(facts, other).claim)) continue;
      verdict.advice = fmt::format("write the model in opset {} (export it so, or onnx.version_converter)", other.opset);
      verdict.form = "rewrite";
      return true;
    }
    return false;
  }

  bool by_version(const Facts& facts, const Kind& kind, Verdict& verdict) const {
    for (const CatalogItem& item : catalog_.items()) {
      if (item.platform != facts.header().platform || item.version == facts.header().version) continue;
      if (!takes(catalog_.answer(*catalog_.find(item.platform + "@" + item.version), kind.question).claim)) continue;
      verdict.advice = fmt::format("version {} of the platform has it", item.version);
      return true;
    }
    return false;
  }

  // Element types that nodes of the model have and that the platform takes in none of them.
  void add_lacking(ScannedPlatform& platform) const {
    std::map<std::string, bool> taken;
    size_t place = 0;
    for (size_t i = 0; i < nodes_.all().size(); ++i) {
      if (!is_asked_for(options_, nodes_.all()[i].name, nodes_.all()[i].op)) continue;
      const ScannedNode& node = platform.nodes[place++];
      const bool refused = node.reason == "dtype" && (node.state == "unsupported" || node.state == "fallback");
      if (node.state == "unknown") continue;
      for (const AskedValue& value : kinds_[kind_of_[i]].question.inputs) {
        if (!value.dtype.empty()) taken[value.dtype] = taken[value.dtype] || !refused;
      }
    }
    for (const auto& [dtype, is_taken] : taken) {
      if (!is_taken) platform.lacking.push_back(dtype);
    }
  }

  // Every value that crosses between the platform and the host is copied once a direction.
  void add_copies(ScannedPlatform& platform) const {
    if (platform.nodes.size() != nodes_.all().size()) return;                  // Of a part of the model nothing can be said.
    std::map<std::pair<const Graph*, ValueId>, std::pair<bool, bool>> needed;  // On the platform, on the host.
    std::map<std::pair<const Graph*, ValueId>, bool> made_on_host;
    const auto on_host = [&](size_t i) {
      return platform.nodes[i].state == "fallback" || platform.nodes[i].state == "unsupported";
    };
    for (size_t i = 0; i < nodes_.all().size(); ++i) {
      const FileNode& node = nodes_.all()[i];
      for (const ValueId id : node.node->outputs) {
        if (id != no_value) made_on_host[{node.graph, id}] = on_host(i);
      }
      for (const ValueId id : node.node->inputs) {
        if (id == no_value) continue;
        auto& need = needed[{node.graph, id}];
        (on_host(i) ? need.second : need.first) = true;
      }
    }
    for (size_t i = 0; i < nodes_.all().size(); ++i) {
      const FileNode& node = nodes_.all()[i];
      for (const ValueId id : node.node->outputs) {
        const auto use = id == no_value ? needed.end() : needed.find({node.graph, id});
        if (use == needed.end() || !(on_host(i) ? use->second.first : use->second.second)) continue;
        const auto* tensor = std::get_if<TensorType>(&nodes_.typed_value(node, id).type);
        if (tensor != nullptr && tensor->is_known()) platform.copied_bytes += static_cast<double>(tensor->bytes());
      }
    }
  }

  const FileNodes& nodes_;
  const Catalog& catalog_;
  const ScanOptions& options_;
  std::unordered_map<std::string, size_t> places_;
  std::vector<Kind> kinds_;
  std::vector<size_t> kind_of_;  // By node.
};

}  // namespace

std::vector<ScannedPlatform> scan_catalog(const FileNodes& nodes, const Catalog& catalog, const std::vector<std::string>& names,
                                          const ScanOptions& options) {
  check_names(nodes, options);
  CatalogScan scan(nodes, catalog, options);
  std::vector<ScannedPlatform> platforms;
  for (const std::string& each : names) platforms.push_back(scan.run(*catalog.find(each), each));
  return platforms;
}

}  // namespace unmoor
