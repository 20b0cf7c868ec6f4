#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "unmoor/backends/cpu/amx/amx.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/gemm.h"
#include "unmoor/backends/cpu/simd/split.h"
#include "unmoor/hal/support.h"

namespace unmoor::cpu {

// Whether a product [m,k] times constant weights [k,n] is one for AMX: that there is AMX, that the sizes are worth it, and that
// every weight has parts (split.h).
Support takes_f32x6(size_t m, size_t n, size_t k, const Tensor& weights);

// C[m,n] = epilogue(A[m,k] B[k,n]) in float32 by six products of bfloat16 parts on AMX, B being constant
// (docs/decisions/f32x6.md). What is no product of finite numbers of usual size is computed again as the other kernels do: a row
// that is marked (SplitLoops::rows), and 32 x 32 sums of which one is not finite. Immutable; any thread.
class SixPartProduct {
 public:
  // How B lies: the weights' own memory, or `room` filled with it.
  using Layout = std::function<Strided(std::vector<float>& room)>;
  // `how` names what decides the layout, for the packed weights. Fails with Internal where tiles() has none.
  SixPartProduct(const Machine& machine, size_t n, size_t k, const Tensor& weights, const std::string& how, const Layout& layout);

  size_t workspace_bytes(size_t m) const { return slab_blocks(m) * block_values() * sizeof(uint16_t); }

  // Rows of A: `count` of them, up to 32, from `row` on, as they lie or gathered in `room`; column_step is 1, row_step not 0.
  struct Rows {
    std::function<Strided(size_t row, size_t count, float* room)> at;
    size_t room_floats = 0;
  };
  // The epilogue's pointers are to what belongs to row 0, column 0. `workspace` is aligned to 64 bytes.
  void run(size_t m, const Rows& rows, float* c, size_t c_stride, const Epilogue& epilogue, float* workspace) const;

 private:
  struct Call;
  struct Slab;
  size_t steps() const { return (k_ + set_depth - 1) / set_depth; }
  size_t panels() const { return (n_ + set_rows - 1) / set_rows; }
  size_t block_values() const { return steps() * set_values; }  // Parts of 32 rows of A, or 32 columns of B.
  size_t slab_blocks(size_t m) const { return std::min((m + set_rows - 1) / set_rows, most_slab_blocks_); }
  const uint16_t* panel_sets(size_t panel) const { return reinterpret_cast<const uint16_t*>(floats_of(b_)) + panel * block_values(); }
  void pack(const Strided& b, size_t panel, uint16_t* to) const;
  void split_block(const Call& call, size_t row, uint16_t* to) const;
  void multiply(const Call& call, const Slab& slab, size_t part) const;
  void finish(const Call& call, size_t row, size_t panel, const float* sums) const;
  void compute_again(const Call& call, size_t row, size_t panel) const;

  const Machine& machine_;
  const TileLoops& tiles_;
  const GemmLoops& loops_;
  const SplitLoops& split_;
  size_t n_;
  size_t k_;
  size_t most_slab_blocks_;  // Of 32 rows that are split together.
  Packed b_;
};

}  // namespace unmoor::cpu
