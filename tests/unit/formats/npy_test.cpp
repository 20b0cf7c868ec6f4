#include "unmoor/formats/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string npy_text(std::string_view header, std::string_view data, char version = 1) {
  const auto size = header.size();
  std::string length{static_cast<char>(size & 255), static_cast<char>(size >> 8)};
  if (version > 1) length += std::string(2, '\0');
  return cat("\x93NUMPY", version, '\0', length, header, data);
}

std::string file_text(std::string_view descr, std::string_view shape, std::string_view data, bool is_fortran = false,
                      char version = 1) {
  return npy_text(
      cat("{'descr': '", descr, "', 'fortran_order': ", is_fortran ? "True" : "False", ", 'shape': (", shape, "), }\n"), data,
      version);
}

Tensor read_text(std::string_view text) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/a.npy");
  write_file(path, text);
  return read_npy(path);
}

std::string error_of(std::string_view text) {
  try {
    read_text(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Npy, versions_and_headers_vary) {
  const std::string data("\1\0\2\0\3\0", 6);
  for (const char version : {'\1', '\2', '\3'})
    EXPECT_THAT(doubles(read_text(file_text("<i2", "3,", data, false, version))), ElementsAre(1, 2, 3));
  EXPECT_THAT(doubles(read_text(npy_text("{\"shape\": (1, 3L), 'fortran_order': False, 'descr': '<i2'}", data))),
              ElementsAre(1, 2, 3));
  EXPECT_EQ(read_text(file_text("<i2", "", std::string("\7\0", 2))).shape(), Shape());
  EXPECT_EQ(read_text(file_text("<f4", "0, 3", "")).shape(), (Shape{0, 3}));
}

TEST(Npy, big_endian_elements_are_turned) {
  EXPECT_THAT(doubles(read_text(file_text(">i2", "2,", std::string("\0\1\1\0", 4)))), ElementsAre(1, 256));
  EXPECT_THAT(doubles(read_text(file_text(">f4", "1,", std::string("\x3f\x80\0\0", 4)))), ElementsAre(1));
}

TEST(Npy, fortran_order_becomes_row_major) {
  EXPECT_THAT(doubles(read_text(file_text("|u1", "2, 3", "\1\2\3\4\5\6", true))), ElementsAre(1, 3, 5, 2, 4, 6));
  const std::string data("\1\2\3\4\5\6\7\10", 8);
  EXPECT_THAT(doubles(read_text(file_text("|u1", "2, 2, 2", data, true))), ElementsAre(1, 5, 3, 7, 2, 6, 4, 8));
}

TEST(Npy, strings_are_read_as_utf8) {
  EXPECT_THAT(read_text(file_text("|S3", "2,", std::string("ab\0xyz", 6))).strings(), ElementsAre("ab", "xyz"));
  const std::string wide("a\0\0\0\xe9\0\0\0\x00\xf6\x01\x00\0\0\0\0", 16);
  EXPECT_THAT(read_text(file_text("<U2", "2,", wide)).strings(), ElementsAre("a\xc3\xa9", "\xf0\x9f\x98\x80"));
  EXPECT_THAT(read_text(file_text(">U1", "1,", std::string("\0\0\0a", 4))).strings(), ElementsAre("a"));
}

TEST(Npy, all_types_come_back) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/a.npy");
  for (const DType dtype : {DType::F32, DType::F16, DType::F64, DType::I8, DType::U8, DType::I16, DType::U16, DType::I32,
                            DType::U32, DType::I64, DType::U64, DType::Bool, DType::C64, DType::C128}) {
    Tensor tensor(TensorType{dtype, {2, 3}});
    for (size_t i = 0; i < tensor.bytes().size(); ++i) tensor.writable_bytes()[i] = static_cast<std::byte>(i % 2);
    write_npy(tensor, path);
    const Tensor back = read_npy(path);
    EXPECT_EQ(back.type(), tensor.type());
    EXPECT_TRUE(std::ranges::equal(back.bytes(), tensor.bytes())) << name(dtype);
  }
  write_npy(Tensor::of_strings({2}, {"a\xc3\xa9", ""}), path);
  EXPECT_THAT(read_npy(path).strings(), ElementsAre("a\xc3\xa9", ""));
}

TEST(Npy, types_that_numpy_lacks_become_unsigned_integers) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/a.npy");
  write_npy(Tensor(TensorType{DType::BF16, {2}}), path);
  EXPECT_EQ(read_npy(path).dtype(), DType::U16);
  Tensor nibbles(TensorType{DType::I4, {3}});
  nibbles.writable_bytes()[0] = std::byte{0x2f};
  nibbles.writable_bytes()[1] = std::byte{0x03};
  write_npy(nibbles, path);
  EXPECT_EQ(read_npy(path).dtype(), DType::U8);
  EXPECT_THAT(doubles(read_npy(path)), ElementsAre(15, 2, 3));
}

