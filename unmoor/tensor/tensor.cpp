#include "unmoor/tensor/tensor.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>

#include "unmoor/base/error.h"
#include "unmoor/base/memory.h"
#include "unmoor/tensor/unset.h"

namespace unmoor {
namespace {

constexpr size_t alignment = 64;
std::atomic<size_t> copied_bytes{0};

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// Counted against the memory limit.
struct Memory {
  TakenMemory taken;
  std::unique_ptr<std::byte, Free> bytes;
  std::byte* get() const { return bytes.get(); }
};

Memory allocate(size_t bytes, bool zeroed) {
  if (bytes > std::numeric_limits<size_t>::max() / 2) fail(ErrorKind::OutOfMemory, "a tensor of ", bytes, " bytes was asked for");
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment + (bytes == 0 ? alignment : 0);
  Memory memory{TakenMemory(rounded), {}};
  memory.bytes.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
  if (!memory.bytes) fail(ErrorKind::OutOfMemory, "no memory for a tensor of ", bytes, " bytes");
  if (zeroed) std::memset(memory.get(), 0, rounded);
  return memory;
}

std::vector<std::string> empty_strings(size_t count) {
  std::vector<std::string> strings;
  if (count > strings.max_size()) fail(ErrorKind::OutOfMemory, "a tensor of ", count, " strings was asked for");
  try {
    strings.resize(count);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::OutOfMemory, "no memory for a tensor of ", count, " strings");
  }
  return strings;
}

}  // namespace

struct Tensor::Storage {
  Memory owned;
  std::span<const std::byte> bytes;
  bool writable = false;
  std::shared_ptr<const void> owner;
  TakenMemory taken_by_strings;
  std::vector<std::string> strings;
  std::once_flag aligned_once;
  Memory aligned;
};

Tensor::Tensor(TensorType type) : type_(std::move(type)), storage_(std::make_shared<Storage>()) {
  const size_t size = type_.bytes();
  storage_->writable = true;
  if (type_.dtype == DType::String) {
    storage_->taken_by_strings = TakenMemory(elements() * sizeof(std::string));
    storage_->strings = empty_strings(elements());
  }
  storage_->owned = allocate(size, true);
  storage_->bytes = {storage_->owned.get(), size};
}

Tensor Tensor::view(TensorType type, std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (bytes.size() != type.bytes()) {
    fail(ErrorKind::Internal, "a view of ", type, " needs ", type.bytes(), " bytes, not ", bytes.size());
  }
  Tensor tensor;
  tensor.type_ = std::move(type);
  tensor.storage_ = std::make_shared<Storage>();
  tensor.storage_->bytes = bytes;
  tensor.storage_->owner = std::move(owner);
  return tensor;
}

Tensor Tensor::writable_view(TensorType type, std::span<std::byte> bytes, std::shared_ptr<const void> owner) {
  Tensor tensor = view(std::move(type), bytes, std::move(owner));
  tensor.storage_->writable = true;
  return tensor;
}

Tensor Tensor::of_strings(Shape shape, std::vector<std::string> strings) {
  if (static_cast<int64_t>(strings.size()) != shape.elements()) {
    fail(ErrorKind::InvalidArgument, strings.size(), " strings do not fill shape ", shape);
  }
  Tensor tensor(TensorType{DType::String, std::move(shape)});
  tensor.storage_->strings = std::move(strings);
  return tensor;
}

Tensor unset_tensor(TensorType type) {
  auto memory = std::make_shared<Memory>(allocate(type.bytes(), false));
  const std::span<std::byte> bytes{memory->get(), type.bytes()};
  return Tensor::writable_view(std::move(type), bytes, std::move(memory));
}

template <class T>
Tensor Tensor::from(Shape shape, std::span<const T> values) {
  DType dtype = DType::F32;
  if constexpr (std::is_same_v<T, float>) dtype = DType::F32;
  else if constexpr (std::is_same_v<T, double>) dtype = DType::F64;
  else if constexpr (std::is_same_v<T, int64_t>) dtype = DType::I64;
  else if constexpr (std::is_same_v<T, int32_t>) dtype = DType::I32;
  else if constexpr (std::is_same_v<T, int8_t>) dtype = DType::I8;
  else if constexpr (std::is_same_v<T, uint8_t>) dtype = DType::U8;
  else if constexpr (std::is_same_v<T, bool>) dtype = DType::Bool;
  Tensor tensor(TensorType{dtype, std::move(shape)});
  if (tensor.elements() != values.size()) {
    fail(ErrorKind::InvalidArgument, values.size(), " values do not fill shape ", tensor.shape());
  }
  if (!values.empty()) std::memcpy(tensor.writable_bytes().data(), values.data(), values.size_bytes());
  return tensor;
}
template Tensor Tensor::from<float>(Shape, std::span<const float>);
template Tensor Tensor::from<double>(Shape, std::span<const double>);
template Tensor Tensor::from<int64_t>(Shape, std::span<const int64_t>);
template Tensor Tensor::from<int32_t>(Shape, std::span<const int32_t>);
template Tensor Tensor::from<int8_t>(Shape, std::span<const int8_t>);
template Tensor Tensor::from<uint8_t>(Shape, std::span<const uint8_t>);
template Tensor Tensor::from<bool>(Shape, std::span<const bool>);

