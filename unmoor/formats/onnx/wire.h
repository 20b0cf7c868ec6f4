#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace unmoor::onnx {

// One protobuf message over foreign bytes, read field by field. Every access checks wire type and length, and fails with
// InvalidModel naming message and field. After next(), exactly one accessor or skip() is to be called. One thread at a time.
class Message {
 public:
  // `kind` names the message in errors: "NodeProto".
  Message(std::string_view bytes, const char* kind) : reader_(bytes.data(), bytes.size()), kind_(kind) {}

  bool next();
  uint32_t field() const { return reader_.tag(); }
  const char* kind() const { return kind_; }

  std::string_view bytes();  // A string, bytes or an embedded message.
  int64_t integer();
  float real();
  // A repeated field, packed or not: appends what is here.
  void append(std::vector<int64_t>& values);
  void append(std::vector<float>& values);
  // Packed fixed-width numbers of `width` bytes, or one number, as the bytes in the file.
  std::string_view fixed(size_t width);
  void skip();

 private:
  [[noreturn]] void fail_here(std::string_view problem) const;
  void expect(protozero::pbf_wire_type type) const;
  template <class Read>
  auto checked(Read read) -> decltype(read());

  protozero::pbf_reader reader_;
  const char* kind_;
};

// A StringStringEntryProto; what it lacks is empty. Both point into `bytes`.
struct Entry {
  std::string_view key, value;
};
Entry read_entry(std::string_view bytes);

}  // namespace unmoor::onnx
