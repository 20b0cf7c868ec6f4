#include <algorithm>
#include <array>
#include <string_view>

#include "unmoor/ops/image/codec.h"
#include "unmoor/ops/image/image.h"

namespace unmoor {
namespace {

// libpng's simplified interface, as its header png.h declares it.
struct PngImage {
  void* opaque = nullptr;
  uint32_t version = 1;
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t format = 0;
  uint32_t flags = 0;
  uint32_t colormap_entries = 0;
  uint32_t warning_or_error = 0;
  char message[64] = {};
};
constexpr uint32_t format_rgba = 3;
constexpr uint32_t flag_16_bit_srgb = 4;  // Samples of 16 bits are no more linear than those of 8.

struct Png {
  Codec codec{"PNG", std::array<const char*, 1>{"libpng16.so.16"}};
  int (*begin)(PngImage*, const void*,
               size_t) = codec.function<int(PngImage*, const void*, size_t)>("png_image_begin_read_from_memory");
  int (*finish)(PngImage*, const void*, void*, int32_t,
                void*) = codec.function<int(PngImage*, const void*, void*, int32_t, void*)>("png_image_finish_read");
  void (*free)(PngImage*) = codec.function<void(PngImage*)>("png_image_free");
};

constexpr size_t signature_bytes = 8;

// The file without what would have its samples changed for a display: they are to be as stored.
std::vector<std::byte> without_color_spaces(Bytes file) {
  std::vector<std::byte> kept(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(std::min(file.size(), signature_bytes)));
  for (size_t at = signature_bytes; at + 12 <= file.size();) {
    const size_t length = (size_t{byte_at(file, at)} << 24) + (size_t{byte_at(file, at + 1)} << 16) +
                          (size_t{byte_at(file, at + 2)} << 8) + byte_at(file, at + 3);
    const Bytes chunk = file.subspan(at, std::min(length + 12, file.size() - at));
    const std::string_view name(reinterpret_cast<const char*>(chunk.data()) + 4, 4);
    const bool dropped = name == "gAMA" || name == "cHRM" || name == "sRGB" || name == "iCCP" || name == "sBIT";
    if (!dropped) kept.insert(kept.end(), chunk.begin(), chunk.end());
    at += chunk.size();
  }
  return kept;
}

}  // namespace

std::optional<Image> decode_png(Bytes file) {
  static const Png png;
  const auto kept = without_color_spaces(file);
  PngImage header;
  if (png.begin(&header, kept.data(), kept.size()) == 0) return std::nullopt;
  const std::unique_ptr<PngImage, void (*)(PngImage*)> freed(&header, png.free);
  auto image = new_image(header.height, header.width);
  if (!image) return image;
  header.format = format_rgba;
  header.flags |= flag_16_bit_srgb;
  std::vector<uint8_t> pixels(image->rgb.size() / 3 * 4);
  if (png.finish(&header, nullptr, pixels.data(), 0, nullptr) == 0) return std::nullopt;
  for (size_t i = 0; i < image->rgb.size(); ++i) image->rgb[i] = pixels[i / 3 * 4 + i % 3];
  return image;
}

}  // namespace unmoor