std::span<const std::byte> Tensor::bytes() const { return storage_ ? storage_->bytes : std::span<const std::byte>(); }

std::span<std::byte> Tensor::writable_bytes() {
  if (!storage_ || !storage_->writable) fail(ErrorKind::Internal, "a read-only tensor of ", type_, " was to be written");
  return {const_cast<std::byte*>(storage_->bytes.data()), storage_->bytes.size()};
}

const std::byte* Tensor::aligned_data(size_t wanted) const {
  if (!storage_) return nullptr;
  const std::byte* const data = storage_->bytes.data();
  if (reinterpret_cast<uintptr_t>(data) % wanted == 0) return data;
  std::call_once(storage_->aligned_once, [this] {
    storage_->aligned = allocate(storage_->bytes.size(), false);
    std::memcpy(storage_->aligned.get(), storage_->bytes.data(), storage_->bytes.size());
    copied_bytes += storage_->bytes.size();
  });
  return storage_->aligned.get();
}

void Tensor::check_element(size_t size) const {
  if (bits_of(type_.dtype) != size * 8) {
    fail(ErrorKind::Internal, "elements of ", type_.dtype, " were read as ", size, " bytes each");
  }
}

const std::vector<std::string>& Tensor::strings() const {
  if (!storage_ || type_.dtype != DType::String) fail(ErrorKind::InvalidArgument, "a tensor of ", type_, " holds no strings");
  return storage_->strings;
}

std::vector<std::string>& Tensor::writable_strings() {
  strings();
  return storage_->strings;
}

Tensor Tensor::clone() const {
  if (!storage_) return {};
  if (type_.dtype == DType::String) {
    Tensor copy(type_);
    copy.storage_->strings = storage_->strings;
    return copy;
  }
  Tensor copy = unset_tensor(type_);
  if (!bytes().empty()) std::memcpy(copy.writable_bytes().data(), bytes().data(), bytes().size());
  return copy;
}

Tensor Tensor::reshaped(Shape shape) const {
  if (shape.elements() != type_.shape.elements()) {
    fail(ErrorKind::InvalidArgument, "shape ", type_.shape, " cannot become ", shape, ": the numbers of elements differ");
  }
  Tensor result = *this;
  result.type_.shape = std::move(shape);
  return result;
}

size_t Tensor::aligned_copy_bytes() { return copied_bytes; }

const Tensor& Data::tensor() const {
  if (const auto* tensor = std::get_if<Tensor>(&held_)) return *tensor;
  fail(ErrorKind::InvalidArgument, "a tensor is needed where ", *this ? "a sequence or a map" : "nothing", " was given");
}

const Sequence& Data::sequence() const {
  if (const auto* sequence = std::get_if<std::shared_ptr<const Sequence>>(&held_)) return **sequence;
  fail(ErrorKind::InvalidArgument, "a sequence is needed where ", *this ? "something else" : "nothing", " was given");
}

const Map& Data::map() const {
  if (const auto* map = std::get_if<std::shared_ptr<const Map>>(&held_)) return **map;
  fail(ErrorKind::InvalidArgument, "a map is needed where ", *this ? "something else" : "nothing", " was given");
}

Type type_of(const Data& data) {
  if (data.is_tensor()) return data.tensor().type();
  if (data.is_map()) {
    const auto& map = data.map();
    std::shared_ptr<const Type> value;
    if (!map.values.empty()) value = std::make_shared<const Type>(type_of(map.values[0]));
    return MapType{map.keys.dtype(), value};
  }
  if (!data) return OptionalType{};
  const auto& items = data.sequence().items;
  std::shared_ptr<const Type> element;
  if (!items.empty()) {
    Type type = type_of(items[0]);
    if (auto* tensor = std::get_if<TensorType>(&type)) {
      for (const auto& item : items) {
        if (!item.is_tensor() || item.tensor().shape() != tensor->shape) tensor->shape = Shape::of_unknown_rank();
      }
    }
    element = std::make_shared<const Type>(std::move(type));
  }
  return SequenceType{element};
}

}  // namespace unmoor
