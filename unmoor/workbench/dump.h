#pragma once

#include <memory>
#include <string>
#include <vector>

#include "unmoor/runtime/runner.h"
#include "unmoor/workbench/value_filter.h"

namespace unmoor {

// Writes values as they are shown into a folder: one .npy a value, and manifest.json when it is finished.
class DumpWriter : public Observer {
 public:
  // The folder is made if missing. Of the values that a run shows, those are written that the filter takes. Fails with Io.
  explicit DumpWriter(std::string folder, ValueFilter filter = {});
  bool wants(const ValueInfo& info) override;
  void on_value(const ValueInfo& info, const Data& data) override;
  void add(const std::string& name, const Data& data);
  bool has(const std::string& name) const;
  void finish();  // Writes the manifest.
  size_t count() const { return entries_.size(); }
  const std::vector<std::string>& left_out() const { return left_out_; }  // Values that are no tensors.

 private:
  struct Entry {
    std::string name;
    std::string file;
    std::string dtype;
    std::vector<int64_t> shape;
  };
  std::string folder_;
  std::vector<Entry> entries_;
  std::vector<std::string> left_out_;
  ValueFilter filter_;
  std::map<std::string, DType, std::less<>> not_taken_;
};

// A folder of values written by DumpWriter, or of .npy files named after values (percent-encoded), as a runner: its run shows what is there.
// Fails with Io or InvalidModel.
std::unique_ptr<Runner> open_dump(const std::string& folder);
bool is_dump(const std::string& path);  // A folder.
// How the run that a dump is of stored the values that the dump leaves out, as far as its manifest says.
std::map<std::string, DType, std::less<>> stored_besides(const std::string& folder);

}  // namespace unmoor
