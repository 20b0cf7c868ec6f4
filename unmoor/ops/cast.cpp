#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/builder.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor {
namespace {

bool is_complex(DType dtype) { return dtype == DType::C64 || dtype == DType::C128; }

std::vector<DType> real_types() {
  std::vector<DType> types = every_type();
  std::erase_if(types, is_complex);
  return types;
}

DType target_of(const OpCall& call) {
  const auto dtype = dtype_attribute(call, "to");
  if (!dtype) fail(ErrorKind::InvalidModel, title(call), ": attribute 'to' is missing");
  return *dtype;
}

void check_round_mode(const OpCall& call) {
  const std::string mode = call.text("round_mode", "up");
  if (mode != "up" && mode != "down" && mode != "nearest")
    fail(ErrorKind::InvalidModel, title(call), ": round_mode is '", mode, "', not up, down or nearest");
}

std::vector<Type> infer_cast(const OpCall& call) {
  check_round_mode(call);
  const DType to = target_of(call);
  if (is_complex(to)) fail(ErrorKind::InvalidModel, title(call), ": nothing can be cast to ", to);
  return {TensorType{to, call.input(0).shape}};
}

std::vector<Type> infer_cast_like(const OpCall& call) {
  check_round_mode(call);
  return {TensorType{call.input(1).dtype, call.input(0).shape}};
}

// An integer as a double that rounds to any narrower float as the integer itself would: beyond 2^53 the last bit says whether
// any bit was lost.
double odd_double(uint64_t magnitude, bool negative) {
  int shift = 0;
  uint64_t lost = 0;
  while (magnitude >> 53 != 0) {
    lost |= magnitude & 1U;
    magnitude >>= 1;
    ++shift;
  }
  const double value = std::ldexp(static_cast<double>(magnitude | lost), shift);
  return negative ? -value : value;
}

std::vector<double> values_to_round(const Tensor& from, DType to) {
  if (is_float(from.dtype()) || to == DType::F64) return doubles(from);
  const bool has_sign = from.dtype() != DType::U64;
  std::vector<double> values;
  for (const int64_t value : integers(from)) {
    const bool negative = has_sign && value < 0;
    values.push_back(odd_double(negative ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value), negative));
  }
  return values;
}

// The power of two beside `value` that the attribute round_mode names. 254 is the largest, 255 is NaN.
uint8_t to_e8m0(const OpCall& call, double value) {
  const std::string mode = call.text("round_mode", "up");
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return 255;
  const uint8_t above = call.integer("saturate", 1) != 0 ? 254 : 255;
  if (std::isinf(magnitude)) return above;
  const uint8_t below = above == 254 ? 0 : 255;
  if (magnitude == 0) return below;
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // In [0.5, 1).
  int power = exponent - 1;
  if (mode == "up" && fraction > 0.5) ++power;
  if (mode == "nearest" && fraction >= 0.75) ++power;
  if (power > 127) return above;
  return power < -127 ? below : static_cast<uint8_t>(power + 127);
}

void store_small_floats(const OpCall& call, Tensor& to, std::span<const double> values) {
  const bool saturate = call.integer("saturate", 1) != 0;
  const auto bytes = to.writable_span<uint8_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    bytes[i] = to.dtype() == DType::F8E8M0 ? to_e8m0(call, values[i]) : to_f8(to.dtype(), values[i], saturate);
  }
}

