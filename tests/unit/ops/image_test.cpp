#include "unmoor/ops/image/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>

#include "tests/unit/ops/one_call.h"

namespace unmoor {
namespace {

using test::run;
using ::testing::ElementsAre;

// One picture of 5 by 6 pixels in every compressed format, in base64.
constexpr std::string_view png =
    "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAGCAIAAACEmcMcAAAAJklEQVR4nGNkYGAwQkIsDBoMDAw8cATnS0AQMl+FgUEFjW+AzgcApcADhmvVWo0AAAAASU"
    "VORK5CYII=";
constexpr std::string_view tiff =
    "SUkqAGgAAAD+AAkyAABkAACWAADI/wAOACgAMigMZCgYligkyCgwDgBQADJQGGRQMJZQSMhQYA4AeAAyeCRkeEiWeGzIeJAOAKAAMqAwZKBglqCQyKDADg"
    "DIADLIPGTIeJbItMjI8AAKAAABAwABAAAABQAAAAEBAwABAAAABgAAAAIBAwADAAAA5gAAAAMBAwABAAAABYAAAAYBAwABAAAAAgAAABEBBAABAAAACAAA"
    "ABUBAwABAAAAAwAAABYBAwABAAAABgAAABcBBAABAAAAXwAAABwBAwABAAAAAQAAAAAAAAAIAAgACAA=";
constexpr std::string_view webp = "UklGRiwAAABXRUJQVlA4TB8AAAAvBEABALkyRPQ/dhHR/4BAIAlnf8oRRmYYIiBJQZIPAA==";
constexpr std::string_view jpeg2000 =
    "AAAADGpQICANCocKAAAAFGZ0eXBqcDIgAAAAAGpwMiAAAAAtanAyaAAAABZpaGRyAAAABgAAAAUAAwcHAAAAAAAPY29scgEAAAAAABAAAADNanAyY/9P/1"
    "EALwAAAAAABQAAAAYAAAAAAAAAAAAAAAUAAAAGAAAAAAAAAAAAAwcBAQcBAQcBAf9SAAwAAAABAAAEBAAB/1wABEBA/2QAJQABQ3JlYXRlZCBieSBPcGVu"
    "SlBFRyB2ZXJzaW9uIDIuNS40/5AACgAAAAAAVQAB/5PfgLARaGajDhtn70oADAlkeTm196INaxi634CIEofI4KZTL+UyYr2Qfkx2aj/fgLgRUHIMh3P3BV"
    "IVFGNcT2cqgwTDiF/Eu//Z";
constexpr std::string_view jpeg =
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAIBAQEBAQIBAQECAgICAgQDAgICAgUEBAMEBgUGBgYFBgYGBwkIBgcJBwYGCAsICQoKCgoKBggLDAsKDAkKCg"
    "r/2wBDAQICAgICAgUDAwUKBwYHCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgr/wAARCAAGAAUDAREAAhEBAxEB"
    "/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EACEQAAAEBQUAAAAAAAAAAAAAAAEDBAcAAgUICREiMVFh/8QAFAEBAAAAAAAAAAAAAAAAAAAABv/EACIRAAAEBA"
    "cAAAAAAAAAAAAAAAECBQYAAwRhBwghMTJBQv/aAAwDAQACEQMRAD8AGyvD01NbamRWcah12clD0PkC2OkSn0kAoVPLTe8IMB8xS/TM4ClA3nuw3j//2Q==";

const std::map<std::string, std::string_view>& files() {
  static const std::map<std::string, std::string_view> all{
      {"png", png}, {"tiff", tiff}, {"webp", webp}, {"jpeg2000", jpeg2000}, {"jpeg", jpeg}};
  return all;
}

std::string decoded_base64(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned value = 0;
  unsigned bits = 0;
  for (const char c : text.substr(0, text.find('='))) {
    value = value << 6 | static_cast<unsigned>(digits.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(value >> bits & 255);
  }
  return bytes;
}

// What the picture has at a pixel.
int picture(int64_t x, int64_t y, size_t channel) {
  const auto value = channel == 0 ? x * 50 : channel == 1 ? y * 40 : x * y * 12 % 256;
  return static_cast<int>(value);
}

std::optional<Image> decode(const std::string& file) { return decode_image(std::as_bytes(std::span(file))); }

TEST(Images, every_compressed_format_gives_the_picture) {
  for (const auto& [format, text] : files()) {
    const auto image = decode(decoded_base64(text));
    ASSERT_TRUE(image) << format;
    ASSERT_EQ(image->width, 5) << format;
    ASSERT_EQ(image->height, 6) << format;
    const int allowed = format == "jpeg" ? 12 : 0;
    for (size_t i = 0; i < image->rgb.size(); ++i) {
      const auto pixel = static_cast<int64_t>(i / 3);
      EXPECT_NEAR(image->rgb[i], picture(pixel % 5, pixel / 5, i % 3), allowed) << format << ", sample " << i;
    }
  }
}

TEST(Images, a_damaged_file_gives_nothing_or_some_image) {
  size_t nothing = 0;
  for (const auto& [format, text] : files()) {
    const std::string whole = decoded_base64(text);
    for (size_t length = 0; length < whole.size(); ++length) {
      const auto image = decode(whole.substr(0, length));
      nothing += image ? 0U : 1U;
      EXPECT_FALSE(image && length < whole.size() / 2) << format << " cut to " << length << " bytes";
    }
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const int flipped : {1, 128, 255}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ flipped);
        try {
          const auto image = decode(damaged);
          if (image) {
            EXPECT_EQ(image->rgb.size(), static_cast<size_t>(3 * image->width * image->height));
          }
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory) << format << ": " << error.what();
        }
      }
    }
  }
  EXPECT_GT(nothing, 400U);
}

