#include "unmoor/ops/random.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor {
namespace {

using Words = std::array<uint32_t, 4>;

Words philox(uint64_t counter, uint64_t key) {
  Words words{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  auto key_low = static_cast<uint32_t>(key);
  auto key_high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53U} * words[0];
    const uint64_t b = uint64_t{0xcd9e8d57U} * words[2];
    words = {static_cast<uint32_t>(b >> 32) ^ words[1] ^ key_low, static_cast<uint32_t>(b),
             static_cast<uint32_t>(a >> 32) ^ words[3] ^ key_high, static_cast<uint32_t>(a)};
    key_low += 0x9e3779b9U;
    key_high += 0xbb67ae85U;
  }
  return words;
}

double unit_of(uint32_t high, uint32_t low) { return static_cast<double>(((uint64_t{high} << 32) | low) >> 11) * 0x1p-53; }

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

DType dtype_of(const OpCall& call, DType otherwise) { return dtype_attribute(call, "dtype").value_or(otherwise); }

std::vector<Type> infer_shaped(const OpCall& call) {
  Shape shape(call.integers("shape"));
  if (!shape.is_known()) fail(ErrorKind::InvalidModel, title(call), ": its shape ", shape, " has a negative dimension");
  return {TensorType{dtype_of(call, DType::F32), std::move(shape)}};
}

std::vector<Type> infer_like(const OpCall& call) {
  return {TensorType{dtype_of(call, call.input(0).dtype), call.input(0).shape}};
}

std::vector<Type> infer_multinomial(const OpCall& call) {
  require_rank(call, 0, 2);
  Shape shape = unknown_shape(1);
  if (call.input(0).shape.has_rank()) {
    shape = Shape();
    shape.push_back(call.input(0).shape, 0);
  }
  const int64_t samples = call.integer("sample_size", 1);
  if (samples < 0) fail(ErrorKind::InvalidModel, title(call), ": sample_size is ", samples);
  shape.push_back(samples);
  return {TensorType{dtype_of(call, DType::I32), std::move(shape)}};
}

