#include "unmoor/backends/gpu/kernels.h"

#include "unmoor/base/error.h"

namespace unmoor::gpu {

void Kernels::add(const std::string& op, const std::string& kernel, std::function<Support(const OpCall&)> supports,
                  std::function<Prepared(const OpCall&, GpuDevice&)> prepare, bool in_place) {
  Kernel entry;
  entry.name = cat(vendor_, ".", kernel);
  entry.supports = [supports = std::move(supports)](const OpCall& call) {
    try {
      auto fits = sizes_fit(call);
      return fits ? supports(call) : fits;
    } catch (const std::exception& error) {
      return no(Reason::Attribute, error.what());  // An attribute or a constant that makes no sense.
    }
  };
  entry.prepare = [prepare = std::move(prepare)](const OpCall& call, Device& device) { return prepare(call, gpu_device(device)); };
  entry.in_place = in_place;
  table_.add(op, std::move(entry));
}

KernelTable make_kernels(const std::string& vendor, const Abilities& abilities) {
  Kernels kernels(vendor, abilities);
  add_elementwise_kernels(kernels);
  add_cast_kernels(kernels);
  add_matmul_kernels(kernels);
  add_conv_kernels(kernels);
  add_pool_kernels(kernels);
  add_row_kernels(kernels);
  add_reduce_kernels(kernels);
  add_move_kernels(kernels);
  add_pad_kernels(kernels);
  add_resize_kernels(kernels);
  return kernels.take();
}

std::string_view element_name(DType dtype) {
  switch (dtype) {
    case DType::F32:
    case DType::F64:
    case DType::I8:
    case DType::U8:
    case DType::I16:
    case DType::U16:
    case DType::I32:
    case DType::U32:
    case DType::I64:
    case DType::U64: return short_name(dtype);
    case DType::Bool: return "u8";
    default: return {};
  }
}

DType integer_of_bytes(size_t bytes) {
  switch (bytes) {
    case 1: return DType::U8;
    case 2: return DType::U16;
    case 4: return DType::U32;
    case 8: return DType::U64;
    default: fail(ErrorKind::Internal, "no integer has ", bytes, " bytes");
  }
}

std::vector<std::string> real_defines(DType dtype, std::vector<std::string> more) {
  if (dtype == DType::F64) more.push_back("REAL_IS_F64");
  return more;
}

Support is_real(const OpCall& call, size_t input, const Abilities& abilities) {
  if (!call.has(input)) return yes();
  const auto dtype = call.input(input).dtype;
  if (dtype == DType::F32) return yes();
  if (dtype == DType::F64) return abilities.float64 ? yes() : no(Reason::DeviceFeature, "the device has no float64");
  return no(Reason::DType, "input ", input, " is ", dtype, ", not float32", abilities.float64 ? " or float64" : "");
}

}  // namespace unmoor::gpu
