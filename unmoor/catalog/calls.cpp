#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "unmoor/catalog/aten.h"
#include "unmoor/catalog/catalog.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr int deepest_parts = 4;          // Calls in calls that PyTorch takes apart.
constexpr int64_t exported_opset = 20;    // What torch.onnx.export of torch 2.13 writes unless it is told otherwise.

int badness(Claim claim) {
  switch (claim) {
    case Claim::Native:
      return 0;
    case Claim::Constrained:
      return 1;
    case Claim::Unknown:
      return 2;
    case Claim::Fallback:
      return 3;
    case Claim::Unsupported:
      return 4;
  }
  return 4;
}

// Some calls of a form are made by one or the other of its variants: where some are taken, whether this one is depends on its
// attributes. `needed` are calls that every variant makes.
CatalogAnswer worst_of(CatalogAnswer worst, std::vector<CatalogAnswer> needed, std::vector<CatalogAnswer> sometimes) {
  const auto take = [&worst](CatalogAnswer& found) {
    if (badness(found.claim) > badness(worst.claim)) worst = std::move(found);
  };
  const bool only_sometimes = needed.empty() && !sometimes.empty();
  std::ranges::for_each(needed, take);
  const auto bad = [](const CatalogAnswer& each) { return badness(each.claim) > badness(Claim::Constrained); };
  const bool none = only_sometimes && std::ranges::all_of(sometimes, bad);
  for (CatalogAnswer& found : sometimes) {
    if (bad(found) && !none) found = {Claim::Constrained, "attribute", fmt::format("some forms call {}", found.detail), found.source};
    take(found);
  }
  return worst;
}

std::vector<std::string> texts_at(const json& object, const char* key) {
  std::vector<std::string> texts;
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end() || !found->is_array()) return texts;
  for (const json& each : *found) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return texts;
}

bool has_attribute_limits(const json& kernels) {
  for (const json& kernel : kernels.is_array() ? kernels : json::array()) {
    for (const json& limit : kernel.is_object() && kernel.contains("limits") ? kernel["limits"] : json::array()) {
      if (limit.is_object() && limit.contains("attribute")) return true;
    }
  }
  return false;
}

// Answers that differ are one condition: the arguments of the call decide.
CatalogAnswer one_of(std::vector<std::pair<std::string, CatalogAnswer>> forms) {
  CatalogAnswer first = std::move(forms[0].second);
  std::string listed;
  bool differ = false;
  for (size_t i = 0; i < forms.size(); ++i) {
    const Claim claim = i == 0 ? first.claim : forms[i].second.claim;
    differ = differ || claim != first.claim;
    listed += fmt::format("{}as {} {}", listed.empty() ? "" : ", ", forms[i].first, name(claim));
  }
  if (differ) return {Claim::Constrained, "attribute", fmt::format("its arguments decide: {}", listed), first.source};
  first.detail = fmt::format("as {}{}{}", forms[0].first, first.detail.empty() ? "" : ": ", first.detail);
  return first;
}

}  // namespace

CatalogAnswer Catalog::calls_answer(const Facts& facts, const CatalogQuestion& question, CallRole role) const {
  if (question.op.find("::") != std::string::npos) {
    const auto [at, found] = entry(facts, question.op.substr(0, question.op.find('.')));
    if (!found.is_null()) return answer_of_overload(at == nullptr ? facts : *at, found, question, role);
    if (question.op.starts_with("higher_order::") && facts.header().static_graph)
      return {Claim::Constrained, "dynamic", "control flow stays in Python and breaks the graph", facts.source(0)};
    if (question.op.starts_with("higher_order::")) return {Claim::Native, "", "control flow of the host; what its branches call is asked for itself", facts.source(0)};
    if (!question.op.starts_with("aten::"))
      return {Claim::Unknown, "no-kernel", fmt::format("{}: its own library must have a kernel for the platform", question.op), facts.source(0)};
    const Claim absent = facts.header().absent == "unsupported" ? Claim::Unsupported : Claim::Unknown;
    return {absent, "no-kernel", fmt::format("{}: {}", question.op, facts.header().absent_why), facts.source(0)};
  }
  const auto map = open("onnx_aten");
  const json form = map == nullptr ? json() : map->entry(question.op);
  if (form.is_null())
    return {Claim::Unknown, "no-kernel", "no form of it in ATen calls is known", map == nullptr ? "" : map->source(0)};
  CatalogAnswer start{Claim::Native, "", form.value("note", std::string()), facts.source(0)};
  if (form.contains("control_flow") && facts.header().static_graph) {
    start = {Claim::Constrained, "dynamic", "control flow stays in Python and breaks the graph", facts.source(0)};
  }
  const auto calls = texts_at(form, "calls");
  const auto sometimes = texts_at(form, "sometimes");
  const CallRole part = calls.size() + sometimes.size() == 1 ? CallRole::Whole : CallRole::Part;
  const auto answers = [&](const std::vector<std::string>& list) {
    std::vector<CatalogAnswer> found;
    for (const auto& call : list) found.push_back(calls_answer(facts, {call, 0, question.inputs, question.outputs, {}}, part));
    return found;
  };
  return worst_of(std::move(start), answers(calls), answers(sometimes));
}

