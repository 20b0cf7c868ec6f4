#include "unmoor/backends/cpu/simd/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/gemm.h"
#include "unmoor/ops/fused_attention.h"

// Attention that never stores the scores of all queries: for some queries at a time, one block of keys after the other.
namespace unmoor::cpu {

namespace {

constexpr size_t few_queries = 4;  // Up to here, packing keys costs more than it gains.

struct Memory {
  const float* q;
  const float* k;
  const float* v;
  const float* bias;
  const unsigned char* shown;
  float* y;
};

// The queries of one head that are worked on together, and the keys they share with others.
struct Place {
  size_t batch;
  size_t head;
  size_t query;
  size_t queries;
};

class Attention {
 public:
  Attention(const OpCall& call, const Machine& machine)
      : machine_(machine), read_(read_fused_attention(call)), gemm_(gemm_loops()), loops_(attention_loops()) {
    const size_t key_bytes = std::max<size_t>((depth() + width()) * sizeof(float), 1);
    const size_t fitting = machine.l2_bytes() / 2 / key_bytes / gemm_.panel_columns * gemm_.panel_columns;
    block_ = std::clamp<size_t>(fitting, 4 * gemm_.panel_columns, 1024);
    if (total() <= block_ + block_ / 2) block_ = std::max<size_t>(total(), 1);
  }

  void run(const Memory& m) const {
    if (batch() * heads() * length() * width() == 0) return;
    if (total() == 0) return clear(m);
    if (length() <= few_queries) {
      machine_.pool().each(batch() * heads(), [&](size_t i) { run_few(m, i / heads(), i % heads()); });
      return;
    }
    const size_t groups = batch() * shared();
    const size_t most_chunks = (length() + step() - 1) / step();
    const size_t wanted = machine_.threads() == 1 ? 1 : (4 * machine_.threads() + groups - 1) / groups;
    const size_t chunks = std::min(wanted, most_chunks);
    machine_.pool().each(groups * chunks, [&](size_t i) {
      const size_t chunk = i % chunks;
      const size_t begin = most_chunks * chunk / chunks * step();
      const size_t end = std::min(most_chunks * (chunk + 1) / chunks * step(), length());
      run_packed(m, i / chunks / shared(), i / chunks % shared(), begin, end);
    });
  }

 private:
  static size_t size(int64_t dim) { return static_cast<size_t>(dim); }
  size_t batch() const { return size(read_.sizes.batch); }
  size_t heads() const { return size(read_.sizes.heads); }
  size_t shared() const { return size(read_.sizes.shared); }
  size_t group() const { return heads() / shared(); }
  size_t length() const { return size(read_.sizes.length); }
  size_t total() const { return size(read_.sizes.total); }
  size_t depth() const { return size(read_.sizes.depth); }
  size_t width() const { return size(read_.sizes.width); }
  size_t step() const { return 4 * gemm_.tile_rows; }  // Queries whose scores are held at once.
  static size_t at(const HeadSteps& steps, size_t b, size_t h, size_t i) { return b * steps[0] + h * steps[1] + i * steps[2]; }

  void clear(const Memory& m) const {
    for (size_t b = 0; b < batch(); ++b) {
      for (size_t h = 0; h < heads(); ++h) {
        for (size_t i = 0; i < length(); ++i) std::fill_n(m.y + at(read_.y, b, h, i), width(), 0.0F);
      }
    }
  }

  ScoreRow row_of(const Memory& m, const Place& place, size_t i, size_t key, size_t keys, float* scores) const {
    ScoreRow row{scores, keys, static_cast<float>(read_.scale), static_cast<float>(read_.hidden_score)};
    if (m.bias != nullptr) {
      const HeadSteps& steps = *read_.bias;
      row.bias = m.bias + at(steps, place.batch, place.head, place.query + i) + key * steps[3];
      row.bias_step = steps[3];
    }
    if (m.shown != nullptr) {
      const HeadSteps& steps = *read_.shown;
      row.shown = m.shown + at(steps, place.batch, place.head, place.query + i) + key * steps[3];
      row.shown_step = steps[3];
    }
    return row;
  }

  bool is_shut(const Memory& m, const Place& place, size_t i) const {
    if (m.bias == nullptr) return false;
    const float* const bias = m.bias + at(*read_.bias, place.batch, place.head, place.query + i);
    for (size_t j = 0; j < total(); ++j) {
      if (bias[j * (*read_.bias)[3]] != -std::numeric_limits<float>::infinity()) return false;
    }
    return true;
  }

  // Sums of weighted values become the result.
  void finish(const Memory& m, const Place& place, size_t i, float sum, float* y) const {
    if (!(sum > 0)) {  // No weights, or NaN among them.
      const bool zero =
          read_.no_weights == NoWeights::ZeroIfNaN || (read_.no_weights == NoWeights::ZeroIfShut && is_shut(m, place, i));
      std::fill_n(y, width(), zero ? 0.0F : std::numeric_limits<float>::quiet_NaN());
      return;
    }
    loops_.scale(y, width(), 1.0F / sum);
  }

