#include "unmoor/workbench/scan_torch.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "unmoor/base/error.h"
#include "unmoor/catalog/catalog.h"
#include "unmoor/ops/op.h"
#include "unmoor/workbench/scan_nodes.h"

namespace unmoor {
namespace {

struct Verdict {
  std::string state, reason, detail, advice, source;
};

// What an operator of ONNX that the call is exported as says of it.
struct Kind {
  std::string category = "other";
  bool heavy = false;
};

Kind kind_of(const Catalog& catalog, const std::string& op) {
  Kind kind;
  for (const auto& form : catalog.onnx_forms(op)) {
    for (const std::string& each : form) {
      const Op* const known = all_ops().find(each);
      if (known == nullptr) continue;
      const bool heavy = known->category == Category::Matrix || known->category == Category::Convolution ||
                         known->category == Category::Attention || known->category == Category::Recurrent;
      if (kind.category == "other" || (heavy && !kind.heavy)) kind.category = name(known->category);
      kind.heavy = kind.heavy || heavy;
    }
  }
  return kind;
}

class TorchScan {
 public:
  TorchScan(const TorchFile& file, const Catalog& catalog, const ScanOptions& options) : file_(file), catalog_(catalog), options_(options) {
    for (const TorchCall& call : file.calls) {
      FileNode node;
      node.name = call.name;
      node.op = call.op;
      const Kind kind = kind_of(catalog, asked_name(call.op));
      node.category = kind.category;
      node.heavy = kind.heavy;
      any_heavy_ = any_heavy_ || kind.heavy;
      nodes_.push_back(std::move(node));
    }
    mark_paths();
  }

  ScannedPlatform run(const Facts& facts, const std::string& shown) const {
    ScannedPlatform result;
    result.name = shown;
    result.version = facts.header().version;
    result.source = "catalogue";
    std::unordered_map<std::string, Verdict> verdicts;
    std::map<std::string, bool> taken;  // By element type.
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const FileNode& node = nodes_[i];
      if (!is_asked_for(options_, node.name, node.op)) continue;
      const CatalogQuestion question = question_of_call(file_.calls[i]);
      const auto [place, fresh] = verdicts.try_emplace(signature(question));
      Verdict& verdict = place->second;
      if (fresh) verdict = judge(facts, question);
      ScannedNode entry{node.name, node.op, shown, verdict.state, verdict.reason, verdict.detail, verdict.advice, "", node.category};
      entry.source = verdict.source;
      entry.priority = priority_of(node, entry.state, any_heavy_, false);
      const bool refused = entry.reason == "dtype" && (entry.state == "unsupported" || entry.state == "fallback");
      for (const AskedValue& value : question.inputs) {
        if (entry.state != "unknown" && !value.dtype.empty()) taken[value.dtype] = taken[value.dtype] || !refused;
      }
      add_node(result, std::move(entry), 0);
    }
    add_effort(result);
    for (const auto& [dtype, is_taken] : taken) {
      if (!is_taken) result.lacking.push_back(dtype);
    }
    return result;
  }

 private:
  // TorchScript does not write which overload it calls: then all of them answer.
  std::string asked_name(const std::string& op) const {
    return file_.kind == TorchFile::Kind::Script && op.starts_with("aten::") ? cat(op, ".*") : op;
  }

  AskedValue asked(const std::string& name) const {
    const auto found = file_.values.find(name);
    if (found == file_.values.end()) return {};
    const TorchValue& value = found->second;
    return {value.dtype, value.rank, true, value.constant, !value.of_data};
  }

  CatalogQuestion question_of_call(const TorchCall& call) const {
    CatalogQuestion question{asked_name(call.op), 0, {}, {}, {}};
    for (const std::string& name : call.inputs) question.inputs.push_back(asked(name));
    for (const std::string& name : call.outputs) question.outputs.push_back(asked(name));
    return question;
  }

  Verdict judge(const Facts& facts, const CatalogQuestion& question) const {
    const CatalogAnswer answer = catalog_.answer(facts, question);
    Verdict verdict{std::string(name(answer.claim)), answer.reason, answer.detail, "", answer.source};
    if (answer.claim == Claim::Constrained) verdict.advice = "check that the conditions hold for this call";
    if (answer.claim == Claim::Unknown) verdict.advice = "ask the vendor, or try it: the catalogue has no word on it";
    if (answer.claim != Claim::Unsupported && answer.claim != Claim::Fallback) return verdict;
    for (const CatalogItem& item : catalog_.items()) {
      if (item.platform != facts.header().platform || item.version == facts.header().version) continue;
      const Claim other = catalog_.answer(*catalog_.find(item.platform + "@" + item.version), question).claim;
      if (other != Claim::Native && other != Claim::Constrained) continue;
      verdict.advice = fmt::format("version {} of the platform has it", item.version);
      return verdict;
    }
    verdict.advice = answer.claim == Claim::Fallback ? "it runs on the host; a kernel for the platform would save the copies"
                                                     : "write it with other calls, or a kernel";
    return verdict;
  }

