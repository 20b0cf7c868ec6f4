#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unmoor/catalog/question.h"

namespace unmoor {

// What a file says of itself.
struct FactsHeader {
  std::string platform;  // "ort-cpu"
  std::string version;   // "1.32.0"
  std::string title;
  std::string vendor;
  std::string runtime;
  std::string described;   // The version in the words of its source.
  std::string vocabulary;  // "onnx", "aten", "standard", "map"
  std::string date;
  std::string notes;
  std::string licence;
  std::string like;                // "torch-npu@26.1.0": the file holds what differs from that one.
  std::string same_as;             // "torch-rocm@2.6.0": no facts of its own.
  std::string fallback;            // The platform that takes what this one refuses.
  std::string absent = "unknown";  // What an operator means that is not listed: unsupported or unknown.
  std::string absent_why;
  bool runs_functions = false;  // Takes apart operators that ONNX defines as functions.
  bool static_shapes = false;
  bool static_graph = false;  // Control flow of the model breaks it into pieces.
  int64_t opset_min = 0;
  int64_t opset_max = 0;             // Refuses what is above; 0: no limit.
  int64_t opset_claimed = 0;         // Promises nothing above; 0: no limit.
  std::vector<std::string> sources;  // One line each, with dates.
};

// One file of the catalogue: a platform in one version. Operators stand one a line, sorted, and only those asked for are parsed,
// so that opening costs a walk over the line ends. Immutable; any thread may read it.
class Facts {
 public:
  // `text` must outlive the facts. Fails with InvalidModel, naming `from`, if it is no such file.
  static std::shared_ptr<const Facts> open(std::string_view text, const std::string& from);
  // Any JSON with the same content, however it is laid out; keeps a copy. Fails with InvalidModel.
  static std::shared_ptr<const Facts> adopt(const std::string& text, const std::string& from);

  const FactsHeader& header() const { return header_; }
  std::string name() const { return header_.platform + "@" + header_.version; }
  const std::vector<std::vector<std::string>>& types() const { return types_; }
  const std::vector<std::string>& reasons() const { return reasons_; }
  std::vector<std::string> ops() const;  // Sorted.
  bool has(std::string_view op) const;
  // What the file says of an operator. Null JSON if nothing.
  nlohmann::json entry(std::string_view op) const;
  // The source of an entry, by its number, in a line; the first if there is no such number.
  const std::string& source(size_t number) const;

 private:
  Facts() = default;
  void read_header(std::string_view text, const std::string& from);
  std::string_view line_of(std::string_view op) const;

  FactsHeader header_;
  std::vector<std::vector<std::string>> types_;
  std::vector<std::string> reasons_;
  std::vector<std::pair<std::string_view, std::string_view>> lines_;  // Operator and what is said of it, sorted.
};

// The text of a catalogue file as the program lays it out: a key of the header a line, then an operator a line. Fails with
// InvalidModel on what is no such file, naming the key that is missing or wrong.
std::string facts_text(const nlohmann::json& content, const std::string& from);

}  // namespace unmoor
