#include <algorithm>
#include <array>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/ml/ml.h"
#include "unmoor/ops/ml/post_transform.h"
#include "unmoor/ops/moving.h"

namespace unmoor::ml {
namespace {

enum class KernelType : uint8_t { Linear, Poly, Rbf, Sigmoid };

// How alike two rows are.
struct SvmKernel {
  KernelType type = KernelType::Linear;
  double gamma = 0;
  double coef0 = 0;
  double degree = 0;

  double operator()(std::span<const double> a, std::span<const double> b) const {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += type == KernelType::Rbf ? (a[i] - b[i]) * (a[i] - b[i]) : a[i] * b[i];
    switch (type) {
      case KernelType::Linear:
        return sum;
      case KernelType::Poly:
        return std::pow(gamma * sum + coef0, degree);
      case KernelType::Rbf:
        return std::exp(-gamma * sum);
      case KernelType::Sigmoid:
        return std::tanh(gamma * sum + coef0);
    }
    return sum;
  }
};

SvmKernel kernel_of(const OpCall& call) {
  constexpr std::array<std::string_view, 4> names{"LINEAR", "POLY", "RBF", "SIGMOID"};
  const std::string wanted = call.text("kernel_type", "LINEAR");
  const auto found = std::ranges::find(names, wanted);
  if (found == names.end())
    fail(ErrorKind::InvalidModel, title(call), ": kernel_type is '", wanted, "', not LINEAR, POLY, RBF or SIGMOID");
  const std::vector<double> params = real_list(call, "kernel_params");
  if (params.empty()) return {static_cast<KernelType>(found - names.begin())};
  require_length(call, "kernel_params", params.size(), 3);
  return {static_cast<KernelType>(found - names.begin()), params[0], params[1], params[2]};
}

// Rows of `width` features that inputs are compared with.
struct Vectors {
  std::vector<double> values;
  size_t count = 0;
  size_t width = 0;

  std::span<const double> row(size_t i) const { return std::span(values).subspan(i * width, width); }
};

// `count` vectors of the attribute. Fails with InvalidModel where it cannot be cut so, or not into the input's features.
Vectors vectors_of(const OpCall& call, std::string_view key, size_t count) {
  Vectors vectors{real_list(call, key), count, 0};
  const int64_t width = rows_of(call, call.input(0).shape).width;
  if (vectors.values.empty() || vectors.values.size() % count != 0) {
    fail(ErrorKind::InvalidModel, title(call), ": attribute '", key, "' has ", vectors.values.size(), " elements, which are not ",
         count, " rows");
  }
  vectors.width = vectors.values.size() / count;
  if (width >= 0 && vectors.width != static_cast<size_t>(width)) {
    fail(ErrorKind::InvalidModel, title(call), ": the rows of '", key, "' have ", vectors.width, " elements for ", width,
         " features");
  }
  return vectors;
}

// The kernel's value of a row with each vector, times 2 for the cost of a product and 4 for a function.
Cost svm_cost(const OpCall& call, double scores) {
  const double elements = static_cast<double>(std::max(call.reals("support_vectors").size(), call.reals("coefficients").size()));
  const Shape& shape = call.input(0).shape;
  const double rows =
      shape.is_known() && shape.rank() > 0 ? static_cast<double>(std::max<int64_t>(rows_of(call, shape).count, 0)) : 0;
  return {rows * (3 * elements + 4 * scores), bytes_moved(call) + 4 * elements};
}

struct Svm {
  Labels labels = {};
  SvmKernel kernel = {};
  Vectors vectors = {};                   // Support vectors, those of a class together; in linear mode the weights of each class.
  std::vector<size_t> starts = {};        // By class, and the end: its support vectors. Empty in linear mode.
  std::vector<double> coefficients = {};  // [classes-1, vectors]
  std::vector<double> rho = {};
  std::vector<double> prob_a = {};
  std::vector<double> prob_b = {};

