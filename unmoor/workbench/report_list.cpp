#include "unmoor/workbench/report_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/workbench/report.h"
#include "unmoor/workbench/report_data.h"
#include "unmoor/workbench/report_file.h"
#include "unmoor/workbench/report_language.h"
#include "unmoor/workbench/report_template.h"
#include "unmoor/workbench/result.h"

namespace embedded {
extern const std::string_view report_list_html;
extern const std::string_view report_css;
}  // namespace embedded

namespace unmoor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t most_files = 300;               // That are listed.
constexpr size_t most_joined = 32;               // On one page.
constexpr uintmax_t most_bytes = uintmax_t{1} << 26U;  // Of a result that the list looks into.

// The few texts of a result that a list shows, without the rest of it in memory.
class Outline : public json::json_sax_t {
 public:
  std::map<std::string, std::string> found;  // By path: "tool", "model.path".

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& value) override {
    constexpr size_t longest = 2000;
    if (in_objects() && value.size() <= longest) found.emplace(fmt::format("{}", fmt::join(path_, ".")), value);
    return true;
  }
  bool key(string_t& name) override {
    if (in_objects()) path_.back() = name;
    return true;
  }
  bool start_object(size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(false); }
  bool end_array() override { return close(); }
  bool parse_error(size_t at, const std::string&, const json::exception&) override {
    broken_at = at;
    return false;
  }
  size_t broken_at = 0;

 private:
  // Only objects in objects are followed, and only so deep.
  static constexpr size_t deepest = 3;
  bool in_objects() const { return outside_ == 0 && !path_.empty(); }
  bool open(bool object) {
    if (outside_ > 0 || !object || path_.size() == deepest) ++outside_;
    else path_.emplace_back();
    return true;
  }
  bool close() {
    if (outside_ > 0) --outside_;
    else if (!path_.empty()) path_.pop_back();
    return true;
  }
  std::vector<std::string> path_;
  size_t outside_ = 0;
};

std::string percent_encoded(const std::string& name) {
  std::string out;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       byte == '.' || byte == '-' || byte == '_' || byte == '~';
    out += plain ? std::string(1, letter) : fmt::format("%{:02X}", byte);
  }
  return out;
}

bool is_page(const std::string& name) { return name.ends_with(".html") || name.ends_with(".htm"); }

// Whether the file begins as pages of Unmoor do.
bool is_own_page(const std::string& path) {
  constexpr std::streamsize head = 2048;
  std::ifstream file(path, std::ios::binary);
  std::string start(head, '\0');
  file.read(start.data(), head);
  start.resize(static_cast<size_t>(file.gcount()));
  return start.find("<meta name=\"generator\" content=\"Unmoor") != std::string::npos;
}

std::string file_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

struct ReportFolder::File {
  std::string name;
  std::string path;
  uintmax_t bytes = 0;
  fs::file_time_type time = {};

  std::string stamp() const { return fmt::format("{} {}", bytes, time.time_since_epoch().count()); }
};

ReportFolder::ReportFolder(const std::string& folder, std::string language) : folder_(folder), language_(std::move(language)) {
  std::error_code error;
  real_ = fs::canonical(folder, error).string();
  if (!error && !fs::is_directory(real_, error)) fail(ErrorKind::Io, "'", folder, "' is no folder");
  if (!error) fs::directory_iterator(real_, error);
  if (error) fail(ErrorKind::Io, "the folder '", folder, "' cannot be read: ", error.message());
}

// The path behind a name's links; empty for what is no regular file in the folder.
std::string ReportFolder::path_of(const std::string& name) const {
  if (name.empty() || name.find('/') != std::string::npos || name.find('\0') != std::string::npos) return {};
  std::error_code error;
  const fs::path folder(real_);
  const fs::path real = fs::canonical(folder / name, error);
  if (error || !fs::is_regular_file(real, error)) return {};
  const auto [rest, ignored] = std::mismatch(folder.begin(), folder.end(), real.begin(), real.end());
  return rest == folder.end() ? real.string() : std::string();
}

