#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "unmoor/tensor/shape.h"

namespace unmoor {

// Typed host memory, dense and row-major; sub-byte types are packed, the first element in the low bits. Copies share the
// storage; clone() does not. The storage may be a file mapped read-only, at any alignment: then only const access is allowed.
// Reading is safe from any thread.
class Tensor {
 public:
  Tensor() = default;
  // Zeroed memory aligned to 64 bytes. Fails with OutOfMemory or, for an unknown shape, Internal.
  explicit Tensor(TensorType type);
  // Looks at memory that `owner` keeps alive. `bytes` must be exactly what the type needs; at any alignment.
  static Tensor view(TensorType type, std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  // As view, but writable: `bytes` must be aligned to the element.
  static Tensor writable_view(TensorType type, std::span<std::byte> bytes, std::shared_ptr<const void> owner);
  static Tensor of_strings(Shape shape, std::vector<std::string> strings);

  // A tensor from a list: Tensor::from<int64_t>({2}, {3, 4}).
  template <class T>
  static Tensor from(Shape shape, std::span<const T> values);
  template <class T>
  static Tensor from(Shape shape, std::initializer_list<T> values) {
    return from<T>(std::move(shape), std::span<const T>(values.begin(), values.size()));
  }
  template <class T>
  static Tensor scalar(T value) {
    return from<T>(Shape(), std::span<const T>(&value, 1));
  }

  explicit operator bool() const { return storage_ != nullptr; }
  const TensorType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  size_t elements() const { return static_cast<size_t>(type_.shape.elements()); }

  // The raw bytes, at any alignment.
  std::span<const std::byte> bytes() const;
  // Fails with Internal on a view of read-only memory.
  std::span<std::byte> writable_bytes();
  // Elements as T, which must have the dtype's size (bool and the 16- and 8-bit floats as unsigned integers of their width). Where the bytes
  // are not aligned, the first call makes an aligned copy that all copies of this tensor share.
  template <class T>
  std::span<const T> span() const {
    check_element(sizeof(T));
    return {reinterpret_cast<const T*>(aligned_data(alignof(T))), elements()};
  }
  template <class T>
  std::span<T> writable_span() {
    check_element(sizeof(T));
    return {reinterpret_cast<T*>(writable_bytes().data()), elements()};
  }
  const std::vector<std::string>& strings() const;
  std::vector<std::string>& writable_strings();

  Tensor clone() const;
  // The same storage under another shape of as many elements.
  Tensor reshaped(Shape shape) const;
  bool is_unshared() const { return storage_.use_count() == 1; }  // Nobody else holds this storage.
  bool shares_storage(const Tensor& other) const { return storage_ == other.storage_; }

  // Aligned copies made so far in this process, in bytes: counted because they are memory nobody asked for.
  static size_t aligned_copy_bytes();

 private:
  struct Storage;
  const std::byte* aligned_data(size_t alignment) const;
  void check_element(size_t size) const;

  TensorType type_;
  std::shared_ptr<Storage> storage_;  // Shared by copies, which is what makes them cheap.
};

class Data;
struct Sequence {
  std::vector<Data> items;
};
struct Map {
  Tensor keys;  // int64 or string, one dimension.
  std::vector<Data> values;
};

// What a value holds when a graph runs: a tensor, a sequence, a map, or an optional that may be empty.
class Data {
 public:
  Data() = default;  // Nothing: an absent input, or an empty optional.
  Data(Tensor tensor) : held_(std::move(tensor)) {}
  Data(Sequence sequence) : held_(std::make_shared<const Sequence>(std::move(sequence))) {}
  Data(Map map) : held_(std::make_shared<const Map>(std::move(map))) {}

  explicit operator bool() const { return !std::holds_alternative<std::monostate>(held_); }
  bool is_tensor() const { return std::holds_alternative<Tensor>(held_); }
  bool is_sequence() const { return std::holds_alternative<std::shared_ptr<const Sequence>>(held_); }
  bool is_map() const { return std::holds_alternative<std::shared_ptr<const Map>>(held_); }
  // Each fails with InvalidArgument if it holds something else.
  const Tensor& tensor() const;
  const Sequence& sequence() const;
  const Map& map() const;

 private:
  // Sequences and maps are shared because they are immutable once made.
  std::variant<std::monostate, Tensor, std::shared_ptr<const Sequence>, std::shared_ptr<const Map>> held_;
};

// The type that a value would be declared with. An empty Data is an optional of unknown element.
Type type_of(const Data& data);

}  // namespace unmoor
