#include <array>
#include <limits>
#include <memory>

#include "unmoor/ops/image/codec.h"
#include "unmoor/ops/image/image.h"

namespace unmoor {
namespace {

// TurboJPEG 2, as its header turbojpeg.h declares it.
using Handle = void*;
constexpr int color_cmyk = 3;
constexpr int color_ycck = 4;
constexpr int format_rgb = 0;
constexpr int format_cmyk = 11;
// The exact inverse transform; damage is an error; 500 scans at most, as each costs a pass over the whole image.
constexpr int flags = 4096 | 8192 | 32768;

struct TurboJpeg {
  Codec codec{"JPEG", std::array<const char*, 1>{"libturbojpeg.so.0"}};
  Handle (*open)() = codec.function<Handle()>("tjInitDecompress");
  int (*close)(Handle) = codec.function<int(Handle)>("tjDestroy");
  int (*header)(Handle, const unsigned char*, unsigned long, int*, int*, int*, int*) =
      codec.function<int(Handle, const unsigned char*, unsigned long, int*, int*, int*, int*)>("tjDecompressHeader3");
  int (*decode)(Handle, const unsigned char*, unsigned long, unsigned char*, int, int, int, int, int) =
      codec.function<int(Handle, const unsigned char*, unsigned long, unsigned char*, int, int, int, int, int)>("tjDecompress2");
};

// CMYK is stored inverted, as Adobe's programs began to.
void add_cmyk(const std::vector<uint8_t>& cmyk, Image& image) {
  for (size_t i = 0; i < image.rgb.size(); ++i) {
    const unsigned product = static_cast<unsigned>(cmyk[i / 3 * 4 + i % 3]) * cmyk[i / 3 * 4 + 3];
    image.rgb[i] = to_8_bits(product, 255U * 255U);
  }
}

}  // namespace

std::optional<Image> decode_jpeg(Bytes file) {
  static const TurboJpeg turbo;
  const std::unique_ptr<void, int (*)(Handle)> handle(turbo.open(), turbo.close);
  const auto* const data = reinterpret_cast<const unsigned char*>(file.data());
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int color = 0;
  if (handle == nullptr || turbo.header(handle.get(), data, file.size(), &width, &height, &subsampling, &color) != 0)
    return std::nullopt;
  auto image = new_image(height, width);
  if (!image) return image;
  const bool cmyk = color == color_cmyk || color == color_ycck;
  std::vector<uint8_t> four(cmyk ? image->rgb.size() / 3 * 4 : 0);
  unsigned char* const to = cmyk ? four.data() : image->rgb.data();
  if (turbo.decode(handle.get(), data, file.size(), to, width, 0, height, cmyk ? format_cmyk : format_rgb, flags) != 0)
    return std::nullopt;
  if (cmyk) add_cmyk(four, *image);
  return image;
}

}  // namespace unmoor
