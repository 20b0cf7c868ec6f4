#include "unmoor/workbench/result.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
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

json measured(double value) { return std::isfinite(value) ? json(std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr)) : number(value); }

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

namespace {

json refusals_json(const std::vector<PlacementInfo::Refused>& list) {
  json result = json::array();
  for (const auto& refused : list) {
    result.push_back({{"device", refused.device}, {"kernel", refused.kernel}, {"reason", refused.reason}, {"detail", refused.detail}});
  }
  return result;
}

}  // namespace

json plan_json(const PlanInfo& plan) {
  size_t copied = 0;
  for (const CopyInfo& copy : plan.copies) copied += copy.bytes;
  json result{{"devices", plan.devices}, {"notes", plan.notes}, {"nodes", plan.placements.size()}, {"fallback_nodes", plan.fallback_nodes},
              {"copy_count", plan.copies.size()}, {"copied_bytes", copied}, {"placements", json::array()}};
  for (const PlacementInfo& placed : plan.placements) {
    result["placements"].push_back({{"node", placed.node}, {"op", placed.op}, {"device", placed.device}, {"kernel", placed.kernel},
                                    {"state", placed.state}, {"also", placed.also}, {"refusals", refusals_json(placed.refusals)}, {"later", refusals_json(placed.later)}});
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

std::string shell_word(const std::string& text) {
  const auto plain = [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || std::string_view("_./:@%+=,-").find(letter) != std::string_view::npos; };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  // A control character would act on the terminal that it is pasted into: bash reads it from digits.
  const bool control = std::ranges::any_of(text, [](char letter) { return static_cast<unsigned char>(letter) < 32 || letter == 127; });
  std::string word = control ? "$'" : "'";
  for (const char letter : text) {
    if (static_cast<unsigned char>(letter) < 32 || letter == 127) word += fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
    else if (control && (letter == '\'' || letter == '\\')) word += fmt::format("\\{}", letter);
    else if (letter == '\'') word += "'\\''";
    else word += letter;
  }
  return word + "'";
}

namespace {

// The length of the UTF-8 character that a text begins with, 0 if it is none; and the character.
size_t decode(std::string_view text, uint32_t& character) {
  const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80 ? 1 : byte(0) >> 5 == 6 ? 2 : byte(0) >> 4 == 14 ? 3 : byte(0) >> 3 == 30 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  character = length == 1 ? byte(0) : byte(0) & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
    character = character << 6 | (byte(i) & 0x3FU);
  }
  constexpr std::array<uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xD800 && character < 0xE000;
  return character < least[length] || character > 0x10FFFF || surrogate ? 0 : length;
}

bool acts_on_terminal(uint32_t character) {
  const bool turns = (character >= 0x202A && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069);
  return character < 0x20 || (character >= 0x7F && character < 0xA0) || turns;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";
  std::string result;
  while (!text.empty()) {
    uint32_t character = 0;
    const size_t length = decode(text, character);
    const bool kept = length > 0 && (character == '\n' || character == '\t' || !acts_on_terminal(character));
    result += kept ? text.substr(0, length) : replacement;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return result;
}

std::string wrapped(const std::string& text) {
  constexpr size_t columns = 80;
  std::string result;
  std::string line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && width_of(line) + 1 + width_of(word) > columns) {
      result += line + "\n";
      line = "   ";
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return result + line + "\n";
}

std::string counted(size_t count, std::string_view thing) { return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s"); }

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

std::string shortened(const std::string& whole, size_t width) {
  std::string name = printable(whole);
  std::ranges::replace_if(name, [](char letter) { return letter == '\n' || letter == '\t'; }, ' ');
  if (name.size() <= width || width < 8) return name;
  size_t head = (width - 3) / 2;
  size_t tail = name.size() - (width - 3 - head);
  // Never inside a character.
  while (head > 0 && (static_cast<unsigned char>(name[head]) & 0xC0U) == 0x80U) --head;
  while (tail < name.size() && (static_cast<unsigned char>(name[tail]) & 0xC0U) == 0x80U) ++tail;
  return fmt::format("{}...{}", name.substr(0, head), name.substr(tail));
}

}  // namespace unmoor
