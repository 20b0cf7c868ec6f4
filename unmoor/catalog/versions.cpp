#include "unmoor/catalog/versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <compare>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "unmoor/base/error.h"
#include "unmoor/catalog/embedded.h"

namespace unmoor {
namespace {

using nlohmann::json;

// "RC3" is {0, 3}, "7" is {1, 7}, other words stand by themselves: releases come after their candidates.
struct Part {
  int kind = 1;  // 0: a candidate, 1: a number, 2: a word.
  uint64_t number = 0;
  std::string word;
  auto operator<=>(const Part&) const = default;
};

Part read_part(std::string_view text) {
  std::string lower;
  for (const char letter : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  Part part;
  const bool candidate = lower.starts_with("rc");
  const std::string digits = candidate ? lower.substr(2) : lower;
  const bool numeric = !digits.empty() && digits.size() < 19 &&
                       std::ranges::all_of(digits, [](unsigned char each) { return std::isdigit(each) != 0; });
  part.kind = numeric ? (candidate ? 0 : 1) : 2;
  if (numeric) {
    part.number = std::stoull(digits);
  } else {
    part.word = lower;
  }
  return part;
}

std::vector<Part> parts_of(std::string_view version) {
  version = version.substr(0, version.find('+'));
  std::vector<Part> parts;
  while (true) {
    const size_t dot = version.find('.');
    parts.push_back(read_part(version.substr(0, dot)));
    if (dot == std::string_view::npos) return parts;
    version.remove_prefix(dot + 1);
  }
}

// What a rule lists: whole versions as text, ranges as pairs with null for an open end.
bool is_among(const json& list, const std::string& version) {
  return std::ranges::any_of(list, [&](const json& each) {
    if (each.is_string()) return parts_of(each.get<std::string>()) == parts_of(version);
    const auto end = [](const json& value) { return value.is_null() ? std::string() : value.get<std::string>(); };
    return in_range(version, {end(each[0]), end(each[1])});
  });
}

// "525.60.13 or newer", "2.6 or 2.7".
std::string in_words(const json& list) {
  std::string text;
  for (const json& each : list) {
    std::string words = "any";
    if (each.is_string()) {
      words = each.get<std::string>();
    } else if (each[0].is_string() && each[1].is_null()) {
      words = fmt::format("{} or newer", each[0].get<std::string>());
    } else if (each[0] == each[1] && !each[0].is_null()) {
      words = each[0].get<std::string>();
    } else if (each[0].is_string()) {
      const bool shorter =
          parts_of(each[1].get<std::string>()).size() < parts_of(each[0].get<std::string>()).size();  // 8.6 to 8.x
      words = fmt::format("{} to {}{}", each[0].get<std::string>(), each[1].get<std::string>(), shorter ? ".x" : "");
    }
    text += fmt::format("{}{}", text.empty() ? "" : ", ", words);
  }
  return text;
}

// All rules compiled in. They were checked when the project was tested.
const std::vector<json>& all_rules() {
  static const std::vector<json> rules = [] {
    std::vector<json> list;
    for (const EmbeddedFacts& file : embedded_versions()) {
      json content = json::parse(file.text);
      for (json& rule : content["rules"]) list.push_back(std::move(rule));
    }
    return list;
  }();
  return rules;
}

using Facts = std::vector<VersionFact>;

// A rule may ask for further things: a build for CUDA 12.6, a plug-in that is there.
bool is_given(const json& rule, const Facts& facts) {
  if (!rule.contains("given")) return true;
  return std::ranges::all_of(rule["given"].items(), [&](const auto& wanted) {
    return std::ranges::any_of(
        facts, [&](const VersionFact& fact) { return fact.component == wanted.key() && is_among(wanted.value(), fact.version); });
  });
}

std::string source_of(const json& rule) {
  return fmt::format("{} ({})", rule["source"].get<std::string>(), rule["date"].get<std::string>());
}

// Versions of `a` that take this `b`, as the rules list them, with what else each asks for.
std::string others(const VersionFact& a, const VersionFact& b) {
  std::vector<std::string> versions;
  for (const json& rule : all_rules()) {
    if (rule["a"] != a.component || rule["b"] != b.component || !is_among(rule["fits"], b.version)) continue;
    std::string words = in_words(rule["when"]);
    if (rule.contains("given")) {
      for (const auto& [component, list] : rule["given"].items()) words += fmt::format(" with {} {}", component, in_words(list));
    }
    if (std::ranges::find(versions, words) == versions.end()) versions.push_back(words);
  }
  return fmt::format("{}", fmt::join(versions, ", "));
}

std::string remedy(const VersionFact& a, const VersionFact& b, const std::vector<const json*>& rules) {
  std::string fits;
  std::string note;
  for (const json* const rule : rules) {
    const std::string words = in_words((*rule)["fits"]);
    if (!words.empty()) fits += fmt::format("{}{}", fits.empty() ? "" : ", ", words);
    if (rule->contains("note")) note = (*rule)["note"].get<std::string>();
  }
  const std::string other = others(a, b);
  return fmt::format(
      "{}{}{}{}", fits.empty() ? "" : fmt::format("with {} {}: {} {}", a.component, a.version, b.component, fits),
      other.empty() ? ""
                    : fmt::format("{}with {} {}: {} {}", fits.empty() ? "" : "; ", b.component, b.version, a.component, other),
      note.empty() ? "" : "; ", note);
}

// The rules for this version of `a`. Those that ask for something else that is here, such as a plug-in, go before the general
// ones.
std::vector<const json*> rules_about(const VersionFact& a, const VersionFact& b, const Facts& facts) {
  std::vector<const json*> general;
  std::vector<const json*> special;
  for (const json& rule : all_rules()) {
    if (rule["a"] != a.component || rule["b"] != b.component || !is_among(rule["when"], a.version) || !is_given(rule, facts))
      continue;
    (rule.contains("given") ? special : general).push_back(&rule);
  }
  return special.empty() ? general : special;
}

VersionPair judge(const VersionFact& a, const VersionFact& b, const Facts& facts) {
  VersionPair pair{fmt::format("{} {}", a.component, a.version), fmt::format("{} {}", b.component, b.version), "unknown", "", ""};
  const std::vector<const json*> rules = rules_about(a, b, facts);
  const auto first = [&](const auto& holds) {
    return std::ranges::find_if(rules, [&](const json* rule) { return holds(*rule); });
  };
  const auto none = rules.end();
  auto decides = first([&](const json& rule) { return rule.contains("refused") && is_among(rule["refused"], b.version); });
  if (decides != none) {
    pair.verdict = "does not";
  } else if (decides = first([&](const json& rule) { return is_among(rule["fits"], b.version); }); decides != none) {
    pair.verdict = "fits";
  } else if (decides = first([](const json& rule) { return rule["otherwise"] == "does not"; }); decides != none) {
    pair.verdict = "does not";
  } else {
    decides = rules.begin();
  }
  if (decides != none) pair.source = source_of(**decides);
  if (pair.verdict == "does not") pair.would = remedy(a, b, rules);
  return pair;
}

int rank(const VersionPair& pair) { return pair.verdict == "does not" ? 0 : pair.verdict == "unknown" ? 1 : 2; }

}  // namespace

bool in_range(std::string_view version, const VersionRange& range) {
  const std::vector<Part> parts = parts_of(version);
  if (!range.first.empty()) {
    const std::vector<Part> from = parts_of(range.first);
    if (std::ranges::lexicographical_compare(parts, from)) return false;
  }
  if (range.second.empty()) return true;
  const std::vector<Part> to = parts_of(range.second);
  const std::vector<Part> head(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(std::min(parts.size(), to.size())));
  return !std::ranges::lexicographical_compare(to, head);
}

std::vector<VersionPair> judge_versions(const std::vector<VersionFact>& facts) {
  std::vector<std::pair<std::string, std::string>> kinds;
  for (const json& rule : all_rules()) {
    std::pair<std::string, std::string> kind{rule["a"], rule["b"]};
    // A rule that holds only where something else is there says nothing where it is not.
    if (is_given(rule, facts) && std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(std::move(kind));
  }
  std::vector<VersionPair> pairs;
  for (const auto& [first, second] : kinds) {
    for (const VersionFact& a : facts) {
      for (const VersionFact& b : facts) {
        if (a.component == first && b.component == second) pairs.push_back(judge(a, b, facts));
      }
    }
  }
  std::ranges::stable_sort(pairs, {}, rank);
  return pairs;
}

}  // namespace unmoor
