#pragma once

#include <span>
#include <string>
#include <vector>

#include "unmoor/ops/builder.h"
#include "unmoor/ops/numeric.h"

// What the operators of the domain ai.onnx.ml share. Where ONNX's text leaves a meaning open, ONNX's own evaluator and ONNX
// Runtime decide where they agree; the comment beside says what was chosen where they do not.
namespace unmoor::ml {

// Parts of the family.
void add_encoder_ops(OpSet& ops);  // LabelEncoder, CategoryMapper, OneHotEncoder.
void add_feature_ops(OpSet& ops);  // ArrayFeatureExtractor, FeatureVectorizer, Binarizer.
void add_scaling_ops(OpSet& ops);  // Imputer, Normalizer, Scaler.
void add_linear_ops(OpSet& ops);   // LinearClassifier, LinearRegressor.
void add_map_ops(OpSet& ops);      // CastMap, DictVectorizer, ZipMap.
void add_svm_ops(OpSet& ops);      // SVMClassifier, SVMRegressor.
void add_tree_ops(OpSet& ops);     // TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor.

// An operator called "ai.onnx.ml:NAME".
Op ml_op(std::string_view op_name, std::string summary);
const std::vector<DType>& feature_types();  // float32, float64, int64, int32: what features can be.

// The dtype of an output that the specification calls tensor(float). The attribute `output_dtype` is no ONNX attribute: a model
// that runs in float64 has it (passes/widen.cpp).
DType float_output(const OpCall& call);

// A batch of rows of features: [N,C], or [C], which is [1,C]. Unknown sizes are -1.
struct Rows {
  int64_t count = Shape::unknown;
  int64_t width = Shape::unknown;
};
// Fails with InvalidModel on another rank.
Rows rows_of(const OpCall& call, const Shape& shape);
// [N], or [N,columns] with the symbol of the input's batch.
Shape per_row(const OpCall& call, const Shape& input);
Shape per_row(const OpCall& call, const Shape& input, int64_t columns);

// A list attribute that may be left out or empty. Fails with InvalidModel if it has another length than `wanted`.
std::vector<double> real_list(const OpCall& call, std::string_view key);
void require_length(const OpCall& call, std::string_view key, size_t found, size_t wanted);

// What an expansion computes in: float32 for float32 features, else float64.
DType arithmetic_type(const OpCall& call);
// A one-dimensional constant of an expansion.
ValueId list_constant(GraphBuilder& builder, std::span<const double> values, DType dtype);

// The labels of a classifier: texts or numbers, never both.
struct Labels {
  std::vector<int64_t> numbers = {};
  std::vector<std::string> texts = {};

  size_t size() const { return texts.empty() ? numbers.size() : texts.size(); }
  DType dtype() const { return texts.empty() ? DType::I64 : DType::String; }
};
// From two attributes of which one must be set. Fails with InvalidModel.
Labels labels_of(const OpCall& call, std::string_view numbers_key, std::string_view texts_key);
// Stores a label a row as output 0. A place of -1 is the class that one label leaves unnamed: 0 or "".
void put_labels(const OpCall& call, Outputs& out, const Labels& labels, std::span<const int64_t> places);
// The place of the first greatest score; of NaNs none is greater.
int64_t top_class(std::span<const double> scores);

}  // namespace unmoor::ml