std::vector<ReportFolder::File> ReportFolder::files(bool& cut) const {
  std::vector<File> found;
  std::error_code error;
  for (fs::directory_iterator each(real_, error), end; !error && each != end; each.increment(error)) {
    File file;
    file.name = each->path().filename().string();
    if (!file.name.ends_with(".json") && !is_page(file.name)) continue;
    file.path = path_of(file.name);
    if (file.path.empty()) continue;
    std::error_code gone;
    file.bytes = fs::file_size(file.path, gone);
    file.time = fs::last_write_time(file.path, gone);
    if (!gone) found.push_back(std::move(file));
  }
  std::ranges::sort(found, [](const File& a, const File& b) { return a.time != b.time ? a.time > b.time : a.name < b.name; });
  cut = found.size() > most_files;
  if (cut) found.resize(most_files);
  return found;
}

const ReportFolder::About& ReportFolder::about(const File& file) {
  About& about = known_[file.name];
  if (about.stamp == file.stamp()) return about;
  about = {.stamp = file.stamp()};
  if (file.bytes > most_bytes) {
    about.problem = fmt::format("{}: too large to look into; unmoor report reads it", short_bytes(static_cast<double>(file.bytes)));
    return about;
  }
  Outline outline;
  try {
    (void)json::sax_parse(read_file(file.path), &outline);
  } catch (const Error& error) {
    about.problem = error.what();
    return about;
  }
  const auto take = [&outline](const char* key) { return text(json(outline.found[key])); };
  about.tool = take("tool");
  about.created = take("created");
  about.model = file_part(take("model.path"));
  about.target = take("target");
  about.verdict = take("verdict");
  about.sentence = take("sentence").empty() ? take("reason") : take("sentence");
  about.processor = take("environment.host.processor");
  if (outline.broken_at > 0) about.problem = fmt::format("no JSON: it breaks at byte {}", outline.broken_at);
  else if (about.tool.empty()) about.problem = "no result of Unmoor: it has no 'tool'";
  return about;
}

std::string ReportFolder::list() {
  const json& words = report_words(language_);
  const Phrases phrases(report_words(report_languages[0]), words);
  bool cut = false;
  json results = json::array();
  json pages = json::array();
  json others = json::array();
  for (const File& file : files(cut)) {
    const std::string name = printable(file.name);
    const std::string date = time_of_file(file.path);
    if (is_page(file.name)) {
      if (is_own_page(file.path)) pages.push_back({{"name", name}, {"href", "/stored/" + percent_encoded(file.name)}, {"date", date}});
      continue;
    }
    const About& about = this->about(file);
    if (!about.problem.empty()) {
      others.push_back({{"name", name}, {"why", about.problem}});
      continue;
    }
    const json& verdict = member(member(words, "verdicts"), about.verdict);
    results.push_back({{"name", name}, {"value", file.name}, {"href", "/page?file=" + percent_encoded(file.name)}, {"tool", about.tool},
                       {"date", about.created.empty() ? date : about.created}, {"model", about.model}, {"target", about.target},
                       {"word", text(verdict, "word")}, {"state", verdict.is_null() ? "none" : text(verdict, "state")},
                       {"sentence", phrases.translated(about.sentence).value_or(about.sentence)}, {"machine", about.processor}});
  }
  const json view{{"lang", text(words, "lang")}, {"words", member(words, "list")}, {"folder", printable(folder_)},
                  {"css", embedded::report_css}, {"results", results}, {"has_results", !results.empty()},
                  {"nothing", results.empty() && pages.empty()}, {"pages", pages}, {"has_pages", !pages.empty()},
                  {"others", others}, {"has_others", !others.empty()}, {"cut", cut}};
  return fill_template(embedded::report_list_html, view);
}

std::string ReportFolder::page(const std::vector<std::string>& names) const {
  if (names.empty()) fail(ErrorKind::InvalidArgument, "no result was chosen: tick one or more in the list");
  if (names.size() > most_joined)
    fail(ErrorKind::InvalidArgument, names.size(), " results were chosen; one page shows at most ", most_joined);
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    if (!name.ends_with(".json") || path_of(name).empty())
      fail(ErrorKind::InvalidArgument, "'", printable(name), "' is no result in this folder");
    paths.push_back((fs::path(folder_) / name).string());  // As the user named it: the page shows it.
  }
  if (paths.size() == 1) return render_report(report_document(read_stored_result(paths[0]).result), language_);
  return render_report(joined_report(paths), language_);
}

std::string ReportFolder::stored_page(const std::string& name) const {
  const std::string path = path_of(name);
  if (!is_page(name) || path.empty() || !is_own_page(path))
    fail(ErrorKind::InvalidArgument, "'", printable(name), "' is no page of Unmoor in this folder");
  return read_file(path);
}

}  // namespace unmoor
