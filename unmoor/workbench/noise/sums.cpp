#include "unmoor/workbench/noise/sums.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "unmoor/base/error.h"
#include "unmoor/ops/real.h"
#include "unmoor/tensor/unset.h"

namespace unmoor {
namespace {

Data squared(const Data& data) {
  if (!data.is_tensor() || data.tensor().dtype() != DType::F64) return data;
  Tensor result = unset_tensor(data.tensor().type());
  const auto from = data.tensor().span<double>();
  const auto to = result.writable_span<double>();
  side_by_side_ranges(to.size(), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) to[i] = from[i] * from[i];
  });
  return result;
}

std::vector<double> numbers(const Data& data) {
  std::vector<double> values = doubles(data.tensor());
  for (double& value : values) value = std::fabs(value);  // Interpolation weights may be negative.
  return values;
}

double product_of(const Shape& shape, size_t from) {
  double result = 1;
  for (size_t axis = from; axis < shape.rank(); ++axis) result *= static_cast<double>(shape[axis]);
  return result;
}

double elements_of(const Data& data) { return static_cast<double>(data.tensor().elements()); }

// How to get squares and terms. `squared_inputs` are those whose numbers are squared; the others, such as axes and grids, stay.
struct Rule {
  std::vector<size_t> squared_inputs = {};
  double (*terms)(const OpCall& call, std::span<const Data> in, const Tensor& y) = nullptr;
  // Corrects what the reference made of the squares; empty if nothing is to be done.
  void (*finish)(const OpCall& call, std::span<const Data> in, double terms, std::vector<double>& squares) = nullptr;
  std::vector<size_t> left_out = {};  // Inputs that are not given to the run on squares: biases.
};

using In = std::span<const Data>;

double matmul_terms(const OpCall& call, In, const Tensor&) {
  const Shape& a = call.input(0).shape;
  return a.rank() == 0 ? 1 : static_cast<double>(a[a.rank() - 1]);
}
double conv_terms(const OpCall& call, In, const Tensor&) { return product_of(call.input(1).shape, 1); }
// Of W[C, M/group, k…] each output element meets C/group·k/stride products.
double transposed_conv_terms(const OpCall& call, In, const Tensor&) {
  const Shape& w = call.input(1).shape;
  double terms = static_cast<double>(w[0]) * product_of(w, 2) / static_cast<double>(call.integer("group", 1));
  for (const int64_t stride : call.integers("strides")) terms /= static_cast<double>(std::max<int64_t>(stride, 1));
  return std::max(1.0, std::ceil(terms));
}
// Every index that the output does not have is added over.
double einsum_terms(const OpCall& call, In in, const Tensor& y) {
  std::map<char, double> sizes;
  const std::string equation = call.text("equation", "");
  size_t operand = 0;
  size_t axis = 0;
  for (const char letter : equation.substr(0, equation.find("->"))) {
    if (letter == ',') ++operand, axis = 0;
    if (letter == '.') return std::max(1.0, elements_of(in[0]));  // Which axes an ellipsis stands for is not worked out.
    if (!std::isalpha(static_cast<unsigned char>(letter))) continue;
    const Shape& shape = in[operand].tensor().shape();
    sizes[letter] = std::max(sizes[letter], static_cast<double>(shape[axis++]));
  }
  double all = 1;
  for (const auto& [letter, size] : sizes) all *= size;
  return std::max(1.0, all / std::max<double>(1, static_cast<double>(y.elements())));
}
double reduced_terms(const OpCall&, In in, const Tensor& y) {
  return y.elements() == 0 ? 1 : std::max(1.0, elements_of(in[0]) / static_cast<double>(y.elements()));
}
double window_terms(const OpCall& call, In, const Tensor&) {
  double taps = 1;
  for (const int64_t size : call.integers("kernel_shape")) taps *= static_cast<double>(size);
  return taps;
}
double block_terms(const OpCall&, In in, const Tensor&) {
  double taps = 1;
  for (const int64_t size : integers_at(in, 2)) taps *= static_cast<double>(size);
  return taps;
}
double along_terms(const OpCall&, In in, const Tensor&) {
  const auto axis = integers_at(in, 1);
  const Shape& shape = in[0].tensor().shape();
  if (axis.size() != 1 || shape.rank() == 0) return 1;
  return static_cast<double>(shape[static_cast<size_t>(axis[0] < 0 ? axis[0] + static_cast<int64_t>(shape.rank()) : axis[0])]);
}
double four_terms(const OpCall& call, In in, const Tensor&) {
  const std::string mode = call.text("mode", "linear");
  const auto axes = static_cast<double>(in[0].tensor().shape().rank()) - 2;
  return std::pow(mode == "cubic" || mode == "bicubic" ? 4 : 2, std::max(axes, 1.0));
}
double roi_terms(const OpCall&, In, const Tensor&) { return 16; }  // Two samples each way of four neighbours.
double scatter_terms(const OpCall&, In in, const Tensor&) {
  return 2 + std::ceil(elements_of(in[2]) / std::max(1.0, elements_of(in[0])));
}
double transform_terms(const OpCall& call, In in, const Tensor&) {
  if (const auto length = integers_at(in, call.node.op == "DFT" ? 1 : 3); length.size() == 1)
    return static_cast<double>(length[0]);
  if (call.node.op == "STFT" && call.has(2)) return elements_of(in[2]);
  const Shape& shape = in[0].tensor().shape();
  const auto axis = integers_at(in, 2);
  const auto length = static_cast<double>(shape[call.node.op == "DFT" ? axis_of(call, shape, axis.empty() ? -2 : axis[0]) : 1]);
  const bool from_half = call.integer("inverse", 0) != 0 && call.integer("onesided", 0) != 0;
  return from_half ? std::max(2 * (length - 1), 1.0) : length;
}

