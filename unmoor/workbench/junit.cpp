#include "unmoor/workbench/junit.h"

#include <fmt/format.h>

#include <algorithm>

#include "unmoor/workbench/result.h"

namespace unmoor {
namespace {

// U+FFFE and U+FFFF are no characters of XML; other control characters go with printable().
std::string without_noncharacters(std::string text) {
  for (const char last : {'\xBE', '\xBF'}) {
    const std::string found{'\xEF', '\xBF', last};
    for (size_t at = text.find(found); at != std::string::npos; at = text.find(found, at)) text.replace(at, found.size(), "\xEF\xBF\xBD");
  }
  return text;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : without_noncharacters(printable(text))) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\n': result += "&#10;"; break;
      case '\t': result += "&#9;"; break;
      default: result += c;
    }
  }
  return result;
}

std::string case_xml(const JUnitCase& each) {
  const std::string head = fmt::format("    <testcase classname=\"{}\" name=\"{}\"", escaped(each.group), escaped(each.name));
  if (!each.failure.empty()) return fmt::format("{}>\n      <failure message=\"{}\"/>\n    </testcase>\n", head, escaped(each.failure));
  if (!each.skipped.empty()) return fmt::format("{}>\n      <skipped message=\"{}\"/>\n    </testcase>\n", head, escaped(each.skipped));
  return head + "/>\n";
}

// What is said of an error in a line.
std::string told(const Metrics& metrics) {
  if (!metrics.problem.empty()) return metrics.problem;
  std::string text = metrics.class_mismatch > 0 ? fmt::format("{} of {} elements are NaN or infinite on one side only", metrics.class_mismatch, metrics.elements)
                                                : fmt::format("relative L2 error {:.3g}, largest absolute error {:.3g}", metrics.rel_l2, metrics.max_abs);
  if (metrics.excess_e) text += fmt::format(", E {:.3g}", *metrics.excess_e);
  if (metrics.excess_p) text += fmt::format(", P {:.3g}", *metrics.excess_p);
  return text;
}

JUnitCase case_of(const AlignedValue& value, const char* group) {
  JUnitCase result{group, value.node.empty() ? value.name : fmt::format("{} ({} {})", value.name, value.op, value.node)};
  const std::string note = value.note.empty() ? "" : fmt::format("; {}", value.note);
  const auto& metrics = value.single ? value.single : value.entire;
  if (value.verdict == ValueVerdict::Hidden) {
    result.skipped = value.entire ? "its kernel was not run alone" : "one side does not show it";
  } else if (value.verdict == ValueVerdict::Undefined) {
    result.skipped = fmt::format("the specification leaves it open{}", note);
  } else if (value.verdict == ValueVerdict::AsBaseline) {
    result.skipped = fmt::format("as the baseline: {}{}", metrics ? told(*metrics) : "not comparable", note);
  } else if (value.verdict != ValueVerdict::Match && value.verdict != ValueVerdict::Explained) {
    result.failure = fmt::format("{}: {}{}", name(value.verdict), metrics ? told(*metrics) : "not comparable", note);
    if (value.cause) result.failure += fmt::format("; {} ({})", value.cause->text, value.cause->id);
  }
  return result;
}

}  // namespace

std::vector<JUnitCase> junit_cases(const AlignResult& result) {
  std::vector<JUnitCase> cases;
  for (const AlignedValue& value : result.outputs) cases.push_back(case_of(value, "outputs"));
  for (const AlignedValue& value : result.values) cases.push_back(case_of(value, "values"));
  return cases;
}

std::string junit_xml(const std::string& suite, const std::vector<JUnitCase>& cases) {
  const auto failed = std::ranges::count_if(cases, [](const JUnitCase& each) { return !each.failure.empty(); });
  const auto skipped = std::ranges::count_if(cases, [](const JUnitCase& each) { return each.failure.empty() && !each.skipped.empty(); });
  const std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\"", cases.size(), failed);
  std::string text = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"unmoor\" {}>\n", counts);
  text += fmt::format("  <testsuite name=\"{}\" {} skipped=\"{}\">\n", escaped(suite), counts, skipped);
  for (const JUnitCase& each : cases) text += case_xml(each);
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace unmoor
