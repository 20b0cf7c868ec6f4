#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "unmoor/base/error.h"
#include "unmoor/ops/op.h"

namespace unmoor {

// Why a kernel cannot take a call. Reports group by it; the detail is for people.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // g++ 12 thinks that an enumerator shadows a type of the same name.
enum class Reason { None, NoKernel, DType, Rank, Attribute, Layout, Size, Dynamic, Opset, DeviceFeature, Denied };
#pragma GCC diagnostic pop

std::string_view name(Reason reason);  // "no-kernel", "dtype", "device-feature", …

// A kernel's answer to "can you run this call?". A no always says why.
struct [[nodiscard]] Support {
  Reason reason = Reason::None;
  std::string detail;

  explicit operator bool() const { return reason == Reason::None; }
};

inline Support yes() { return {}; }

template <class... Parts>
Support no(Reason reason, const Parts&... parts) {
  return {reason, cat(parts...)};
}

// Ready checks. Inputs that are absent are skipped.
Support inputs_are(const OpCall& call, std::initializer_list<DType> allowed);           // Every input; one that is no tensor is a no.
Support input_is(const OpCall& call, size_t input, std::initializer_list<DType> allowed);
Support rank_at_most(const OpCall& call, size_t input, size_t rank);
Support integer_is(const OpCall& call, std::string_view key, int64_t wanted, int64_t otherwise);
Support is_constant(const OpCall& call, size_t input);
// The input has one element for each place of input 0 from `axis` on, in the same shape: the scale of a normalization by rows.
Support is_row_of(const OpCall& call, size_t input, size_t axis);

// The first no, or yes.
template <class... Checks>
Support all_of(Support first, Checks... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return first;
  } else {
    return first ? all_of(std::move(rest)...) : first;
  }
}

}  // namespace unmoor
