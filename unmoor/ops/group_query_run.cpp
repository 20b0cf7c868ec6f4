#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/group_query.h"
#include "unmoor/ops/moving.h"

// GroupQueryAttention as loops, batch by batch.
namespace unmoor::group_query {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

size_t size(int64_t dim) { return static_cast<size_t>(dim); }

// Keys and queries of one batch. Places count from the sequence's start.
struct Lengths {
  int64_t keys = 0;     // In the cache after this call.
  int64_t queries = 0;  // That are no padding: the first ones.
  int64_t added = 0;    // Keys that are no padding.
  int64_t first_query() const { return keys - queries; }
  int64_t before() const { return keys - added; }
};

std::vector<Lengths> read_lengths(const OpCall& call, std::span<const Data> in, const Call& read) {
  const std::vector<int64_t> last = integers_at(in, LastKeys);
  const std::vector<int64_t> given = integers_at(in, QueryLengths);
  std::vector<Lengths> result;
  for (size_t b = 0; b < size(read.sizes.batch); ++b) {
    Lengths lengths{.keys = last[b] + 1};
    lengths.queries = given.empty() ? std::min(read.sizes.length, lengths.keys) : given[b];
    lengths.added = read.added == 0 ? 0 : lengths.queries;
    const bool fits = lengths.keys >= 1 && lengths.queries >= 0 && lengths.queries <= std::min(read.sizes.length, lengths.keys) &&
                      lengths.keys <= read.total &&
                      (read.slides || (lengths.before() <= read.past && lengths.keys <= read.capacity));
    if (!fits) {
      fail(ErrorKind::InvalidArgument, title(call), ": batch ", b, " has ", lengths.keys, " keys and ", lengths.queries,
           " queries, where ", read.total, " keys in all, ", read.sizes.length, " queries and ", read.past,
           " past keys are given");
    }
    result.push_back(lengths);
  }
  return result;
}

// How many of the newest of `keys` keys a sliding cache holds: ONNX Runtime's documented rule, evicting several at once.
int64_t resident(int64_t keys, const Call& read) {
  if (!read.slides || keys <= read.capacity) return keys;
  const int64_t step = read.capacity - read.window + 1;
  const int64_t over = keys - read.capacity;
  return keys - step * ((over + step - 1) / step);
}

// The numbers of a cache: what lies in it times its scale.
class Cache {
 public:
  Cache(std::span<const Data> in, const Call& read, bool values)
      : read_(read), held_(doubles_at(in, values ? PastValue : PastKey)) {
    const Tensor* scale = tensor_at(in, values ? ValueScale : KeyScale);
    const HeadSizes& s = read.sizes;
    if (read.code != Code::Plain) {
      scales_ = doubles(*scale);
      steps_ = broadcast_strides(scale->shape(), Shape{s.batch, s.shared, 1, s.depth});
    }
  }

  // Row `row` of the past cache.
  std::vector<double> past(size_t b, size_t head, size_t row) const {
    const auto depth = size(read_.sizes.depth);
    const bool half = read_.code == Code::HalfBytes;
    const size_t first = ((b * size(read_.sizes.shared) + head) * size(read_.past) + row) * (half ? depth / 2 : depth);
    std::vector<double> result(depth);
    for (size_t c = 0; c < depth; ++c) {
      double value = held_[half ? first + c / 2 : first + c];
      if (half) value = std::floor(std::fmod(value / (c % 2 == 0 ? 1 : 16), 16)) - 8;
      result[c] = value * scale(b, head, c);
    }
    return result;
  }

  // A row as it comes out again once it is in the cache.
  void code(size_t b, size_t head, std::span<double> row) const {
    for (size_t c = 0; c < row.size(); ++c) row[c] = coded(row[c] / scale(b, head, c)) * scale(b, head, c);
  }

  void write(Tensor& present, size_t b, size_t head, size_t row, std::span<const double> values) const {
    const bool half = read_.code == Code::HalfBytes;
    const size_t length = half ? values.size() / 2 : values.size();
    std::vector<double> stored(length);
    for (size_t c = 0; c < values.size(); ++c) {
      const double value = coded(values[c] / scale(b, head, c));
      if (half) {
        stored[c / 2] += (value + 8) * (c % 2 == 0 ? 1 : 16);
      } else {
        stored[c] = value;
      }
    }
    const size_t bytes = bytes_of(present.dtype(), length);
    const size_t first = ((b * size(read_.sizes.shared) + head) * size(read_.capacity) + row) * bytes;
    Tensor place = Tensor::writable_view({present.dtype(), Shape{static_cast<int64_t>(length)}},
                                         present.writable_bytes().subspan(first, bytes), nullptr);
    store(place, std::span<const double>(stored));
  }

