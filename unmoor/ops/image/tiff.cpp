#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "unmoor/ops/image/codec.h"
#include "unmoor/ops/image/image.h"

namespace unmoor {
namespace {

// libtiff 4.5, as its header tiffio.h declares it: a file is what these functions read.
using Tiff = void;
using Options = void;
using Transfer = int64_t (*)(void*, void*, int64_t);
using Seek = uint64_t (*)(void*, uint64_t, int);
using Close = int (*)(void*);
using Size = uint64_t (*)(void*);
using MapFile = int (*)(void*, void**, uint64_t*);
using UnmapFile = void (*)(void*, void*, uint64_t);
using Handler = int (*)(Tiff*, void*, const char*, const char*, va_list);
using SetHandler = void(Options*, Handler, void*);
using OpenFile = Tiff*(const char*, const char*, void*, Transfer, Transfer, Seek, Close, Size, MapFile, UnmapFile, Options*);

constexpr uint32_t tag_width = 256;
constexpr uint32_t tag_height = 257;
constexpr uint32_t tag_extra_samples = 338;
constexpr int from_top_left = 1;
constexpr int64_t largest_allocation = int64_t{1} << 31;

struct TiffLibrary {
  Codec codec{"TIFF", std::array<const char*, 1>{"libtiff.so.6"}};
  Options* (*new_options)() = codec.function<Options*()>("TIFFOpenOptionsAlloc");
  void (*free_options)(Options*) = codec.function<void(Options*)>("TIFFOpenOptionsFree");
  void (*limit_memory)(Options*, int64_t) = codec.function<void(Options*, int64_t)>("TIFFOpenOptionsSetMaxSingleMemAlloc");
  SetHandler* on_error = codec.function<SetHandler>("TIFFOpenOptionsSetErrorHandlerExtR");
  SetHandler* on_warning = codec.function<SetHandler>("TIFFOpenOptionsSetWarningHandlerExtR");
  OpenFile* open = codec.function<OpenFile>("TIFFClientOpenExt");
  void (*close)(Tiff*) = codec.function<void(Tiff*)>("TIFFClose");
  int (*field)(Tiff*, uint32_t, ...) = codec.function<int(Tiff*, uint32_t, ...)>("TIFFGetField");
  int (*read)(Tiff*, uint32_t, uint32_t, uint32_t*, int,
              int) = codec.function<int(Tiff*, uint32_t, uint32_t, uint32_t*, int, int)>("TIFFReadRGBAImageOriented");
};

// A file in memory, and where it is read.
struct Memory {
  Bytes bytes;
  uint64_t at = 0;
};

int64_t read_memory(void* handle, void* to, int64_t count) {
  auto& memory = *static_cast<Memory*>(handle);
  if (count <= 0 || memory.at >= memory.bytes.size()) return 0;
  const size_t taken = std::min(static_cast<size_t>(count), memory.bytes.size() - static_cast<size_t>(memory.at));
  std::memcpy(to, memory.bytes.data() + memory.at, taken);
  memory.at += taken;
  return static_cast<int64_t>(taken);
}
int64_t write_nothing(void*, void*, int64_t) { return 0; }
uint64_t seek_memory(void* handle, uint64_t offset, int whence) {
  auto& memory = *static_cast<Memory*>(handle);
  if (whence == SEEK_CUR) offset += memory.at;
  if (whence == SEEK_END) offset += memory.bytes.size();
  return memory.at = offset;
}
int keep_open(void*) { return 0; }
uint64_t memory_size(void* handle) { return static_cast<Memory*>(handle)->bytes.size(); }
int map_nothing(void*, void**, uint64_t*) { return 0; }
void unmap_nothing(void*, void*, uint64_t) {}
int say_nothing(Tiff*, void*, const char*, const char*, va_list) { return 1; }

// A number of the file in its byte order.
uint64_t number_at(Bytes file, size_t at, size_t bytes) {
  const bool big = byte_at(file, 0) == 'M';
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | byte_at(file, at + (big ? i : bytes - 1 - i));
  return value;
}

// The file with its transparency called one that colors were multiplied by already (1), so that libtiff does not multiply them.
std::vector<std::byte> with_colors_as_stored(Bytes file) {
  std::vector<std::byte> copy(file.begin(), file.end());
  const auto directory = static_cast<size_t>(number_at(file, 4, 4));
  const auto entries = directory < file.size() ? static_cast<size_t>(number_at(file, directory, 2)) : 0;
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (entry + 12 > copy.size()) break;
    if (number_at(file, entry, 2) != tag_extra_samples || number_at(file, entry + 4, 4) != 1) continue;
    copy[entry + 8] = copy[entry + 9] = std::byte{0};
    copy[entry + (byte_at(file, 0) == 'M' ? 9 : 8)] = std::byte{1};
  }
  return copy;
}

}  // namespace

std::optional<Image> decode_tiff(Bytes file) {
  static const TiffLibrary lib;
  const auto copy = with_colors_as_stored(file);
  Memory memory{copy};
  const std::unique_ptr<Options, void (*)(Options*)> options(lib.new_options(), lib.free_options);
  if (options == nullptr) return std::nullopt;
  lib.limit_memory(options.get(), largest_allocation);
  lib.on_error(options.get(), say_nothing, nullptr);
  lib.on_warning(options.get(), say_nothing, nullptr);
  const std::unique_ptr<Tiff, void (*)(Tiff*)> tiff(lib.open("image", "rm", &memory, read_memory, write_nothing, seek_memory,
                                                             keep_open, memory_size, map_nothing, unmap_nothing, options.get()),
                                                    lib.close);
  uint32_t width = 0;
  uint32_t height = 0;
  if (tiff == nullptr || lib.field(tiff.get(), tag_width, &width) == 0 || lib.field(tiff.get(), tag_height, &height) == 0)
    return std::nullopt;
  auto image = new_image(height, width);
  if (!image) return image;
  std::vector<uint32_t> pixels(image->rgb.size() / 3);  // Red in the lowest byte.
  if (lib.read(tiff.get(), width, height, pixels.data(), from_top_left, 1) == 0) return std::nullopt;
  for (size_t i = 0; i < image->rgb.size(); ++i) image->rgb[i] = static_cast<uint8_t>(pixels[i / 3] >> (8 * (i % 3)));
  return image;
}

}  // namespace unmoor
