#include "unmoor/formats/onnx/wire.h"

#include <cstring>
#include <protozero/varint.hpp>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/fields.h"

namespace unmoor::onnx {

using protozero::pbf_wire_type;

void Message::fail_here(std::string_view problem) const {
  fail(ErrorKind::InvalidModel, "broken protobuf in ", kind_, ", field ", reader_.tag(), ": ", problem);
}

void Message::expect(pbf_wire_type type) const {
  if (reader_.wire_type() != type) {
    fail_here(cat("wire type ", static_cast<uint32_t>(reader_.wire_type()), " was found, not ", static_cast<uint32_t>(type)));
  }
}

template <class Read>
auto Message::checked(Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const protozero::exception& problem) {
    fail_here(problem.what());
  }
}

bool Message::next() {
  return checked([this] { return reader_.next(); });
}

std::string_view Message::bytes() {
  expect(pbf_wire_type::length_delimited);
  return checked([this] {
    // protozero cuts lengths to 32 bits, so look at the length first.
    const auto rest = reader_.data();
    const char* at = rest.data();
    const char* const end = rest.data() + rest.size();
    const uint64_t length = protozero::decode_varint(&at, end);
    if (length > static_cast<uint64_t>(end - at))
      fail_here(cat("length ", length, " goes past the end, ", end - at, " bytes are left"));
    if (length > 0xffffffffU) fail_here(cat("length ", length, " is more than protobuf can hold"));
    const auto view = reader_.get_view();
    return std::string_view(view.data(), view.size());
  });
}

int64_t Message::integer() {
  expect(pbf_wire_type::varint);
  return checked([this] { return reader_.get_int64(); });
}

float Message::real() {
  expect(pbf_wire_type::fixed32);
  return checked([this] { return reader_.get_float(); });
}

void Message::append(std::vector<int64_t>& values) {
  if (reader_.wire_type() == pbf_wire_type::varint) {
    values.push_back(integer());
    return;
  }
  const std::string_view packed = bytes();
  checked([&] {
    const char* at = packed.data();
    const char* const end = packed.data() + packed.size();
    while (at != end) values.push_back(static_cast<int64_t>(protozero::decode_varint(&at, end)));
  });
}

void Message::append(std::vector<float>& values) {
  const std::string_view packed = fixed(sizeof(float));
  const size_t held = values.size();
  values.resize(held + packed.size() / sizeof(float));
  if (!packed.empty()) std::memcpy(values.data() + held, packed.data(), packed.size());
}

std::string_view Message::fixed(size_t width) {
  if (reader_.wire_type() == pbf_wire_type::length_delimited) {
    const std::string_view packed = bytes();
    if (packed.size() % width != 0) fail_here(cat(packed.size(), " bytes are no whole number of elements of ", width));
    return packed;
  }
  expect(width == 4 ? pbf_wire_type::fixed32 : pbf_wire_type::fixed64);
  const auto rest = reader_.data();
  skip();
  return {rest.data(), width};
}

void Message::skip() {
  if (reader_.wire_type() == pbf_wire_type::length_delimited) {
    bytes();
  } else {
    checked([this] { reader_.skip(); });
  }
}

Entry read_entry(std::string_view bytes) {
  Entry entry;
  Message message(bytes, "StringStringEntryProto");
  while (message.next()) {
    switch (message.field()) {
      case entry_field::key:
        entry.key = message.bytes();
        break;
      case entry_field::value:
        entry.value = message.bytes();
        break;
      default:
        message.skip();
    }
  }
  return entry;
}

}  // namespace unmoor::onnx
