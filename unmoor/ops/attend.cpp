#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/base/memory.h"
#include "unmoor/ops/attention.h"
#include "unmoor/ops/onnx_dtype.h"

// What all attention operators do, as loops and as operators.
namespace unmoor {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Softmax in place; the sink, if there is one, takes its share. A row of -infinity gives zeros.
void weigh(std::span<double> row, const double* sink) {
  double top = sink == nullptr ? -infinity : *sink;
  bool has_nan = false;
  for (const double score : row) {
    top = std::max(top, score);
    has_nan = has_nan || std::isnan(score);
  }
  if (top == -infinity && !has_nan) {
    std::ranges::fill(row, 0);
    return;
  }
  double sum = sink == nullptr ? 0 : std::exp(*sink - top);
  for (double& score : row) sum += score = std::exp(score - top);
  for (double& score : row) score /= sum;
}

void round_row(std::span<double> row, DType dtype) {
  if (dtype == DType::F64) return;
  for (double& value : row) value = rounded(dtype, value);
}

// One query's row of scores on its way to weights.
class Row {
 public:
  Row(const AttentionRule& rule, std::optional<AttentionStage> keep, Attended& result)
      : rule_(rule), keep_(keep), result_(result), scores_(size_of(rule.sizes.total)), bias_(scores_.size()) {}

  std::span<const double> weights(const double* query, const double* keys, size_t h,
                                  const std::function<void(std::span<double>)>& add_bias) {
    const auto depth = size_of(rule_.sizes.depth);
    for (size_t j = 0; j < scores_.size(); ++j) {
      scores_[j] = rule_.scale * std::inner_product(query, query + depth, keys + j * depth, 0.0);
    }
    note(AttentionStage::Product);
    if (rule_.softcap != 0) {
      for (double& score : scores_) score = rule_.softcap * std::tanh(score / rule_.softcap);
    }
    note(AttentionStage::Capped);
    std::ranges::fill(bias_, 0);
    if (add_bias) add_bias(bias_);
    for (size_t j = 0; j < scores_.size(); ++j) scores_[j] += bias_[j];
    note(AttentionStage::Biased);
    round_row(scores_, rule_.precision);
    weigh(scores_, rule_.sinks.empty() ? nullptr : &rule_.sinks[h]);
    round_row(scores_, rule_.precision);
    // Decided by the bias, since a score may be NaN.
    if (std::ranges::all_of(bias_, [](double bias) { return bias == -infinity; })) std::ranges::fill(scores_, 0);
    note(AttentionStage::Weights);
    return scores_;
  }

 private:
  static size_t size_of(int64_t dim) { return static_cast<size_t>(dim); }
  void note(AttentionStage stage) {
    if (keep_ == stage) result_.stage.insert(result_.stage.end(), scores_.begin(), scores_.end());
  }

  const AttentionRule& rule_;
  std::optional<AttentionStage> keep_;
  Attended& result_;
  std::vector<double> scores_;
  std::vector<double> bias_;
};

}  // namespace

void require_groups(const OpCall& call, const HeadSizes& sizes) {
  if (sizes.heads == 0 || sizes.shared == 0) fail(ErrorKind::InvalidModel, title(call), ": it has no heads");
  if (sizes.heads > 0 && sizes.shared > 0 && sizes.heads % sizes.shared != 0) {
    fail(ErrorKind::InvalidModel, title(call), ": its ", sizes.heads, " query heads are no multiple of its ", sizes.shared,
         " key heads");
  }
}

void check_doubles(std::initializer_list<size_t> counts) {
  constexpr size_t most = std::numeric_limits<size_t>::max() / sizeof(double);
  size_t sum = 0;
  for (const size_t count : counts) sum += std::min(count, most - sum);
  check_memory(sum * sizeof(double));
}

int64_t joined_length(const OpCall& call, int64_t past, int64_t added) {
  constexpr int64_t most = int64_t{1} << 62;
  if (past > most - std::min(std::max<int64_t>(added, 0), most)) {
    fail(ErrorKind::InvalidModel, title(call), ": ", past, " and ", added, " keys are too many");
  }
  return past < 0 || added < 0 ? Shape::unknown : past + added;
}

