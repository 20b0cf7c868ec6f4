#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "unmoor/formats/onnx/onnx.h"
#include "unmoor/runtime/runner.h"

namespace unmoor {

// What a tool found: an exit status (docs/cli.md), why, the tool's own keys as JSON, and the same for people.
struct Outcome {
  int status = 0;      // 0 fine, 1 a finding.
  std::string reason;  // Empty if 0.
  std::string text;    // For the terminal, at most 80 columns where names allow.
  std::shared_ptr<const void> held = nullptr;  // Goes after the text was shown: ending it may take a while.
};

// Numbers as results spell them: NaN and infinities are texts. `measured` keeps five significant digits: what a time or an error means.
nlohmann::json number(double value);
nlohmann::json measured(double value);
// The model's part of a result. Inputs as run if given, else as declared.
nlohmann::json model_json(const Model& model, const NamedData* inputs);
// This machine: processor, cores, memory, system.
nlohmann::json host_json();
nlohmann::json type_json(const std::string& name, const Type& type);
// Dimensions as numbers; unknown ones as their symbol or "?".
nlohmann::json shape_json(const Shape& shape);
// The `plan` object of run.
nlohmann::json plan_json(const PlanInfo& plan);
std::string now_text();  // ISO 8601, UTC.

// Columns of text, each as wide as it needs, the first left and numbers right if `right` says so. A row of one cell is a note.
class Table {
 public:
  explicit Table(std::vector<std::string> head, std::string right = {}) : right_(std::move(right)) { rows_.push_back(std::move(head)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::string right_;  // 'r' for a column that is set right.
};
// A text as one word of a shell command, whatever is in it.
std::string shell_word(const std::string& text);
// A text that a terminal shows as it is: control characters, marks that turn its direction, and broken UTF-8 are replaced. Line breaks and tabs stay.
std::string printable(std::string_view text);
std::string wrapped(const std::string& text);                // Lines of at most 80 columns, those after the first indented; ends in a line break.
std::string counted(size_t count, std::string_view thing);  // "1 node", "3 nodes"
std::string short_number(double value);            // Four significant digits.
std::string short_bytes(double bytes);             // "1.5 MB"
std::string shortened(const std::string& name, size_t width);  // Printable, on one line, the middle left out.

}  // namespace unmoor
