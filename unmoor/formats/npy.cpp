#include "unmoor/formats/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/memory.h"
#include "unmoor/formats/npy_header.h"

namespace unmoor {
namespace {

constexpr std::string_view magic{"\x93NUMPY", 6};
constexpr size_t longest_header = 1 << 20;
constexpr size_t highest_rank = 64;
constexpr uint64_t most_elements = uint64_t{1} << 48;

[[noreturn]] void complain(const auto&... parts) {
  fail(ErrorKind::InvalidModel, "this is no .npy that can be read: ", parts...);
}

// What the header says: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
struct Header {
  std::string descr;
  bool is_fortran = false;
  std::vector<int64_t> dims;
  size_t size = 0;  // Of everything before the elements.
};

// Reads the one dictionary that a header is. No Python: only strings, True, False, and tuples of numbers.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : text_(text) {}

  Header read() {
    Header header;
    expect('{');
    bool has_descr = false, has_order = false, has_shape = false;
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        header.descr = string(), has_descr = true;
      } else if (key == "fortran_order") {
        header.is_fortran = boolean(), has_order = true;
      } else if (key == "shape") {
        header.dims = tuple(), has_shape = true;
      } else {
        complain("its header has the unknown key '", key, "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_descr || !has_order || !has_shape) complain("its header lacks descr, fortran_order or shape");
    return header;
  }

 private:
  void skip_space() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) text_.remove_prefix(1);
  }
  bool accept(char wanted) {
    skip_space();
    if (text_.empty() || text_[0] != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) complain("its header has '", text_.substr(0, 12), "' where '", wanted, "' should be");
  }
  std::string string() {
    skip_space();
    const char quote = text_.empty() ? '\0' : text_[0];
    if (quote == '[') fail(ErrorKind::Unsupported, "structured .npy arrays are not supported");
    if (quote != '\'' && quote != '"') complain("its header has no string where one should be");
    const size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) complain("a string in its header has no end");
    std::string result(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return result;
  }
  bool boolean() {
    skip_space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return value;
    }
    complain("fortran_order is neither True nor False");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> numbers;
    expect('(');
    while (!accept(')')) {
      if (numbers.size() >= highest_rank) complain("its rank is more than ", highest_rank);
      int64_t number = 0;
      const auto [end, problem] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
      if (problem != std::errc() || number < 0) complain("its shape has '", text_.substr(0, 12), "' for a dimension");
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      accept('L');  // Python 2 wrote long integers so.
      numbers.push_back(number);
      if (!accept(',')) {
        expect(')');
        break;
      }
      skip_space();
    }
    return numbers;
  }

  std::string_view text_;
};

Header read_header(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(magic) || text.size() < 10) complain("it does not start as one");
  const auto byte = [&text](size_t at) { return static_cast<size_t>(static_cast<unsigned char>(text[at])); };
  const size_t version = byte(6);
  if (version < 1 || version > 3) complain("its version is ", version, ", not 1 to 3");
  const size_t start = version == 1 ? 10 : 12;
  if (text.size() < start) complain("it is cut off in its header");
  const size_t length = byte(8) | byte(9) << 8 | (version == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > longest_header || length > text.size() - start) complain("its header of ", length, " bytes does not fit");
  Header header = HeaderText(text.substr(start, length)).read();
  header.size = start + length;
  return header;
}

// A type as NumPy names it, without the byte order.
struct Named {
  DType dtype;
  std::string_view name;
};
constexpr std::array<Named, 15> names{{{DType::F16, "f2"},
                                       {DType::F32, "f4"},
                                       {DType::F64, "f8"},
                                       {DType::I8, "i1"},
                                       {DType::I16, "i2"},
                                       {DType::I32, "i4"},
                                       {DType::I64, "i8"},
                                       {DType::U8, "u1"},
                                       {DType::U16, "u2"},
                                       {DType::U32, "u4"},
                                       {DType::U64, "u8"},
                                       {DType::Bool, "b1"},
                                       {DType::C64, "c8"},
                                       {DType::C128, "c16"},
                                       {DType::U8, "B"}}};

void append_utf8(std::string& text, uint32_t code) {
  const auto add = [&text](uint32_t byte) { text += static_cast<char>(byte); };
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) complain("a string holds ", code, ", which is no character");
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6), add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12), add(0x80 | (code >> 6 & 0x3f)), add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | code >> 18), add(0x80 | (code >> 12 & 0x3f)), add(0x80 | (code >> 6 & 0x3f)), add(0x80 | (code & 0x3f));
  }
}

