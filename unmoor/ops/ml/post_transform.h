#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "unmoor/ops/op.h"

namespace unmoor::ml {

// What classifiers and regressors of ai.onnx.ml do to the scores of a row at the end. The values are TreeEnsemble's numbers.
enum class PostTransform : uint8_t { None, Softmax, Logistic, SoftmaxZero, Probit };

// The attribute `post_transform`, as a text or, in TreeEnsemble, a number. Fails with InvalidModel on another one.
PostTransform post_transform_of(const OpCall& call);
PostTransform numbered_post_transform_of(const OpCall& call);

void transform(PostTransform how, std::span<double> scores);
// Each row of `columns` scores.
void transform_rows(PostTransform how, std::span<double> scores, size_t columns);
double logistic(double value);

}  // namespace unmoor::ml