  size_t classes() const { return labels.size(); }
  size_t pairs() const { return classes() * (classes() - 1) / 2; }
  bool is_linear() const { return starts.empty(); }
};

// Where each class's support vectors start, and the end. Empty if there are none.
std::vector<size_t> starts_of(const OpCall& call) {
  std::vector<size_t> starts{0};
  for (const int64_t count : call.integers("vectors_per_class")) {
    constexpr size_t most = size_t{1} << 40;
    if (count < 0 || static_cast<size_t>(count) > most - starts.back()) fail(ErrorKind::InvalidModel, title(call), ": vectors_per_class has ", count);
    starts.push_back(starts.back() + static_cast<size_t>(count));
  }
  if (starts.back() == 0) starts.clear();
  return starts;
}

Svm svm_of(const OpCall& call) {
  Svm svm{.labels = labels_of(call, "classlabels_ints", "classlabels_strings"),
          .starts = starts_of(call),
          .rho = real_list(call, "rho")};
  if (svm.is_linear()) {
    svm.vectors = vectors_of(call, "coefficients", svm.classes());
    if (svm.rho.empty()) fail(ErrorKind::InvalidModel, title(call), ": the attribute 'rho' is missing");
    return svm;
  }
  svm.kernel = kernel_of(call);
  svm.coefficients = real_list(call, "coefficients");
  svm.prob_a = real_list(call, "prob_a");
  svm.prob_b = real_list(call, "prob_b");
  require_length(call, "vectors_per_class", svm.starts.size() - 1, svm.classes());
  if (svm.classes() < 2)
    fail(ErrorKind::InvalidModel, title(call), ": support vectors separate two classes or more; there is one label");
  svm.vectors = vectors_of(call, "support_vectors", svm.starts.back());
  require_length(call, "coefficients", svm.coefficients.size(), (svm.classes() - 1) * svm.vectors.count);
  require_length(call, "rho", svm.rho.size(), svm.pairs());
  require_length(call, "prob_b", svm.prob_b.size(), svm.prob_a.size());
  if (!svm.prob_a.empty()) require_length(call, "prob_a", svm.prob_a.size(), svm.pairs());
  return svm;
}

// Scores a row: one a class, but for support vectors without probabilities one a pair of classes, as both evaluators have it, for
// whom "raw scores" are the decision values of libsvm; two classes have two.
size_t columns_of(const Svm& svm) {
  const bool by_pair = !svm.is_linear() && svm.prob_a.empty() && svm.classes() > 2;
  return by_pair ? svm.pairs() : svm.classes();
}

// The decision values of all pairs of classes, (0,1), (0,2), …, (1,2), …, and the class that wins most of them.
struct Decision {
  std::vector<double> values;
  size_t winner = 0;
};

Decision decide(const Svm& svm, std::span<const double> x) {
  std::vector<double> similar(svm.vectors.count);
  for (size_t i = 0; i < similar.size(); ++i) similar[i] = svm.kernel(x, svm.vectors.row(i));
  // The vectors of `of`, with the coefficients that they have against another class.
  const auto part = [&](size_t of, size_t row) {
    double sum = 0;
    for (size_t i = svm.starts[of]; i < svm.starts[of + 1]; ++i) sum += svm.coefficients[row * similar.size() + i] * similar[i];
    return sum;
  };
  Decision decision;
  std::vector<size_t> votes(svm.classes());
  for (size_t i = 0; i < svm.classes(); ++i) {
    for (size_t j = i + 1; j < svm.classes(); ++j) {
      const double value = part(i, j - 1) + part(j, i) + svm.rho[decision.values.size()];
      ++votes[value > 0 ? i : j];
      decision.values.push_back(value);
    }
  }
  decision.winner = static_cast<size_t>(std::ranges::max_element(votes) - votes.begin());
  return decision;
}

// Probabilities of classes from those of pairs: the second method of Wu, Lin and Weng, "Probability Estimates for Multi-class
// Classification by Pairwise Coupling" (2004), with libsvm's limits on rounds and error. `r` is [classes, classes].
std::vector<double> coupled(std::span<const double> r, size_t classes) {
  const auto at = [classes](size_t i, size_t j) { return i * classes + j; };
  std::vector<double> q(classes * classes);
  for (size_t i = 0; i < classes; ++i) {
    for (size_t j = 0; j < classes; ++j) {
      if (i == j) continue;
      q[at(i, i)] += r[at(j, i)] * r[at(j, i)];
      q[at(i, j)] = -r[at(j, i)] * r[at(i, j)];
    }
  }
  std::vector<double> p(classes, 1 / static_cast<double>(classes));
  std::vector<double> qp(classes);
  const double enough = 0.005 / static_cast<double>(classes);
  for (size_t round = 0; round < std::max<size_t>(100, classes); ++round) {
    double pqp = 0;
    for (size_t i = 0; i < classes; ++i) {
      qp[i] = 0;
      for (size_t j = 0; j < classes; ++j) qp[i] += q[at(i, j)] * p[j];
      pqp += p[i] * qp[i];
    }
    if (std::ranges::all_of(qp, [&](double each) { return std::fabs(each - pqp) < enough; })) break;
    for (size_t i = 0; i < classes; ++i) {
      const double step = (pqp - qp[i]) / q[at(i, i)];
      p[i] += step;
      pqp = (pqp + step * (step * q[at(i, i)] + 2 * qp[i])) / ((1 + step) * (1 + step));
      for (size_t j = 0; j < classes; ++j) {
        qp[j] = (qp[j] + step * q[at(i, j)]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
  return p;
}

std::vector<double> probabilities(const Svm& svm, std::span<const double> values) {
  constexpr double least = 1e-7;
  const size_t classes = svm.classes();
  std::vector<double> r(classes * classes);
  size_t pair = 0;
  for (size_t i = 0; i < classes; ++i) {
    for (size_t j = i + 1; j < classes; ++j, ++pair) {
      const double first = std::clamp(logistic(-(values[pair] * svm.prob_a[pair] + svm.prob_b[pair])), least, 1 - least);
      r[i * classes + j] = first;
      r[j * classes + i] = 1 - first;
    }
  }
  return coupled(r, classes);
}

struct Classified {
  int64_t place = 0;
  std::vector<double> scores = {};
};

// In linear mode both evaluators add rho[0] to every class. Of two labels they prefer the second for any score above 0 (ONNX
// Runtime) or 0.5; here the top class has the highest score. Without probabilities the scores of two classes are -s and s.
Classified classify(const Svm& svm, std::span<const double> x) {
  Classified result;
  if (svm.is_linear()) {
    for (size_t k = 0; k < svm.classes(); ++k) result.scores.push_back(svm.kernel(x, svm.vectors.row(k)) + svm.rho[0]);
    result.place = top_class(result.scores);
    return result;
  }
  const Decision decision = decide(svm, x);
  result.place = static_cast<int64_t>(decision.winner);
  if (!svm.prob_a.empty()) {
    result.scores = probabilities(svm, decision.values);
  } else if (svm.classes() == 2) {
    result.scores = {-decision.values[0], decision.values[0]};
  } else {
    result.scores = decision.values;
  }
  return result;
}

std::vector<Type> infer_classifier(const OpCall& call) {
  post_transform_of(call);
  const Svm svm = svm_of(call);
  const Shape& shape = call.input(0).shape;
  return {TensorType{svm.labels.dtype(), per_row(call, shape)},
          TensorType{float_output(call), per_row(call, shape, static_cast<int64_t>(columns_of(svm)))}};
}

void run_classifier(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const OpCall known = with_data(call, in);
  const Svm svm = svm_of(known);
  const PostTransform how = post_transform_of(call);
  const Rows rows = rows_of(call, in[0].tensor().shape());
  const std::vector<double> x = doubles(in[0].tensor());
  std::vector<int64_t> places;
  std::vector<double> scores;
  for (size_t row = 0; row < static_cast<size_t>(rows.count); ++row) {
    Classified each = classify(svm, std::span(x).subspan(row * svm.vectors.width, svm.vectors.width));
    transform(how, each.scores);
    places.push_back(each.place);
    scores.insert(scores.end(), each.scores.begin(), each.scores.end());
  }
  put_labels(call, out, svm.labels, places);
  if (call.wants_output(1)) store(allocate_inferred(call, in, out, infer_classifier, 1), std::span<const double>(scores));
}

std::vector<Type> infer_regressor(const OpCall& call) {
  post_transform_of(call);
  kernel_of(call);
  const int64_t count = call.integer("n_supports", 0);
  const size_t coefficients = call.reals("coefficients").size();
  if (count < 0) fail(ErrorKind::InvalidModel, title(call), ": n_supports is ", count);
  vectors_of(call, count == 0 ? "coefficients" : "support_vectors", count == 0 ? 1 : static_cast<size_t>(count));
  if (count > 0) require_length(call, "coefficients", coefficients, static_cast<size_t>(count));
  if (call.reals("rho").empty()) fail(ErrorKind::InvalidModel, title(call), ": the attribute 'rho' is missing");
  return {TensorType{float_output(call), per_row(call, call.input(0).shape, 1)}};
}

// Without support vectors the coefficients are weights. The text wants the transform, which both evaluators leave out; for one
// class it comes after the sign.
void run_regressor(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const OpCall known = with_data(call, in);
  Tensor& result = allocate_inferred(call, in, out, infer_regressor);
  const auto count = static_cast<size_t>(call.integer("n_supports", 0));
  const Vectors vectors = vectors_of(known, count == 0 ? "coefficients" : "support_vectors", std::max<size_t>(count, 1));
  const SvmKernel kernel = count == 0 ? SvmKernel{} : kernel_of(call);
  const std::vector<double> coefficients = count == 0 ? std::vector<double>{1} : real_list(call, "coefficients");
  const double rho = real_list(call, "rho")[0];
  const PostTransform how = post_transform_of(call);
  const std::vector<double> x = doubles(in[0].tensor());
  std::vector<double> y(result.elements());
  for (size_t row = 0; row < y.size(); ++row) {
    const auto line = std::span(x).subspan(row * vectors.width, vectors.width);
    double sum = 0;
    for (size_t i = 0; i < vectors.count; ++i) sum += coefficients[i] * kernel(line, vectors.row(i));
    y[row] = sum + rho;
    if (call.integer("one_class", 0) != 0) y[row] = y[row] > 0 ? 1 : -1;
    transform(how, std::span(&y[row], 1));
  }
  store(result, std::span<const double>(y));
}

Op svm_op(std::string_view name, std::string summary) {
  Op op = ml_op(name, std::move(summary));
  op.inputs = {required("X", feature_types())};
  op.attributes = {
      {"kernel_type", std::string("LINEAR")}, {"kernel_params", std::vector<float>()}, {"support_vectors", std::vector<float>()},
      {"coefficients", std::vector<float>()}, {"rho", std::vector<float>()},           {"post_transform", std::string("NONE")}};
  op.rounding = Rounding::Function;
  op.category = Category::Matrix;
  return op;
}

Op svm_classifier() {
  Op op = svm_op("SVMClassifier", "The label that a support vector machine gives, and its scores or probabilities.");
  op.outputs = {required("Y", {DType::String, DType::I64}), optional("Z", {DType::F32})};
  op.attributes.insert({{"vectors_per_class", std::vector<int64_t>()},
                        {"prob_a", std::vector<float>()},
                        {"prob_b", std::vector<float>()},
                        {"classlabels_strings", std::vector<std::string>()},
                        {"classlabels_ints", std::vector<int64_t>()}});
  op.infer = infer_classifier;
  op.reference = run_classifier;
  op.cost = [](const OpCall& call) { return svm_cost(call, static_cast<double>(call.reals("rho").size())); };
  const std::string three =
      " vectors_per_class=[1,2,1] support_vectors=[0,1,1,-1,-0.5,0.25,2,0.5] coefficients=[1,-0.5,0.75,-1,0.5,0.25,-0.25,-0.75] "
      "rho=[0.1,-0.2,0.3]";
  const std::string two = " vectors_per_class=[1,2] support_vectors=[0,1,1,-1,-0.5,0.25] coefficients=[1,-0.5,-0.5] rho=[0.1]";
  const std::string likely = " prob_a=[-1,-2,-0.5] prob_b=[0.1,0,-0.1]";
  op.cases = {
      cat("T[4,2]~small classlabels_ints=[7,8,9] outputs=2 kernel_type=LINEAR", three),
      cat("T[4,2]~small classlabels_ints=[7,8,9] outputs=2 kernel_type=POLY,RBF,SIGMOID kernel_params=[0.5,1,3]", three),
      cat("T[4,2]~small classlabels_strings=[a,b,c] outputs=2 kernel_type=RBF kernel_params=[0.5,0,0]", three, likely),
      cat("f32[4,2]~small classlabels_ints=[7,8,9] outputs=2 kernel_type=RBF kernel_params=[0.5,0,0] "
          "post_transform=NONE,SOFTMAX,LOGISTIC,SOFTMAX_ZERO,PROBIT",
          three, likely),
      cat("f32[4,2]~small classlabels_ints=[7,8,9] outputs=2 post_transform=SOFTMAX,LOGISTIC,SOFTMAX_ZERO", three),
      cat("T[4,2]~small classlabels_ints=[3,4] outputs=2 post_transform=NONE,SOFTMAX,LOGISTIC,SOFTMAX_ZERO", two),
      cat("T[4,2]~small classlabels_strings=[no,yes] outputs=2 prob_a=[-1.5] prob_b=[0.25]", two),
      "T[5,3]~small classlabels_ints=[1,2] outputs=2 coefficients=[1,-1,0.5,-1,1,-0.5] rho=[0.25] post_transform=NONE,LOGISTIC",
      "T[5,1]~small classlabels_strings=[a,b,c] outputs=2 coefficients=[1,-1,0.5] rho=[0.25]",
      cat("T[2]~small classlabels_ints=[7,8,9] outputs=2", three),
      cat("T[0,2] classlabels_ints=[7,8,9] outputs=2", three),
      cat("f32[2,2]{0,0,1e4,-1e4} classlabels_ints=[3,4] outputs=2 prob_a=[-1] prob_b=[0]", two)};
  return op;
}

Op svm_regressor() {
  Op op = svm_op("SVMRegressor", "The value that a support vector machine gives, or its sign for one class.");
  op.outputs = {required("Y", {DType::F32})};
  op.attributes.insert({{"one_class", int64_t{0}}, {"n_supports", int64_t{0}}});
  op.infer = infer_regressor;
  op.reference = run_regressor;
  op.cost = [](const OpCall& call) { return svm_cost(call, 1); };
  const std::string three = " n_supports=3 support_vectors=[0,1,1,-1,-0.5,0.25] coefficients=[1,-0.5,0.25] rho=[0.1]";
  op.cases = {cat("T[4,2]~small kernel_type=LINEAR", three),
              cat("T[4,2]~small kernel_type=POLY kernel_params=[0.5,1,2],[0.5,1,3],[1,0,0]", three),
              cat("T[4,2]~small kernel_type=RBF kernel_params=[0.5,0,0]", three),
              cat("T[4,2]~small kernel_type=SIGMOID kernel_params=[0.5,-1,0]", three),
              cat("T[4,2]~small kernel_type=RBF kernel_params=[0.5,0,0] one_class=1", three),
              "T[5,3]~small coefficients=[1,-1,0.5] rho=[0.25] one_class=0,1",
              cat("T[4,2]~small post_transform=SOFTMAX,LOGISTIC,SOFTMAX_ZERO", three),
              "f32[3,1]{0.25,0.5,0} coefficients=[1] rho=[0.25] post_transform=PROBIT",
              cat("T[2]~small", three),
              cat("T[0,2]", three),
              cat("f32[2,2]{1e20,1e20,0,0} kernel_type=RBF kernel_params=[1,0,0]", three)};
  return op;
}

}  // namespace

void add_svm_ops(OpSet& ops) {
  ops.add(svm_classifier());
  ops.add(svm_regressor());
}

}  // namespace unmoor::ml
