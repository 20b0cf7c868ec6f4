#pragma once

#include <span>
#include <string>

#include "unmoor/backends/gpu/driver.h"

namespace unmoor::gpu {

// Kernels as the text of one program: a vendor's compiler takes most of its time for what it reads before the first kernel. Names that a
// kernel's text defines are its own: macros end with it, the entry and the helpers get its number.
std::string program_text(std::span<const KernelSource> kernels);
// What the kernel at `index` is called in it.
std::string entry_in_program(std::span<const KernelSource> kernels, size_t index);

}  // namespace unmoor::gpu