// The mean's terms are x/n: their squares add up to the mean of squares over n.
void over_terms(const OpCall&, In, double terms, std::vector<double>& squares) {
  for (double& value : squares) value /= terms;
}

// Where padding is not counted, fewer elements are averaged: those that a mean over ones with padding counted tells.
void over_window(const OpCall& call, In in, double terms, std::vector<double>& squares) {
  if (call.integer("count_include_pad", 0) != 0) return over_terms(call, in, terms, squares);
  Tensor ones(in[0].tensor().type());
  std::ranges::fill(ones.writable_span<double>(), 1.0);
  Node node = call.node;
  node.attributes["count_include_pad"] = int64_t{1};
  const std::vector<Data> input{ones};
  const std::vector<double> share = doubles(reference_on(node, input).at(0).tensor());
  for (size_t i = 0; i < squares.size(); ++i) squares[i] /= std::max(1.0, share[i] * terms);
}

// A product's relative error grows with every factor.
void of_result(const OpCall&, In, double, std::vector<double>&) {}

const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> table{
      {"MatMul", {{0, 1}, matmul_terms}},
      {"Conv", {{0, 1}, conv_terms, nullptr, {2}}},
      {"ConvTranspose", {{0, 1}, transposed_conv_terms, nullptr, {2}}},
      {"DeformConv", {{0, 1, 4}, conv_terms, nullptr, {3}}},
      {"Einsum", {{0, 1, 2, 3, 4, 5, 6, 7}, einsum_terms}},
      {"ReduceSum", {{0}, reduced_terms}},
      {"ReduceMean", {{0}, reduced_terms, over_terms}},
      {"ReduceProd", {{0}, reduced_terms, of_result}},
      {"CumSum", {{0}, along_terms}},
      {"AveragePool", {{0}, window_terms, over_window}},
      {"Col2Im", {{0}, block_terms}},
      {"GridSample", {{0}, four_terms}},
      {"RoiAlign", {{0}, roi_terms}},
      {"com.microsoft:CropAndResize", {{0}, roi_terms}},
      {"ScatterElements", {{0, 2}, scatter_terms}},
      {"ScatterND", {{0, 2}, scatter_terms}},
      {"DFT", {{0}, transform_terms}},
      {"STFT", {{0, 2}, transform_terms}},
  };
  return table;
}

