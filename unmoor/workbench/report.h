#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace unmoor {

// One self-contained HTML page for a result as report/DATA.md describes it. Every part of the data may be missing; unknown
// parts are kept in the JSON that the page carries. In another language than English the page's words and the tools' sentences are
// that language's; the JSON, names, ids and commands stay. Fails with InvalidArgument on a language that there are no words for.
std::string render_report(const nlohmann::json& data, std::string_view language = "en");

// The result of one tool as such data: what the page shows stands under its section, with columns, answers and figures. Data that is
// that already (it has a `schema`) stays as it is.
nlohmann::json report_document(nlohmann::json result);

// The results that these files hold (what `--json` printed, or what a page saved), as data for one page: scans and benches side by side, of
// the others the newest. `sources[] {file, tool, machine, date, shown, left_out}` and `notes[]` say what is from where. Fails with Io on a
// file that cannot be read, with InvalidArgument on one that is no result, and on results of different models; each names the file.
nlohmann::json joined_report(const std::vector<std::string>& files);

}  // namespace unmoor
