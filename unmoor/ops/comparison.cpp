#include <cstring>

#include "unmoor/base/error.h"
#include "unmoor/ops/elementwise.h"

namespace unmoor {

namespace {

using Reference = std::function<void(const OpCall&, std::span<const Data>, Outputs&)>;

Op two_inputs(std::string name, std::string summary, const std::vector<DType>& dtypes, Reference reference) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("A", dtypes), required("B", dtypes)};
  op.outputs = {required("C", {DType::Bool})};
  op.infer = [](const OpCall& call) {
    require_same_dtype(call);
    return broadcast_to_dtype(call, DType::Bool);
  };
  op.reference = std::move(reference);
  op.cost = cost_per_output(1);
  op.rounding = Rounding::MoveBits;
  op.cases = {"T[2,3,4] T[2,3,4]", "T[2,3,4] T[4]", "T[3,1] T[2,1,5]", "T[] T[7]", "T[5] T[]", "T[0,4] T[4]", "T[] T[]"};
  return op;
}

Op comparison(std::string name, std::string summary, Reference reference) {
  Op op = two_inputs(std::move(name), std::move(summary), number_types(), std::move(reference));
  for (const char* more : {"f32[2,33]~special f32[2,33]~special", "i64[4]{1,2,3,-1} i64[4]{1,3,2,1}",
                           "u8[3]{200,5,5} u8[3]{5,200,5}", "f32[3]{0,-0.0,1} f32[3]{-0.0,0,1}", "f32[1,2] f32[4,1]"}) {
    op.cases.emplace_back(more);
  }
  return op;
}

void compare_strings(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const auto& a = in[0].tensor().strings();
  const auto& b = in[1].tensor().strings();
  Tensor& result = out.allocate(0, call.output(0));
  const Shape& shape = result.shape();
  const auto values = result.writable_span<uint8_t>();
  walk<2>(shape, {broadcast_strides(in[0].tensor().shape(), shape), broadcast_strides(in[1].tensor().shape(), shape)},
          [&](size_t i, const std::array<int64_t, 2>& at) {
            values[i] = a[static_cast<size_t>(at[0])] == b[static_cast<size_t>(at[1])] ? 1 : 0;
          });
}

void add_comparisons(OpSet& ops) {
  Op equal =
      comparison("Equal", "Whether two elements are equal.", [](const OpCall& call, std::span<const Data> in, Outputs& out) {
        if (call.input(0).dtype == DType::String) return compare_strings(call, in, out);
        binary_reference(call, in, out, [](auto a, auto b) { return a == b; });
      });
  std::vector<DType> dtypes = plain_types();
  dtypes.push_back(DType::String);
  equal.inputs = {required("A", dtypes), required("B", dtypes)};
  equal.cases.emplace_back("bool[2,5] bool[5]");
  ops.add(std::move(equal));
  ops.add(comparison("Less", "Whether A is below B.", [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    binary_reference(call, in, out, [](auto a, auto b) { return a < b; });
  }));
  ops.add(comparison("LessOrEqual", "Whether A is B or below.", [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    binary_reference(call, in, out, [](auto a, auto b) { return a <= b; });
  }));
  ops.add(comparison("Greater", "Whether A is above B.", [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    binary_reference(call, in, out, [](auto a, auto b) { return a > b; });
  }));
  ops.add(
      comparison("GreaterOrEqual", "Whether A is B or above.", [](const OpCall& call, std::span<const Data> in, Outputs& out) {
        binary_reference(call, in, out, [](auto a, auto b) { return a >= b; });
      }));
}

void add_logic(OpSet& ops) {
  ops.add(two_inputs("And", "Both are true.", {DType::Bool}, [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    binary_reference(call, in, out, [](auto a, auto b) { return a != 0 && b != 0; });
  }));
  ops.add(
      two_inputs("Or", "At least one is true.", {DType::Bool}, [](const OpCall& call, std::span<const Data> in, Outputs& out) {
        binary_reference(call, in, out, [](auto a, auto b) { return a != 0 || b != 0; });
      }));
  ops.add(
      two_inputs("Xor", "Exactly one is true.", {DType::Bool}, [](const OpCall& call, std::span<const Data> in, Outputs& out) {
        binary_reference(call, in, out, [](auto a, auto b) { return (a != 0) != (b != 0); });
      }));
}

