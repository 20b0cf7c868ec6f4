#include "unmoor/ops/einsum.h"

#include <algorithm>
#include <map>

#include "unmoor/base/error.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {

namespace {

// An equation with every axis a label: a letter, or -1, -2, … for the axes of an ellipsis, counted from its last one.
struct Equation {
  std::vector<std::vector<int>> terms;  // One an input.
  std::vector<int> output;
};

// One term as its letters, with -1 for an ellipsis.
std::vector<int> letters_of(const OpCall& call, std::string_view term) {
  std::vector<int> letters;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (c == ' ') continue;
    if (term.substr(i, 3) == "..." && std::ranges::count(letters, -1) == 0) {
      letters.push_back(-1);
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      letters.push_back(c);
    } else {
      fail(ErrorKind::InvalidModel, title(call), ": '", c, "' makes no sense in the equation's term '", term, "'");
    }
  }
  return letters;
}

std::vector<int> with_ellipsis(const std::vector<int>& letters, int64_t axes) {
  std::vector<int> labels;
  for (const int letter : letters) {
    if (letter != -1) {
      labels.push_back(letter);
    } else {
      for (int64_t axis = axes; axis > 0; --axis) labels.push_back(static_cast<int>(-axis));
    }
  }
  return labels;
}

// Letters that occur once, in order, after the ellipsis.
std::vector<int> implied_output(const std::vector<std::vector<int>>& terms, int64_t widest) {
  std::map<int, int> counts;
  for (const auto& term : terms) {
    for (const int label : term) ++counts[label];
  }
  std::vector<int> output;
  for (int64_t axis = widest; axis > 0; --axis) output.push_back(static_cast<int>(-axis));
  for (const auto& [label, count] : counts) {
    if (label >= 0 && count == 1) output.push_back(label);
  }
  return output;
}

// Nothing if an input's rank is unknown.
std::optional<Equation> equation_of(const OpCall& call) {
  const std::string text = call.text("equation", "");
  const size_t arrow = text.find("->");
  std::vector<std::vector<int>> letters;
  std::string_view left = std::string_view(text).substr(0, arrow);
  for (size_t at = 0; at != std::string_view::npos;) {
    const size_t comma = left.find(',');
    letters.push_back(letters_of(call, left.substr(0, comma)));
    at = comma;
    if (comma != std::string_view::npos) left.remove_prefix(comma + 1);
  }
  if (letters.size() != call.input_count()) {
    fail(ErrorKind::InvalidModel, title(call), ": equation '", text, "' has ", letters.size(), " terms for ", call.input_count(),
         " inputs");
  }
  Equation equation;
  int64_t widest = 0;
  for (size_t i = 0; i < letters.size(); ++i) {
    const Shape& shape = call.input(i).shape;
    if (!shape.has_rank()) return std::nullopt;
    const bool dots = std::ranges::count(letters[i], -1) > 0;
    const int64_t rest = static_cast<int64_t>(shape.rank()) - static_cast<int64_t>(letters[i].size()) + (dots ? 1 : 0);
    if (rest < 0 || (!dots && rest != 0)) {
      fail(ErrorKind::InvalidModel, title(call), ": input ", i, " of shape ", shape, " does not fit its term in '", text, "'");
    }
    widest = std::max(widest, rest);
    equation.terms.push_back(with_ellipsis(letters[i], rest));
  }
  equation.output = arrow == std::string::npos
                        ? implied_output(equation.terms, widest)
                        : with_ellipsis(letters_of(call, std::string_view(text).substr(arrow + 2)), widest);
  return equation;
}

// The dimension of each label. Axes of an ellipsis broadcast.
std::map<int, int64_t> dims_of(const OpCall& call, const Equation& equation) {
  std::map<int, int64_t> dims;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    const Shape& shape = call.input(i).shape;
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      const auto [found, added] = dims.emplace(equation.terms[i][axis], shape[axis]);
      if (!added) found->second = broadcast(Shape{found->second}, Shape{shape[axis]})[0];
    }
  }
  for (size_t i = 0; i < equation.output.size(); ++i) {
    if (!dims.contains(equation.output[i]) ||
        std::count(equation.output.begin(), equation.output.end(), equation.output[i]) > 1) {
      fail(ErrorKind::InvalidModel, title(call), ": equation '", call.text("equation", ""),
           "' has an output axis that is repeated or in no input");
    }
  }
  return dims;
}

// How far each input moves for each of these labels; repeated labels move along a diagonal, repeated elements not at all.
std::vector<std::vector<int64_t>> steps_of(const Equation& equation, const std::vector<Shape>& shapes,
                                           const std::vector<int>& labels) {
  std::vector<std::vector<int64_t>> steps(shapes.size(), std::vector<int64_t>(labels.size()));
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::vector<int64_t> dense = shapes[i].strides();
    for (size_t axis = 0; axis < shapes[i].rank(); ++axis) {
      const auto place = std::ranges::find(labels, equation.terms[i][axis]);
      if (place != labels.end() && shapes[i][axis] != 1) steps[i][static_cast<size_t>(place - labels.begin())] += dense[axis];
    }
  }
  return steps;
}