// One element of <U or |S, without the zeros that fill it up.
std::string string_element(std::span<const std::byte> bytes, bool is_wide, bool is_big_endian) {
  if (!is_wide) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return std::string(text.substr(0, text.find_last_not_of('\0') + 1));
  }
  std::vector<uint32_t> codes(bytes.size() / 4);
  if (!codes.empty()) std::memcpy(codes.data(), bytes.data(), codes.size() * 4);
  std::string text;
  while (!codes.empty() && codes.back() == 0) codes.pop_back();
  for (const uint32_t code : codes) append_utf8(text, is_big_endian ? __builtin_bswap32(code) : code);
  return text;
}

// The place in row-major order of the i-th element in Fortran order is found by counting.
std::vector<size_t> fortran_places(const Shape& shape) {
  const size_t count = static_cast<size_t>(shape.elements());
  check_memory(count * sizeof(size_t));
  const auto strides = shape.strides();
  std::vector<size_t> places(count);
  std::vector<int64_t> index(shape.rank());
  size_t place = 0;
  for (size_t i = 0; i < count; ++i) {
    places[i] = place;
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      place += static_cast<size_t>(strides[axis]);
      if (++index[axis] < shape[axis]) break;
      place -= static_cast<size_t>(strides[axis] * shape[axis]);
      index[axis] = 0;
    }
  }
  return places;
}

Tensor strings_from(const Header& header, std::span<const std::byte> bytes, size_t width, bool is_big_endian) {
  const Shape shape(header.dims);
  const bool is_wide = header.descr[1] == 'U';
  check_memory(static_cast<size_t>(shape.elements()) * sizeof(std::string));
  std::vector<std::string> strings(static_cast<size_t>(shape.elements()));
  const auto places = header.is_fortran ? fortran_places(shape) : std::vector<size_t>();
  for (size_t i = 0; i < strings.size(); ++i) {
    strings[header.is_fortran ? places[i] : i] = string_element(bytes.subspan(i * width, width), is_wide, is_big_endian);
  }
  return Tensor::of_strings(shape, std::move(strings));
}

Tensor reordered(const Header& header, const Tensor& view, bool must_swap) {
  Tensor tensor(view.type());
  const size_t width = bits_of(view.dtype()) / 8;
  const size_t part = view.dtype() == DType::C64 || view.dtype() == DType::C128 ? width / 2 : width;
  const auto places = header.is_fortran ? fortran_places(view.shape()) : std::vector<size_t>();
  const std::byte* const from = view.bytes().data();
  std::byte* const to = tensor.writable_bytes().data();
  for (size_t i = 0; i < view.elements(); ++i) {
    std::byte* const element = to + (header.is_fortran ? places[i] : i) * width;
    std::memcpy(element, from + i * width, width);
    for (size_t at = 0; must_swap && at < width; at += part) std::reverse(element + at, element + at + part);
  }
  return tensor;
}

// How wide a string element is: "<U5" is 20 bytes, "|S5" is 5.
size_t string_width(const std::string& descr) {
  size_t count = 0;
  const auto [end, problem] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), count);
  if (problem != std::errc() || end != descr.data() + descr.size() || count > (size_t{1} << 28))
    complain("its type is '", descr, "'");
  return descr[1] == 'U' ? count * 4 : count;
}

std::string name_of(DType dtype) {
  const auto found = std::ranges::find(names, dtype, &Named::dtype);
  if (found != names.end()) return std::string(found->name);
  return cat("u", std::max<size_t>(bits_of(dtype) / 8, 1));
}

// Elements under a byte, each in a byte of its own.
Tensor unpacked(const Tensor& tensor) {
  Tensor result(TensorType{DType::U8, tensor.shape()});
  const size_t bits = bits_of(tensor.dtype());
  const auto bytes = tensor.bytes();
  const auto to = result.writable_bytes();
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = bytes[i * bits / 8] >> static_cast<int>(i * bits % 8) & std::byte((1U << bits) - 1);
  return result;
}

// Characters of UTF-8; a broken one becomes the replacement character.
std::vector<uint32_t> characters(std::string_view text) {
  std::vector<uint32_t> codes;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const auto length = static_cast<size_t>(first < 0x80 ? 1 : std::countl_one(first));
    uint32_t code = first < 0x80 ? first : first & (0x7fU >> length);
    bool is_whole = length >= 1 && length <= 4 && i + length <= text.size() && (first < 0x80 || length > 1);
    for (size_t k = 1; is_whole && k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      is_whole = (next & 0xc0) == 0x80;
      code = code << 6 | (next & 0x3f);
    }
    codes.push_back(is_whole ? code : 0xfffd);
    i += is_whole ? length : 1;
  }
  return codes;
}

}  // namespace