// Output 0 = whether test(x), for each element.
Op test(std::string name, std::string summary, std::vector<DType> dtypes, std::function<bool(const OpCall&, double)> holds) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("X", std::move(dtypes))};
  op.outputs = {required("Y", {DType::Bool})};
  op.infer = [](const OpCall& call) { return std::vector<Type>{TensorType{DType::Bool, call.input(0).shape}}; };
  op.reference = [holds = std::move(holds)](const OpCall& call, std::span<const Data> in, Outputs& out) {
    const std::vector<double> x = doubles(in[0].tensor());
    std::vector<int64_t> values(x.size());
    for (size_t i = 0; i < x.size(); ++i) values[i] = holds(call, x[i]) ? 1 : 0;
    put(call, out, 0, std::span<const int64_t>(values));
  };
  op.cost = cost_per_output(1);
  op.rounding = Rounding::MoveBits;
  op.cases = {"T[2,3,5]", "T[2,33]~special", "T[]", "T[0,4]"};
  return op;
}

void add_tests(OpSet& ops) {
  std::vector<DType> dtypes = float_types();
  for (const DType small : {DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ}) dtypes.push_back(small);
  ops.add(test("Not", "The opposite truth.", {DType::Bool}, [](const OpCall&, double x) { return x == 0; }));
  ops.add(test("IsNaN", "Whether it is not a number.", dtypes, [](const OpCall&, double x) { return std::isnan(x); }));
  Op infinite = test("IsInf", "Whether it is infinite, of a sign asked for.", dtypes, [](const OpCall& call, double x) {
    return std::isinf(x) && call.integer(x > 0 ? "detect_positive" : "detect_negative", 1) != 0;
  });
  infinite.attributes = {{"detect_negative", int64_t{1}}, {"detect_positive", int64_t{1}}};
  infinite.cases.emplace_back("f32[2,33]~special detect_negative=0,1 detect_positive=0,1");
  ops.add(std::move(infinite));
}