// Visits all indices below `dims`: each input's place moves by its steps.
template <class Visit>
void each_index(const std::vector<int64_t>& dims, const std::vector<std::vector<int64_t>>& steps, std::vector<int64_t> places,
                Visit visit) {
  if (std::ranges::find(dims, 0) != dims.end()) return;
  std::vector<int64_t> index(dims.size());
  while (true) {
    visit(places);
    size_t axis = dims.size();
    while (true) {
      if (axis == 0) return;
      --axis;
      for (size_t i = 0; i < places.size(); ++i) places[i] += steps[i][axis];
      if (++index[axis] < dims[axis]) break;
      for (size_t i = 0; i < places.size(); ++i) places[i] -= steps[i][axis] * dims[axis];
      index[axis] = 0;
    }
  }
}

template <class T>
std::vector<T> contracted(const Equation& equation, const std::map<int, int64_t>& dims, std::span<const Data> in) {
  std::vector<std::vector<T>> values;
  std::vector<Shape> shapes;
  for (const Data& data : in) {
    values.push_back(read_as<T>(data.tensor()));
    shapes.push_back(data.tensor().shape());
  }
  std::vector<int> summed;
  std::vector<int64_t> output_dims;
  std::vector<int64_t> summed_dims;
  for (const auto& [label, dim] : dims) {
    if (std::ranges::count(equation.output, label) > 0) continue;
    summed.push_back(label);
    summed_dims.push_back(dim);
  }
  for (const int label : equation.output) output_dims.push_back(dims.at(label));
  const auto output_steps = steps_of(equation, shapes, equation.output);
  const auto summed_steps = steps_of(equation, shapes, summed);
  std::vector<T> result;
  each_index(output_dims, output_steps, std::vector<int64_t>(in.size()), [&](const std::vector<int64_t>& outer) {
    T sum{};
    each_index(summed_dims, summed_steps, outer, [&](const std::vector<int64_t>& places) {
      T product{1};
      for (size_t i = 0; i < places.size(); ++i) product *= values[i][static_cast<size_t>(places[i])];
      sum += product;
    });
    result.push_back(sum);
  });
  return result;
}

std::vector<Type> infer_einsum(const OpCall& call) {
  require_same_dtype(call);
  const auto equation = equation_of(call);
  if (!equation) return {TensorType{call.input(0).dtype, Shape::of_unknown_rank()}};
  const auto dims = dims_of(call, *equation);
  Shape shape;
  for (const int label : equation->output) shape.push_back(dims.at(label));
  return {TensorType{call.input(0).dtype, shape}};
}

void einsum_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const auto equation = equation_of(call);
  const auto dims = dims_of(call, equation.value());
  Tensor& result = out.allocate(0, call.output(0));
  if (is_float(result.dtype())) {
    write_as<double>(result, contracted<double>(*equation, dims, in));
  } else {
    write_as<uint64_t>(result, contracted<uint64_t>(*equation, dims, in));
  }
}

Cost einsum_cost(const OpCall& call) {
  const auto equation = equation_of(call);
  double flop = equation ? static_cast<double>(call.input_count()) : 0;
  if (equation) {
    for (const auto& [label, dim] : dims_of(call, *equation)) flop *= dim < 0 ? 0 : static_cast<double>(dim);
  }
  return {flop, bytes_moved(call)};
}

}  // namespace

void add_einsum(OpSet& ops) {
  Op op;
  op.name = "Einsum";
  op.summary = "Sums of products, as the equation's letters say.";
  op.inputs = {variadic("Inputs", number_types())};
  op.outputs = {required("Output", number_types())};
  op.attributes = {{"equation", std::string()}};
  op.infer = infer_einsum;
  op.reference = einsum_reference;
  op.cost = einsum_cost;
  op.rounding = Rounding::Sum;
  op.category = Category::Matrix;
  op.cases = {"T[3,4]~small T[4,5]~small equation=\"ij,jk->ik\"",
              "T[3,4]~small equation=\"ij->ji\"",
              "T[3,4]~small equation=\"ij->i\"",
              "T[5]~small T[5]~small equation=\"i,i\"",
              "T[3,5,5]~small equation=\"...ii->...i\"",
              "T[2,3,4]~small T[2,4,5]~small equation=\"bij,bjk->bik\"",
              "T[2,3,4,8]~small T[2,3,5,8]~small equation=\"bhid,bhjd->bhij\"",
              "T[2,1,3,4]~small T[5,4,2]~small equation=\"...ij,...jk->...ik\"",
              "T[3]~small T[4]~small T[5]~small equation=\"i,j,k->ijk\"",
              "T[0,4] T[4,5] equation=\"ij,jk->ik\"",
              "T[3,4]~small equation=\"ij->\"",
              "T[2,7,4,8]~small T[7,8,3]~small equation=\"bctn,cnv->bctv\""};
  ops.add(std::move(op));
}

}  // namespace unmoor