  // What lies before and after heavy calls, along the values; without values every call may lie between two.
  void mark_paths() {
    const bool known = !file_.values.empty();
    std::set<std::string> after, before;
    const auto any = [](const std::vector<std::string>& names, const std::set<std::string>& marks) {
      return std::ranges::any_of(names, [&](const std::string& each) { return marks.contains(each); });
    };
    for (size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].after_heavy = !known || any(file_.calls[i].inputs, after);
      if (nodes_[i].after_heavy || nodes_[i].heavy) after.insert(file_.calls[i].outputs.begin(), file_.calls[i].outputs.end());
    }
    for (size_t i = nodes_.size(); i-- > 0;) {
      nodes_[i].before_heavy = !known || any(file_.calls[i].outputs, before);
      if (nodes_[i].before_heavy || nodes_[i].heavy) before.insert(file_.calls[i].inputs.begin(), file_.calls[i].inputs.end());
    }
  }

  const TorchFile& file_;
  const Catalog& catalog_;
  const ScanOptions& options_;
  std::vector<FileNode> nodes_;
  bool any_heavy_ = false;
};

// Fails with InvalidArgument on a name that selects nothing.
void check_calls(const TorchFile& file, const ScanOptions& options) {
  for (const std::string& node : options.nodes) {
    if (std::ranges::find(file.calls, node, &TorchCall::name) == file.calls.end()) fail(ErrorKind::InvalidArgument, "the program has no call '", node, "'");
  }
  for (const std::string& op : options.ops) {
    if (std::ranges::find(file.calls, op, &TorchCall::op) == file.calls.end()) fail(ErrorKind::InvalidArgument, "the program never calls '", op, "'");
  }
}

std::vector<std::string> not_known(const TorchFile& file) {
  switch (file.kind) {
    case TorchFile::Kind::Program:
      return {"floating-point operations and memory of a run: export to ONNX for these"};
    case TorchFile::Kind::Script:
      return {"shapes, element types and overloads of calls: TorchScript does not write them; export it by torch.export for these",
              "which side of a condition runs, and how often a loop does: each counts once",
              "floating-point operations and memory of a run: export to ONNX for these"};
    case TorchFile::Kind::Checkpoint:
    case TorchFile::Kind::Safetensors:
      return {"the operators: a checkpoint holds weights without a graph, so no platform can be asked; export the model by torch.export or to ONNX"};
  }
  return {};
}

}  // namespace

TorchFacts torch_facts(const TorchFile& file) {
  TorchFacts facts{file.described, file.has_graph()};
  facts.tensors = file.tensors.size();
  facts.stored_bytes = file.stored_bytes;
  for (const TorchTensor& tensor : file.tensors) {
    ++facts.tensor_dtypes[tensor.dtype];
    if (tensor.dtype == "int64" || tensor.dtype == "bool") continue;
    double elements = 1;
    for (const int64_t size : tensor.shape) elements *= static_cast<double>(size);
    facts.parameters += elements;
    facts.parameter_bytes += tensor.bytes;
  }
  for (const TorchCall& call : file.calls) {
    if (!call.module.empty()) ++facts.modules[call.module];
    const auto value = call.outputs.empty() ? file.values.end() : file.values.find(call.outputs[0]);
    if (value == file.values.end()) continue;
    if (!value->second.dtype.empty()) ++facts.dtypes[value->second.dtype];
    facts.data_dependent += value->second.of_data ? 1 : 0;
  }
  facts.dynamic_inputs = file.dynamic_inputs;
  facts.host_calls = file.host_calls;
  facts.not_known = not_known(file);
  return facts;
}

std::vector<ScannedPlatform> scan_torch(const TorchFile& file, const Catalog& catalog, const std::vector<std::string>& names,
                                        const ScanOptions& options) {
  check_calls(file, options);
  const TorchScan scan(file, catalog, options);
  std::vector<ScannedPlatform> platforms;
  for (const std::string& each : names) platforms.push_back(scan.run(*catalog.find(each), each));
  return platforms;
}

}  // namespace unmoor
