#pragma once

#include "unmoor/ops/ml/forest.h"
#include "unmoor/ops/ml/ml.h"
#include "unmoor/ops/ml/post_transform.h"

namespace unmoor::ml {

// What a call of TreeEnsemble, TreeEnsembleClassifier or TreeEnsembleRegressor computes: a forest, and what becomes of its votes.
// Only read once it is made, from any thread.
struct TreeModel {
  Forest forest = {};
  Aggregate how = Aggregate::Sum;
  PostTransform post = PostTransform::None;
  std::vector<double> base = {};  // By target. One, if all votes are for one of two labels, is that one's.
  Labels labels = {};             // Of a classifier.

  // All votes for two labels are for one of them, and there is no base value for each: then the sum s decides alone. The second
  // label is the top class if s is above 0, or above one half where no weight is negative and no transform follows, since then s
  // is a probability. Votes for the first label alone are the second one's, as converters write them: the scores are 1-s and s,
  // or -s and s. This is what ONNX's evaluator and ONNX Runtime share. The text says nothing of it, but wants the top class of
  // all others and the transform of every score: ONNX Runtime gives label 1 for any positive vote where both labels are voted
  // for, and leaves the transform out where no weight is negative.
  bool one_sided = false;
  bool for_first = false;
  bool is_probability = false;

  // Replaces `scores`, [rows, targets], and `places`, one a row: the place of its label; -1 if there are no labels, or one that
  // has no positive score. `rows` are [rows, width].
  void predict(std::span<const double> rows, size_t width, std::span<double> scores, std::span<int64_t> places) const;

 private:
  int64_t finish(std::span<double> scores) const;  // Of one row, from the votes.
};

// The model of a call whose operator is one of the three, checked. Fails with InvalidModel on what is none.
TreeModel tree_model(const OpCall& call);

}  // namespace unmoor::ml
