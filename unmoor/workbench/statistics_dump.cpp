#include "unmoor/workbench/statistics_dump.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/formats/npy.h"
#include "unmoor/workbench/dump.h"

namespace unmoor {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class StatisticsObserver : public Observer {
 public:
  explicit StatisticsObserver(const std::function<bool(const std::string&)>& takes) : takes_(takes) {}
  bool wants(const ValueInfo& info) override {
    if (takes_(info.name)) return true;
    if (const auto* const type = std::get_if<TensorType>(&info.type)) besides[info.name] = type->dtype;
    return false;
  }
  void on_value(const ValueInfo& info, const Data& data) override {
    if (data.is_tensor()) found.push_back({info.name, info.node, info.op, value_statistics(data.tensor())});
  }
  std::vector<ShownStatistics> found;
  std::map<std::string, DType, std::less<>> besides;

 private:
  const std::function<bool(const std::string&)>& takes_;
};

json manifest_of(const std::string& folder) {
  const std::string path = (fs::path(folder) / "manifest.json").string();
  json parsed = json::parse(read_file(path), nullptr, false);
  if (!parsed.is_object()) fail(ErrorKind::InvalidModel, "'", path, "' is no manifest");
  return parsed;
}

// The tensors of one list of the manifest; types that NumPy lacks are stored as their bits.
NamedData read_tensors(const json& list, const std::string& folder) {
  NamedData result;
  for (const json& each : list) {
    const auto text = [&each](const char* key) { return each.is_object() && each.contains(key) && each[key].is_string() ? each[key].get<std::string>() : std::string(); };
    const std::string file = text("file");
    const auto dtype = dtype_named(text("dtype"));
    if (text("name").empty() || file.empty() || !dtype || fs::path(file).filename() != file)
      fail(ErrorKind::InvalidModel, "the manifest of '", folder, "' has a tensor without a name, a file of the folder, or a dtype");
    const Tensor stored = read_npy((fs::path(folder) / file).string());
    if (bits_of(*dtype) != bits_of(stored.dtype())) fail(ErrorKind::InvalidModel, "'", file, "' holds ", stored.dtype(), ", not ", *dtype);
    result[text("name")] = stored.dtype() == *dtype ? stored : Tensor::view({*dtype, stored.shape()}, stored.bytes(), std::make_shared<Tensor>(stored));
  }
  return result;
}

json write_tensors(const NamedData& tensors, const std::string& folder, const char* prefix) {
  json list = json::array();
  for (const auto& [name, data] : tensors) {
    if (!data.is_tensor()) continue;
    const std::string file = fmt::format("{}{:04}.npy", prefix, list.size());
    write_npy(data.tensor(), (fs::path(folder) / file).string());
    list.push_back({{"name", name}, {"file", file}, {"dtype", unmoor::name(data.tensor().dtype())}});
  }
  return list;
}

}  // namespace

void StatisticsSide::narrow(const std::function<bool(const std::string&)>& takes) {
  std::vector<ShownStatistics> kept;
  for (ShownStatistics& each : values) {
    if (takes(each.name))
      kept.push_back(std::move(each));
    else
      stored_besides[each.name] = each.statistics.type.dtype;
  }
  values = std::move(kept);
}

StatisticsSide collect_statistics(Runner& runner, const NamedData& inputs, const std::function<bool(const std::string&)>& takes) {
  StatisticsObserver observer(takes);
  StatisticsSide side{runner.name(), {}, runner.run(inputs, &observer), {}};
  side.values = std::move(observer.found);
  side.stored_besides = std::move(observer.besides);
  return side;
}

void write_statistics(const StatisticsSide& side, const std::string& folder) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) fail(ErrorKind::Io, "cannot make the folder '", folder, "': ", problem.message());
  json values = json::array();
  for (const ShownStatistics& each : side.values) {
    json entry = statistics_json(each.statistics);
    entry["name"] = each.name;
    values.push_back(std::move(entry));
  }
  json besides = json::object();
  for (const auto& [name, dtype] : side.stored_besides) besides[name] = unmoor::name(dtype);
  const json manifest{{"statistics", std::move(values)},
                      {"not_dumped", std::move(besides)},
                      {"inputs", write_tensors(side.inputs, folder, "input_")},
                      {"outputs", write_tensors(side.outputs, folder, "output_")}};
  write_file((fs::path(folder) / "manifest.json").string(), manifest.dump(1, ' ', false, json::error_handler_t::replace));
}

StatisticsSide read_statistics(const std::string& folder) {
  const json manifest = manifest_of(folder);
  for (const char* key : {"statistics", "inputs", "outputs"}) {
    if (!manifest.contains(key) || !manifest[key].is_array()) fail(ErrorKind::InvalidModel, "the manifest of '", folder, "' has no list '", key, "'");
  }
  StatisticsSide side{folder, {}, read_tensors(manifest["outputs"], folder), read_tensors(manifest["inputs"], folder), stored_besides(folder)};
  for (const json& each : manifest["statistics"]) {
    if (!each.is_object() || !each.contains("name") || !each["name"].is_string()) fail(ErrorKind::InvalidModel, "the manifest of '", folder, "' has statistics without a name");
    try {
      side.values.push_back({each["name"].get<std::string>(), "", "", statistics_from(each)});
    } catch (Error& error) {
      error.note(fmt::format("of '{}' in '{}'", each["name"].get<std::string>(), folder));
      throw;
    }
  }
  return side;
}

bool is_statistics_dump(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(fs::path(path) / "manifest.json", ignored)) return false;
  const json parsed = json::parse(read_file((fs::path(path) / "manifest.json").string()), nullptr, false);
  return parsed.is_object() && parsed.contains("statistics");
}

}  // namespace unmoor
