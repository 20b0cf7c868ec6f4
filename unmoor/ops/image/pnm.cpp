#include <algorithm>
#include <cctype>

#include "unmoor/ops/image/image.h"

namespace unmoor {
namespace {

// Reads the numbers of a portable image (netpbm's PBM, PGM and PPM) one after the other.
class Reader {
 public:
  explicit Reader(Bytes file) : file_(file) {}

  // The next number in decimal digits, after white space and comments. Empty at the end or at what is no number.
  std::optional<int64_t> number() {
    skip_blanks();
    int64_t value = 0;
    const size_t first = at_;
    for (; at_ < file_.size() && is_digit(); ++at_) {
      value = value * 10 + (byte_at(file_, at_) - '0');
      if (value > 1000000000) return std::nullopt;
    }
    return at_ == first ? std::nullopt : std::optional(value);
  }
  // A single digit 0 or 1, which need no space between them.
  std::optional<int64_t> bit() {
    skip_blanks();
    const int digit = at_ < file_.size() ? byte_at(file_, at_++) - '0' : -1;
    return digit == 0 || digit == 1 ? std::optional<int64_t>(digit) : std::nullopt;
  }
  // What follows the one blank after the header.
  Bytes rest() const { return file_.subspan(std::min(at_ + 1, file_.size())); }

 private:
  bool is_digit() const { return byte_at(file_, at_) >= '0' && byte_at(file_, at_) <= '9'; }
  void skip_blanks() {
    for (bool comment = false; at_ < file_.size(); ++at_) {
      const uint8_t c = byte_at(file_, at_);
      if (c == '#') comment = true;
      if (!comment && std::isspace(c) == 0) return;
      if (c == '\n' || c == '\r') comment = false;
    }
  }

  Bytes file_;
  size_t at_ = 2;  // After "P1" to "P6".
};

struct Layout {
  bool plain = false;   // Decimal numbers, not bytes.
  bool bits = false;    // Black is 1.
  size_t channels = 1;  // 1 or 3.
  int64_t most = 1;     // The number that stands for white.
};

// Sample `i` of the rows that follow the header, each padded to whole bytes.
int64_t packed_sample(Bytes rows, const Layout& layout, size_t row_samples, size_t i) {
  if (layout.bits) {
    const size_t column = i % row_samples;
    return (byte_at(rows, i / row_samples * ((row_samples + 7) / 8) + column / 8) >> (7 - column % 8)) & 1;
  }
  return layout.most < 256 ? byte_at(rows, i) : byte_at(rows, 2 * i) * 256 + byte_at(rows, 2 * i + 1);
}

size_t packed_bytes(const Layout& layout, size_t rows, size_t row_samples) {
  if (layout.bits) return rows * ((row_samples + 7) / 8);
  return rows * row_samples * (layout.most < 256 ? 1 : 2);
}

}  // namespace

std::optional<Image> decode_pnm(Bytes file) {
  const int kind = byte_at(file, 1) - '0';
  Layout layout{kind <= 3, kind == 1 || kind == 4, kind == 3 || kind == 6 ? size_t{3} : size_t{1}};
  Reader reader(file);
  const auto width = reader.number();
  const auto height = reader.number();
  const auto most = layout.bits ? std::optional<int64_t>(1) : reader.number();
  if (!width || !height || !most || *most < 1 || *most > 65535) return std::nullopt;
  layout.most = *most;
  const size_t row_samples = static_cast<size_t>(*width) * layout.channels;
  const size_t count = static_cast<size_t>(*height) * row_samples;
  const Bytes rows = reader.rest();
  if (rows.size() < (layout.plain ? count : packed_bytes(layout, static_cast<size_t>(*height), row_samples))) return std::nullopt;
  auto image = new_image(*height, *width);
  for (size_t i = 0; image && i < count; ++i) {
    auto sample = !layout.plain ? packed_sample(rows, layout, row_samples, i) : layout.bits ? reader.bit() : reader.number();
    if (!sample) return std::nullopt;
    if (layout.bits) *sample = 1 - *sample;
    const uint8_t value = to_8_bits(static_cast<uint64_t>(*sample), static_cast<uint64_t>(layout.most));
    if (layout.channels == 3) image->rgb[i] = value;
    for (size_t c = 0; layout.channels == 1 && c < 3; ++c) image->rgb[3 * i + c] = value;
  }
  return image;
}

}  // namespace unmoor
