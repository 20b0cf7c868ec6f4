#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "unmoor/tensor/tensor.h"

namespace unmoor {

// One .npy in memory, as a view where its layout allows. `owner` keeps the bytes alive. Fails with InvalidModel or Unsupported.
Tensor npy_from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

// The start of a .npy, up to the elements, and the elements.
struct NpyParts {
  std::string header;
  Tensor elements;  // As NumPy holds them; strings as UTF-32.
};
NpyParts npy_parts(const Tensor& tensor);

}  // namespace unmoor