 private:
  double scale(size_t b, size_t head, size_t c) const {
    if (scales_.empty()) return 1;
    return scales_[b * size(steps_[0]) + head * size(steps_[1]) + c * size(steps_[3])];
  }
  double coded(double value) const {
    switch (read_.code) {
      case Code::Plain:
        return value;
      case Code::Float8:
        return static_cast<double>(from_f8(DType::F8E4M3FN, to_f8(DType::F8E4M3FN, value, true)));
      case Code::Bytes:
        return std::clamp(std::nearbyint(value), -128.0, 127.0);
      case Code::HalfBytes:
        return std::clamp(std::nearbyint(value), -8.0, 7.0);
    }
    return value;
  }

  const Call& read_;
  std::vector<double> held_;
  std::vector<double> scales_;
  std::vector<int64_t> steps_;
};

// Queries, keys and values of this call, [batch, heads, length, depth], normalized and rotated.
struct Heads {
  std::vector<double> q, k, v;
};

Heads read_heads(std::span<const Data> in, const Call& read) {
  const HeadSizes& s = read.sizes;
  const auto split = [&](std::span<const double> x, int64_t length, int64_t heads) {
    return split_heads(x, size(s.batch), size(length), size(heads), size(s.depth));
  };
  if (!read.packed) {
    return {split(doubles(in[Query].tensor()), s.length, s.heads), split(doubles(in[Key].tensor()), read.added, s.shared),
            split(doubles(in[Value].tensor()), read.added, s.shared)};
  }
  const std::vector<double> all = split(doubles(in[Query].tensor()), s.length, s.heads + 2 * s.shared);
  const size_t head = size(s.length) * size(s.depth);
  Heads result;
  for (size_t b = 0; b < size(s.batch); ++b) {
    auto from = all.begin() + static_cast<std::ptrdiff_t>(b * size(s.heads + 2 * s.shared) * head);
    const auto take = [&](std::vector<double>& to, int64_t heads) {
      const auto end = from + static_cast<std::ptrdiff_t>(size(heads) * head);
      to.insert(to.end(), from, end);
      from = end;
    };
    take(result.q, s.heads);
    take(result.k, s.shared);
    take(result.v, s.shared);
  }
  return result;
}

// Each head divided by the root of its mean square and scaled.
void normalize(std::vector<double>& x, std::span<const double> weight, double epsilon) {
  for (size_t at = 0; !weight.empty() && at < x.size(); at += weight.size()) {
    double sum = 0;
    for (size_t c = 0; c < weight.size(); ++c) sum += x[at + c] * x[at + c];
    const double root = std::sqrt(sum / static_cast<double>(weight.size()) + epsilon);
    for (size_t c = 0; c < weight.size(); ++c) x[at + c] = x[at + c] / root * weight[c];
  }
}

// Where each query is, by which its angles are chosen. Padding is at 0.
std::vector<int64_t> positions_of(const OpCall& call, std::span<const Data> in, const Call& read,
                                  const std::vector<Lengths>& lengths) {
  const std::vector<int64_t> given = integers_at(in, Positions);
  const bool prompt = is_prompt(call, read);
  const int64_t table = call.input(Cos).shape[0];
  const int64_t columns = given.empty() ? 0 : call.input(Positions).shape[1];
  if (!given.empty() && !prompt && columns != read.sizes.length) {
    fail(ErrorKind::InvalidArgument, title(call), ": position_ids have ", columns, " columns for ", read.sizes.length,
         " queries");
  }
  std::vector<int64_t> result;
  for (size_t b = 0; b < lengths.size(); ++b) {
    for (int64_t i = 0; i < read.sizes.length; ++i) {
      const bool padding = i >= lengths[b].queries;
      const int64_t place = given.empty() ? lengths[b].first_query() + i
                            : prompt      ? given[0] + i
                                          : given[b * size(columns) + size(i)];
      if (!padding && (place < 0 || place >= table)) {
        fail(ErrorKind::InvalidArgument, title(call), ": position ", place, " is outside of the ", table, " in cos_cache");
      }
      result.push_back(padding ? 0 : place);
    }
  }
  return result;
}

void turn(std::vector<double>& x, int64_t heads, const Call& read, std::span<const double> cos, std::span<const double> sin,
          const std::vector<int64_t>& positions) {
  const auto depth = size(read.sizes.depth);
  const auto length = size(read.sizes.length);
  const auto half = size(read.rotation.half);
  for (size_t at = 0; depth > 0 && at < x.size() / depth; ++at) {
    const size_t row = size(positions[at / length / size(heads) * length + at % length]) * half;
    rotate(std::span(x).subspan(at * depth, depth), cos.data() + row, sin.data() + row, read.rotation);
  }
}

void prepare(const OpCall& call, std::span<const Data> in, const Call& read, const std::vector<Lengths>& lengths, Heads& heads) {
  const double epsilon = call.real("qk_norm_epsilon", static_cast<double>(1e-6F));
  normalize(heads.q, doubles_at(in, QueryNorm), call.real("q_norm_epsilon", epsilon));
  normalize(heads.k, doubles_at(in, KeyNorm), call.real("k_norm_epsilon", epsilon));
  if (read.rotation.half == 0) return;
  const std::vector<double> cos = doubles_at(in, Cos);
  const std::vector<double> sin = doubles_at(in, Sin);
  const std::vector<int64_t> positions = positions_of(call, in, read, lengths);
  turn(heads.q, read.sizes.heads, read, cos, sin, positions);
  if (read.added > 0) turn(heads.k, read.sizes.shared, read, cos, sin, positions);
}

// Rows of one batch, [shared, rows, depth]: those of the past that are there, then those of this call, as they come out of the
// cache.
std::vector<double> gathered(const Call& read, const Cache& cache, std::span<const double> added, size_t b,
                             const Lengths& lengths) {
  const HeadSizes& s = read.sizes;
  const auto depth = size(s.depth);
  const int64_t before = resident(lengths.before(), read);
  std::vector<double> rows;
  for (size_t head = 0; head < size(s.shared); ++head) {
    for (int64_t row = 0; row < before; ++row) {
      const std::vector<double> past = cache.past(b, head, size(row));
      rows.insert(rows.end(), past.begin(), past.end());
    }
    const size_t first = (b * size(s.shared) + head) * size(read.added) * depth;
    for (int64_t row = 0; row < lengths.added; ++row) {
      std::vector<double> line(added.begin() + static_cast<std::ptrdiff_t>(first + size(row) * depth),
                               added.begin() + static_cast<std::ptrdiff_t>(first + size(row + 1) * depth));
      cache.code(b, head, line);
      rows.insert(rows.end(), line.begin(), line.end());
    }
  }
  return rows;
}

// The present cache of one batch: the newest rows where it slides, else the past ones with this call's in their places.
void write_present(const Call& read, const Cache& cache, std::span<const double> rows, std::span<const double> added, size_t b,
                   const Lengths& lengths, Tensor& present) {
  const HeadSizes& s = read.sizes;
  const auto depth = size(s.depth);
  const int64_t held = resident(lengths.before(), read) + lengths.added;
  for (size_t head = 0; head < size(s.shared); ++head) {
    if (read.slides) {
      const int64_t kept = resident(lengths.keys, read);
      for (int64_t row = 0; row < kept; ++row) {
        const size_t from = (head * size(held) + size(held - kept + row)) * depth;
        cache.write(present, b, head, size(row), rows.subspan(from, depth));
      }
      continue;
    }
    for (int64_t row = 0; row < read.past; ++row) cache.write(present, b, head, size(row), cache.past(b, head, size(row)));
    for (int64_t row = 0; row < lengths.added; ++row) {
      const size_t from = ((b * size(s.shared) + head) * size(read.added) + size(row)) * depth;
      cache.write(present, b, head, size(lengths.before() + row), added.subspan(from, depth));
    }
  }
}

// One call on its way, batch by batch.
class Run {
 public:
  Run(const OpCall& call, std::span<const Data> in)
      : call_(call),
        read_(read(call)),
        s_(read_.sizes),
        lengths_(read_lengths(call, in, read_)),
        heads_(read_heads(in, read_)),
        keys_(in, read_, false),
        values_(in, read_, true),
        added_(doubles_at(in, Added)),
        rule_(rule(call, read_)) {
    prepare(call, in, read_, lengths_, heads_);
    if (!added_.empty())
      steps_ = broadcast_strides(in[Added].tensor().shape(), Shape{s_.batch, s_.heads, s_.length, read_.total});
    rule_.sinks = doubles_at(in, Sinks);
    if (rule_.sinks.empty() && call.integer("smooth_softmax", -1) == 1) rule_.sinks.assign(size(s_.heads), 0);
    if (call.wants_output(3) && read_.output > 0) keep_ = read_.output == 1 ? AttentionStage::Biased : AttentionStage::Weights;
    y_.resize(size(s_.batch) * size(s_.heads) * size(s_.length) * size(s_.depth));
  }