template <class Step>
Reference bits(Step step) {
  return [step](const OpCall& call, std::span<const Data> in, Outputs& out) {
    binary_reference(call, in, out, [step](auto a, auto b) {
      using T = decltype(a);
      if constexpr (std::is_same_v<T, double>) {
        return b;  // Not reached: the schema asks for integers.
      } else {
        return static_cast<T>(step(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
      }
    });
  };
}

Op bit_op(std::string name, std::string summary, const std::vector<DType>& dtypes, Reference reference) {
  Op op = two_inputs(std::move(name), std::move(summary), dtypes, std::move(reference));
  op.outputs = {required("C", dtypes)};
  op.infer = infer_binary;
  return op;
}

// Signed numbers keep their sign on the way to the right. A negative shift moves all bits out, as one of the width or more.
void shift_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const bool left = call.text("direction", "") == "LEFT";
  const auto width = static_cast<int64_t>(bits_of(call.input(0).dtype));
  binary_reference(call, in, out, [left, width](auto a, auto b) {
    using T = decltype(a);
    if constexpr (std::is_same_v<T, double>) {
      return b;  // Not reached: the schema asks for integers.
    } else {
      const bool all = b < T{0} || b >= static_cast<T>(width);
      if (all && (left || !std::is_signed_v<T>)) return T{0};
      if (left) return static_cast<T>(static_cast<uint64_t>(a) << static_cast<uint64_t>(b));
      return static_cast<T>(a >> (all ? T{63} : b));
    }
  });
}

void add_bits(OpSet& ops) {
  ops.add(bit_op("BitwiseAnd", "Bits set in both.", integer_types(), bits([](uint64_t a, uint64_t b) { return a & b; })));
  ops.add(bit_op("BitwiseOr", "Bits set in either.", integer_types(), bits([](uint64_t a, uint64_t b) { return a | b; })));
  ops.add(bit_op("BitwiseXor", "Bits set in one of both.", integer_types(), bits([](uint64_t a, uint64_t b) { return a ^ b; })));
  Op shift = bit_op("BitShift", "A shifted by B bits, LEFT or RIGHT (then a sign stays).", integer_types(), shift_reference);
  shift.infer = [](const OpCall& call) {
    const std::string direction = call.text("direction", "");
    if (direction != "LEFT" && direction != "RIGHT") {
      fail(ErrorKind::InvalidModel, title(call), ": direction is '", direction, "', not LEFT or RIGHT");
    }
    return infer_binary(call);
  };
  shift.cases = {"u8[3]{16,4,255} u8[3]{1,2,9} direction=LEFT,RIGHT",
                 "u32[2,3] u32[3]{0,1,31} direction=LEFT,RIGHT",
                 "i32[3]{-8,4,-1} i32[3]{1,-1,32} direction=LEFT,RIGHT",
                 "i8[3]{64,1,-128} i8[3]{1,7,1} direction=LEFT,RIGHT",
                 "u64[4] u64[]{3} direction=LEFT,RIGHT",
                 "u16[0,3] u16[3] direction=LEFT"};
  ops.add(std::move(shift));

  Op invert =
      bit_op("BitwiseNot", "Every bit flipped.", integer_types(), [](const OpCall& call, std::span<const Data> in, Outputs& out) {
        std::vector<int64_t> values = integers(in[0].tensor());
        for (int64_t& value : values) value = ~value;
        put(call, out, 0, std::span<const int64_t>(values));
      });
  invert.inputs = {required("X", integer_types())};
  invert.outputs = {required("Y", integer_types())};
  invert.infer = like_first;
  invert.cases = {"T[2,3,5]", "T[]", "T[0,4]", "u8[3]{0,1,255}"};
  ops.add(std::move(invert));
}

// Copies whole elements, whatever they are.
void where_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Tensor& result = out.allocate(0, call.output(0));
  const Shape& shape = result.shape();
  const std::array<std::vector<int64_t>, 3> strides{broadcast_strides(in[0].tensor().shape(), shape),
                                                    broadcast_strides(in[1].tensor().shape(), shape),
                                                    broadcast_strides(in[2].tensor().shape(), shape)};
  const auto condition = in[0].tensor().span<uint8_t>();
  if (result.dtype() == DType::String) {
    const auto& x = in[1].tensor().strings();
    const auto& y = in[2].tensor().strings();
    auto& values = result.writable_strings();
    walk<3>(shape, strides, [&](size_t i, const std::array<int64_t, 3>& at) {
      values[i] = condition[static_cast<size_t>(at[0])] != 0 ? x[static_cast<size_t>(at[1])] : y[static_cast<size_t>(at[2])];
    });
    return;
  }
  const size_t size = bits_of(result.dtype()) / 8;
  const auto x = in[1].tensor().bytes();
  const auto y = in[2].tensor().bytes();
  const auto values = result.writable_bytes();
  walk<3>(shape, strides, [&](size_t i, const std::array<int64_t, 3>& at) {
    const bool first = condition[static_cast<size_t>(at[0])] != 0;
    const std::byte* element = first ? &x[static_cast<size_t>(at[1]) * size] : &y[static_cast<size_t>(at[2]) * size];
    std::memcpy(&values[i * size], element, size);
  });
}

void add_where(OpSet& ops) {
  std::vector<DType> dtypes = tensor_types();
  for (const DType small : {DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ}) dtypes.push_back(small);
  Op where;
  where.name = "Where";
  where.summary = "X where the condition holds, else Y.";
  where.inputs = {required("condition", {DType::Bool}), required("X", dtypes), required("Y", dtypes)};
  where.outputs = {required("output", dtypes)};
  where.infer = [](const OpCall& call) {
    require_same_dtype(call, 1);
    return broadcast_to_dtype(call, call.input(1).dtype);
  };
  where.reference = where_reference;
  where.rounding = Rounding::MoveBits;
  where.cases = {"bool[2,3,4] T[2,3,4] T[2,3,4]", "bool[4] T[2,3,4] T[]", "bool[3,1] T[] T[1,4]", "bool[0,4] T[4] T[]",
                 "bool[] T[] T[]"};
  ops.add(std::move(where));
}

}  // namespace

void add_comparison_ops(OpSet& ops) {
  add_comparisons(ops);
  add_logic(ops);
  add_tests(ops);
  add_bits(ops);
  add_where(ops);
}

}  // namespace unmoor
