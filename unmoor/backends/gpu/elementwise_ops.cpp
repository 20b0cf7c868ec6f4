#include <array>
#include <string_view>

#include "unmoor/backends/gpu/elementwise.h"
#include "unmoor/backends/gpu/move.h"
#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

// An operator as an expression. Empty where it has none for such elements.
struct Rule {
  const char* op;
  const char* real;
  const char* integer;
  const char* boolean = "";
  bool answers_bool = false;
  const char* p_name = "";  // Attributes that are the numbers p and q.
  double p = 0;
  const char* q_name = "";
  double q = 0;
  const char* turned = "";  // The operator that this one is with its inputs turned round: one kernel for both.
};

constexpr std::array rules{
    Rule{"Abs", "fabs(a)", "a < 0 ? -a : a"},
    Rule{"Neg", "-a", "-a"},
    Rule{"Sign", "a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a", "(a > 0) - (a < 0)"},
    Rule{"Ceil", "ceil(a)", ""},
    Rule{"Floor", "floor(a)", ""},
    Rule{"Round", "rint(a)", ""},
    Rule{"Sqrt", "sqrt(a)", ""},
    Rule{"Exp", "exp(a)", ""},
    Rule{"Log", "log(a)", ""},
    Rule{"Reciprocal", "1 / a", ""},
    Rule{"Sin", "sin(a)", ""},
    Rule{"Cos", "cos(a)", ""},
    Rule{"Tan", "tan(a)", ""},
    Rule{"Asin", "asin(a)", ""},
    Rule{"Acos", "acos(a)", ""},
    Rule{"Atan", "atan(a)", ""},
    Rule{"Sinh", "sinh(a)", ""},
    Rule{"Cosh", "cosh(a)", ""},
    Rule{"Asinh", "asinh(a)", ""},
    Rule{"Acosh", "acosh(a)", ""},
    Rule{"Atanh", "atanh(a)", ""},
    Rule{"Tanh", "tanh(a)", ""},
    Rule{"Erf", "erf(a)", ""},
    Rule{"Sigmoid", "sigmoid_of(a)", ""},
    Rule{"Relu", "a < 0 ? 0 : a", "a < 0 ? 0 : a"},
    Rule{"Softplus", "softplus_of(a)", ""},
    Rule{"Softsign", "a / (1 + fabs(a))", ""},
    Rule{"Mish", "a * tanh(softplus_of(a))", ""},
    Rule{"HardSwish", "a * hard_sigmoid_of(a, R(0.16666666666666666667), R(0.5))", ""},
    Rule{"HardSigmoid", "hard_sigmoid_of(a, p, q)", "", "", false, "alpha", 0.2, "beta", 0.5},
    Rule{"Swish", "a * sigmoid_of(p * a)", "", "", false, "alpha", 1},
    Rule{"LeakyRelu", "a < 0 ? p * a : a", "", "", false, "alpha", 0.01},
    Rule{"ThresholdedRelu", "a > p ? a : 0", "", "", false, "alpha", 1},
    Rule{"Elu", "a < 0 ? p * expm1(a) : a", "", "", false, "alpha", 1},
    Rule{"Celu", "a < 0 ? p * expm1(a / p) : a", "", "", false, "alpha", 1},
    Rule{"Selu", "q * (a > 0 ? a : p * expm1(a))", "", "", false, "alpha", 1.67326319217681884765625, "gamma",
         1.05070102214813232421875},
    Rule{"IsNaN", "a != a", "", "", true},
    Rule{"Not", "", "", "a == 0"},
    Rule{"Add", "a + b", "a + b"},
    Rule{"Sub", "a - b", "a - b"},
    Rule{"Mul", "a * b", "a * b"},
    Rule{"Div", "a / b", "b == 0 ? 0 : b < 0 && b + 1 == 0 ? -a : a / b"},
    Rule{"Pow", "pow(a, b)", ""},
    Rule{"PRelu", "a < 0 ? a * b : a", ""},
    Rule{"And", "", "", "a && b"},
    Rule{"Or", "", "", "a || b"},
    Rule{"Xor", "", "", "(a != 0) != (b != 0)"},
    Rule{"Equal", "a == b", "a == b", "(a != 0) == (b != 0)", true},
    Rule{"Less", "a < b", "a < b", "", true},
    Rule{"LessOrEqual", "a <= b", "a <= b", "", true},
    Rule{.op = "Greater", .real = "a < b", .integer = "a < b", .answers_bool = true, .turned = "Less"},
    Rule{.op = "GreaterOrEqual", .real = "a <= b", .integer = "a <= b", .answers_bool = true, .turned = "LessOrEqual"},
};

