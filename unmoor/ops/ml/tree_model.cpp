#include "unmoor/ops/ml/tree_model.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/ml/listed_forest.h"
#include "unmoor/ops/ml/placed_forest.h"

namespace unmoor::ml {
namespace {

Aggregate named_aggregate(const OpCall& call) {
  const std::string wanted = call.text("aggregate_function", "SUM");
  if (wanted == "AVERAGE") return Aggregate::Average;
  if (wanted == "SUM") return Aggregate::Sum;
  if (wanted == "MIN") return Aggregate::Min;
  if (wanted == "MAX") return Aggregate::Max;
  fail(ErrorKind::InvalidModel, title(call), ": aggregate_function is '", wanted, "', not AVERAGE, SUM, MIN or MAX");
}

Aggregate numbered_aggregate(const OpCall& call) {
  const int64_t number = call.integer("aggregate_function", 1);
  if (number < 0 || number > 3)
    fail(ErrorKind::InvalidModel, title(call), ": aggregate_function is ", number, ", not a number from 0 to 3");
  return static_cast<Aggregate>(number);
}

TreeModel classifier_model(const OpCall& call) {
  TreeModel model;
  model.labels = labels_of(call, "classlabels_int64s", "classlabels_strings");
  model.post = post_transform_of(call);
  model.base = reals_or_tensor(call, "base_values");
  const size_t classes = model.labels.size();
  model.forest = listed_forest(call, "class", classes);
  const auto& votes = model.forest.votes;
  const auto all_for = [&votes](uint32_t target) {
    return std::ranges::all_of(votes, [=](const auto& vote) { return vote.target == target; });
  };
  if (classes == 2 && model.base.size() < 2 && !votes.empty()) {
    model.for_first = all_for(0);
    model.one_sided = model.for_first || all_for(1);
    const bool plain = model.post == PostTransform::None || model.post == PostTransform::Probit;
    model.is_probability = plain && std::ranges::none_of(votes, [](const auto& vote) { return vote.weight < 0; });
  }
  const bool one_base = model.one_sided && model.base.size() == 1;
  if (!model.base.empty() && !one_base) require_length(call, "base_values", model.base.size(), classes);
  return model;
}

// Base values come after the aggregate function and before the transform, which the text wants for one target too; ONNX Runtime
// leaves it out there.
TreeModel regressor_model(const OpCall& call) {
  TreeModel model;
  model.how = named_aggregate(call);
  model.post = post_transform_of(call);
  model.forest = listed_forest(call, "target", targets_of(call, list_attribute<int64_t>(call, "target_ids")));
  model.base = reals_or_tensor(call, "base_values");
  if (!model.base.empty()) require_length(call, "base_values", model.base.size(), model.forest.targets);
  return model;
}

TreeModel ensemble_model(const OpCall& call) {
  TreeModel model;
  model.how = numbered_aggregate(call);
  model.post = numbered_post_transform_of(call);
  model.forest = placed_forest(call);
  return model;
}

}  // namespace

int64_t TreeModel::finish(std::span<double> scores) const {
  for (size_t k = 0; k < base.size(); ++k) scores[one_sided && !for_first ? 1 : k] += base[k];
  int64_t place = -1;
  if (labels.size() == 1) {
    place = scores[0] > 0 ? 0 : -1;
  } else if (one_sided) {
    const double sum = scores[for_first ? 0 : 1];
    if (for_first) {
      scores[0] = is_probability ? 1 - sum : -sum;
      scores[1] = sum;
    }
    place = sum > (is_probability ? 0.5 : 0) ? 1 : 0;
  } else if (labels.size() > 1) {
    place = top_class(scores);
  }
  transform(post, scores);
  return place;
}

void TreeModel::predict(std::span<const double> rows, size_t width, std::span<double> scores, std::span<int64_t> places) const {
  forest.score(rows, width, how, scores);
  for (size_t i = 0; i < places.size(); ++i) places[i] = finish(scores.subspan(i * forest.targets, forest.targets));
}

TreeModel tree_model(const OpCall& call) {
  if (call.node.op == "ai.onnx.ml:TreeEnsembleClassifier") return classifier_model(call);
  if (call.node.op == "ai.onnx.ml:TreeEnsembleRegressor") return regressor_model(call);
  if (call.node.op == "ai.onnx.ml:TreeEnsemble") return ensemble_model(call);
  fail(ErrorKind::Internal, title(call), " has no trees");
}

}  // namespace unmoor::ml