// Of a transform every coefficient adds all elements of its line or frame, each times a number of size 1: v is the line's energy
// Σ |x|², of the inverse Σ |x/n|². Half a spectrum stands for twice its energy at most.
std::vector<double> line_energy(const OpCall& call, In in, const Tensor& y, double terms) {
  const Tensor& x = in[0].tensor();
  const auto given = integers_at(in, 2);
  const size_t axis = axis_of(call, x.shape(), given.empty() ? -2 : given[0]);
  const Split from = split_at(x.shape(), axis);
  const auto parts = static_cast<size_t>(x.shape()[x.shape().rank() - 1]);  // Real and imaginary.
  const size_t inner = from.inner / parts;
  std::vector<double> lines(from.outer * inner);
  const auto values = x.span<double>();
  for (size_t i = 0; i < values.size(); ++i)
    lines[i / (from.length * from.inner) * inner + i % from.inner / parts] += values[i] * values[i];
  const Split to = split_at(y.shape(), axis);
  const auto y_parts = static_cast<size_t>(y.shape()[y.shape().rank() - 1]);
  std::vector<double> result(y.elements());
  const bool inverse = call.integer("inverse", 0) != 0;
  const double scale = inverse ? (call.integer("onesided", 0) != 0 ? 2 : 1) / (terms * terms) : 1;
  for (size_t i = 0; i < result.size(); ++i) result[i] = scale * lines[i / (to.length * to.inner) * inner + i % to.inner / y_parts];
  return result;
}

// The transform of squares has a frame's energy at frequency 0. Output [batch, frames, frequencies, 2].
std::vector<double> frame_energy(const Node& node, In in, const Tensor& y) {
  std::vector<Data> inputs(in.begin(), in.end());
  inputs[0] = squared(in[0]);
  if (in.size() > 2 && in[2]) inputs[2] = squared(in[2]);
  const std::vector<double> all = doubles(reference_on(node, inputs).at(0).tensor());
  const Shape& shape = y.shape();
  const auto row = static_cast<size_t>(shape[shape.rank() - 1] * shape[shape.rank() - 2]);
  std::vector<double> result(all.size());
  for (size_t i = 0; i < all.size(); ++i) result[i] = std::fabs(all[i / row * row]);
  return result;
}

}  // namespace

bool is_known_sum(std::string_view op) { return rules().contains(op); }

std::optional<SumTerms> sum_terms(const Node& node, In in, const Tensor& y) {
  const auto found = rules().find(node.op);
  if (found == rules().end()) return std::nullopt;
  const Rule& rule = found->second;
  const OpCall call = call_on(node, in);
  SumTerms result{{}, rule.terms(call, in, y)};
  if (node.op == "DFT" || node.op == "STFT") {
    result.squares = node.op == "DFT" ? line_energy(call, in, y, result.terms) : frame_energy(node, in, y);
    return result;
  }
  std::vector<Data> inputs(in.begin(), in.end());
  for (const size_t i : rule.squared_inputs) {
    if (i < inputs.size()) inputs[i] = squared(inputs[i]);
  }
  for (const size_t i : rule.left_out) {
    if (i < inputs.size()) inputs[i] = Data();
  }
  result.squares = numbers(reference_on(node, inputs).at(0));
  if (rule.finish != nullptr) rule.finish(call, in, result.terms, result.squares);
  return result;
}

double sum_variance(double y, double squares, double terms, double unit) {
  return unit * unit / 3 * (y * y * terms / 3 + squares * (terms / 6 + 1));
}

double coordinate_allowance(const Node& node, In in, size_t input) {
  const auto size = [&in] {
    const Shape& shape = in[0].tensor().shape();
    double largest = 1;
    for (size_t axis = 2; axis < shape.rank(); ++axis) largest = std::max(largest, static_cast<double>(shape[axis]));
    return largest;
  };
  if (node.op == "GridSample" && input == 1) return 2;       // Of a range from -1 to 1, moved by 1 before it is scaled.
  if (node.op == "DeformConv" && input == 2) return size();  // Offsets are added to places of up to the image's size.
  if (node.op == "RoiAlign" && input == 1) return 2 * size();
  if (node.op == "com.microsoft:CropAndResize" && input == 1) return 2;
  return 0;
}

}  // namespace unmoor
