#include "unmoor/formats/onnx/fingerprint.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/base/sha256.h"

namespace unmoor::onnx {
namespace {

constexpr size_t part = 4096;
using Bytes = std::span<const std::byte>;

// The file without the insides of its weights, in order.
std::vector<Bytes> outside(const Bytes& file, std::vector<Bytes> weights) {
  std::ranges::sort(weights, {}, [](const Bytes& weight) { return weight.data(); });
  std::vector<Bytes> pieces;
  const std::byte* at = file.data();
  for (const Bytes& weight : weights) {
    if (weight.size() <= 2 * part) continue;
    const std::byte* const from = weight.data() + part;
    if (from < at) continue;  // It lies in a weight that is left out already.
    pieces.emplace_back(at, from);
    at = weight.data() + weight.size() - part;
  }
  pieces.emplace_back(at, file.data() + file.size());
  return pieces;
}

}  // namespace

void will_read(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto from = reinterpret_cast<uintptr_t>(bytes.data()) / page * page;
  const auto size = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) - from;
  if (!bytes.empty()) ::madvise(reinterpret_cast<void*>(from), size, MADV_WILLNEED);
}

std::string fingerprint(const TensorReader& tensors) {
  Sha256 hash;
  const auto own = outside(tensors.own().file->bytes(), tensors.own().spans);
  for (const Bytes& piece : own) will_read(piece);
  std::vector<std::vector<Bytes>> ends;
  for (const auto& [location, weights] : tensors.external()) {
    auto& pieces = ends.emplace_back();
    for (const Bytes& weight : weights.spans) {
      pieces.push_back(weight.first(std::min(weight.size(), 2 * part)));
      if (weight.size() > 2 * part) pieces.back() = weight.first(part), pieces.push_back(weight.last(part));
    }
    for (const Bytes& piece : pieces) will_read(piece);
  }
  hash.add(cat(tensors.own().file->bytes().size(), ' '));
  for (const Bytes& piece : own) hash.add(piece);
  size_t i = 0;
  for (const auto& [location, weights] : tensors.external()) {
    hash.add(cat(location, ' ', weights.file->bytes().size(), ' '));
    for (const Bytes& piece : ends[i++]) hash.add(piece);
  }
  return hash.finish();
}

}  // namespace unmoor::onnx
