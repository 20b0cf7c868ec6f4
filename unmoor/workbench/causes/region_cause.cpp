#include "unmoor/workbench/causes/region_cause.h"

#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/causes/region_call.h"
#include "unmoor/workbench/noise/excess.h"
#include "unmoor/workbench/noise/sampled.h"

namespace unmoor {
namespace {

std::string some_of(const std::vector<std::string>& list) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(list.size(), 3); ++i) text += cat(i == 0 ? "" : ", ", list[i]);
  return list.size() > 3 ? cat(text, " and ", list.size() - 3, " more") : text;
}

std::string note_of(const CauseSearch& search) {
  std::string note;
  if (!search.cause) note = cat("unexplained: none of ", search.hypotheses.size(), " causes tried gives this");
  if (!search.untried.empty()) note += cat(note.empty() ? "" : "; ", "not tried for time or size: ", some_of(search.untried));
  if (!search.failed.empty()) note += cat(note.empty() ? "" : "; ", "could not be tried: ", some_of(search.failed));
  return note;
}

// Exact values and spread of the node for the search: those of the judge where they are of float32 results.
Expected expected_for(const OpCall& call, std::span<const Data> inputs, size_t output, const NoiseFloor* floor, DType stored) {
  const bool usable = floor != nullptr && stored == DType::F32 && floor->exact.is_tensor() &&
                      floor->spread.size() == floor->exact.tensor().elements();
  if (!usable) return expected_output(call, inputs, output);
  const Tensor& exact = floor->exact.tensor();
  return {doubles(exact), floor->spread, exact.shape()};
}

bool is_number(const Data& data) {
  if (!data.is_tensor()) return false;
  const DType dtype = data.tensor().dtype();
  return is_float(dtype) || is_integer(dtype) || dtype == DType::Bool;
}

bool node_explains(const Expected& expected, const Tensor& found) {
  if (found.dtype() != DType::F32 || expected.exact.size() != found.elements()) return false;
  const auto values = doubles(found);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) != std::isfinite(expected.exact[i])) return false;
  }
  return explained(excess(expected.exact, expected.spread, values, DType::F32), DType::F32, false) == Explained::Yes;
}

}  // namespace

RegionCause region_cause(const Region& region, size_t output, const NoiseFloor* floor, const Data& found) {
  if (region.nodes.size() != 1) return {{}, cat("no cause is looked for: the value stands for ", region.nodes.size(), " nodes")};
  if (!is_number(found)) return {{}, "no cause is looked for: it holds no numbers"};
  const Node& node = region.graph->node(region.nodes[0]);
  const auto place = std::ranges::find(node.outputs, region.wanted.at(output));
  if (place == node.outputs.end()) return {{}, "no cause is looked for: another node makes it"};
  const auto at = static_cast<size_t>(place - node.outputs.begin());
  try {
    const RegionCall exact = region_call(region);
    const Expected expected = expected_for(exact.call, exact.inputs, at, floor, found.tensor().dtype());
    const std::string agrees = "the target computes what the model says; the reference does not";
    if (node_explains(expected, found.tensor())) return {{}, agrees};
    const CauseSearch search =
        search_cause({exact.call, exact.inputs, at, found.tensor(), expected.exact, expected.spread, found.tensor().dtype()});
    if (search.explained) return {{}, agrees};
    return {search.cause, note_of(search), true};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Stopped) throw;
    return {{}, cat("no cause is looked for: ", error.what()), true};
  }
}

}  // namespace unmoor
