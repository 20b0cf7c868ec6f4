#include "unmoor/workbench/noise/stacked.h"

#include <algorithm>
#include <cstring>

#include "unmoor/base/error.h"
#include "unmoor/tensor/unset.h"
#include "unmoor/workbench/noise/sampler.h"

namespace unmoor {
namespace {

size_t rank_of(std::span<const Data> in, size_t i) {
  return i < in.size() && in[i].is_tensor() ? in[i].tensor().shape().rank() : 0;
}

bool is_absent(std::span<const Data> in, size_t i) { return i >= in.size() || !in[i]; }

bool has(const Node& node, const char* key) {
  const auto found = node.attributes.find(key);
  return found != node.attributes.end() && std::get<int64_t>(found->second) != 0;
}

// Broadcast along rows.
bool is_one_row(std::span<const Data> in, size_t i) {
  return rank_of(in, i) < 2 || (rank_of(in, i) == 2 && in[i].tensor().shape()[0] == 1);
}

// Whether the node does the same with each row of its first input's first dimension: products whose other inputs do not count
// rows. A convolution multiplies image by image, so that nothing is won.
bool treats_rows_alike(const Node& node, std::span<const Data> in) {
  if (node.op == "MatMul") return rank_of(in, 0) >= 2 && rank_of(in, 1) == 2;
  const bool product = node.op == "Gemm" || node.op == "unmoor:FusedMatMul";
  return product && !has(node, "transA") && rank_of(in, 0) >= 2 && rank_of(in, 1) == 2 && is_one_row(in, 2) && is_absent(in, 3);
}

// Where they lie in `all`, whose memory they keep.
Tensor rows(const std::shared_ptr<Tensor>& all, size_t part, size_t parts) {
  std::vector<int64_t> dims = all->shape().dims();
  dims[0] /= static_cast<int64_t>(parts);
  const size_t bytes = all->bytes().size() / parts;
  return Tensor::writable_view({all->dtype(), Shape(std::move(dims))}, all->writable_bytes().subspan(part * bytes, bytes), all);
}

Tensor stacked(const Sampled& value) {
  const Tensor first = value.exact.tensor();
  std::vector<int64_t> dims = first.shape().dims();
  dims[0] *= static_cast<int64_t>(value.copies.size() + 1);
  Tensor result = unset_tensor({first.dtype(), Shape(std::move(dims))});
  const size_t bytes = first.bytes().size();
  std::memcpy(result.writable_bytes().data(), first.bytes().data(), bytes);
  for (size_t k = 0; k < value.copies.size(); ++k) {
    std::memcpy(result.writable_bytes().data() + (k + 1) * bytes, value.copies[k].tensor().bytes().data(), bytes);
  }
  return result;
}

}  // namespace

bool can_stack(const Node& node, std::span<const Sampled> in) {
  constexpr size_t most_bytes = size_t{1} << 26;  // Beyond it, weights are the smaller part.
  if (in.empty() || in[0].is_exact() || std::ranges::any_of(in.subspan(1), [](const Sampled& each) { return !each.is_exact(); }))
    return false;
  const auto is_real = [](const Data& data) { return data.is_tensor() && data.tensor().dtype() == DType::F64; };
  if (!is_real(in[0].exact) || !std::ranges::all_of(in[0].copies, is_real)) return false;
  if (in[0].exact.tensor().bytes().size() * (in[0].copies.size() + 1) > most_bytes) return false;
  std::vector<Data> exact;
  for (const Sampled& each : in) exact.push_back(each.exact);
  return treats_rows_alike(node, exact);
}

Sampled run_stacked(const Node& node, std::span<const Sampled> in) {
  const size_t parts = in[0].copies.size() + 1;
  std::vector<Data> inputs{stacked(in[0])};
  for (const Sampled& each : in.subspan(1)) inputs.push_back(each.exact);
  const auto all = std::make_shared<Tensor>(reference_on(node, inputs).at(0).tensor());
  Sampled result{rows(all, 0, parts), {}};
  for (size_t k = 1; k < parts; ++k) result.copies.emplace_back(rows(all, k, parts));
  return result;
}

}  // namespace unmoor
