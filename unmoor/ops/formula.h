#pragma once

#include <string>
#include <vector>

#include "unmoor/ops/builder.h"

namespace unmoor {

// Writes an expansion as a formula. 16-bit inputs are widened to float32 and results narrowed again, as good kernels do inside;
// other dtypes stay. Lives as long as the builder.
class Formula {
 public:
  explicit Formula(GraphBuilder& builder);
  Formula(GraphBuilder& builder, DType dtype) : builder_(builder), dtype_(dtype) {}  // Computes in this dtype.

  const OpCall& call() const { return builder_.call(); }
  GraphBuilder& builder() { return builder_; }
  bool has(size_t i) const { return builder_.input(i) != no_value; }
  // Input i in the dtype of the arithmetic.
  ValueId input(size_t i) { return wide(builder_.input(i)); }
  ValueId raw(size_t i) const { return builder_.input(i); }
  ValueId wide(ValueId value);
  ValueId number(double value) { return builder_.scalar(value, dtype_); }
  // A one-dimensional constant of the arithmetic's dtype.
  ValueId ints(std::vector<int64_t> values) { return builder_.ints(std::move(values)); }
  ValueId add(std::string op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    return builder_.add(std::move(op), std::move(inputs), std::move(attributes));
  }
  ValueId sum(ValueId a, ValueId b) { return add("Add", {a, b}); }
  ValueId difference(ValueId a, ValueId b) { return add("Sub", {a, b}); }
  ValueId product(ValueId a, ValueId b) { return add("Mul", {a, b}); }
  ValueId quotient(ValueId a, ValueId b) { return add("Div", {a, b}); }
  ValueId square(ValueId a) { return product(a, a); }
  // Reduces over constant axes and keeps them.
  ValueId reduce(std::string op, ValueId a, std::vector<int64_t> axes);
  ValueId reshaped(ValueId a, std::vector<int64_t> shape) { return add("Reshape", {a, ints(std::move(shape))}); }
  // `value` in the dtype of the call's output i.
  void output(size_t i, ValueId value);
  // The dtype of the arithmetic, and the type of a value.
  DType dtype() const { return dtype_; }
  const TensorType& type(ValueId value) const;

 private:
  ValueId cast(ValueId value, DType dtype);

  GraphBuilder& builder_;
  DType dtype_;
};

}  // namespace unmoor