std::vector<int> samples(const std::string& file) {
  const auto image = decode(file);
  return image ? std::vector<int>(image->rgb.begin(), image->rgb.end()) : std::vector<int>{-1};
}

TEST(Images, pnm_of_all_kinds) {
  EXPECT_THAT(samples("P1 # bits\n2 1\n10"), ElementsAre(0, 0, 0, 255, 255, 255));
  EXPECT_THAT(samples("P2\n2 1\n# white is 4\n4\n1 4\n"), ElementsAre(64, 64, 64, 255, 255, 255));
  EXPECT_THAT(samples("P3 1 1 255 1 2 3"), ElementsAre(1, 2, 3));
  EXPECT_THAT(samples("P4 2 1 \x80"), ElementsAre(0, 0, 0, 255, 255, 255));
  EXPECT_THAT(samples("P5 2 1 100\n\x32\x64"), ElementsAre(128, 128, 128, 255, 255, 255));
  EXPECT_THAT(samples("P6 1 1 65535\n\x80\x01\xff\xff\x01\x02"), ElementsAre(128, 255, 1));
}

TEST(Images, broken_pnm_gives_nothing) {
  for (const char* broken : {"P6", "P6 1 1 255\n\x01\x02", "P2 1 1 255 x", "P1 2 1\n12", "P5 0 1 255\n", "P5 1 1 0\n ",
                             "P5 1 1 70000\n   ", "P5 999999999999 1 255\n ", "P3 1000000000 1000000000 255 1", "P7 1 1"}) {
    EXPECT_THAT(samples(broken), ElementsAre(-1)) << broken;
  }
}

std::string number(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value & 255);
  return text;
}

// `extra` are the masks or the palette after the header.
std::string bmp(int32_t width, int32_t height, uint32_t bits, uint32_t compression, const std::string& extra,
                const std::string& data) {
  const auto start = static_cast<uint32_t>(54 + extra.size());
  return cat("BM", number(0, 8), number(start, 4), number(40, 4), number(static_cast<uint32_t>(width), 4),
             number(static_cast<uint32_t>(height), 4), number(1, 2), number(bits, 2), number(compression, 4), number(0, 20),
             extra, data);
}

const std::string three_colors("\x00\x00\x00\x00\x01\x02\x03\x00\x0a\x14\x1e\x00", 12);

