#pragma once

#include <string_view>
#include <vector>

namespace unmoor {

// A file of data/catalog, compiled in. Both texts live as long as the program.
struct EmbeddedFacts {
  std::string_view name;  // "ort-cpu@1.32.0"
  std::string_view text;
};
const std::vector<EmbeddedFacts>& embedded_facts();
const std::vector<EmbeddedFacts>& embedded_versions();  // Of data/catalog/versions.

}  // namespace unmoor
