#include <array>

#include "unmoor/ops/image/codec.h"
#include "unmoor/ops/image/image.h"

namespace unmoor {
namespace {

// libwebp's simple interface, as its header decode.h declares it.
struct WebP {
  Codec codec{"WebP", std::array<const char*, 1>{"libwebp.so.7"}};
  int (*size)(const uint8_t*, size_t, int*, int*) = codec.function<int(const uint8_t*, size_t, int*, int*)>("WebPGetInfo");
  uint8_t* (*decode)(const uint8_t*, size_t, uint8_t*, size_t,
                     int) = codec.function<uint8_t*(const uint8_t*, size_t, uint8_t*, size_t, int)>("WebPDecodeRGBInto");
};

}  // namespace

std::optional<Image> decode_webp(Bytes file) {
  static const WebP webp;
  const auto* const data = reinterpret_cast<const uint8_t*>(file.data());
  int width = 0;
  int height = 0;
  if (webp.size(data, file.size(), &width, &height) == 0) return std::nullopt;
  auto image = new_image(height, width);
  if (!image || webp.decode(data, file.size(), image->rgb.data(), image->rgb.size(), 3 * width) == nullptr) return std::nullopt;
  return image;
}

}  // namespace unmoor