  void run(Outputs& out) {
    const std::vector<Type> types = infer_outputs(call_);
    const auto allocate = [&](size_t i) {
      return call_.wants_output(i) ? &out.allocate(i, std::get<TensorType>(types[i])) : nullptr;
    };
    Tensor* const present_key = allocate(1);
    Tensor* const present_value = allocate(2);
    Tensor* const scores = allocate(3);
    if (scores != nullptr) scores_.resize(scores->elements());
    for (size_t b = 0; b < size(s_.batch); ++b) {
      const std::vector<double> k = gathered(read_, keys_, heads_.k, b, lengths_[b]);
      const std::vector<double> v = gathered(read_, values_, heads_.v, b, lengths_[b]);
      if (present_key != nullptr) write_present(read_, keys_, k, heads_.k, b, lengths_[b], *present_key);
      if (present_value != nullptr) write_present(read_, values_, v, heads_.v, b, lengths_[b], *present_value);
      attend_batch(b, k, v);
    }
    const std::vector<double> rows = join_heads(y_, size(s_.batch), size(s_.heads), size(s_.length), size(s_.depth));
    put(call_, out, 0, std::span<const double>(rows));
    if (scores != nullptr) store(*scores, std::span<const double>(scores_));
  }

 private:
  int64_t first_key(size_t b) const { return lengths_[b].before() - resident(lengths_[b].before(), read_); }

