#include "unmoor/backends/gpu/elementwise.h"

#include <array>

#include "unmoor/backends/gpu/texts.h"
#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

// Axes that kernels are made for; a walk takes the next larger one, so that few programs are compiled.
size_t kernel_rank(size_t axes) { return axes <= 1 ? 1 : axes <= 3 ? 3 : most_axes; }

std::string letter(size_t input) { return std::string(1, static_cast<char>('a' + input)); }

// Built-in functions have the short names.
std::string entry_of(const Elementwise& what) { return cat("elementwise_", what.label); }

// "(i0 * a_step0 + i1 * a_step1)"
std::string position(const std::string& input, size_t rank) {
  std::string text;
  for (size_t axis = 0; axis < rank; ++axis) text += cat(axis == 0 ? "" : " + ", "i", axis, " * ", input, "_step", axis);
  return text;
}

std::string kernel_text(const Elementwise& what, size_t rank) {
  std::string text = cat("KERNEL(", entry_of(what), ")(");
  for (size_t i = 0; i < what.input_types.size(); ++i) {
    text += cat("MEMORY(const ", element_name(what.input_types[i]), ", in_", letter(i), "), ");
    for (size_t axis = 0; axis < rank; ++axis) text += cat("const int ", letter(i), "_step", axis, ", ");
  }
  for (size_t axis = 0; axis < rank; ++axis) text += cat("const int dim", axis, ", ");
  text += cat("MEMORY(", element_name(what.output_type), ", out), const int n, const f32 p, const f32 q) {\n");
  for (size_t i = 0; i < what.input_types.size(); ++i) text += cat("  AT(in_", letter(i), ");\n");
  text += "  AT(out);\n  ELEMENT(i, n) {\n    int rest = i;\n";
  for (size_t axis = rank; axis-- > 1;) {
    text += cat("    const int i", axis, " = MOD(rest, dim", axis, ");\n    rest = DIV(rest, dim", axis, ");\n");
  }
  text += "    const int i0 = rest;\n";
  for (size_t i = 0; i < what.input_types.size(); ++i) {
    text += cat("    const ", element_name(what.input_types[i]), " ", letter(i), " = in_", letter(i), "[", position(letter(i), rank), "];\n");
  }
  return text + cat("    out[i] = (", element_name(what.output_type), ")(", what.expression, ");\n  }\n}\n");
}

bool has_f64(const Elementwise& what) {
  bool result = what.output_type == DType::F64;
  for (const auto dtype : what.input_types) result = result || dtype == DType::F64;
  return result;
}

}  // namespace

Launch elementwise(const Elementwise& what, const OpCall& call) {
  const auto& shape = call.output(0).shape;
  Walk walk{shape.dims(), {}};
  for (const auto input : what.inputs) walk.strides.push_back(broadcast_strides(call.input(input).shape, shape));
  walk = collapsed(walk);
  const size_t rank = kernel_rank(walk.rank());
  walk = padded(std::move(walk), rank);
  Launch launch(entry_of(what), cat(math_text(), kernel_text(what, walk.rank())),
                real_defines(has_f64(what) ? DType::F64 : DType::F32));
  for (size_t i = 0; i < what.inputs.size(); ++i) launch.input(call, what.inputs[i]).integers(walk.strides[i]);
  launch.integers(walk.dims).output(call, 0).integer(shape.elements()).real(what.p).real(what.q).elements(shape.elements());
  return launch;
}

Support can_broadcast(const OpCall& call) {
  const auto& shape = call.output(0).shape;
  Walk walk{shape.dims(), {}};
  for (size_t i = 0; i < call.input_count(); ++i) {
    if (call.has(i)) walk.strides.push_back(broadcast_strides(call.input(i).shape, shape));
  }
  const auto axes = collapsed(walk).rank();
  if (axes > most_axes) return no(Reason::Rank, "broadcasting walks along ", axes, " axes, more than ", most_axes);
  return yes();
}

}  // namespace unmoor::gpu