TEST(Npy, what_cannot_be_read_says_why) {
  EXPECT_THAT(error_of("nothing"), HasSubstr("does not start"));
  EXPECT_THAT(error_of(file_text("|O", "1,", "x")), HasSubstr("Python objects"));
  EXPECT_THAT(error_of(npy_text("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "abcd")),
              HasSubstr("structured"));
  EXPECT_THAT(error_of(file_text("<f4", "2,", "1234567")), HasSubstr("need more than"));
  EXPECT_THAT(error_of(file_text("<f4", "4611686018427387904, 4611686018427387904", "")), HasSubstr("too many"));
  EXPECT_THAT(error_of(file_text("<f4", "-1,", "1234")), HasSubstr("for a dimension"));
  EXPECT_THAT(error_of(file_text("<U99999999999", "1,", "1234")), HasSubstr("its type"));
  EXPECT_THAT(error_of(file_text("|S0", "1000000000000,", "")), HasSubstr("empty strings"));
  EXPECT_THAT(error_of(npy_text("{'descr': '<f4'}", "")), HasSubstr("lacks"));
  EXPECT_THAT(error_of(npy_text("__import__('os')", "")), HasSubstr("should be"));
}

TEST(Npy, damaged_files_give_errors_or_load) {
  const std::string whole = file_text("<U2", "2, 1", std::string(16, 'a'), true, 3);
  std::mt19937 random(3);
  for (int i = 0; i < 400; ++i) {
    std::string damaged = i % 4 == 0 ? whole.substr(0, random() % whole.size()) : whole;
    if (!damaged.empty()) damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    error_of(damaged);
  }
}

TEST(Npz, tensors_come_back_under_their_names) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/a.npz");
  write_npz({{"x", Tensor::from<int64_t>({2}, {1, 2})}, {"layer/w", Tensor::scalar(3.5F)}}, path);
  const auto back = read_npz(path);
  ASSERT_EQ(back.size(), 2U);
  EXPECT_THAT(integers(back.at("x")), ElementsAre(1, 2));
  EXPECT_THAT(doubles(back.at("layer/w")), ElementsAre(3.5));
  write_npz({}, path);
  EXPECT_TRUE(read_npz(path).empty());
}

void append(std::string& text, uint64_t number, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
}

// What a zip says of a stored file before its content and again in its directory: from the version needed to the lengths.
std::string zip_facts(const std::string& name, const std::string& content) {
  uint32_t crc = 0xffffffff;
  for (const char c : content) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? crc >> 1 ^ 0xedb88320U : crc >> 1;
  }
  std::string facts;
  append(facts, 20, 2), append(facts, 0, 8), append(facts, ~crc, 4), append(facts, content.size(), 4);
  append(facts, content.size(), 4), append(facts, name.size(), 2), append(facts, 0, 2);
  return facts;
}

std::string zip_file(const std::string& name, const std::string& content) {
  return cat("PK\x03\x04", zip_facts(name, content), name, content);
}

struct ZipEntry {
  std::string name, content;
  size_t offset;  // Of its file in the zip.
};

std::string zip_of(const std::string& files, const std::vector<ZipEntry>& entries) {
  std::string directory;
  for (const auto& [name, content, offset] : entries) {
    directory += cat(std::string("PK\x01\x02\x14\0", 6), zip_facts(name, content), std::string(10, '\0'));
    append(directory, offset, 4);
    directory += name;
  }
  std::string end("PK\x05\x06\0\0\0\0", 8);
  append(end, entries.size(), 2), append(end, entries.size(), 2), append(end, directory.size(), 4), append(end, files.size(), 4);
  append(end, 0, 2);
  return cat(files, directory, end);
}

std::string error_of_zip(const std::string& zip) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/a.npz");
  write_file(path, zip);
  try {
    return cat(read_npz(path).size(), " tensors");
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Npz, two_entries_of_one_name_are_an_error) {
  const std::string content = file_text("<f4", "256,", std::string(1024, 'x'));
  const auto zip = [&](const std::string& second) {
    const std::string first_file = zip_file("a.npy", content);
    return zip_of(cat(first_file, zip_file(second, content)), {{"a.npy", content, 0}, {second, content, first_file.size()}});
  };
  EXPECT_EQ(error_of_zip(zip("b.npy")), "2 tensors");
  EXPECT_THAT(error_of_zip(zip("a")), HasSubstr("two of this name"));
}

// Each file is the content of the one before it: every entry is sound, and together they say many times what there is.
TEST(Npz, entries_that_share_their_bytes_are_an_error) {
  std::vector<ZipEntry> entries;
  std::string file = std::string(1000, 'x');
  for (int i = 0; i < 20; ++i) {
    const std::string name = cat("e", i, ".npy");
    const std::string content = file_text("|u1", cat(file.size(), ","), file);
    const size_t before = zip_file(name, content).size() - file.size();
    for (ZipEntry& entry : entries) entry.offset += before;
    entries.insert(entries.begin(), {name, content, 0});
    file = zip_file(name, content);
  }
  const std::string error = error_of_zip(zip_of(file, entries));
  EXPECT_THAT(error, testing::AnyOf(HasSubstr("shares its bytes"), HasSubstr("inconsistent")));
}

TEST(Npz, writing_leaves_nothing_beside) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/a.npz");
  write_npz({{"x", Tensor::scalar(1.0F)}}, path);
  std::filesystem::create_directory(cat(folder.path(), "/folder"));
  EXPECT_THROW(write_npz({{"x", Tensor::scalar(1.0F)}}, cat(folder.path(), "/folder")), Error);
  EXPECT_THROW(write_npz({{"x", Tensor::scalar(1.0F)}}, cat(folder.path(), "/none/a.npz")), Error);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) names.insert(entry.path().filename().string());
  EXPECT_THAT(names, ElementsAre("a.npz", "folder"));
}

TEST(Npz, damaged_files_give_errors_or_load) {
  const TemporaryFolder folder;
  const std::string path = cat(folder.path(), "/a.npz");
  write_npz({{"x", Tensor::from<int64_t>({2}, {1, 2})}, {"y", Tensor::scalar(3.5F)}}, path);
  const std::string whole = read_file(path);
  std::mt19937 random(5);
  size_t refused = 0;
  for (int i = 0; i < 200; ++i) {
    std::string damaged = i % 3 == 0 ? whole.substr(0, random() % whole.size()) : whole;
    if (!damaged.empty()) damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    write_file(path, damaged);
    try {
      read_npz(path);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 50U);
}

}  // namespace
}  // namespace unmoor
