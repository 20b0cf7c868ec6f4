#include "unmoor/formats/onnx/limits.h"

#include "unmoor/base/error.h"

namespace unmoor::onnx {
namespace {

constexpr size_t most_nodes = 200'000;
constexpr size_t most_copies = 50'000'000;
constexpr size_t most_captured = 4'000'000;
constexpr size_t deepest_body = 100;

// In 8 bytes, about.
size_t size_of(const Attribute& attribute) {
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&attribute)) return integers->size();
  if (const auto* reals = std::get_if<std::vector<float>>(&attribute)) return reals->size();
  if (const auto* text = std::get_if<std::string>(&attribute)) return text->size() / 8;
  size_t size = 1;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute)) {
    for (const auto& text : *texts) size += text.size() / 8 + 4;
  }
  return size;
}

}  // namespace

void Limits::add_nodes(size_t count) {
  nodes_ += count;
  if (nodes_ > most_nodes) fail(ErrorKind::InvalidModel, "functions make more than ", most_nodes, " nodes and values");
}

void Limits::add_copies(size_t count) {
  copies_ += count;
  if (copies_ > most_copies) {
    fail(ErrorKind::InvalidModel, "functions copy more than ", most_copies, " names and numbers of attributes");
  }
}

void Limits::add_copy(const Attribute& attribute) { add_copies(size_of(attribute)); }

void Limits::open_body(size_t captured) {
  if (++open_bodies_ > deepest_body) fail(ErrorKind::InvalidModel, "bodies are nested more than ", deepest_body, " deep");
  captured_ += captured;
  if (captured_ > most_captured) {
    fail(ErrorKind::InvalidModel, "bodies use values from outside more than ", most_captured, " times in all");
  }
}

}  // namespace unmoor::onnx
