#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "unmoor/tensor/dtype.h"

namespace unmoor {

// The dimensions of a tensor, each a number or unknown, an unknown one perhaps with a symbol ("batch"). Even the rank may be unknown.
class Shape {
 public:
  static constexpr int64_t unknown = -1;

  Shape() = default;  // A scalar.
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}
  static Shape of_unknown_rank();

  bool has_rank() const { return has_rank_; }
  bool is_known() const;  // Rank and every dimension.
  size_t rank() const { return dims_.size(); }
  // `unknown` where it is. Fails with InvalidArgument if there is no such axis, as do set and set_symbol: ranks come from files.
  int64_t operator[](size_t axis) const {
    if (axis >= dims_.size()) [[unlikely]] fail_without(axis);
    return dims_[axis];
  }
  const std::vector<int64_t>& dims() const { return dims_; }
  const std::string& symbol(size_t axis) const;  // Empty if there is none.

  void set(size_t axis, int64_t dim);
  void set_symbol(size_t axis, std::string symbol);  // Makes the dimension unknown.
  void push_back(int64_t dim) { dims_.push_back(dim); }
  // Appends dimension `axis` of `other`, with its symbol.
  void push_back(const Shape& other, size_t axis);

  // The product of all dimensions, 1 for a scalar. Fails with Internal if one is unknown, with InvalidArgument if the product, zeros
  // left out, passes 2^58: then bytes, too, fit 64 bits for every dtype.
  int64_t elements() const;
  // Product of the dimensions in [from, to), likewise; fails with InvalidArgument past the rank.
  int64_t elements(size_t from, size_t to) const;
  // Maps a negative axis to its place. Fails out of [-rank, rank).
  size_t axis(int64_t axis) const;
  // Steps, in elements, of each axis of a dense row-major tensor; unknown and empty dimensions count as 1. Fails with InvalidArgument
  // where they pass 2^63.
  std::vector<int64_t> strides() const;

  bool operator==(const Shape& other) const { return has_rank_ == other.has_rank_ && dims_ == other.dims_; }

 private:
  [[noreturn]] void fail_without(size_t axis) const;

  std::vector<int64_t> dims_;
  std::vector<std::string> symbols_;  // Empty, or one a dimension.
  bool has_rank_ = true;
};

std::string to_text(const Shape& shape);  // "[1,3,batch,?]", "[?…]" if the rank is unknown.

struct TensorType {
  DType dtype = DType::F32;
  Shape shape;

  bool is_known() const { return shape.is_known(); }
  size_t bytes() const { return bytes_of(dtype, static_cast<size_t>(shape.elements())); }
  bool operator==(const TensorType&) const = default;
};

std::string to_text(const TensorType& type);  // "float32[1,3,224,224]"

struct SequenceType;
struct OptionalType;
struct MapType;
// What a value can be.
using Type = std::variant<TensorType, SequenceType, OptionalType, MapType>;

struct SequenceType {
  std::shared_ptr<const Type> element;  // Shared because types are copied with graphs; immutable.
};
struct OptionalType {
  std::shared_ptr<const Type> element;
};
struct MapType {
  DType key = DType::I64;
  std::shared_ptr<const Type> value;
};

bool is_known(const Type& type);  // A tensor whose shape is known.
std::string to_text(const Type& type);

// The shape that two shapes broadcast to, as NumPy does; an unknown dimension meets 1 as unknown and n as n.
// Fails with InvalidArgument, naming both.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace unmoor
