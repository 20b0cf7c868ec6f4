#include "unmoor/workbench/conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "unmoor/base/child.h"
#include "unmoor/base/error.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr size_t batch = 1024;       // Cases that a child prepares together, since compilers start slowly.
constexpr double patience_s = 600;   // Silence of a child that is taken for a hang.

std::optional<std::string> read_line(Child& child) {
  std::string line;
  std::byte next{};
  while (child.read({&next, 1}, child_patience(patience_s))) {
    if (next == std::byte{'\n'}) return line;
    line += static_cast<char>(next);
  }
  return std::nullopt;
}

// Sends cases to one child and takes its answers. What was not answered is left for the caller.
class Batch {
 public:
  Batch(const std::vector<std::string>& command, std::span<const std::string> cases) : child_(command), cases_(cases) {
    std::string text;
    for (const std::string& each : cases) text += fmt::format("{}\n", each);
    if (!child_.write(std::as_bytes(std::span(text)), child_patience(patience_s))) child_.kill();  // It must not take part of a line for a case.
    child_.close_input();
  }

  // Results in order; shorter than the cases if the child died.
  std::vector<CaseResult> results() {
    std::vector<CaseResult> results;
    while (results.size() < cases_.size()) {
      const auto line = read_line(child_);
      if (!line) break;
      const json answer = json::parse(*line, nullptr, false);
      if (!answer.is_object()) continue;
      if (answer.contains("opened")) {
        opened_ = true;
        continue;
      }
      if (answer.contains("running")) {
        running_ = answer["running"] == true;
        continue;
      }
      results.push_back({cases_[results.size()], answer.value("verdict", "failed"), answer.value("detail", ""), answer.value("generic", false)});
    }
    return results;
  }

  bool opened() const { return opened_; }
  bool died_while_running() const { return running_; }
  std::string end() {
    const ChildEnd ended = child_.finish(1);
    std::string words = child_.errors();
    if (words.size() > 400) words.erase(0, words.size() - 400);
    return fmt::format("its process ended: {}{}{}", ended.text(), words.empty() ? "" : "; it said: ", words);
  }

 private:
  Child child_;
  std::span<const std::string> cases_;
  bool opened_ = false;
  bool running_ = false;
};

// What refusals are grouped by: a case's operator. Folders of tests stand together.
std::string subject(const std::string& text) { return text.starts_with('/') || text.find(' ') == std::string::npos ? "test" : text.substr(0, text.find(' ')); }

// Fails with InvalidArgument if no family of operators is called so.
void check_category(const std::string& category) {
  if (category.empty()) return;
  std::string known;
  for (int i = 0; i <= static_cast<int>(Category::Other); ++i) {
    const auto each = name(static_cast<Category>(i));
    if (each == category) return;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", each);
  }
  fail(ErrorKind::InvalidArgument, "no category is called '", category, "'; there are: ", known);
}

}  // namespace

size_t ConformanceResult::count(std::string_view verdict) const {
  return static_cast<size_t>(std::ranges::count(cases, verdict, &CaseResult::verdict));
}

json ConformanceResult::to_json() const {
  json result{{"device", device}, {"passed", count("passed")}, {"failed", count("failed")}, {"refused", count("refused")},
              {"generic", std::ranges::count_if(cases, [](const CaseResult& each) { return each.generic; })}, {"cases", json::array()}};
  for (const CaseResult& each : cases) {
    result["cases"].push_back({{"case", each.text}, {"verdict", each.verdict}, {"detail", each.detail}, {"generic", each.generic}});
  }
  return result;
}

std::string ConformanceResult::text() const {
  std::string text;
  std::map<std::string, size_t> refusals;
  for (const CaseResult& each : cases) {
    if (each.verdict == "failed") text += fmt::format("failed  {}\n        {}\n", each.text, each.detail);
    if (each.verdict == "refused" || each.verdict == "fallback") ++refusals[fmt::format("{}: {}", subject(each.text), each.detail)];
  }
  size_t shown = 0;
  for (const auto& [why, times] : refusals) {
    if (++shown > 40) break;
    text += fmt::format("refused {} {}{}\n", times, times == 1 ? "case of " : "cases of ", why);
  }
  if (refusals.size() > 40) text += fmt::format("refused for {} more reasons: see --json\n", refusals.size() - 40);
  const auto generic = std::ranges::count_if(cases, [](const CaseResult& each) { return each.generic; });
  std::map<std::string, size_t> verdicts;
  for (const CaseResult& each : cases) ++verdicts[each.verdict];
  if (verdicts.size() > verdicts.count("passed") + verdicts.count("failed") + verdicts.count("refused")) {
    text += device + ":";
    for (const auto& [verdict, times] : verdicts) text += fmt::format(" {} {}", times, verdict);
    return text + "; nothing was run\n";
  }
  text += fmt::format("{}: {} passed ({} by the plain path), {} failed, {} refused\n", device, count("passed"), generic, count("failed"),
                      count("refused"));
  return text;
}

std::vector<std::string> case_texts(const std::vector<std::string>& ops, const std::string& category) {
  static const std::vector<DType> dtypes{DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::U8,
                                         DType::I32, DType::I64, DType::Bool};
  for (const std::string& wanted : ops) {
    if (all_ops().find(wanted) == nullptr) fail(ErrorKind::InvalidArgument, "no operator is called '", wanted, "'");
  }
  check_category(category);
  std::vector<std::string> texts;
  for (const auto& [key, op] : all_ops().all()) {
    if (!ops.empty() && std::ranges::find(ops, key) == ops.end()) continue;
    if (!category.empty() && name(op.category) != category) continue;
    for (const Case& each : cases_of(op, dtypes)) texts.push_back(each.text);
  }
  return texts;
}

ConformanceResult conformance(const std::string& device, const std::vector<std::string>& cases, const std::vector<std::string>& command,
                              const Progress& progress) {
  ConformanceResult result;
  result.device = device;
  size_t size = batch;
  while (result.cases.size() < cases.size()) {
    if (progress) progress("cases", result.cases.size(), cases.size());
    const size_t from = result.cases.size();
    const std::span<const std::string> part = std::span(cases).subspan(from, std::min(size, cases.size() - from));
    Batch running(command, part);
    auto results = running.results();
    if (!running.opened()) fail(ErrorKind::Device, device, " cannot be used: ", running.end());
    std::ranges::move(results, std::back_inserter(result.cases));
    if (result.cases.size() - from == part.size()) {
      size = batch;
    } else if (running.died_while_running() || part.size() == 1) {
      result.cases.push_back({cases[result.cases.size()], "failed", running.end()});
      size = batch;
    } else {
      size = (part.size() + 1) / 2;  // It died while preparing: by halves, until the case is found.
    }
  }
  return result;
}

}  // namespace unmoor
