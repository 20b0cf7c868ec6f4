#pragma once

#include <span>

#include "unmoor/runtime/search.h"
#include "unmoor/tensor/dtype.h"

namespace unmoor {

// The scores of the next token of each row, [rows, vocabulary]. Every step is rounded to `dtype`, as the operators work in
// float32: whether two scores are equal decides which token comes.
struct Scores {
  DType dtype = DType::F32;  // Or float64.
  size_t vocabulary = 0;
  std::vector<double> values;

  std::span<double> row(size_t i) { return std::span<double>(values).subspan(i * vocabulary, vocabulary); }
  std::span<const double> row(size_t i) const { return std::span<const double>(values).subspan(i * vocabulary, vocabulary); }
  double rounded(double value) const;
  double lowest() const;  // What a forbidden token has.
};

// Applies what the search forbids and penalises, in the operators' order. `step` counts from 1. Fails with InvalidArgument on
// masks and tokens that do not fit the vocabulary.
void apply_rules(const Search& search, const Sequences& sequences, size_t step, Scores& scores);

// The logarithm of softmax, row by row.
void log_softmax(Scores& scores);
// The place of the greatest, the first of equal ones.
size_t best_of(std::span<const double> row);

// Sampling: forbids the unlikely tokens, then draws one of each row.
void filter_unlikely(const Search& search, Scores& scores);
// Draws as ONNX Runtime does: the minimal standard generator (Park and Miller 1988, multiplier 16807), two numbers a draw.
class TokenDraw {
 public:
  explicit TokenDraw(uint32_t seed) : state_(seed % modulus == 0 ? 1 : seed % modulus) {}
  size_t draw(std::span<const double> row);

 private:
  static constexpr uint64_t modulus = 2147483647;
  double unit();  // In [0, 1).
  uint64_t state_;
};

}  // namespace unmoor
