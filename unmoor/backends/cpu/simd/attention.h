#pragma once

#include <cstddef>

namespace unmoor::cpu {

// What becomes of one query's scores for a block of keys.
struct ScoreRow {
  float* scores = nullptr;  // In: products. Out: exp(score - top).
  size_t keys = 0;
  float scale = 1;  // score = scale * product + bias, or hidden_score where a key is not shown.
  float hidden_score = 0;
  const float* bias = nullptr;           // Null: none.
  size_t bias_step = 1;                  // 1, or 0 for one bias for all keys.
  const unsigned char* shown = nullptr;  // Null: all are.
  size_t shown_step = 1;
};

// A query's softmax as blocks of keys go by.
struct RunningSoftmax {
  float top;  // The greatest score so far, -infinity at the start.
  float sum;  // Of exp(score - top); NaN once a score was NaN.
};

struct AttentionLoops {
  // Turns the row's products into weights relative to the new top, and returns what earlier sums must be multiplied by: 1 where
  // the top stays.
  float (*weigh)(const ScoreRow& row, RunningSoftmax& running);
  // y[i] *= factor.
  void (*scale)(float* y, size_t n, float factor);
};
const AttentionLoops& attention_loops();

}  // namespace unmoor::cpu
