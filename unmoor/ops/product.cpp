#include "unmoor/ops/product.h"

namespace unmoor {
namespace {

thread_local const DoubleProduct* current = nullptr;

}  // namespace

FastProducts::FastProducts(const DoubleProduct& product) : before_(current) { current = &product; }

FastProducts::~FastProducts() { current = before_; }

const DoubleProduct* fast_product(size_t m, size_t n, size_t k) {
  constexpr size_t worth = 4096;
  return m * n * k < worth ? nullptr : current;
}

}  // namespace unmoor
