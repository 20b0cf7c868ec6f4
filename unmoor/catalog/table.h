#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace unmoor {

using TableRows = std::vector<std::vector<std::string>>;

// The rows of the first table in a text: values separated by commas, semicolons or tabs, a Markdown table, or an HTML table; which
// one, the text tells. Cells are plain text. Takes time in proportion to the text. Fails with InvalidArgument if there is no table,
// it has no row below its head, or a cell of it spans several.
TableRows read_table(std::string_view text);

// What a vendor's own list says, as catalogue entries by operator. The head names the columns: one of operators, and any of
// support, types, opset and notes. A cell of support that is empty, "-" or "N/A" says nothing, and its row is left out. `unread` gets
// the rows that could not be understood, a line each: nothing is guessed. Fails with InvalidArgument if no column names operators, or
// two columns tell the same thing.
struct ImportedOps {
  nlohmann::json* ops;    // Gets operator -> kernels.
  nlohmann::json* types;  // Gets the sets of element types.
  std::vector<std::string> unread = {};
};
void import_rows(const TableRows& rows, ImportedOps& into);

}  // namespace unmoor
