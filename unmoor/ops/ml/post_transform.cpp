#include "unmoor/ops/ml/post_transform.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "unmoor/base/error.h"
#include "unmoor/ops/numeric.h"

namespace unmoor::ml {
namespace {

constexpr std::array<std::string_view, 5> names{"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};

void softmax(std::span<double> scores) {
  if (scores.empty()) return;
  const double top = *std::ranges::max_element(scores);
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - top);
  for (double& score : scores) score /= sum;
}

// Softmax in which a zero stays a zero. What is all zero becomes 0.5, as in ONNX's evaluator; ONNX Runtime gives NaN.
void softmax_zero(std::span<double> scores) {
  constexpr double smallest = 1e-7;
  if (scores.empty()) return;
  const double top = *std::ranges::max_element(scores);
  const double shrink = std::exp(-top);
  double sum = 0;
  for (double& score : scores) {
    score = score > smallest || score < -smallest ? std::exp(score - top) : score * shrink;
    sum += score;
  }
  for (double& score : scores) score = sum == 0 ? 0.5 : score / sum;
}

// The quantile of the normal distribution by Winitzki's approximation of the inverse error function (2008, a = 0.147), which
// ONNX's evaluator and ONNX Runtime use. Infinite at 0 and 1, NaN outside.
double probit(double value) {
  constexpr double a = 0.147;
  const double x = 2 * value - 1;
  const double log = std::log((1 - x) * (1 + x));
  const double half = 2 / (std::numbers::pi * a) + 0.5 * log;
  const double magnitude = std::sqrt(std::sqrt(half * half - log / a) - half);
  return std::numbers::sqrt2 * (x < 0 ? -magnitude : magnitude);
}

}  // namespace

PostTransform post_transform_of(const OpCall& call) {
  const std::string wanted = call.text("post_transform", "NONE");
  const auto found = std::ranges::find(names, wanted);
  if (found == names.end()) {
    fail(ErrorKind::InvalidModel, title(call), ": post_transform is '", wanted,
         "', not NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT");
  }
  return static_cast<PostTransform>(found - names.begin());
}

PostTransform numbered_post_transform_of(const OpCall& call) {
  const int64_t number = call.integer("post_transform", 0);
  if (number < 0 || number >= static_cast<int64_t>(names.size())) {
    fail(ErrorKind::InvalidModel, title(call), ": post_transform is ", number, ", not a number from 0 to ", names.size() - 1);
  }
  return static_cast<PostTransform>(number);
}

double logistic(double value) { return 1 / (1 + std::exp(-value)); }

void transform(PostTransform how, std::span<double> scores) {
  switch (how) {
    case PostTransform::None:
      return;
    case PostTransform::Softmax:
      return softmax(scores);
    case PostTransform::Logistic:
      for (double& score : scores) score = logistic(score);
      return;
    case PostTransform::SoftmaxZero:
      return softmax_zero(scores);
    case PostTransform::Probit:
      for (double& score : scores) score = probit(score);
      return;
  }
}

void transform_rows(PostTransform how, std::span<double> scores, size_t columns) {
  for (size_t i = 0; columns > 0 && i < scores.size(); i += columns) transform(how, scores.subspan(i, columns));
}

}  // namespace unmoor::ml
