#include <algorithm>
#include <nlohmann/json.hpp>

#include "unmoor/base/demangle.h"
#include "unmoor/base/error.h"
#include "unmoor/base/json.h"
#include "unmoor/workbench/machine_facts.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr std::string_view packages_mark = "\nunmoor-packages ";
constexpr std::string_view engine_mark = "\nunmoor-engine ";

std::string text_of(const json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : std::string();
}

// What stands behind the mark, or all of it if there is none; a discarded value if that is no JSON.
json marked(const std::string& text, std::string_view mark) {
  const size_t at = text.rfind(mark);
  return read_json(at == std::string::npos ? std::string_view(text) : std::string_view(text).substr(at + mark.size()));
}

const json& list_in(const json& object, const char* key) {
  static const json none = json::array();
  return object.is_object() && object.contains(key) && object[key].is_array() ? object[key] : none;
}

// "exit status 9; it said: broken".
std::string in_a_line(const std::string& failure) {
  const size_t end = failure.find('\n');
  std::string words = end == std::string::npos ? "" : failure.substr(end + 1);
  words.resize(words.find_last_not_of(" \n\r\t") + 1);
  std::ranges::replace(words, '\n', ' ');
  return cat(failure.substr(0, end), words.empty() ? "" : "; it said: ", words);
}

std::string interpreter_of(const Machine& machine) {
  const auto lines = machine.lines("/outputs/interpreter");
  return lines.empty() ? std::string() : lines[0];
}

std::string problem_of(const Machine& machine, const std::string& interpreter) {
  const std::string& failure = machine.failure("python");
  if (!failure.empty()) return cat("'", interpreter, "' does not list its packages: ", in_a_line(failure));
  if (machine.has("/outputs/python")) return cat("'", interpreter, "' does not list its packages: its answer cannot be understood");
  return interpreter.empty() ? std::string() : cat("there is no program '", interpreter, "'");
}

}  // namespace

PythonFacts python_facts(const Machine& machine) {
  PythonFacts facts;
  facts.interpreter = interpreter_of(machine);
  const json said = marked(machine.text("/outputs/python"), packages_mark);
  facts.version = text_of(said, "python");
  facts.path = text_of(said, "path");
  for (const json& each : list_in(said, "packages")) {
    PythonFacts::Package package{text_of(each, "name"), text_of(each, "version"), text_of(each, "path"), text_of(each, "sha256")};
    if (!package.name.empty() && !package.version.empty()) facts.packages.push_back(std::move(package));
  }
  for (const json& each : list_in(said, "extensions")) {
    const std::string abi = text_of(each, "abi");
    if (abi == "0" || abi == "1") facts.extensions.push_back({text_of(each, "name"), text_of(each, "version"), abi == "1"});
  }
  if (facts.version.empty() || !said.contains("packages")) facts.problem = problem_of(machine, facts.interpreter);
  return facts;
}

std::vector<FoundEngine> collected_engines(const Machine& machine) {
  std::vector<FoundEngine> engines;
  const std::string interpreter = interpreter_of(machine);
  if (interpreter.empty()) return engines;
  for (const char* const name : {"ort", "torch"}) {
    FoundEngine engine{name, "broken", "", "", interpreter, {}, {}};
    const std::string file = cat("engine-", name);
    const json said = marked(machine.text(cat("/outputs/", file)), engine_mark);
    if (const std::string& failure = machine.failure(file); !failure.empty()) {
      engine.reason = cat("the process that looks for it ended: ", demangled(in_a_line(failure)));
    } else if (!machine.has("/outputs/python")) {
      engine.state = "absent";
      engine.reason = problem_of(machine, interpreter);
    } else if (!said.is_object()) {
      continue;  // It was not looked for.
    } else {
      engine.state = text_of(said, "state");
      engine.reason = demangled(text_of(said, "reason"));
      engine.version = text_of(said, "version");
      for (const json& each : list_in(said, "runners")) {
        if (each.is_string()) engine.runners.push_back(each);
      }
      if (said.contains("versions") && said["versions"].is_object()) {
        for (const auto& [what, version] : said["versions"].items()) {
          if (version.is_string()) engine.versions[what] = version;
        }
      }
    }
    engines.push_back(std::move(engine));
  }
  return engines;
}

}  // namespace unmoor
