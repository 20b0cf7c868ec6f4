#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "unmoor/workbench/doctor.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr size_t shown_value = 300;

std::string device_text(const DoctorResult::Found& device) {
  std::string text = device.state == "ready"
                         ? fmt::format("{:<11} ready   {} (checked in {:.3f} ms)\n", device.name, device.hardware, device.check_ms)
                         : fmt::format("{:<11} {:<7} {}\n", device.name, device.state, device.reason);
  std::string versions;
  for (const auto& [what, version] : device.versions)
    versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", what, version);
  if (!versions.empty()) text += fmt::format("{:<11}         {}\n", "", versions);
  return text;
}

std::string engine_text(const FoundEngine& engine) {
  std::string runners;
  for (const std::string& runner : engine.runners) runners += fmt::format(" {}", runner);
  return wrapped(fmt::format("{:<11} {:<7} {}", engine.name, engine.state,
                             engine.state == "ready" ? fmt::format("{}, runs{} in {}", engine.version, runners, engine.python) : engine.reason));
}

std::string library_text(const DoctorResult::Library& library) {
  std::string others;
  for (const std::string& path : library.paths) {
    if (path != library.used) others += fmt::format("{}{}", others.empty() ? "; behind it " : ", ", path);
  }
  return wrapped(fmt::format("library     {} is {}{}", library.name, library.used, others));
}

std::string pair_text(const VersionPair& pair) {
  if (pair.verdict == "fits") return wrapped(fmt::format("{} fits {}", pair.a, pair.b));
  if (pair.verdict == "unknown") return wrapped(fmt::format("{} with {}: unknown, no source tells", pair.a, pair.b));
  return "";  // Told as a fault.
}

}  // namespace

json DoctorResult::to_json() const {
  json result{{"devices", json::array()}, {"engines", json::array()},   {"pairs", json::array()},
              {"faults", json::array()},  {"libraries", json::array()}, {"variables", variables}};
  for (const MachineFault& fault : faults) {
    result["faults"].push_back({{"text", fault.text}, {"remedy", fault.remedy}, {"severity", fault.severity}, {"source", fault.source}});
  }
  for (const Found& device : devices) {
    result["devices"].push_back({{"name", device.name},
                                 {"backend", device.backend},
                                 {"state", device.state},
                                 {"reason", device.reason},
                                 {"hardware", device.hardware},
                                 {"check_ms", measured(device.check_ms)},
                                 {"versions", device.versions}});
  }
  for (const FoundEngine& engine : engines) {
    result["engines"].push_back({{"name", engine.name},
                                 {"state", engine.state},
                                 {"reason", engine.reason},
                                 {"version", engine.version},
                                 {"runners", engine.runners},
                                 {"python", engine.python},
                                 {"versions", engine.versions}});
  }
  for (const VersionPair& pair : pairs) {
    result["pairs"].push_back({{"a", pair.a}, {"b", pair.b}, {"verdict", pair.verdict}, {"source", pair.source}, {"would", pair.would}});
  }
  for (const Library& library : libraries) {
    result["libraries"].push_back({{"name", library.name}, {"paths", library.paths}, {"used", library.used}});
  }
  result["python"] = {
      {"interpreter", python.interpreter}, {"version", python.version}, {"path", python.path}, {"problem", python.problem}};
  if (!collected.created.empty()) result["collected"] = {{"created", collected.created}, {"system", collected.system}};
  return result;
}

std::string DoctorResult::text() const {
  std::string text;
  for (const MachineFault& fault : faults) {
    text += wrapped(fmt::format("{}; what would help: {}{}", fault.text, fault.remedy,
                                fault.source.empty() ? "" : fmt::format("; says {}", fault.source)));
  }
  if (!collected.created.empty()) {
    text += wrapped(fmt::format("collected   {} on {}; nothing runs from it, so no device is checked", collected.created, collected.system));
    if (faults.empty()) text += "faults      none in what was collected\n";
  }
  for (const Found& device : devices) text += device_text(device);
  for (const FoundEngine& engine : engines) text += engine_text(engine);
  const bool has_engine = std::ranges::any_of(engines, [](const FoundEngine& engine) { return engine.state != "absent"; });
  if (!python.problem.empty() && has_engine) text += wrapped(fmt::format("python      {}", python.problem));
  for (const Library& library : libraries) text += library_text(library);
  for (const auto& [name, value] : variables) text += wrapped(fmt::format("variable    {}={}", name, value.substr(0, shown_value)));
  for (const VersionPair& pair : pairs) text += pair_text(pair);
  return text;
}

std::string DoctorResult::kernels_text() const {
  std::string text;
  for (const Found& device : devices) {
    if (device.kernels.empty()) continue;
    text += "\n" + wrapped(fmt::format("{}: kernels by operator, in the order in which they are asked", device.name));
    for (const auto& [op, list] : device.kernels) {
      std::string line = op == "*" ? "any other" : op;
      for (size_t i = 0; i < list.size(); ++i) line += fmt::format("{}{}", i == 0 ? ": " : ", ", list[i]);
      text += wrapped(line);
    }
  }
  return text;
}

}  // namespace unmoor