  Strided keys_at(const Memory& m, size_t b, size_t s, size_t key) const {
    return {m.k + at(read_.k, b, s, key), read_.k[3], read_.k[2]};
  }
  Strided values_at(const Memory& m, size_t b, size_t s, size_t key) const {
    return {m.v + at(read_.v, b, s, key), read_.v[2], 1};
  }

  void run_few(const Memory& m, size_t b, size_t h) const {
    const size_t s = h / group();
    float* const scores = scratch(0, total());
    const Place place{b, h, 0, length()};
    for (size_t i = 0; i < length(); ++i) {
      float* const y = m.y + at(read_.y, b, h, i);
      gemm_.multiply_unpacked(m.q + at(read_.q, b, h, i), keys_at(m, b, s, 0), depth(), 0, total(), scores);
      RunningSoftmax running{-std::numeric_limits<float>::infinity(), 0};
      loops_.weigh(row_of(m, place, i, 0, total(), scores), running);
      gemm_.multiply_unpacked(scores, values_at(m, b, s, 0), total(), 0, width(), y);
      finish(m, place, i, running.sum, y);
    }
  }

  // Queries [begin, end) of all heads that read key head `s`.
  void run_packed(const Memory& m, size_t b, size_t s, size_t begin, size_t end) const {
    const size_t rows = end - begin;
    float* const states = scratch(3, 2 * rows * group());
    for (size_t i = 0; i < rows * group(); ++i) {
      states[2 * i] = -std::numeric_limits<float>::infinity();
      states[2 * i + 1] = 0;
    }
    for (size_t key = 0; key < total(); key += block_) {
      const size_t keys = std::min(block_, total() - key);
      float* const packed_k = scratch(0, gemm_.packed_b(keys, depth()));
      float* const packed_v = scratch(1, gemm_.packed_b(width(), keys));
      gemm_.pack_b(keys_at(m, b, s, key), keys, depth(), 0, gemm_.panels(keys), packed_k);
      gemm_.pack_b(values_at(m, b, s, key), width(), keys, 0, gemm_.panels(width()), packed_v);
      for (size_t h = 0; h < group(); ++h) {
        for (size_t i = 0; i < rows; i += step()) {
          const Place place{b, s * group() + h, begin + i, std::min(step(), rows - i)};
          run_block(m, place, key, keys, packed_k, packed_v, states + 2 * (h * rows + i));
        }
      }
    }
  }

  void run_block(const Memory& m, const Place& place, size_t key, size_t keys, const float* packed_k, const float* packed_v,
                 float* states) const {
    const size_t n = place.queries;
    const size_t apart = (keys + 15) / 16 * 16 + 16;
    float* const scores = scratch(2, step() * apart);
    const float* const q = m.q + at(read_.q, place.batch, place.head, place.query);
    float* const y = m.y + at(read_.y, place.batch, place.head, place.query);
    gemm_.multiply(
        {.m = n, .n = keys, .k = depth(), .a = q, .b = packed_k, .c = scores, .c_stride = apart, .a_stride = read_.q[2]},
        {0, n, 0, gemm_.panels(keys)});
    for (size_t i = 0; i < n; ++i) {
      RunningSoftmax running{states[2 * i], states[2 * i + 1]};
      const float factor = loops_.weigh(row_of(m, place, i, key, keys, scores + i * apart), running);
      states[2 * i] = running.top;
      states[2 * i + 1] = running.sum;
      if (key > 0 && factor != 1.0F) loops_.scale(y + i * read_.y[2], width(), factor);
    }
    gemm_.multiply({.m = n,
                    .n = width(),
                    .k = keys,
                    .a = scores,
                    .b = packed_v,
                    .c = y,
                    .c_stride = read_.y[2],
                    .a_stride = apart,
                    .accumulate = key > 0},
                   {0, n, 0, gemm_.panels(width())});
    if (key + keys < total()) return;
    for (size_t i = 0; i < n; ++i) finish(m, place, i, states[2 * i + 1], y + i * read_.y[2]);
  }

  const Machine& machine_;
  FusedAttentionCall read_;
  const GemmLoops& gemm_;
  const AttentionLoops& loops_;
  size_t block_ = 0;  // Keys that are packed at once: with their values, half of L2.
};

Support supports_attention(const OpCall& call) {
  using namespace fused_attention;
  for (const size_t i : {Q, K, V, Bias}) {
    if (!call.has(i)) continue;
    if (Support type = input_is(call, i, {DType::F32}); !type) return type;
  }
  return yes();
}

Prepared prepare_attention(const OpCall& call, Device& device) {
  return {.run = [attention = Attention(call, machine_of(device))](Stream&, const KernelArgs& args) {
    const auto input = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i].host() : nullptr; };
    const auto floats = [&](size_t i) { return reinterpret_cast<const float*>(input(i)); };
    using namespace fused_attention;
    attention.run({floats(Q), floats(K), floats(V), floats(Bias), reinterpret_cast<const unsigned char*>(input(Shown)),
                   reinterpret_cast<float*>(args.outputs[0].host())});
  }};
}

}  // namespace

void add_attention_kernels(KernelTable& table) {
  table.add("unmoor:FusedAttention",
            {.name = "cpu.attention.fused", .supports = supports_attention, .prepare = prepare_attention});
}

}  // namespace unmoor::cpu
