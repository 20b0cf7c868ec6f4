#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/devices.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/catalog/compare.h"
#include "unmoor/catalog/table.h"

namespace unmoor::cli {
namespace {

using nlohmann::json;

// Fails with InvalidArgument unless there are so many names.
void want_names(const Options& options, size_t least, size_t most, const char* usage) {
  if (options.names.size() < least || options.names.size() > most)
    fail(ErrorKind::InvalidArgument, "wanted is: unmoor catalog ", usage);
}

std::string list_text(const Catalog& catalog, json& result) {
  Table table({"platform", "version", "operators", "date", "of"}, "llrll");
  for (const CatalogItem& item : catalog.items()) {
    const auto facts = catalog.find(item.platform + "@" + item.version);
    const size_t count = all_listed(catalog, *facts).size();
    table.add({item.platform, item.version, std::to_string(count), facts->header().date.substr(0, 10),
               shortened(item.user ? "your own file" : facts->header().title, 20)});
    result["platforms"].push_back({{"name", item.platform},
                                   {"version", item.version},
                                   {"operators", count},
                                   {"date", facts->header().date},
                                   {"title", facts->header().title},
                                   {"vendor", facts->header().vendor},
                                   {"vocabulary", facts->header().vocabulary},
                                   {"older", item.older},
                                   {"user", item.user}});
  }
  return table.text();
}

std::string header_text(const FactsHeader& header) {
  std::string text =
      wrapped(fmt::format("{} {}: {}, {} ({})", header.platform, header.version, header.title, header.runtime, header.described));
  text += wrapped(fmt::format("operators: {}; not listed means {}{}", header.vocabulary, header.absent,
                              header.absent_why.empty() ? "" : fmt::format(" ({})", header.absent_why)));
  for (const std::string& source : header.sources) text += wrapped(fmt::format("source: {}", source));
  if (!header.notes.empty()) text += wrapped(fmt::format("notes: {}", header.notes));
  return text;
}

std::string show_text(const Catalog& catalog, const Options& options, json& result) {
  const auto facts = catalog.find(options.names[0]);
  const FactsHeader& header = facts->header();
  result["platform"] = {{"name", header.platform},   {"version", header.version}, {"title", header.title},
                        {"vendor", header.vendor},   {"runtime", header.runtime}, {"vocabulary", header.vocabulary},
                        {"date", header.date},       {"sources", header.sources}, {"notes", header.notes},
                        {"licence", header.licence}, {"absent", header.absent}};
  std::vector<std::string> ops(options.names.begin() + 1, options.names.end());
  std::string text = header_text(header);
  const bool all = ops.empty();
  if (all) ops = all_listed(catalog, *facts);
  std::string line;
  for (const std::string& op : ops) {
    const json entry = spelled_entry(catalog, *facts, op);
    if (entry.is_null() && !all) fail(ErrorKind::InvalidArgument, facts->name(), " says nothing of '", op, "'");
    result["operators"][op] = entry;
    if (all)
      line += fmt::format("{}{}", line.empty() ? "" : ", ", op);
    else
      text += fmt::format("{}: {}\n", op, entry.dump(2, ' ', false, json::error_handler_t::replace));
  }
  return text + (line.empty() ? "" : wrapped(fmt::format("{}: {}", counted(ops.size(), "operator"), line)));
}

std::string diff_text(const Catalog& catalog, const Options& options, json& result) {
  const auto first = catalog.find(options.names[0]);
  const auto second = catalog.find(options.names[1]);
  if (first->header().vocabulary != second->header().vocabulary) {
    fail(ErrorKind::InvalidArgument, first->name(), " speaks of ", first->header().vocabulary, " operators, ", second->name(),
         " of ", second->header().vocabulary);
  }
  result["first"] = first->name();
  result["second"] = second->name();
  result["differences"] = json::array();
  std::map<std::string, std::vector<std::string>> groups;
  for (const auto& each : differences(catalog, *first, *second)) {
    groups[each.kind].push_back(each.op);
    result["differences"].push_back({{"op", each.op},
                                     {"kind", each.kind},
                                     {"first", spelled_entry(catalog, *first, each.op)},
                                     {"second", spelled_entry(catalog, *second, each.op)}});
  }
  std::string text = groups.empty() ? fmt::format("{} and {} say the same\n", first->name(), second->name()) : "";
  for (const auto& [kind, ops] : groups) {
    const std::string where =
        kind == "differs" ? "differ" : fmt::format("only in {}", kind == "only first" ? first->name() : second->name());
    std::string list;
    for (const auto& op : ops) list += fmt::format("{}{}", list.empty() ? "" : ", ", op);
    text += wrapped(fmt::format("{} {}: {}", counted(ops.size(), "operator"), where, list));
  }
  return text;
}

bool is_file_name(const std::string& text) {
  return !text.empty() && text[0] != '.' && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_';
  });
}