template <Infer infer>
void run_uniform(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Tensor& result = allocate_inferred(call, in, out, infer);
  const double low = call.real("low", 0);
  const double high = call.real("high", 1);
  const CounterRandom random(call);
  std::vector<double> values(result.elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = low + random.unit(i) * (high - low);
  store(result, std::span<const double>(values));
}

template <Infer infer>
void run_normal(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Tensor& result = allocate_inferred(call, in, out, infer);
  const double mean = call.real("mean", 0);
  const double scale = call.real("scale", 1);
  const CounterRandom random(call);
  std::vector<double> values(result.elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = mean + random.normal(i) * scale;
  store(result, std::span<const double>(values));
}

void run_bernoulli(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const auto probabilities = doubles(in[0].tensor());
  const CounterRandom random(call);
  std::vector<double> values(probabilities.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = random.unit(i) < probabilities[i] ? 1 : 0;
  store(allocate_inferred(call, in, out, infer_like), std::span<const double>(values));
}

// Draws by the inverse of the cumulated probabilities, which are the exponentials of the input.
void run_multinomial(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const auto logits = doubles(in[0].tensor());
  Tensor& result = allocate_inferred(call, in, out, infer_multinomial);
  const auto rows = static_cast<size_t>(result.shape()[0]);
  const auto samples = static_cast<size_t>(result.shape()[1]);
  const auto classes = static_cast<size_t>(in[0].tensor().shape()[1]);
  if (classes == 0 && rows * samples > 0) fail(ErrorKind::InvalidArgument, title(call), ": there are no classes to draw from");
  const CounterRandom random(call);
  std::vector<int64_t> drawn(rows * samples);
  for (size_t row = 0; row < rows && samples > 0; ++row) {
    double largest = -std::numeric_limits<double>::infinity();
    for (size_t c = 0; c < classes; ++c) largest = std::max(largest, logits[row * classes + c]);
    std::vector<double> cumulated(classes);
    double sum = 0;
    for (size_t c = 0; c < classes; ++c) cumulated[c] = sum += std::exp(logits[row * classes + c] - largest);
    for (size_t s = 0; s < samples; ++s) {
      const double at = random.unit(row * samples + s) * sum;
      size_t chosen = 0;
      while (chosen + 1 < classes && cumulated[chosen] <= at) ++chosen;
      drawn[row * samples + s] = static_cast<int64_t>(chosen);
    }
  }
  store(result, std::span<const int64_t>(drawn));
}

Op random_op(std::string name, std::string summary) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.outputs = {required("output", float_types())};
  op.rounding = Rounding::Function;
  op.category = Category::Sampling;
  return op;
}

Op uniform(bool like) {
  Op op = random_op(like ? "RandomUniformLike" : "RandomUniform", "Uniform random numbers between `low` and `high`.");
  op.attributes = {{"low", 0.0F}, {"high", 1.0F}};
  if (like) op.inputs = {required("input", plain_types())};
  op.infer = like ? infer_like : infer_shaped;
  op.reference = like ? run_uniform<infer_like> : run_uniform<infer_shaped>;
  op.cases = like ? std::vector<std::string>{"T[3,4] seed=1.5 dtype=f32,f16", "T[0,4] dtype=f32"}
                  : std::vector<std::string>{"shape=[3,4],[0,4],[7] seed=2.0 low=-1 high=3", "shape=[3] dtype=f16,f64"};
  return op;
}

Op normal(bool like) {
  Op op =
      random_op(like ? "RandomNormalLike" : "RandomNormal", "Normal random numbers of a mean and a standard deviation `scale`.");
  op.attributes = {{"mean", 0.0F}, {"scale", 1.0F}};
  if (like) op.inputs = {required("input", plain_types())};
  op.infer = like ? infer_like : infer_shaped;
  op.reference = like ? run_normal<infer_like> : run_normal<infer_shaped>;
  op.cases = like ? std::vector<std::string>{"T[3,4] seed=1.5 dtype=f32,f16", "T[0,4] dtype=f32"}
                  : std::vector<std::string>{"shape=[3,4],[0,4],[7] seed=2.0 mean=-1 scale=3", "shape=[3] dtype=f16,f64"};
  return op;
}

Op bernoulli() {
  Op op = random_op("Bernoulli", "1 with the probability that the input gives, else 0.");
  op.inputs = {required("input", float_types())};
  op.outputs = {required("output", plain_types())};
  op.infer = infer_like;
  op.reference = run_bernoulli;
  op.cases = {"T[3,4]~unit seed=1.0", "T[5]~unit dtype=bool,i64,f32", "T[0,4]"};
  return op;
}

Op multinomial() {
  Op op = random_op("Multinomial", "Draws classes with the probabilities that unnormalised logarithms give.");
  op.inputs = {required("input", float_types())};
  op.outputs = {required("output", index_types())};
  op.attributes = {{"sample_size", int64_t{1}}};
  op.infer = infer_multinomial;
  op.reference = run_multinomial;
  op.cases = {"T[2,5]~small sample_size=1,7 seed=3.0 dtype=i32,i64", "T[0,5] sample_size=2"};
  return op;
}

}  // namespace

CounterRandom::CounterRandom(const OpCall& call)
    : key_(call.has_attribute("seed") ? std::bit_cast<uint32_t>(static_cast<float>(call.real("seed", 0)))
                                      : hash_of(call.node.name)) {}

double CounterRandom::unit(size_t i) const {
  const Words words = philox(i, key_);
  return unit_of(words[0], words[1]);
}

// Box and Muller.
double CounterRandom::normal(size_t i) const {
  const Words words = philox(i, key_);
  const double radius = std::sqrt(-2 * std::log(1 - unit_of(words[0], words[1])));
  return radius * std::cos(2 * std::numbers::pi * unit_of(words[2], words[3]));
}

void add_random_ops(OpSet& ops) {
  ops.add(uniform(false));
  ops.add(uniform(true));
  ops.add(normal(false));
  ops.add(normal(true));
  ops.add(bernoulli());
  ops.add(multinomial());
}

}  // namespace unmoor
