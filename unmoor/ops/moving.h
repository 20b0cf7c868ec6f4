#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "unmoor/ops/op.h"

namespace unmoor {

// What operators share that move elements bit for bit, of any dtype: strings, complex and packed ones included.

const std::vector<DType>& every_type();  // All dtypes.

// An operator that moves elements, still without its meaning: one input and one output of any dtype.
Op moving_op(std::string name, std::string summary, std::string input = "input");

// Copies single elements from one tensor to another of the same dtype. Both must outlive it.
class ElementCopy {
 public:
  ElementCopy(const Tensor& from, Tensor& to);

  void operator()(int64_t from, int64_t to) const {
    if (bits_ >= 8) {
      std::memcpy(to_ + static_cast<size_t>(to) * size_, from_ + static_cast<size_t>(from) * size_, size_);
    } else {
      copy_other(static_cast<size_t>(from), static_cast<size_t>(to));
    }
  }

 private:
  void copy_other(size_t from, size_t to) const;

  size_t bits_;
  size_t size_;
  const std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
  const std::vector<std::string>* strings_from_ = nullptr;
  std::vector<std::string>* strings_to_ = nullptr;
};

// Every element of `to` is element `from_index` of `from`.
void fill(Tensor& to, const Tensor& from, int64_t from_index = 0);
// The same elements in the same order.
void copy_all(const Tensor& from, Tensor& to);

// The same data in memory of its own, which nobody else overwrites. Sequences share: they are immutable.
Data owned(const Data& data);

// Calls visit(i, index) for element i of `shape`, in order; index is its place along each axis.
template <class Visit>
void for_each_index(const Shape& shape, Visit&& visit) {
  const int64_t count = shape.elements();
  std::vector<int64_t> index(shape.rank());
  for (int64_t i = 0; i < count; ++i) {
    visit(i, static_cast<const std::vector<int64_t>&>(index));
    for (size_t axis = shape.rank(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

// Sum of index times strides.
int64_t place_of(const std::vector<int64_t>& index, const std::vector<int64_t>& strides);

// The call with the data's types and, as constants, the data: so `infer` tells every shape that data decides.
OpCall with_data(const OpCall& call, std::span<const Data> in);

using Infer = std::vector<Type> (*)(const OpCall&);
// Output `i`, allocated with the type that `infer` gives for the data.
Tensor& allocate_inferred(const OpCall& call, std::span<const Data> in, Outputs& out, Infer infer, size_t i = 0);

// Adds `index` modulo `size` where it is negative. Fails with InvalidArgument out of [-size, size).
int64_t wrapped_index(const OpCall& call, int64_t index, int64_t size);
// The axis, of a shape whose rank is known. Fails with InvalidModel.
size_t axis_of(const OpCall& call, int64_t axis, size_t rank);
// Likewise for a list, in its order. Fails on a repeated axis too.
std::vector<size_t> axes_of(const OpCall& call, const std::vector<int64_t>& axes, size_t rank);

// Appends the product of the dimensions [from, to) of `shape`, with its symbol where one dimension alone decides it.
void push_product(Shape& to, const Shape& shape, size_t from, size_t end);
// Elements of a one-dimensional tensor input where its shape tells; empty if unknown.
std::optional<size_t> length_of(const OpCall& call, size_t i);

}  // namespace unmoor
