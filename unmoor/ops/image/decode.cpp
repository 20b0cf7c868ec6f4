#include <algorithm>
#include <array>
#include <string_view>

#include "unmoor/base/memory.h"
#include "unmoor/ops/image/image.h"
#include "unmoor/tensor/shape.h"

namespace unmoor {
namespace {

// What decoding takes for a pixel: its result, and the library's own samples.
constexpr int64_t pixel_bytes = 16;

using namespace std::string_view_literals;

// `mark` stands in the file from byte `at` on.
struct Mark {
  std::string_view bytes;
  size_t at;
  std::optional<Image> (*decode)(Bytes);
};

constexpr std::array<Mark, 14> marks{{
    {"BM"sv, 0, decode_bmp},
    {"\xff\xd8\xff"sv, 0, decode_jpeg},
    {"\x89PNG\r\n\x1a\n"sv, 0, decode_png},
    {"II*\0"sv, 0, decode_tiff},
    {"MM\0*"sv, 0, decode_tiff},
    {"WEBP"sv, 8, decode_webp},
    {"\0\0\0\x0cjP  \r\n\x87\n"sv, 0, decode_jpeg2000},
    {"\xff\x4f\xff\x51"sv, 0, decode_jpeg2000},
    {"P1"sv, 0, decode_pnm},
    {"P2"sv, 0, decode_pnm},
    {"P3"sv, 0, decode_pnm},
    {"P4"sv, 0, decode_pnm},
    {"P5"sv, 0, decode_pnm},
    {"P6"sv, 0, decode_pnm},
}};

bool stands_in(const Mark& mark, Bytes file) {
  if (file.size() < mark.at + mark.bytes.size()) return false;
  return std::ranges::equal(file.subspan(mark.at, mark.bytes.size()), std::as_bytes(std::span(mark.bytes)));
}

}  // namespace

std::optional<Image> decode_image(Bytes file) {
  for (const Mark& mark : marks) {
    if (stands_in(mark, file)) return mark.decode(file);
  }
  return std::nullopt;
}

std::optional<Image> new_image(int64_t height, int64_t width) {
  if (height < 1 || width < 1) return std::nullopt;
  const Shape pixels{height, width, pixel_bytes};
  check_memory(static_cast<size_t>(pixels.elements()));
  Image image{height, width, {}};
  image.rgb.resize(static_cast<size_t>(pixels.elements() / pixel_bytes * 3));
  return image;
}

}  // namespace unmoor
