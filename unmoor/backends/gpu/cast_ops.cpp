#include "unmoor/backends/gpu/elementwise.h"
#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

// From floating to integer: toward zero; what does not fit becomes the nearest limit, NaN 0.
std::string to_integer(DType to) {
  switch (to) {
    case DType::I8: return "(i8)to_i32(a)";
    case DType::U8: return "(u8)to_i32(a)";
    case DType::I16: return "(i16)to_i32(a)";
    case DType::U16: return "(u16)to_i32(a)";
    case DType::I32: return "to_i32(a)";
    case DType::U32: return "(u32)to_i64(a)";
    default: return "to_i64(a)";
  }
}

std::string expression_for(DType from, DType to) {
  if (to == DType::Bool) return "a != 0";
  if (is_float(to) || !is_float(from)) return cat("(", element_name(to), ")a");
  return to_integer(to);
}

}  // namespace

void add_cast_kernels(Kernels& kernels) {
  const auto abilities = kernels.abilities();
  const auto supports = [abilities](const OpCall& call) {
    for (const auto dtype : {call.input(0).dtype, call.output(0).dtype}) {
      if (element_name(dtype).empty()) return no(Reason::DType, "from ", call.input(0).dtype, " to ", call.output(0).dtype);
      if (dtype == DType::F64 && !abilities.float64) return no(Reason::DeviceFeature, "the device has no float64");
    }
    if (call.output(0).dtype == DType::U64 && is_float(call.input(0).dtype)) return no(Reason::DType, "from floating to uint64");
    return yes();
  };
  const auto prepare = [](const OpCall& call, GpuDevice& device) {
    const auto from = call.input(0).dtype;
    const auto to = call.output(0).dtype;
    return run_in_order(call, device, {elementwise({.label = "cast", .expression = expression_for(from, to), .input_types = {from},
                                              .inputs = {0}, .output_type = to},
                                             call)});
  };
  kernels.add("Cast", "cast", supports, prepare);
}

}  // namespace unmoor::gpu
