#pragma once

#include <cmath>
#include <type_traits>

namespace unmoor {

// Of any number: integers are never NaN.
template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(x);
  } else {
    return false;
  }
}

}  // namespace unmoor
