#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "unmoor/backends/cpu/kernels/product.h"
#include "unmoor/backends/cpu/kernels/walk.h"

namespace unmoor::cpu {

// An operand of a sum of products: each of its axes has a label of its own, and a step in floats.
struct Labelled {
  std::vector<int> labels;
  std::vector<size_t> steps;

  size_t step(int label) const;  // 0 where it has no such axis.
  bool has(int label) const;
};
using LabelSizes = std::map<int, size_t>;

size_t count_of(const std::vector<int>& labels, const LabelSizes& sizes);
// A dense row-major operand of these axes.
Labelled dense_labelled(const std::vector<int>& labels, const LabelSizes& sizes);

// y[out] = Σ Π operands over all labels that are not among `out`, by plain loops. Immutable.
class StridedSum {
 public:
  StridedSum(const Machine& machine, const std::vector<Labelled>& operands, const std::vector<int>& out, const LabelSizes& sizes);
  void run(std::span<const float* const> operands, float* y) const;

 private:
  struct Axis {
    size_t size;
    std::vector<size_t> steps;  // By operand.
  };
  using Places = std::vector<const float*>;
  static void append(std::vector<Axis>& axes, Axis axis);
  static size_t count(const std::vector<Axis>& axes);
  static void move(const std::vector<Axis>& axes, size_t index, Places& places);
  void add_row(const Places& at, size_t begin, size_t end, float* y) const;
  double dot(const Places& at) const;

  const Machine& machine_;
  std::vector<Axis> kept_;  // Without the row or the line.
  std::vector<Axis> summed_;
  bool by_rows_ = true;  // The innermost loop is over results (a row), else over what is summed (a line).
  Axis inner_ = {1, {}};
};

// The same for two operands where a matrix product does the work: axes of both that are kept are a batch, the others rows,
// columns and depth. Operands that do not lie so are copied first. Immutable.
class Contraction {
 public:
  // b_constant: the second operand's tensor if it is constant, to be packed once.
  Contraction(const Machine& machine, const Labelled& a, const Labelled& b, const std::vector<int>& out, const LabelSizes& sizes,
              const Tensor* b_constant);
  // Whether a product is worth it.
  static bool is_worth_it(const Labelled& a, const Labelled& b, const std::vector<int>& out, const LabelSizes& sizes);
  size_t workspace_floats() const { return workspace_; }
  void run(const float* a, const float* b, float* y, float* workspace) const;
  bool packed_b() const { return packed_b_; }

 private:
  struct Groups {
    bool swapped = false;  // Rows are of the second operand.
    std::vector<int> batch, rows, columns, depth;
    bool direct = true;  // The product's result lies as wanted.
  };
  struct Side {
    std::optional<PreparedCopy> copy = std::nullopt;  // To [batch, outer, inner] in the workspace at `place`.
    std::optional<StridedSum> sum = std::nullopt;     // Instead: some of its own axes are summed.
    size_t place = 0;
    bool transposed = false;
    std::vector<size_t> offsets = {};
  };
  Contraction(const Machine& machine, const Labelled& a, const Labelled& b, const std::vector<int>& out, const LabelSizes& sizes,
              const Tensor* b_constant, const Groups& groups);
  static Groups choose(const Labelled& a, const Labelled& b, const std::vector<int>& out, const LabelSizes& sizes);
  Side side_of(const Machine& machine, const Labelled& operand, const Groups& groups, bool left, const LabelSizes& sizes);
  size_t reserve(size_t floats);
  const float* ready(const Side& side, const float* operand, float* workspace) const;

  bool swapped_;
  bool packed_b_ = false;
  size_t workspace_ = 0;
  Side left_, right_;
  size_t result_ = 0;  // Place of the product where it is not the result.
  std::optional<PreparedCopy> arrange_;
  size_t own_ = 0;  // Place of the products' own workspace.
  std::optional<PreparedProducts> products_;
};

}  // namespace unmoor::cpu
