#include "unmoor/workbench/report_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/json.h"
#include "unmoor/workbench/report_data.h"
#include "unmoor/workbench/report_document.h"
#include "unmoor/workbench/result.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr off_t most_bytes = off_t{1} << 28;  // In memory it takes about ten times as much.

json parsed(const std::string& file) {
  struct stat about {};
  if (::stat(file.c_str(), &about) == 0 && S_ISREG(about.st_mode) && about.st_size > most_bytes) {
    fail(ErrorKind::InvalidArgument, "'", file, "' has ", short_bytes(static_cast<double>(about.st_size)),
         "; a result has at most ", short_bytes(static_cast<double>(most_bytes)));
  }
  return read_json(read_file(file), ErrorKind::InvalidArgument, cat("'", file, "'"));
}

// "2026-01-09T10:20:30Z", as results write it.
bool is_time(const std::string& text) {
  constexpr std::string_view form = "0000-00-00T00:00:00Z";
  return text.size() == form.size() && std::equal(text.begin(), text.end(), form.begin(), [](char have, char want) {
           return want == '0' ? have >= '0' && have <= '9' : have == want;
         });
}

std::string machine_of(const json& result) {
  const json& host = member(member(result, "environment"), "host");
  if (host.is_string()) return text(host);
  std::string name = text(host, "processor");
  if (const size_t cores = count_in(host, "cores"); cores > 0)
    name += fmt::format("{}{}", name.empty() ? "" : ", ", counted(cores, "core"));
  return name;
}

}  // namespace

std::string time_of_file(const std::string& file) {
  struct stat about {};
  if (::stat(file.c_str(), &about) != 0) return now_text();
  std::tm parts{};
  ::gmtime_r(&about.st_mtime, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                     parts.tm_min, parts.tm_sec);
}

StoredResult read_stored_result(const std::string& file) {
  StoredResult stored;
  stored.file = file;
  stored.result = parsed(file);
  stored.tool = text(stored.result, "tool");
  if (stored.tool.empty())
    fail(ErrorKind::InvalidArgument, "'", file,
         "' is no result of Unmoor: it has no 'tool'; results are what a tool prints with --json");
  stored.sections = report_sections(stored.result);
  if (stored.sections.empty()) {
    const std::string reason = text(stored.result, "reason");
    if (count_in(stored.result, "status") > 0 && !reason.empty()) {
      fail(ErrorKind::InvalidArgument, "'", file, "' holds no numbers: unmoor ", stored.tool, " ended with '", reason, "'");
    }
    fail(ErrorKind::InvalidArgument, "'", file, "' is of unmoor ", stored.tool,
         ", for which a page has no section; those of migrate, scan, run, align, bench and doctor have one");
  }
  stored.created = text(stored.result, "created");
  stored.dated_by_file = !is_time(stored.created);
  if (stored.dated_by_file) stored.created = time_of_file(file);
  stored.machine = machine_of(stored.result);
  return stored;
}

}  // namespace unmoor
