#include "unmoor/workbench/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/json.h"
#include "unmoor/formats/npy.h"

namespace unmoor {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string percent_decoded(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool code = text[i] == '%' && i + 2 < text.size() && std::isxdigit(static_cast<unsigned char>(text[i + 1])) != 0 &&
                      std::isxdigit(static_cast<unsigned char>(text[i + 2])) != 0;
    if (code) {
      result += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

// A tensor under the dtype that the manifest gives it, where .npy has only its bits.
Tensor typed(const Tensor& stored, const std::string& dtype_text) {
  const auto dtype = dtype_named(dtype_text);
  if (!dtype || stored.dtype() == *dtype) return stored;
  if (bits_of(*dtype) != bits_of(stored.dtype())) fail(ErrorKind::InvalidModel, "a dump holds ", stored.dtype(), " for ", dtype_text);
  return Tensor::view({*dtype, stored.shape()}, stored.bytes(), std::make_shared<Tensor>(stored));
}

class DumpRunner : public Runner {
 public:
  explicit DumpRunner(std::string folder) : folder_(std::move(folder)) {
    const fs::path manifest = fs::path(folder_) / "manifest.json";
    std::error_code ignored;
    if (fs::exists(manifest, ignored)) {
      const json parsed = read_json(read_file(manifest.string()));
      if (parsed.is_object() && parsed.contains("statistics")) {
        fail(ErrorKind::InvalidArgument, "'", folder_, "' holds statistics of values, not the values: only align takes it, as one of its sides");
      }
      if (!parsed.is_object() || !parsed.contains("values") || !parsed["values"].is_array()) {
        fail(ErrorKind::InvalidModel, "'", manifest.string(), "' is no manifest of values");
      }
      for (const auto& value : parsed["values"]) {
        const auto text = [&value](const char* key) {
          return value.is_object() && value.contains(key) && value[key].is_string() ? value[key].get<std::string>() : std::string();
        };
        const std::string file = text("file");
        if (text("name").empty() || file.empty()) fail(ErrorKind::InvalidModel, "'", manifest.string(), "' has an entry without a name or a file");
        if (fs::path(file).filename() != file) fail(ErrorKind::InvalidModel, "'", manifest.string(), "' names a file elsewhere: '", file, "'");
        entries_.push_back({text("name"), file, text("dtype")});
      }
      return;
    }
    std::vector<fs::path> files;
    std::error_code problem;
    for (fs::directory_iterator at(folder_, problem), end; !problem && at != end; at.increment(problem)) {
      if (at->path().extension() == ".npy") files.push_back(at->path().filename());
    }
    if (problem) fail(ErrorKind::Io, "cannot read the folder '", folder_, "': ", problem.message());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) entries_.push_back({percent_decoded(file.stem().string()), file.string(), ""});
  }

  std::string name() const override { return folder_; }
  std::vector<ValueInfo> inputs() const override { return {}; }
  std::vector<ValueInfo> outputs() const override { return values(); }
  std::vector<ValueInfo> values() const override {
    std::vector<ValueInfo> infos;
    for (const Entry& entry : entries_) infos.push_back({entry.name, TensorType{DType::F32, Shape::of_unknown_rank()}, "", ""});
    return infos;
  }
  NamedData run(const NamedData&, Observer* observer) override {
    NamedData all;
    for (const Entry& entry : entries_) {
      const Tensor tensor = typed(read_npy((fs::path(folder_) / entry.file).string()), entry.dtype);
      const ValueInfo info{entry.name, tensor.type(), "", ""};
      if (observer != nullptr && observer->wants(info)) observer->on_value(info, tensor);
      all[entry.name] = tensor;
    }
    return all;
  }
  std::vector<double> time_runs(const NamedData&, size_t, double) override {
    fail(ErrorKind::Unsupported, "'", folder_, "' holds values and cannot be timed");
  }

 private:
  struct Entry {
    std::string name;
    std::string file;
    std::string dtype;
  };
  std::string folder_;
  std::vector<Entry> entries_;
};

}  // namespace

DumpWriter::DumpWriter(std::string folder, ValueFilter filter) : folder_(std::move(folder)), filter_(std::move(filter)) {
  std::error_code problem;
  fs::create_directories(folder_, problem);
  if (problem) fail(ErrorKind::Io, "cannot make the folder '", folder_, "': ", problem.message());
  // Files that an older manifest names are about to be written over.
  fs::remove(fs::path(folder_) / "manifest.json", problem);
  if (problem) fail(ErrorKind::Io, "cannot replace the manifest in '", folder_, "': ", problem.message());
}

bool DumpWriter::wants(const ValueInfo& info) {
  if (filter_.takes(info.name)) return true;
  if (const auto* const type = std::get_if<TensorType>(&info.type)) not_taken_[info.name] = type->dtype;
  return false;
}

void DumpWriter::on_value(const ValueInfo& info, const Data& data) { add(info.name, data); }

void DumpWriter::add(const std::string& name, const Data& data) {
  if (!data.is_tensor()) {
    left_out_.push_back(name);
    return;
  }
  Entry entry{name, fmt::format("{:06}.npy", entries_.size()), std::string(unmoor::name(data.tensor().dtype())), data.tensor().shape().dims()};
  write_npy(data.tensor(), (fs::path(folder_) / entry.file).string());
  entries_.push_back(std::move(entry));
}

bool DumpWriter::has(const std::string& name) const { return std::ranges::find(entries_, name, &Entry::name) != entries_.end(); }

void DumpWriter::finish() {
  json values = json::array();
  for (const Entry& entry : entries_) {
    values.push_back({{"name", entry.name}, {"file", entry.file}, {"dtype", entry.dtype}, {"shape", entry.shape}});
  }
  json besides = json::object();
  for (const auto& [name, dtype] : not_taken_) {
    if (!has(name)) besides[name] = unmoor::name(dtype);
  }
  json manifest{{"values", values}};
  if (!besides.empty()) manifest["not_dumped"] = std::move(besides);
  write_file((fs::path(folder_) / "manifest.json").string(), manifest.dump(1, ' ', false, json::error_handler_t::replace));
}

std::map<std::string, DType, std::less<>> stored_besides(const std::string& folder) {
  std::map<std::string, DType, std::less<>> result;
  const fs::path manifest = fs::path(folder) / "manifest.json";
  std::error_code ignored;
  if (!fs::exists(manifest, ignored)) return result;
  const json parsed = json::parse(read_file(manifest.string()), nullptr, false);
  if (!parsed.is_object() || !parsed.contains("not_dumped") || !parsed["not_dumped"].is_object()) return result;
  for (const auto& [name, dtype] : parsed["not_dumped"].items()) {
    if (const auto known = dtype.is_string() ? dtype_named(dtype.get<std::string>()) : std::nullopt) result[name] = *known;
  }
  return result;
}

bool is_dump(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::unique_ptr<Runner> open_dump(const std::string& folder) { return std::make_unique<DumpRunner>(folder); }

}  // namespace unmoor
