#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "unmoor/ops/image/codec.h"
#include "unmoor/ops/image/image.h"

namespace unmoor {
namespace {

// OpenJPEG 2, as its header openjpeg.h declares it.
struct Component {
  uint32_t dx, dy, w, h, x0, y0, precision, bpp, is_signed, resolutions, factor;
  int32_t* data;
  uint16_t alpha;
};
struct Picture {
  uint32_t x0, y0, x1, y1, components;
  int32_t color_space;
  Component* component;
  uint8_t* profile;
  uint32_t profile_bytes;
};
using Stream = void*;
using Decoder = void*;
using Transfer = size_t (*)(void*, size_t, void*);
using Skip = int64_t (*)(int64_t, void*);
using Seek = int (*)(int64_t, void*);
struct alignas(16) Parameters {
  std::byte bytes[16384];  // More than any version's; only the library writes it.
};
constexpr int codestream = 0;
constexpr int jp2_file = 2;
constexpr int color_yuv = 3;
constexpr int color_cmyk = 5;
constexpr size_t buffer_bytes = size_t{1} << 16;

struct OpenJpeg {
  Codec codec{"JPEG 2000", std::array<const char*, 1>{"libopenjp2.so.7"}};
  Stream* (*new_stream)(size_t, int) = codec.function<Stream*(size_t, int)>("opj_stream_create");
  void (*free_stream)(Stream*) = codec.function<void(Stream*)>("opj_stream_destroy");
  void (*on_read)(Stream*, Transfer) = codec.function<void(Stream*, Transfer)>("opj_stream_set_read_function");
  void (*on_skip)(Stream*, Skip) = codec.function<void(Stream*, Skip)>("opj_stream_set_skip_function");
  void (*on_seek)(Stream*, Seek) = codec.function<void(Stream*, Seek)>("opj_stream_set_seek_function");
  void (*set_data)(Stream*, void*,
                   void (*)(void*)) = codec.function<void(Stream*, void*, void (*)(void*))>("opj_stream_set_user_data");
  void (*set_length)(Stream*, uint64_t) = codec.function<void(Stream*, uint64_t)>("opj_stream_set_user_data_length");
  Decoder* (*new_decoder)(int) = codec.function<Decoder*(int)>("opj_create_decompress");
  void (*free_decoder)(Decoder*) = codec.function<void(Decoder*)>("opj_destroy_codec");
  void (*set_defaults)(Parameters*) = codec.function<void(Parameters*)>("opj_set_default_decoder_parameters");
  int (*set_up)(Decoder*, Parameters*) = codec.function<int(Decoder*, Parameters*)>("opj_setup_decoder");
  int (*read_header)(Stream*, Decoder*, Picture**) = codec.function<int(Stream*, Decoder*, Picture**)>("opj_read_header");
  int (*decode)(Decoder*, Stream*, Picture*) = codec.function<int(Decoder*, Stream*, Picture*)>("opj_decode");
  int (*finish)(Decoder*, Stream*) = codec.function<int(Decoder*, Stream*)>("opj_end_decompress");
  void (*free_picture)(Picture*) = codec.function<void(Picture*)>("opj_image_destroy");
};

// A file in memory, and where it is read.
struct Memory {
  Bytes bytes;
  size_t at = 0;
};

size_t read_memory(void* to, size_t count, void* data) {
  auto& memory = *static_cast<Memory*>(data);
  const size_t taken = std::min(count, memory.bytes.size() - memory.at);
  if (taken == 0) return static_cast<size_t>(-1);
  std::memcpy(to, memory.bytes.data() + memory.at, taken);
  memory.at += taken;
  return taken;
}
int64_t skip_memory(int64_t count, void* data) {
  auto& memory = *static_cast<Memory*>(data);
  if (count < 0 || static_cast<uint64_t>(count) > memory.bytes.size() - memory.at) return -1;
  memory.at += static_cast<size_t>(count);
  return count;
}
int seek_memory(int64_t place, void* data) {
  auto& memory = *static_cast<Memory*>(data);
  if (place < 0 || static_cast<uint64_t>(place) > memory.bytes.size()) return 0;
  memory.at = static_cast<size_t>(place);
  return 1;
}

// One to four samples a pixel, of 1 to 16 bits each, within the limit of an image.
bool is_supported(const Picture& picture) {
  if (picture.components < 1 || picture.components > 4 || picture.x1 <= picture.x0 || picture.y1 <= picture.y0) return false;
  return std::ranges::all_of(std::span(picture.component, picture.components), [](const Component& each) {
    return each.dx >= 1 && each.dy >= 1 && each.precision >= 1 && each.precision <= 16;
  });
}

// Sample of a component at a pixel of the image, as 0 to 255. A component may have one sample for several pixels.
uint8_t sample(const Component& component, uint32_t x, uint32_t y) {
  const uint32_t column = std::min(x / component.dx, component.w - 1);
  const uint32_t row = std::min(y / component.dy, component.h - 1);
  const int64_t top = (int64_t{1} << component.precision) - 1;
  const int64_t shift = component.is_signed != 0 ? int64_t{1} << (component.precision - 1) : 0;
  const int64_t value = component.data[size_t{row} * component.w + column] + shift;
  return to_8_bits(static_cast<uint64_t>(std::clamp<int64_t>(value, 0, top)), static_cast<uint64_t>(top));
}

uint8_t rounded(double value) { return static_cast<uint8_t>(std::clamp(std::nearbyint(value), 0.0, 255.0)); }

// Red, green and blue from what the components hold: gray, RGB, YCbCr (ITU-R BT.601, as JFIF has it) or CMYK; a last one may be
// alpha.
std::array<uint8_t, 3> color(const Picture& picture, uint32_t x, uint32_t y) {
  const auto at = [&](size_t i) { return sample(picture.component[i], x, y); };
  if (picture.components < 3) return {at(0), at(0), at(0)};
  if (picture.color_space == color_yuv) {
    const double blue = at(1) - 128.0;
    const double red = at(2) - 128.0;
    return {rounded(at(0) + 1.402 * red), rounded(at(0) - 0.344136 * blue - 0.714136 * red), rounded(at(0) + 1.772 * blue)};
  }
  if (picture.color_space != color_cmyk || picture.components < 4) return {at(0), at(1), at(2)};
  const auto mixed = [&](size_t i) { return to_8_bits((255U - at(i)) * (255U - at(3)), 255U * 255U); };
  return {mixed(0), mixed(1), mixed(2)};
}

}  // namespace

std::optional<Image> decode_jpeg2000(Bytes file) {
  static const OpenJpeg lib;
  const std::unique_ptr<Stream, void (*)(Stream*)> stream(lib.new_stream(buffer_bytes, 1), lib.free_stream);
  const std::unique_ptr<Decoder, void (*)(Decoder*)> decoder(lib.new_decoder(byte_at(file, 0) == 0xff ? codestream : jp2_file),
                                                             lib.free_decoder);
  if (stream == nullptr || decoder == nullptr) return std::nullopt;
  Memory memory{file};
  lib.on_read(stream.get(), read_memory);
  lib.on_skip(stream.get(), skip_memory);
  lib.on_seek(stream.get(), seek_memory);
  lib.set_data(stream.get(), &memory, nullptr);
  lib.set_length(stream.get(), file.size());
  const auto parameters = std::make_unique<Parameters>();
  lib.set_defaults(parameters.get());
  Picture* found = nullptr;
  const bool begun =
      lib.set_up(decoder.get(), parameters.get()) != 0 && lib.read_header(stream.get(), decoder.get(), &found) != 0;
  const std::unique_ptr<Picture, void (*)(Picture*)> picture(found, lib.free_picture);
  if (!begun || picture == nullptr || !is_supported(*picture)) return std::nullopt;
  auto image = new_image(int64_t{picture->y1} - picture->y0, int64_t{picture->x1} - picture->x0);
  if (!image || lib.decode(decoder.get(), stream.get(), picture.get()) == 0 || lib.finish(decoder.get(), stream.get()) == 0)
    return std::nullopt;
  if (!is_supported(*picture)) return std::nullopt;
  for (uint32_t i = 0; i < picture->components; ++i) {
    const Component& each = picture->component[i];
    if (each.data == nullptr || each.w == 0 || each.h == 0) return std::nullopt;
  }
  for (size_t i = 0; i < image->rgb.size() / 3; ++i) {
    const auto width = static_cast<size_t>(image->width);
    const auto pixel = color(*picture, static_cast<uint32_t>(i % width), static_cast<uint32_t>(i / width));
    std::ranges::copy(pixel, image->rgb.begin() + static_cast<std::ptrdiff_t>(3 * i));
  }
  return image;
}

}  // namespace unmoor
