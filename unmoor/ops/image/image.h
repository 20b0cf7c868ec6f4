#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace unmoor {

// Pixels in rows from the top, red, green and blue of each. Transparency is dropped, not blended; deeper samples are scaled to 8
// bits.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> rgb;
};

using Bytes = std::span<const std::byte>;

// A file in memory: BMP, JPEG, JPEG 2000, PNG, PNM (PBM, PGM, PPM), TIFF (its first page) or WebP, told by its first bytes. Empty
// if it is none of these or cannot be decoded whole. Fails with Unsupported if the format's library is not on this system, and
// with OutOfMemory where decoding could pass the memory limit.
std::optional<Image> decode_image(Bytes file);

// One format each. The compressed ones open their library at first use.
std::optional<Image> decode_bmp(Bytes file);
std::optional<Image> decode_jpeg(Bytes file);
std::optional<Image> decode_jpeg2000(Bytes file);
std::optional<Image> decode_png(Bytes file);
std::optional<Image> decode_pnm(Bytes file);
std::optional<Image> decode_tiff(Bytes file);
std::optional<Image> decode_webp(Bytes file);

// An image of this size, black. Empty if a side is not positive. Fails with OutOfMemory as decode_image does.
std::optional<Image> new_image(int64_t height, int64_t width);

// Scales a sample of [0, most] to [0, 255], to the nearest; above `most` is 255.
inline uint8_t to_8_bits(uint64_t sample, uint64_t most) {
  return static_cast<uint8_t>(sample >= most ? 255 : (sample * 510 + most) / (2 * most));
}

// A byte of the file, 0 after its end.
inline uint8_t byte_at(Bytes file, size_t i) { return i < file.size() ? std::to_integer<uint8_t>(file[i]) : uint8_t{0}; }

}  // namespace unmoor
