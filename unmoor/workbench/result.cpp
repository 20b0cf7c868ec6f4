#include "unmoor/workbench/result.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

namespace unmoor {
namespace {

using nlohmann::json;

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

// Characters that take a column: bytes that do not continue one.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char letter) { return (static_cast<unsigned char>(letter) & 0xC0U) != 0x80U; }));
}

}  // namespace

json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

json shape_json(const Shape& shape) {
  json dims = json::array();
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] >= 0) {
      dims.push_back(shape[i]);
    } else {
      dims.push_back(shape.symbol(i).empty() ? "?" : shape.symbol(i));
    }
  }
  return dims;
}

json type_json(const std::string& name_text, const Type& type) {
  json result{{"name", name_text}};
  const auto* tensor = std::get_if<TensorType>(&type);
  result["dtype"] = tensor == nullptr ? to_text(type) : std::string(name(tensor->dtype));
  result["shape"] = tensor == nullptr ? json::array() : shape_json(tensor->shape);
  return result;
}

json model_json(const Model& model, const NamedData* inputs) {
  json result{{"path", model.path}, {"fingerprint", model.fingerprint}, {"inputs", json::array()}};
  for (const ValueId id : model.graph.inputs()) {
    const Value& value = model.graph.value(id);
    const auto given = inputs == nullptr ? NamedData::const_iterator() : inputs->find(value.name);
    const bool known = inputs != nullptr && given != inputs->end();
    result["inputs"].push_back(type_json(value.name, known ? type_of(given->second) : value.type));
  }
  return result;
}

json host_json() {
  utsname system{};
  ::uname(&system);
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  return {{"processor", processor_name()},
          {"cores", std::thread::hardware_concurrency()},
          {"memory_bytes", static_cast<uint64_t>(pages) * static_cast<uint64_t>(page)},
          {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)}};
}

json plan_json(const PlanInfo& plan) {
  size_t copied = 0;
  for (const CopyInfo& copy : plan.copies) copied += copy.bytes;
  json result{{"devices", plan.devices}, {"nodes", plan.placements.size()}, {"fallback_nodes", plan.fallback_nodes},
              {"copy_count", plan.copies.size()}, {"copied_bytes", copied}, {"placements", json::array()}};
  for (const PlacementInfo& placed : plan.placements) {
    json refusals = json::array();
    for (const auto& refused : placed.refusals) {
      refusals.push_back({{"device", refused.device}, {"kernel", refused.kernel}, {"reason", refused.reason}, {"detail", refused.detail}});
    }
    result["placements"].push_back({{"node", placed.node}, {"op", placed.op}, {"device", placed.device}, {"kernel", placed.kernel},
                                    {"state", placed.state}, {"also", placed.also}, {"refusals", refusals}});
  }
  return result;
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    if (row.size() == 1 && rows_[0].size() > 1) continue;  // A note under a row.
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string fill(widths[i] - std::min(widths[i], width_of(row[i])), ' ');
      const bool right = i < right_.size() && right_[i] == 'r';
      line += fmt::format("{}{}{}", i == 0 ? "" : "  ", right ? fill : "", row[i]);
      if (!right) line += fill;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += fmt::format("{}\n", line);
  }
  return text;
}

std::string short_number(double value) { return fmt::format("{:.4g}", value); }

std::string short_bytes(double bytes) {
  constexpr std::array<const char*, 5> units{"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < units.size()) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

std::string shortened(const std::string& name, size_t width) {
  if (name.size() <= width || width < 8) return name;
  size_t head = (width - 3) / 2;
  size_t tail = name.size() - (width - 3 - head);
  // Never inside a character.
  while (head > 0 && (static_cast<unsigned char>(name[head]) & 0xC0U) == 0x80U) --head;
  while (tail < name.size() && (static_cast<unsigned char>(name[tail]) & 0xC0U) == 0x80U) ++tail;
  return fmt::format("{}...{}", name.substr(0, head), name.substr(tail));
}

}  // namespace unmoor