TEST(Images, bmp_of_all_depths) {
  EXPECT_THAT(samples(bmp(1, 2, 24, 0, "", {"\x01\x02\x03\x00\x04\x05\x06\x00", 8})), ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_THAT(samples(bmp(1, -2, 24, 0, "", {"\x01\x02\x03\x00\x04\x05\x06\x00", 8})), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(samples(bmp(1, 1, 32, 0, "", "\x01\x02\x03\x7f")), ElementsAre(3, 2, 1));
  EXPECT_THAT(samples(bmp(2, 1, 16, 0, "", number(0x7c00, 2) + number(0x0210, 2))), ElementsAre(255, 0, 0, 0, 132, 132));
  const std::string masks = number(0xf800, 4) + number(0x7e0, 4) + number(0x1f, 4);
  EXPECT_THAT(samples(bmp(2, 1, 16, 3, masks, number(0xf800, 2) + number(0x07e0, 2))), ElementsAre(255, 0, 0, 0, 255, 0));
  EXPECT_THAT(samples(bmp(2, 1, 8, 0, three_colors, {"\x01\x02\x00\x00", 4})), ElementsAre(3, 2, 1, 30, 20, 10));
  EXPECT_THAT(samples(bmp(2, 1, 4, 0, three_colors, {"\x12\x00\x00\x00", 4})), ElementsAre(3, 2, 1, 30, 20, 10));
  EXPECT_THAT(samples(bmp(2, 1, 1, 0, three_colors, {"\x40\x00\x00\x00", 4})), ElementsAre(0, 0, 0, 3, 2, 1));
  EXPECT_THAT(samples(bmp(1, 1, 8, 0, three_colors, {"\x09\x00\x00\x00", 4})), ElementsAre(0, 0, 0));
}

TEST(Images, bmp_of_runs) {
  // Two of color 1, then the end of the row; one of color 2, one as written, the end.
  const std::string runs("\x02\x01\x00\x00\x01\x02\x01\x01\x00\x01", 10);
  EXPECT_THAT(samples(bmp(2, 2, 8, 1, three_colors, runs)), ElementsAre(30, 20, 10, 3, 2, 1, 3, 2, 1, 3, 2, 1));
  const std::string literal("\x00\x03\x12\x10\x00\x01", 6);
  EXPECT_THAT(samples(bmp(3, 1, 4, 2, three_colors, literal)), ElementsAre(3, 2, 1, 30, 20, 10, 3, 2, 1));
  const std::string skip("\x00\x02\x01\x00\x01\x01\x00\x01", 8);
  EXPECT_THAT(samples(bmp(2, 1, 8, 1, three_colors, skip)), ElementsAre(0, 0, 0, 3, 2, 1));
  const std::string too_far("\x00\x02\xff\xff\xff\x01\xff\x01\x00\x01", 10);
  EXPECT_THAT(samples(bmp(1, 1, 8, 1, three_colors, too_far)), ElementsAre(0, 0, 0));
}

TEST(Images, broken_bmp_gives_nothing) {
  EXPECT_THAT(samples("BM"), ElementsAre(-1));
  EXPECT_THAT(samples(bmp(1, 2, 24, 0, "", "\x01\x02\x03")), ElementsAre(-1));
  EXPECT_THAT(samples(bmp(-1, 1, 24, 0, "", "\x01\x02\x03\x04")), ElementsAre(-1));
  EXPECT_THAT(samples(bmp(1, std::numeric_limits<int32_t>::min(), 24, 0, "", "\x01\x02\x03\x04")), ElementsAre(-1));
  EXPECT_THAT(samples(bmp(1, 1, 7, 0, "", "\x01\x02\x03\x04")), ElementsAre(-1));
  EXPECT_THAT(samples(bmp(1, 1, 24, 4, "", "\x01\x02\x03\x04")), ElementsAre(-1));
  EXPECT_THAT(samples(bmp(0, 0, 24, 0, "", "")), ElementsAre(-1));
}

TEST(Images, a_large_picture_is_refused_before_it_is_made) {
  std::string file = decoded_base64(jpeg2000);
  const size_t size = file.find("\xff\x51");
  file.replace(size + 6, 4, "\x7f\xff\xff\xff");
  file.replace(size + 10, 4, "\x7f\xff\xff\xff");
  try {
    EXPECT_FALSE(decode(file));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
  }
}

TEST(ImageDecoder, orders_channels_as_asked) {
  const std::string file = "u8[14]{80,54,32,49,32,49,32,50,53,53,10,10,20,30}";
  EXPECT_THAT(test::whole_result(cat("ImageDecoder ", file)), ElementsAre(10, 20, 30));
  EXPECT_THAT(test::whole_result(cat("ImageDecoder ", file, " pixel_format=BGR")), ElementsAre(30, 20, 10));
  EXPECT_THAT(test::whole_result(cat("ImageDecoder ", file, " pixel_format=Grayscale")), ElementsAre(18));
  EXPECT_EQ(run("ImageDecoder u8[3]{1,2,3} pixel_format=Grayscale")[0].tensor().shape(), (Shape{0, 0, 1}));
}

}  // namespace
}  // namespace unmoor