Tensor npy_from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  const Header header = read_header(bytes);
  const auto& descr = header.descr;
  if (descr.size() < 2) complain("its type is '", descr, "'");
  const bool is_big_endian = descr[0] == '>';
  const bool has_order = descr[0] == '<' || descr[0] == '|' || descr[0] == '=' || is_big_endian;
  const bool is_string = has_order && (descr[1] == 'U' || descr[1] == 'S');
  const auto named = std::ranges::find(names, std::string_view(descr).substr(has_order ? 1 : 0), &Named::name);
  if (!is_string && named == names.end()) {
    if (descr.find('O') != std::string::npos) fail(ErrorKind::Unsupported, ".npy arrays of Python objects are not supported");
    fail(ErrorKind::Unsupported, ".npy arrays of type '", descr, "' are not supported");
  }
  const size_t width = is_string ? string_width(descr) : bits_of(named->dtype) / 8;
  uint64_t elements = 1;
  for (const int64_t dim : header.dims) {
    if (dim > 0 && elements > most_elements / static_cast<uint64_t>(dim))
      complain("shape ", Shape(header.dims), " has too many elements");
    elements *= static_cast<uint64_t>(std::max<int64_t>(dim, 1));
  }
  elements = static_cast<uint64_t>(Shape(header.dims).elements());
  const auto rest = bytes.subspan(header.size);
  // Strings of no width take no room in the file, but would here.
  if (width == 0 && elements > rest.size() + 1024) complain("it has ", elements, " empty strings");
  if (width != 0 && elements > rest.size() / width) {
    complain(elements, " elements of '", descr, "' need more than the ", rest.size(), " bytes it has");
  }
  const auto used = rest.first(elements * width);
  if (is_string) return strings_from(header, used, width, is_big_endian);
  Tensor view = Tensor::view(TensorType{named->dtype, Shape(header.dims)}, used, std::move(owner));
  const bool must_swap = is_big_endian && width > 1;
  if (!must_swap && (!header.is_fortran || header.dims.size() < 2)) return view;
  return reordered(header, view, must_swap);
}

NpyParts npy_parts(const Tensor& tensor) {
  NpyParts parts;
  std::string descr;
  if (tensor.dtype() == DType::String) {
    size_t longest = 1;
    std::vector<std::vector<uint32_t>> texts;
    for (const auto& text : tensor.strings()) longest = std::max(longest, texts.emplace_back(characters(text)).size());
    Tensor wide(TensorType{DType::U32, {static_cast<int64_t>(texts.size()), static_cast<int64_t>(longest)}});
    const auto to = wide.writable_span<uint32_t>();
    for (size_t i = 0; i < texts.size(); ++i) std::ranges::copy(texts[i], to.data() + i * longest);
    parts.elements = wide;
    descr = cat("<U", longest);
  } else {
    const size_t bits = bits_of(tensor.dtype());
    parts.elements = bits < 8 ? unpacked(tensor) : tensor;
    const std::string name = name_of(tensor.dtype());
    descr = cat(bits <= 8 ? '|' : '<', name);
  }
  std::string shape;
  for (const int64_t dim : tensor.shape().dims()) shape += cat(dim, ", ");
  if (tensor.shape().rank() > 1) shape.resize(shape.size() - 2);
  if (tensor.shape().rank() == 1) shape.resize(shape.size() - 1);
  std::string text = cat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", shape, "), }");
  const size_t start = magic.size() + 4;
  text.resize((start + text.size() + 1 + 63) / 64 * 64 - start - 1, ' ');
  text += '\n';
  parts.header = cat(magic, '\x01', '\x00', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8), text);
  return parts;
}

Tensor read_npy(const std::string& path) {
  const auto file = MappedFile::open(path);
  try {
    return npy_from_bytes(file->bytes(), file);
  } catch (Error& error) {
    error.note(cat("in '", path, "'"));
    throw;
  }
}

void write_npy(const Tensor& tensor, const std::string& path) {
  const NpyParts parts = npy_parts(tensor);
  const auto bytes = parts.elements.bytes();
  write_file(path, cat(parts.header, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
}

}  // namespace unmoor
