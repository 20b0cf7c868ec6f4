#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/activate.h"
#include "unmoor/ops/product.h"
#include "unmoor/ops/recurrent.h"

namespace unmoor {

namespace {

using Function = std::function<double(double)>;

struct KnownFunction {
  std::string_view name;
  int parameters;  // How many of alpha, beta it takes.
  double alpha, beta;
  double (*function)(double x, double alpha, double beta);
};

const KnownFunction known_functions[] = {
    {"Relu", 0, 0, 0, [](double x, double, double) { return x < 0 ? 0 : x; }},
    {"Tanh", 0, 0, 0, [](double x, double, double) { return std::tanh(x); }},
    {"Sigmoid", 0, 0, 0, [](double x, double, double) { return sigmoid(x); }},
    {"Affine", 2, 1, 0, [](double x, double a, double b) { return a * x + b; }},
    {"LeakyRelu", 1, 0.01, 0, [](double x, double a, double) { return x < 0 ? a * x : x; }},
    {"ThresholdedRelu", 1, 1, 0, [](double x, double a, double) { return x >= a ? x : 0; }},
    {"ScaledTanh", 2, 1, 1, [](double x, double a, double b) { return a * std::tanh(b * x); }},
    {"HardSigmoid", 2, 0.2, 0.5, hard_sigmoid},
    {"Elu", 1, 1, 0, [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; }},
    {"Softsign", 0, 0, 0, [](double x, double, double) { return x / (1 + std::fabs(x)); }},
    {"Softplus", 0, 0, 0, [](double x, double, double) { return softplus(x); }},
};

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  return std::ranges::equal(a, b, [&](char x, char y) { return lower(x) == lower(y); });
}

const KnownFunction& find_function(const OpCall& call, std::string_view wanted) {
  for (const KnownFunction& entry : known_functions) {
    if (same_name(entry.name, wanted)) return entry;
  }
  fail(ErrorKind::InvalidModel, title(call), ": activation '", wanted, "' is not known");
}

// y += x·m for a row x of n numbers and a matrix of `columns` columns, of which [from, to) are used.
void add_row_product(std::span<const double> x, const std::vector<double>& matrix, size_t columns, size_t from, size_t to,
                     double* y) {
  for (size_t i = 0; i < x.size(); ++i) {
    const double* const row = matrix.data() + i * columns;
    for (size_t j = from; j < to; ++j) y[j] += x[i] * row[j];
  }
}

void step_lstm(const OpCall& call, const CellWeights& weights, const CellFunctions& functions, const std::vector<double>& gates,
               std::span<double> state, std::span<double> cell) {
  const size_t n = state.size();
  const bool coupled = call.integer("input_forget", 0) != 0;
  const auto peep = [&](size_t gate, size_t i, double c) {
    return weights.peepholes.empty() ? 0 : weights.peepholes[gate * n + i] * c;
  };
  for (size_t i = 0; i < n; ++i) {
    const double in = functions.of[0](gates[i] + peep(0, i, cell[i]));
    const double forget = coupled ? 1 - in : functions.of[0](gates[2 * n + i] + peep(2, i, cell[i]));
    const double next = forget * cell[i] + in * functions.of[1](gates[3 * n + i]);
    const double out = functions.of[0](gates[n + i] + peep(1, i, next));
    cell[i] = next;
    state[i] = out * functions.of[2](next);
  }
}

// `input` holds what X gives to the gates, biases of both kinds for the first two.
void step_gru(const OpCall& call, const CellWeights& weights, const CellFunctions& functions, std::vector<double> input,
              std::span<double> state) {
  const size_t n = state.size();
  add_row_product(state, weights.r, 3 * n, 0, 2 * n, input.data());
  std::vector<double> update(n);
  std::vector<double> reset(n);
  for (size_t i = 0; i < n; ++i) {
    update[i] = functions.of[0](input[i]);
    reset[i] = functions.of[0](input[n + i]);
  }
  std::vector<double> from_state(3 * n);
  const bool linear = call.integer("linear_before_reset", 0) != 0;
  std::vector<double> source(state.begin(), state.end());
  for (size_t i = 0; i < n && !linear; ++i) source[i] *= reset[i];
  add_row_product(source, weights.r, 3 * n, 2 * n, 3 * n, from_state.data());
  for (size_t i = 0; i < n; ++i) {
    const double part = from_state[2 * n + i] + weights.r_bias[2 * n + i];
    const double candidate = functions.of[1](input[2 * n + i] + (linear ? reset[i] * part : part));
    state[i] = (1 - update[i]) * candidate + update[i] * state[i];
  }
}

}  // namespace

std::vector<CellFunctions> cell_functions(const OpCall& call, const Recurrence& sizes) {
  static const std::array<std::vector<std::string>, 3> usual{
      std::vector<std::string>{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
  const std::vector<std::string>& defaults = usual[static_cast<size_t>(sizes.kind)];
  const auto directions = static_cast<size_t>(sizes.directions);
  std::vector<std::string> names = call.texts("activations");
  if (names.empty()) {
    for (size_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  }
  if (names.size() != directions * defaults.size()) {
    fail(ErrorKind::InvalidModel, title(call), ": activations has ", names.size(), " names, not ", directions * defaults.size());
  }
  const std::vector<float> alphas = call.reals("activation_alpha");
  const std::vector<float> betas = call.reals("activation_beta");
  const double clip = call.real("clip", 0);
  size_t alpha_at = 0;  // Values are for those functions that take one, in order.
  size_t beta_at = 0;
  std::vector<CellFunctions> all(directions);
  for (size_t i = 0; i < names.size(); ++i) {
    const KnownFunction& entry = find_function(call, names[i]);
    double alpha = entry.alpha;
    double beta = entry.beta;
    if (entry.parameters >= 1 && alpha_at < alphas.size()) alpha = static_cast<double>(alphas[alpha_at++]);
    if (entry.parameters >= 2 && beta_at < betas.size()) beta = static_cast<double>(betas[beta_at++]);
    all[i / defaults.size()].of[i % defaults.size()] = [function = entry.function, alpha, beta, clip](double x) {
      return function(clip > 0 ? std::clamp(x, -clip, clip) : x, alpha, beta);
    };
  }
  return all;
}

void step_cell(const OpCall& call, const Recurrence& sizes, const CellWeights& weights, const CellFunctions& functions,
               const double* x, std::span<double> state, std::span<double> cell) {
  const size_t n = state.size();
  const size_t columns = static_cast<size_t>(sizes.gates) * n;
  std::vector<double> gates = weights.w_bias;
  add_row_product({x, static_cast<size_t>(sizes.input)}, weights.w, columns, 0, columns, gates.data());
  const size_t summed = sizes.kind == CellKind::Gru ? 2 * n : columns;  // GRU's candidate has its second bias inside.
  for (size_t i = 0; i < summed; ++i) gates[i] += weights.r_bias[i];
  if (sizes.kind == CellKind::Gru) return step_gru(call, weights, functions, std::move(gates), state);
  add_row_product(std::vector<double>(state.begin(), state.end()), weights.r, columns, 0, columns, gates.data());
  if (sizes.kind == CellKind::Lstm) return step_lstm(call, weights, functions, gates, state, cell);
  for (size_t i = 0; i < n; ++i) state[i] = functions.of[0](gates[i]);
}

}  // namespace unmoor
