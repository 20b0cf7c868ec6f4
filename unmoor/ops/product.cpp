#include "unmoor/ops/product.h"

namespace unmoor {
namespace {

thread_local const Float64Help* helping = nullptr;

}  // namespace

Float64Scope::Float64Scope(const Float64Help& help) : before_(helping) { helping = &help; }

Float64Scope::~Float64Scope() { helping = before_; }

const Float64Help* Float64Scope::current() { return helping; }

const DoubleProduct* fast_product(size_t m, size_t n, size_t k) {
  constexpr size_t worth = 4096;
  return helping == nullptr || m * n * k < worth ? nullptr : &helping->product;
}

}  // namespace unmoor
