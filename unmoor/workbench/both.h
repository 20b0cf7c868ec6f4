#pragma once

#include "unmoor/ops/product.h"

namespace unmoor {

// Calls both, side by side where this thread has a Float64Scope. They must not touch the same data.
template <class First, class Second>
void both(const First& first, const Second& second) {
  const Float64Help* const help = Float64Scope::current();
  if (help == nullptr || help->pool == nullptr) {
    first();
    second();
    return;
  }
  help->pool->each(2, [&](size_t i) {
    if (i == 0) {
      first();
    } else {
      second();
    }
  });
}

}  // namespace unmoor
