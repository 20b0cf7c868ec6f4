#pragma once

#include <optional>
#include <vector>

#include "unmoor/backends/cpu/kernels/f32x6.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/gemm.h"

namespace unmoor::cpu {

// A batch of matrix products C[i] = epilogue(A[i] B[i]), each [m,k] times [k,n] into a dense [m,n].
struct Products {
  size_t m = 0;
  size_t n = 0;
  size_t k = 0;
  bool transposed_a = false;  // A lies as [k,m].
  bool transposed_b = false;
  // By product, in elements from the operand's start; empty means one product at 0.
  std::vector<size_t> a_offsets = {0};
  std::vector<size_t> b_offsets = {0};
  std::vector<size_t> bias_offsets = {};  // Added to whichever of row_bias, column_bias and addend is set. Empty: all 0.
  Epilogue epilogue = {};                 // Without the pointers, which come with `run`.

  size_t batch() const { return a_offsets.size(); }
};

enum class Bias { None, Row, Column, Full };
enum class Precision { Float32, SixParts };  // How products are computed: SixParts is for one product of a constant b, a as it lies.

// Products made ready: B is packed where it is known, and what will need packing has its place in the workspace.
class PreparedProducts {
 public:
  // b: the second operand if it is constant, else null; b_offsets count from its float `b_first`.
  PreparedProducts(const Machine& machine, Products products, const Tensor* b, Bias bias, size_t b_first = 0,
                   Precision precision = Precision::Float32);

  size_t workspace_bytes() const;
  struct Operands {
    const float* a;
    const float* b;         // Not read if it was packed.
    const float* bias;      // Null if there is none.
    const float* residual;  // Laid out as c; null if there is none.
    float* c;
    float* workspace;
  };
  void run(const Operands& operands) const;

 private:
  enum class Way { Rows, Unpacked, Each, Shared, SixParts };
  Way choose() const;
  Strided a_at(const float* a, size_t i) const;
  Strided b_at(const float* b, size_t i) const;
  Epilogue epilogue_for(const Operands& operands, size_t i) const;
  void run_rows(const Operands& operands) const;
  void run_unpacked(const Operands& operands) const;
  void run_each(const Operands& operands) const;
  void run_shared(const Operands& operands) const;
  void run_six_parts(const Operands& operands) const;
  void pack_operands(const Operands& operands) const;
  size_t packed_a() const { return (p_.m * p_.k + 15) / 16 * 16; }
  size_t packed_b() const { return loops_.packed_b(p_.n, p_.k); }

  const Machine& machine_;
  const GemmLoops& loops_;
  Products p_;
  Bias bias_;
  Packed b_;                         // All of B's matrices, if it is constant.
  std::vector<size_t> b_distinct_;   // By product: which of the distinct matrices of B.
  std::vector<size_t> b_starts_;     // By distinct matrix: its offset in B.
  std::optional<SixPartProduct> six_parts_;
  Way way_;
};

}  // namespace unmoor::cpu