// Names that --on reads as something else than a platform: a device, an engine, all platforms; and those of ONNX's own tables.
bool is_reserved(const std::string& platform) {
  return platform == "all" || platform == "onnx" || platform == "onnx-aten" || platform == "onnx_aten" || platform == "aten_parts" || platform == "aten-parts" || is_device(platform);
}

std::string import_text(const Options& options, json& result) {
  const size_t at = options.platform.find('@');
  const std::string platform = options.platform.substr(0, at);
  const std::string version = at == std::string::npos ? "" : options.platform.substr(at + 1);
  if (!is_file_name(platform) || !is_file_name(version))
    fail(ErrorKind::InvalidArgument, "'", options.platform, "' is no --as NAME@VERSION");
  if (is_reserved(platform))
    fail(ErrorKind::InvalidArgument, "'", platform, "' means something else to --on, so a platform cannot be called that; give it a name of its own, such as ",
         platform, "-vendor@", version);
  json ops;
  json types;
  ImportedOps imported{&ops, &types};
  import_rows(read_table(read_file(options.names[0])), imported);
  const std::string source =
      options.source.empty() ? std::filesystem::path(options.names[0]).filename().string() : options.source;
  json facts{{"schema", 1},
             {"platform", platform},
             {"version", version},
             {"vocabulary", "onnx"},
             {"title", platform},
             {"absent", "unknown"},
             {"absent_why", "not in the imported list"},
             {"sources", {source}},
             {"date", now_text().substr(0, 10)},
             {"types", types},
             {"ops", ops}};
  std::string path = options.output;
  if (path.empty()) {
    const std::string folder = Catalog::user_folder();
    if (folder.empty())
      fail(ErrorKind::InvalidArgument, "there is no folder for your own files: set UNMOOR_CATALOG, or write one with -o FILE");
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    path = fmt::format("{}/{}@{}.json", folder, platform, version);
  }
  const std::string text = facts_text(facts, path);
  (void)Facts::adopt(text, path);
  write_file(path, text);
  result["file"] = path;
  result["operators"] = ops.size();
  result["unread"] = imported.unread;
  std::string shown = fmt::format("wrote {} of {}@{} into {}\n", counted(ops.size(), "operator"), platform, version, path);
  for (const auto& row : imported.unread) shown += wrapped(fmt::format("not understood: {}", row));
  return shown;
}

}  // namespace

Outcome catalog_command(const Options& options, json& result) {
  Outcome outcome;
  if (options.action == "import") {
    want_names(options, 1, 1, "import FILE --as NAME@VERSION");
    outcome.text = import_text(options, result);
    return outcome;
  }
  const Catalog catalog;
  if (options.action == "list") {
    want_names(options, 0, 0, "list");
    outcome.text = list_text(catalog, result);
  } else if (options.action == "show") {
    want_names(options, 1, 1000, "show PLATFORM[@VERSION] [OPERATOR...]");
    outcome.text = show_text(catalog, options, result);
  } else {
    want_names(options, 2, 2, "diff PLATFORM[@VERSION] PLATFORM[@VERSION]");
    outcome.text = diff_text(catalog, options, result);
  }
  return outcome;
}

}  // namespace unmoor::cli