std::vector<std::vector<std::string>> Catalog::onnx_forms(std::string_view call) const {
  const std::scoped_lock lock(forms_mutex_);
  if (forms_.empty()) read_forms();
  if (!call.ends_with(".*")) {
    const auto found = forms_.find(call);
    return found == forms_.end() ? std::vector<std::vector<std::string>>() : found->second;
  }
  std::vector<std::vector<std::string>> all;
  const std::string_view base = call.substr(0, call.size() - 2);
  for (auto at = forms_.lower_bound(base); at != forms_.end() && at->first.starts_with(base); ++at) {
    if (at->first.size() > base.size() && at->first[base.size()] != '.') continue;
    for (const auto& each : at->second) {
      if (std::ranges::find(all, each) == all.end()) all.push_back(each);
    }
  }
  return all;
}

// Operators of ONNX whose traced form is one call, and those that the parts of calls name.
void Catalog::read_forms() const {
  if (const auto traced = open("onnx_aten")) {
    for (const std::string& op : traced->ops()) {
      const json form = traced->entry(op);
      const auto calls = texts_at(form, "calls");
      if (calls.size() == 1 && texts_at(form, "sometimes").empty()) forms_[calls[0]].push_back({op});
    }
  }
  const auto parts = open("aten_parts");
  if (parts == nullptr) return;
  for (const std::string& call : parts->ops()) {
    const json entry = parts->entry(call);
    if (!entry.is_object() || !entry.contains("onnx") || !entry["onnx"].is_array()) continue;
    std::vector<std::vector<std::string>> forms;
    for (const json& form : entry["onnx"]) forms.push_back(texts_at({{"ops", form}}, "ops"));
    forms_[call] = std::move(forms);
  }
}

CatalogAnswer Catalog::exported_answer(const Facts& facts, const CatalogQuestion& question, int depth) const {
  if (const auto forms = onnx_forms(question.op); !forms.empty()) {
    std::vector<std::pair<std::string, CatalogAnswer>> answers;
    for (const auto& form : forms) answers.emplace_back(fmt::format("{}", fmt::join(form, ", ")), exported_form(facts, question, form));
    return one_of(std::move(answers));
  }
  const auto table = open("aten_parts");
  const json parts = table == nullptr ? json() : table->entry(question.op);
  if (parts.is_null() || depth >= deepest_parts)
    return {Claim::Unknown, "no-kernel", fmt::format("{}: no operator of ONNX is known for it", question.op), facts.source(0)};
  const auto answers = [&](const char* key) {
    std::vector<CatalogAnswer> found;
    for (const std::string& call : texts_at(parts, key)) found.push_back(exported_answer(facts, {call, 0, question.inputs, question.outputs, {}}, depth + 1));
    return found;
  };
  return worst_of({Claim::Native, "", parts.value("note", std::string()), table->source(0)}, answers("calls"), answers("sometimes"));
}

// What the platform says to the operators that one call is exported as, all of which it needs.
CatalogAnswer Catalog::exported_form(const Facts& facts, const CatalogQuestion& question, const std::vector<std::string>& form) const {
  CatalogAnswer worst{Claim::Native, "", "", facts.source(0)};
  for (const std::string& op : form) {
    CatalogQuestion node{op, exported_opset, question.inputs, question.outputs, {}};
    if (facts.header().opset_max > 0) node.opset = std::min(node.opset, facts.header().opset_max);
    if (form.size() > 1) node.inputs.resize(std::min<size_t>(node.inputs.size(), 1)), node.outputs.clear();
    CatalogAnswer found = onnx_answer(facts, node);
    if (found.claim == Claim::Native && has_attribute_limits(entry(facts, op).second))
      found = {Claim::Constrained, "attribute", fmt::format("{} has conditions on attributes that only its export can tell", op), found.source};
    if (badness(found.claim) > badness(worst.claim)) worst = std::move(found);
  }
  return worst;
}

}  // namespace unmoor