  void add_bias(size_t b, size_t h, size_t i, std::span<double> row) const {
    const int64_t place = lengths_[b].first_query() + static_cast<int64_t>(i);
    for (size_t j = 0; j < row.size(); ++j) {
      const int64_t key = first_key(b) + static_cast<int64_t>(j);
      const bool shut = (read_.causal && key > place) || (read_.window > 0 && key <= place - read_.window);
      if (shut) {
        row[j] = -infinity;
      } else if (!added_.empty()) {
        row[j] = added_[b * size(steps_[0]) + h * size(steps_[1]) + i * size(steps_[2]) + size(key) * size(steps_[3])];
      }
    }
  }

  void attend_batch(size_t b, const std::vector<double>& k, const std::vector<double>& v) {
    AttentionRule rule_here = rule_;
    rule_here.sizes.batch = 1;
    rule_here.sizes.total = lengths_[b].keys - first_key(b);
    const size_t whole = size(s_.heads) * size(s_.length) * size(s_.depth);
    const auto bias = [&](size_t, size_t h, size_t i, std::span<double> row) { add_bias(b, h, i, row); };
    const Attended result = attend(rule_here, std::span(heads_.q).subspan(b * whole, whole), k, v, bias, keep_);
    const auto keys = size(rule_here.sizes.total);
    for (size_t row = 0; row < size(s_.heads) * size(s_.length); ++row) {
      if (row % size(s_.length) >= size(lengths_[b].queries)) continue;  // Padding.
      std::copy_n(result.y.begin() + static_cast<std::ptrdiff_t>(row * size(s_.depth)), size(s_.depth),
                  y_.begin() + static_cast<std::ptrdiff_t>(b * whole + row * size(s_.depth)));
      if (!keep_) continue;
      double* const scores =
          scores_.data() + (b * size(s_.heads) * size(s_.length) + row) * size(read_.total) + size(first_key(b));
      for (size_t j = 0; j < keys; ++j) {
        const double score = result.stage[row * keys + j];
        scores[j] = score == -infinity ? 0 : score;  // ONNX Runtime's 0 where keys are out of sight.
      }
    }
  }

  const OpCall& call_;
  Call read_;
  HeadSizes s_;
  std::vector<Lengths> lengths_;
  Heads heads_;
  Cache keys_, values_;
  std::vector<double> added_;
  std::vector<int64_t> steps_;
  AttentionRule rule_;
  std::optional<AttentionStage> keep_;
  std::vector<double> y_;
  std::vector<double> scores_;
};

}  // namespace

void reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const OpCall known = with_data(call, in);
  Run(known, in).run(out);
}

}  // namespace unmoor::group_query
