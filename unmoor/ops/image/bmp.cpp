#include <algorithm>
#include <array>
#include <bit>

#include "unmoor/ops/image/image.h"

namespace unmoor {
namespace {

constexpr size_t file_header = 14;
enum Compression : uint32_t { None = 0, Rle8 = 1, Rle4 = 2, Masks = 3, MasksWithAlpha = 6 };

uint32_t number(Bytes file, size_t at, size_t bytes) {
  uint32_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | byte_at(file, at + i);
  return value;
}

// What the headers say: of OS/2 (12 bytes) or of Windows (40 and more).
struct Header {
  int64_t width = 0, height = 0;
  bool from_top = false;
  uint32_t bits = 0, compression = None;
  size_t pixels = 0;                // Where they begin.
  std::array<uint32_t, 3> masks{};  // Of red, green and blue, where a pixel has 16 or 32 bits.
  std::vector<std::array<uint8_t, 3>> palette = {};
};

std::array<uint32_t, 3> masks_of(Bytes file, const Header& header) {
  if (header.compression == Masks || header.compression == MasksWithAlpha) {
    return {number(file, file_header + 40, 4), number(file, file_header + 44, 4), number(file, file_header + 48, 4)};
  }
  return header.bits == 16 ? std::array<uint32_t, 3>{0x7c00, 0x3e0, 0x1f} : std::array<uint32_t, 3>{0xff0000, 0xff00, 0xff};
}

void read_palette(Bytes file, size_t header_bytes, uint32_t declared, Header& header) {
  const size_t entry = header_bytes == 12 ? 3 : 4;  // Blue, green, red, and one of no meaning.
  const size_t masks = header_bytes != 40 ? 0 : header.compression == Masks ? 12 : header.compression == MasksWithAlpha ? 16 : 0;
  const size_t first = file_header + header_bytes + masks;
  const size_t room = header.pixels > first ? (header.pixels - first) / entry : 0;
  const size_t most = size_t{1} << header.bits;
  const size_t count = std::min({declared == 0 ? most : size_t{declared}, most, room});
  for (size_t i = 0; i < count; ++i) {
    const size_t at = first + i * entry;
    header.palette.push_back({byte_at(file, at + 2), byte_at(file, at + 1), byte_at(file, at)});
  }
}

bool fits(const Header& header) {
  const auto is_one_of = [&](std::initializer_list<uint32_t> bits) { return std::ranges::find(bits, header.bits) != bits.end(); };
  switch (header.compression) {
    case None:
      return is_one_of({1, 2, 4, 8, 16, 24, 32});
    case Rle8:
      return header.bits == 8;
    case Rle4:
      return header.bits == 4;
    case Masks:
    case MasksWithAlpha:
      return is_one_of({16, 32});
    default:
      return false;
  }
}

std::optional<Header> read_header(Bytes file) {
  const uint32_t bytes = number(file, file_header, 4);
  if (file.size() < file_header + 12 || (bytes != 12 && bytes < 40)) return std::nullopt;
  Header header;
  header.pixels = number(file, 10, 4);
  const size_t at = file_header + 4;
  uint32_t colors = 0;
  if (bytes == 12) {
    header.width = number(file, at, 2);
    header.height = number(file, at + 2, 2);
    header.bits = number(file, at + 6, 2);
  } else {
    header.width = std::bit_cast<int32_t>(number(file, at, 4));
    header.height = std::bit_cast<int32_t>(number(file, at + 4, 4));
    header.bits = number(file, at + 10, 2);
    header.compression = number(file, at + 12, 4);
    colors = number(file, at + 28, 4);
  }
  header.from_top = header.height < 0;
  header.height = std::abs(header.height);
  if (!fits(header)) return std::nullopt;
  header.masks = masks_of(file, header);
  if (header.bits <= 8) read_palette(file, bytes, colors, header);
  return header;
}

// The part of a pixel that a mask shows, as 0 to 255.
uint8_t masked(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  return to_8_bits((pixel & mask) >> shift, mask >> shift);
}

void set_pixel(Image& image, const Header& header, int64_t x, int64_t row, std::array<uint8_t, 3> color) {
  const int64_t y = header.from_top ? row : header.height - 1 - row;
  std::ranges::copy(color, image.rgb.begin() + 3 * (y * header.width + x));
}

// A color of the palette, black outside of it.
std::array<uint8_t, 3> listed(const Header& header, size_t index) {
  return index < header.palette.size() ? header.palette[index] : std::array<uint8_t, 3>{};
}

std::array<uint8_t, 3> pixel_at(Bytes row, const Header& header, size_t x) {
  if (header.bits <= 8) {
    const size_t bit = x * header.bits;
    return listed(header, (byte_at(row, bit / 8) >> (8 - header.bits - bit % 8)) & ((1U << header.bits) - 1));
  }
  const size_t bytes = header.bits / 8;
  const uint32_t value = number(row, x * bytes, bytes);
  return {masked(value, header.masks[0]), masked(value, header.masks[1]), masked(value, header.masks[2])};
}

// Runs of equal pixels. Those that no run reaches are of the palette's first color.
bool unpack_runs(Bytes data, const Header& header, Image& image) {
  for (size_t i = 0; i < image.rgb.size(); ++i) image.rgb[i] = listed(header, 0)[i % 3];
  const size_t per_byte = 8 / header.bits;
  int64_t x = 0;
  int64_t row = 0;
  const auto put = [&](size_t at, size_t i) {  // Pixel `i` of those packed from byte `at` on.
    const auto shift = header.bits == 8 ? 0U : 4U * (1 - static_cast<unsigned>(i % 2));
    if (x < header.width && row < header.height)
      set_pixel(image, header, x, row,
                listed(header, (byte_at(data, at + i / per_byte) >> shift) & (header.bits == 8 ? 255U : 15U)));
    ++x;
  };
  for (size_t at = 0; at + 2 <= data.size();) {
    const size_t count = byte_at(data, at);
    const size_t code = byte_at(data, at + 1);
    at += 2;
    if (count > 0) {
      for (size_t i = 0; i < count; ++i) put(at - 1, header.bits == 8 ? 0 : i % 2);
    } else if (code == 0) {
      x = 0;
      ++row;
    } else if (code == 1) {
      return true;
    } else if (code == 2) {
      x += byte_at(data, at);
      row += byte_at(data, at + 1);
      at += 2;
    } else {
      for (size_t i = 0; i < code; ++i) put(at, i);
      at += ((code + per_byte - 1) / per_byte + 1) / 2 * 2;  // Padded to 16 bits.
    }
  }
  return row >= header.height - 1 && x >= header.width;  // The end may lack its mark, not its pixels.
}

}  // namespace

std::optional<Image> decode_bmp(Bytes file) {
  const auto header = read_header(file);
  if (!header || header->pixels > file.size()) return std::nullopt;
  const Bytes data = file.subspan(header->pixels);
  const bool runs = header->compression == Rle8 || header->compression == Rle4;
  const auto row_bytes =
      static_cast<uint64_t>((std::max<int64_t>(header->width, 0) * header->bits + 31) / 32 * 4);  // Padded to 32 bits.
  if (!runs && row_bytes * static_cast<uint64_t>(header->height) > data.size()) return std::nullopt;
  auto image = new_image(header->height, header->width);
  if (!image) return image;
  if (runs) return unpack_runs(data, *header, *image) ? image : std::nullopt;
  for (int64_t row = 0; row < header->height; ++row) {
    const Bytes line = data.subspan(static_cast<size_t>(row) * row_bytes, row_bytes);
    for (int64_t x = 0; x < header->width; ++x)
      set_pixel(*image, *header, x, row, pixel_at(line, *header, static_cast<size_t>(x)));
  }
  return image;
}

}  // namespace unmoor