// The four-bit float has no NaN; ONNX's tests want minus zero for it.
void store_four_bits(Tensor& to, std::vector<double> values) {
  for (double& value : values) value = std::isnan(value) ? -0.0 : value;
  store(to, std::span<const double>(values));
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

[[noreturn]] void no_number(const OpCall& call, const std::string& text, DType to) {
  fail(ErrorKind::InvalidArgument, title(call), ": the text '", text, "' is no ", to);
}

// Without a plus sign, which std::from_chars does not know. "+-5" stays as it is and is no number.
std::string unsigned_text(const std::string& text) {
  return text.starts_with('+') && !text.starts_with("+-") ? text.substr(1) : text;
}

double parsed_double(const OpCall& call, const std::string& text, DType to) {
  const std::string plain = lower(unsigned_text(text));
  if (plain == "true") return 1;
  if (plain == "false") return 0;
  double value = 0;
  const char* const end = plain.data() + plain.size();
  const auto result = std::from_chars(plain.data(), end, value);
  if (result.ec == std::errc::result_out_of_range) return std::strtod(plain.c_str(), nullptr);
  if (plain.empty() || result.ec != std::errc() || result.ptr != end) no_number(call, text, to);
  return value;
}

int64_t parsed_integer(const OpCall& call, const std::string& text, DType to) {
  const std::string plain = unsigned_text(text);
  const char* const end = plain.data() + plain.size();
  const auto whole = [&](auto value) -> std::optional<int64_t> {
    const auto result = std::from_chars(plain.data(), end, value);
    if (plain.empty() || result.ec != std::errc() || result.ptr != end) return std::nullopt;
    return static_cast<int64_t>(value);
  };
  if (const auto value = to == DType::U64 ? whole(uint64_t{}) : whole(int64_t{})) return *value;
  const double value = parsed_double(call, text, to);
  if (!(std::fabs(value) < 0x1p63)) no_number(call, text, to);
  return static_cast<int64_t>(value);
}

void cast_from_strings(const OpCall& call, const Tensor& from, Tensor& to) {
  if (to.dtype() == DType::String) return copy_all(from, to);
  if (is_integer(to.dtype())) {
    std::vector<int64_t> values;
    for (const auto& text : from.strings()) values.push_back(parsed_integer(call, text, to.dtype()));
    return store(to, std::span<const int64_t>(values));
  }
  std::vector<double> values;
  for (const auto& text : from.strings()) values.push_back(parsed_double(call, text, to.dtype()));
  if (is_float(to.dtype()) && bits_of(to.dtype()) == 8) return store_small_floats(call, to, values);
  store(to, std::span<const double>(values));
}

// The shortest digits that read back as the same number of its dtype; "NaN", "INF" and "-INF" as ONNX writes them.
std::string float_text(DType dtype, double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
  std::array<char, 64> digits{};
  char* const end = digits.data() + digits.size();
  if (dtype == DType::F64) return {digits.data(), std::to_chars(digits.data(), end, value).ptr};
  for (int precision = 1; dtype != DType::F32 && precision < 9; ++precision) {
    const char* const last = std::to_chars(digits.data(), end, value, std::chars_format::general, precision).ptr;
    double read = 0;
    std::from_chars(digits.data(), last, read);
    if (rounded(dtype, read) == value) return {digits.data(), std::to_chars(digits.data(), end, read).ptr};
  }
  return {digits.data(), std::to_chars(digits.data(), end, static_cast<float>(value)).ptr};
}

void cast_to_strings(const Tensor& from, Tensor& to) {
  auto& texts = to.writable_strings();
  if (is_float(from.dtype())) {
    const auto values = doubles(from);
    for (size_t i = 0; i < values.size(); ++i) texts[i] = float_text(from.dtype(), values[i]);
    return;
  }
  const auto values = integers(from);
  for (size_t i = 0; i < values.size(); ++i) {
    texts[i] = from.dtype() == DType::U64 ? std::to_string(static_cast<uint64_t>(values[i])) : std::to_string(values[i]);
  }
}

void convert(const OpCall& call, const Tensor& from, Tensor& to) {
  if (from.dtype() == to.dtype()) return copy_all(from, to);
  if (from.dtype() == DType::String) return cast_from_strings(call, from, to);
  if (to.dtype() == DType::String) return cast_to_strings(from, to);
  if (is_float(to.dtype())) {
    auto values = values_to_round(from, to.dtype());
    if (bits_of(to.dtype()) == 8) return store_small_floats(call, to, values);
    if (to.dtype() == DType::F4E2M1) return store_four_bits(to, std::move(values));
    return store(to, std::span<const double>(values));
  }
  if (is_float(from.dtype())) {
    const auto values = doubles(from);
    return store(to, std::span<const double>(values));
  }
  const auto values = integers(from);
  store(to, std::span<const int64_t>(values));
}

void run_cast(const OpCall& call, std::span<const Data> in, Outputs& out) {
  convert(call, in[0].tensor(), out.allocate(0, {target_of(call), in[0].tensor().shape()}));
}

void run_cast_like(const OpCall& call, std::span<const Data> in, Outputs& out) {
  convert(call, in[0].tensor(), out.allocate(0, {in[1].tensor().dtype(), in[0].tensor().shape()}));
}

void expand_cast_like(GraphBuilder& b) {
  Attributes attributes = b.call().node.attributes;
  attributes["to"] = onnx_number(b.call().input(1).dtype);
  b.output(0, b.add("Cast", {b.input(0)}, std::move(attributes)));
}

std::vector<Type> infer_bit_cast(const OpCall& call) {
  const DType from = call.input(0).dtype;
  const DType to = target_of(call);
  if (bits_of(from) != bits_of(to) || from == DType::String) {
    fail(ErrorKind::InvalidModel, title(call), ": ", from, " and ", to, " do not have the same number of bits");
  }
  return {TensorType{to, call.input(0).shape}};
}

void run_bit_cast(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Tensor& to = allocate_inferred(call, in, out, infer_bit_cast);
  std::ranges::copy(in[0].tensor().bytes(), to.writable_bytes().begin());
}

Op cast() {
  Op op;
  op.name = "Cast";
  op.summary = "Converts each element to another type. Floats become integers by truncation.";
  op.inputs = {required("input", real_types())};
  op.outputs = {required("output", real_types())};
  op.attributes = {{"saturate", int64_t{1}}, {"round_mode", std::string("up")}};
  op.infer = infer_cast;
  op.reference = run_cast;
  op.cases = {
      "T[3,4]~small to=f32,f16,bf16,f64,i8,i32,i64,bool",
      "T[] to=f32",
      "T[0,4] to=f16,i64,bool",
      "f32[60] to=f16,bf16,f64,i32,i64,bool",
      "f32[60] to=f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz saturate=0,1",
      "f32[40]~special to=f16,bf16,f64,bool,f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz",
      "f32[9]~positive to=u8,u16,u32,u64,u4,i4,f4e2m1",
      "f32[6]{0.75,1,3,5,100,0} to=f8e8m0 round_mode=up,down,nearest saturate=0,1",
      "f32[3]{nan,inf,2.5} to=f4e2m1",
      "f8e4m3fn[20] to=f32,f16",
      "f8e5m2fnuz[20] to=f32",
      "f4e2m1[7] to=f32",
      "i4[7] to=i8,f32",
      "u4[7] to=u8,f16",
      "i64[20] to=i32,i16,i8,u8,bool,f32,f16,string",
      "u64[20] to=f64,i32",
      "i32[20] to=i64,f32,f16,bf16",
      "bool[5] to=f32,i64,u8",
      "u8[20] to=f32,i8,i64,bool",
      "f32[4]{1.5,-2,inf,nan} to=string",
      "f64[2]{0.1,1e300} to=string",
      "f16[4]{0.1,65504,-6e-8,2} to=string",
      "bf16[2]{0.1,1e38} to=string",
      "string[5]{1,-2.5,1e3,INF,NaN} to=f32,f64,f16",
      "string[3]{7,-3,+12} to=i64,i32",
      "string[2]{a,b} to=string",
  };
  return op;
}

Op cast_like() {
  Op op;
  op.name = "CastLike";
  op.summary = "Converts each element to the type of another tensor.";
  op.inputs = {required("input", real_types()), required("target_type", real_types())};
  op.outputs = {required("output", real_types())};
  op.attributes = {{"saturate", int64_t{1}}, {"round_mode", std::string("up")}};
  op.infer = infer_cast_like;
  op.reference = run_cast_like;
  op.expand = expand_cast_like;
  op.cases = {"T[3,4]~small f32[1]", "T[3,4]~small f16[2]", "T[3]~small i64[]", "f32[30] f8e4m3fn[1] saturate=0,1",
              "T[0] bool[1]"};
  return op;
}

Op bit_cast() {
  Op op;
  op.name = "BitCast";
  op.summary = "Reads the same bits as another type of equal width.";
  std::vector<DType> types = every_type();
  std::erase(types, DType::String);
  op.inputs = {required("input", types)};
  op.outputs = {required("output", types)};
  op.infer = infer_bit_cast;
  op.reference = run_bit_cast;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Layout;
  op.cases = {"f32[3,4] to=i32,u32", "i32[3,4] to=f32", "f16[5] to=i16,bf16,u16", "i64[2] to=f64", "f64[0] to=i64",
              "u8[] to=i8",          "i4[3] to=u4"};
  return op;
}

}  // namespace

void add_cast_ops(OpSet& ops) {
  ops.add(cast());
  ops.add(cast_like());
  ops.add(bit_cast());
}

}  // namespace unmoor