std::string lower_case(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z' && !result.empty() && result.back() >= 'a' && result.back() <= 'z') result += '_';
    result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

const char* expression_for(const Rule& rule, DType dtype) {
  return dtype == DType::Bool ? rule.boolean : is_float(dtype) ? rule.real : rule.integer;
}

// Every input is of one dtype that kernels compute in.
Support same_elements(const OpCall& call, const Abilities& abilities) {
  const auto dtype = call.input(0).dtype;
  if (element_name(dtype).empty()) return no(Reason::DType, "input 0 is ", dtype, ", which no kernel computes in");
  for (size_t i = 1; i < call.input_count(); ++i) {
    if (call.has(i) && call.input(i).dtype != dtype) return no(Reason::DType, "input ", i, " is ", call.input(i).dtype, ", not ", dtype);
  }
  return dtype == DType::F64 && !abilities.float64 ? no(Reason::DeviceFeature, "the device has no float64") : yes();
}

void add_rule(Kernels& kernels, const Rule& rule) {
  const auto abilities = kernels.abilities();
  const auto supports = [&rule, abilities](const OpCall& call) {
    if (auto answer = same_elements(call, abilities); !answer) return answer;
    const auto dtype = call.input(0).dtype;
    if (*expression_for(rule, dtype) == '\0') return no(Reason::DType, "input 0 is ", dtype, ", which has no ", rule.op, " here");
    return can_broadcast(call);
  };
  const auto prepare = [&rule](const OpCall& call, GpuDevice& device) {
    const auto dtype = call.input(0).dtype;
    const bool turned = *rule.turned != '\0';
    Elementwise what{.label = lower_case(turned ? rule.turned : rule.op), .expression = expression_for(rule, dtype), .input_types = {},
                     .inputs = {}, .output_type = call.output(0).dtype};
    for (size_t i = 0; i < call.input_count(); ++i) {
      what.inputs.push_back(turned ? call.input_count() - 1 - i : i);
      what.input_types.push_back(dtype);
    }
    what.p = *rule.p_name == '\0' ? rule.p : call.real(rule.p_name, rule.p);
    what.q = *rule.q_name == '\0' ? rule.q : call.real(rule.q_name, rule.q);
    return run_in_order(call, device, {elementwise(what, call)});
  };
  kernels.add(rule.op, lower_case(rule.op), supports, prepare, !rule.answers_bool);
}

constexpr size_t most_inputs = 8;

// Operators of any number of inputs: `step` joins the text so far with the next input's letter.
void add_variadic(Kernels& kernels, const std::string& op, std::string (*step)(const std::string&, const std::string&)) {
  const auto abilities = kernels.abilities();
  const auto supports = [abilities](const OpCall& call) {
    if (call.input_count() > most_inputs) return no(Reason::Size, call.input_count(), " inputs, more than ", most_inputs);
    if (auto answer = same_elements(call, abilities); !answer) return answer;
    return call.input(0).dtype == DType::Bool ? no(Reason::DType, "input 0 is bool") : can_broadcast(call);
  };
  const auto prepare = [op, step](const OpCall& call, GpuDevice& device) {
    if (call.input_count() == 1) return copied(call);
    Elementwise what{.label = cat(lower_case(op), call.input_count()), .expression = "a", .input_types = {}, .inputs = {},
                     .output_type = call.output(0).dtype};
    for (size_t i = 0; i < call.input_count(); ++i) {
      what.inputs.push_back(i);
      what.input_types.push_back(call.input(0).dtype);
      if (i > 0) what.expression = step(what.expression, std::string(1, static_cast<char>('a' + i)));
    }
    if (op == "Mean") what.expression = cat("(", what.expression, ") / ", call.input_count());
    return run_in_order(call, device, {elementwise(what, call)});
  };
  kernels.add(op, lower_case(op), supports, prepare);
}

std::string added(const std::string& so_far, const std::string& next) { return cat(so_far, " + ", next); }
// A NaN in either stays.
std::string larger(const std::string& x, const std::string& y) { return cat("larger_of(", y, ", ", x, ")"); }
std::string smaller(const std::string& x, const std::string& y) { return cat("smaller_of(", y, ", ", x, ")"); }

void add_where(Kernels& kernels) {
  const auto supports = [](const OpCall& call) {
    if (call.input(1).dtype == DType::String || bits_of(call.input(1).dtype) % 8 != 0 || bits_of(call.input(1).dtype) > 64) {
      return no(Reason::DType, "input 1 is ", call.input(1).dtype);
    }
    return can_broadcast(call);
  };
  const auto prepare = [](const OpCall& call, GpuDevice& device) {
    const auto moved = integer_of_bytes(bytes_of(call.input(1).dtype, 1));
    return run_in_order(call, device, {elementwise({.label = "where", .expression = "a ? b : c", .input_types = {DType::Bool, moved, moved},
                                              .inputs = {0, 1, 2}, .output_type = moved},
                                             call)});
  };
  kernels.add("Where", "where", supports, prepare);
}

void add_clip(Kernels& kernels) {
  const auto abilities = kernels.abilities();
  const auto supports = [abilities](const OpCall& call) {
    if (auto answer = same_elements(call, abilities); !answer) return answer;
    for (size_t i = 1; i < 3; ++i) {
      if (call.has(i) && (call.input(i).shape.elements() != 1 || call.input(i).shape.rank() > call.input(0).shape.rank())) {
        return no(Reason::Size, "bound ", i, " is ", call.input(i).shape, ", no scalar");
      }
    }
    return call.input(0).dtype == DType::Bool ? no(Reason::DType, "input 0 is bool") : yes();
  };
  const auto prepare = [](const OpCall& call, GpuDevice& device) {
    Elementwise what{.label = "clip", .expression = "a", .input_types = {}, .inputs = {0}, .output_type = call.output(0).dtype};
    const bool low = call.has(1);
    const bool high = call.has(2);
    if (!low && !high) return copied(call);
    if (low) what.inputs.push_back(1);
    if (high) what.inputs.push_back(2);
    if (low) what.expression = larger("a", "b");
    if (high) what.expression = low ? smaller(larger("a", "b"), "c") : smaller("a", "b");
    what.input_types.assign(what.inputs.size(), call.input(0).dtype);
    return run_in_order(call, device, {elementwise(what, call)});
  };
  kernels.add("Clip", "clip", supports, prepare, true);
}

void add_gelu(Kernels& kernels) {
  const auto abilities = kernels.abilities();
  const auto supports = [abilities](const OpCall& call) { return is_real(call, 0, abilities); };
  const auto prepare = [](const OpCall& call, GpuDevice& device) {
    const bool tanh = call.text("approximate", "none") == "tanh";
    const auto dtype = call.input(0).dtype;
    return run_in_order(call, device, {elementwise({.label = tanh ? "gelu_tanh" : "gelu", .expression = tanh ? "gelu_tanh_of(a)" : "gelu_of(a)",
                                              .input_types = {dtype}, .inputs = {0}, .output_type = dtype},
                                             call)});
  };
  kernels.add("Gelu", "gelu", supports, prepare, true);
}

}  // namespace

void add_elementwise_kernels(Kernels& kernels) {
  for (const auto& rule : rules) add_rule(kernels, rule);
  add_variadic(kernels, "Sum", added);
  add_variadic(kernels, "Mean", added);
  add_variadic(kernels, "Max", larger);
  add_variadic(kernels, "Min", smaller);
  add_where(kernels);
  add_clip(kernels);
  add_gelu(kernels);
}

}  // namespace unmoor::gpu
