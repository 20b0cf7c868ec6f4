#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace unmoor {

// A result of a tool that was stored in a file.
struct StoredResult {
  std::string file;   // As the user named it.
  std::string label;  // What runs and platforms of this file are called: short, and only this file's.
  std::string tool;
  std::string created;  // ISO 8601, UTC: the result's own, else the file's.
  bool dated_by_file = false;
  std::string machine;  // "Processor, 8 cores"; empty if the result does not say.
  nlohmann::json result;
  nlohmann::json sections;  // See report_sections.
};

// When the file was written: ISO 8601, UTC; now, if that cannot be told.
std::string time_of_file(const std::string& file);

// Reads one; the label is left empty. Fails as joined_report does.
StoredResult read_stored_result(const std::string& file);

}  // namespace unmoor