double usual_scale(int64_t depth) { return depth > 0 ? 1 / std::sqrt(static_cast<double>(depth)) : 1; }

double attention_flop(const HeadSizes& s) {
  double scores = 1;
  for (const int64_t dim : {s.batch, s.heads, s.length, s.total}) scores *= static_cast<double>(std::max<int64_t>(dim, 0));
  constexpr double softmax = 12;
  return scores * (2.0 * static_cast<double>(std::max<int64_t>(s.depth, 0) + std::max<int64_t>(s.width, 0)) + softmax);
}

Attended attend(const AttentionRule& rule, std::span<const double> q, std::span<const double> k, std::span<const double> v,
                const AddBias& add_bias, std::optional<AttentionStage> keep) {
  const auto size = [](int64_t dim) { return static_cast<size_t>(dim); };
  const HeadSizes& s = rule.sizes;
  const size_t group = size(s.heads / s.shared);
  const size_t total = size(s.total);
  const size_t width = size(s.width);
  const size_t outputs = size(Shape{s.batch, s.heads, s.length, s.width}.elements());
  const size_t scores = keep ? size(Shape{s.batch, s.heads, s.length, s.total}.elements()) : 0;
  Attended result;
  if (outputs == 0 && scores == 0) return result;  // Sizes beside a 0 may be as large as they like.
  check_doubles({outputs, scores, total, total});
  result.y.resize(outputs);
  result.stage.reserve(scores);
  Row row(rule, keep, result);
  double* y = result.y.data();
  for (size_t b = 0; b < size(s.batch); ++b) {
    for (size_t h = 0; h < size(s.heads); ++h) {
      const size_t keys = b * size(s.shared) + h / group;
      for (size_t i = 0; i < size(s.length); ++i, y += width) {
        const double* const query = q.data() + ((b * size(s.heads) + h) * size(s.length) + i) * size(s.depth);
        const auto bias_of_row = [&](std::span<double> bias) {
          if (add_bias) add_bias(b, h, i, bias);
        };
        const auto weights = row.weights(query, k.data() + keys * total * size(s.depth), h, bias_of_row);
        for (size_t j = 0; j < total; ++j) {
          const double* const value = v.data() + (keys * total + j) * width;
          for (size_t c = 0; c < width; ++c) y[c] += weights[j] * value[c];
        }
      }
    }
  }
  return result;
}

namespace {

// scale·q·kᵀ.
ValueId scaled_product(Formula& f, ValueId q, ValueId k, double scale) {
  auto alpha = static_cast<float>(scale);
  if (f.dtype() == DType::F64 && static_cast<double>(alpha) != scale) {
    q = f.product(q, f.number(scale));
    alpha = 1;
  }
  return f.add("unmoor:FusedMatMul", {q, k}, {{"transB", int64_t{1}}, {"alpha", alpha}});
}

// Softmax along the last axis, with one more logit that is dropped again.
ValueId softmax_with_sinks(Formula& f, ValueId scores, ValueId sinks, const HeadSizes& s) {
  const ValueId column = f.add("Expand", {sinks, f.ints({s.batch, s.heads, s.length, 1})});
  const ValueId all = f.add("Concat", {scores, column}, {{"axis", int64_t{-1}}});
  return f.add("Slice", {f.add("Softmax", {all}), f.ints({0}), f.ints({s.total}), f.ints({-1})});
}

ValueId weights_of(Formula& f, ValueId scores, ValueId sinks, const AttentionRule& rule) {
  const bool rounds = bits_of(rule.precision) < bits_of(f.dtype());
  if (rounds) scores = f.add("Cast", {scores}, {{"to", onnx_number(rule.precision)}});
  const ValueId weights = sinks == no_value ? f.add("Softmax", {scores}) : softmax_with_sinks(f, scores, sinks, rule.sizes);
  return f.wide(weights);
}

}  // namespace

ValueId add_scores(Formula& f, const AttentionRule& rule, ValueId q, ValueId k) {
  const HeadSizes& s = rule.sizes;
  const int64_t group = s.heads / s.shared;
  // The queries that share a key head are rows of one product.
  if (group != 1) q = sized(f, q, {s.batch, s.shared, times(group, s.length), s.depth});
  const ValueId scores = scaled_product(f, q, k, rule.scale);
  return group == 1 ? scores : sized(f, scores, {s.batch, s.heads, s.length, s.total});
}

