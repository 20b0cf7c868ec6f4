#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "unmoor/backends/gpu/driver.h"
#include "unmoor/backends/gpu/launch.h"
#include "unmoor/backends/gpu/walk.h"
#include "unmoor/hal/kernel.h"

namespace unmoor::gpu {

// What the families add their kernels to: the table, with the vendor's name before each kernel's and the device's abilities at hand.
class Kernels {
 public:
  Kernels(std::string vendor, Abilities abilities) : vendor_(std::move(vendor)), abilities_(abilities) {}

  const Abilities& abilities() const { return abilities_; }
  // `supports` is asked after dtypes, sizes and ranks are known to be fine for any kernel.
  void add(const std::string& op, const std::string& kernel, std::function<Support(const OpCall&)> supports,
           std::function<Prepared(const OpCall&, GpuDevice&)> prepare, bool in_place = false);
  KernelTable take() { return std::move(table_); }

 private:
  std::string vendor_;
  Abilities abilities_;
  KernelTable table_;
};

void add_elementwise_kernels(Kernels& kernels);
void add_cast_kernels(Kernels& kernels);
void add_matmul_kernels(Kernels& kernels);
void add_conv_kernels(Kernels& kernels);
void add_pool_kernels(Kernels& kernels);
void add_row_kernels(Kernels& kernels);
void add_reduce_kernels(Kernels& kernels);
void add_move_kernels(Kernels& kernels);
void add_pad_kernels(Kernels& kernels);
void add_resize_kernels(Kernels& kernels);

// Every kernel for a device with these abilities, named "vendor.kernel".
KernelTable make_kernels(const std::string& vendor, const Abilities& abilities);

// The kernels' name for elements of a dtype: "f32"; bool is "u8". Empty if no kernel computes in it.
std::string_view element_name(DType dtype);
// An unsigned integer of 1, 2, 4 or 8 bytes, for kernels that only move elements.
DType integer_of_bytes(size_t bytes);
// What makes a kernel's REAL this dtype.
std::vector<std::string> real_defines(DType dtype, std::vector<std::string> more = {});
// The call's input is float32, or float64 where the device has it.
Support is_real(const OpCall& call, size_t input, const Abilities& abilities);

}  // namespace unmoor::gpu
