#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "unmoor/formats/torch/torch_file.h"
#include "unmoor/workbench/scan.h"

namespace unmoor {

// What a file of PyTorch says of itself, whatever the platform, and what it cannot say.
struct TorchFacts {
  std::string described;
  bool has_graph = false;
  size_t tensors = 0;
  double parameters = 0;       // Elements of all tensors of any type but int64 and bool, which are counters and masks.
  double parameter_bytes = 0;  // Theirs.
  double stored_bytes = 0;     // Of the file's storages, shared ones once.
  std::map<std::string, size_t> tensor_dtypes = {};  // Tensors by element type.
  std::map<std::string, size_t> dtypes = {};         // Calls by the element type of their first result, as far as it is known.
  std::map<std::string, size_t> modules = {};        // Calls by the class that they are written in, of TorchScript.
  std::vector<std::string> dynamic_inputs = {};      // "x[0] s77, 2 to 64"
  size_t data_dependent = 0;                         // Calls whose output shape only the data tells.
  size_t host_calls = 0;                             // Of sizes and numbers.
  std::vector<std::string> not_known = {};           // Sentences.

  nlohmann::json to_json() const;
  std::string text() const;  // Lines of at most 80 columns.
};
TorchFacts torch_facts(const TorchFile& file);

// What the catalogue says of the file's calls on each platform: by their own names on platforms of ATen, by the operators that they are
// exported as on those of ONNX. Fails as scan_catalog does. A file without a graph gives platforms without nodes.
std::vector<ScannedPlatform> scan_torch(const TorchFile& file, const Catalog& catalog, const std::vector<std::string>& names,
                                        const ScanOptions& options);

}  // namespace unmoor