AttendedValues add_attention(Formula& f, const AttentionRule& rule, const AttentionValues& values,
                             std::optional<AttentionStage> keep) {
  const HeadSizes& s = rule.sizes;
  const int64_t group = s.heads / s.shared;
  ValueId score = add_scores(f, rule, values.q, values.k);
  AttendedValues result;
  const auto note = [&](AttentionStage stage, ValueId value) {
    if (keep == stage) result.stage = value;
  };
  note(AttentionStage::Product, score);
  if (rule.softcap != 0) {
    score = f.product(f.add("Tanh", {f.quotient(score, f.number(rule.softcap))}), f.number(rule.softcap));
  }
  note(AttentionStage::Capped, score);
  if (values.bias != no_value) score = f.sum(score, values.bias);
  note(AttentionStage::Biased, score);
  ValueId weights = weights_of(f, score, values.sinks, rule);
  if (values.bias != no_value && values.may_shut_out && s.total > 0) {
    const ValueId shut = f.add("Equal", {f.reduce("ReduceMax", values.bias, {-1}), f.number(-infinity)});
    weights = f.add("Where", {shut, f.number(0), weights});
  }
  note(AttentionStage::Weights, weights);
  if (group != 1) weights = sized(f, weights, {s.batch, s.shared, times(group, s.length), s.total});
  result.y = f.add("MatMul", {weights, values.v});
  if (group != 1) result.y = sized(f, result.y, {s.batch, s.heads, s.length, s.width});
  return result;
}

namespace {

// [a, b, c, d] as [a, c, b, d].
std::vector<double> swapped_middle(std::span<const double> x, size_t a, size_t b, size_t c, size_t d) {
  std::vector<double> y(x.size());
  if (y.empty()) return y;
  auto from = x.begin();
  for (size_t i = 0; i < a; ++i) {
    for (size_t j = 0; j < b; ++j) {
      for (size_t k = 0; k < c; ++k, from += static_cast<std::ptrdiff_t>(d)) {
        std::copy_n(from, d, y.begin() + static_cast<std::ptrdiff_t>(((i * c + k) * b + j) * d));
      }
    }
  }
  return y;
}

}  // namespace

std::vector<double> split_heads(std::span<const double> x, size_t batch, size_t length, size_t heads, size_t width) {
  return swapped_middle(x, batch, length, heads, width);
}

std::vector<double> join_heads(std::span<const double> x, size_t batch, size_t heads, size_t length, size_t width) {
  return swapped_middle(x, batch, heads, length, width);
}

ValueId split_heads(Formula& f, ValueId x, int64_t batch, int64_t length, int64_t heads, int64_t width) {
  return f.add("Transpose", {sized(f, x, {batch, length, heads, width})}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
}

ValueId join_heads(Formula& f, ValueId x, int64_t batch, int64_t heads, int64_t length, int64_t width) {
  const ValueId rows = f.add("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  return sized(f, rows, {batch, length, times(heads, width)});
}

ValueId sized(Formula& f, ValueId x, std::vector<int64_t> shape) {
  const bool has_zero = std::ranges::count(shape, 0) > 0;
  Attributes attributes;
  if (has_zero) attributes = {{"allowzero", int64_t{1}}};
  return f.add("Reshape", {x, f.ints(std::move(shape))}, std::move(attributes));
}

ValueId shut_out_unless(Formula& f, ValueId condition) { return f.add("Where", {condition, f.number(0), f.number(-infinity)}); }

ValueId places(GraphBuilder& builder, int64_t first, int64_t count, bool as_column) {
  Tensor tensor(TensorType{DType::I64, as_column ? Shape{count, 1} : Shape{count}});
  const auto values = tensor.writable_span<int64_t>();
  std::iota(values.begin(), values.end(), first);
  return builder.constant(std::move(tensor));
}

void append_dim(Shape& shape, int64_t dim, const Shape& from, size_t axis) {
  if (dim < 0 && from.has_rank() && axis < from.rank()) {
    shape.push_back(from, axis);
  } else {
    shape.push_back(dim);
  }
}

}  // namespace unmoor
