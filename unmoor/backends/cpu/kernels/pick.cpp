#include <cstring>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/walk.h"
#include "unmoor/ops/numeric.h"

namespace unmoor::cpu {

void fail_index(const std::string& who, int64_t index, int64_t size) {
  fail(ErrorKind::InvalidArgument, who, ": index ", index, " is outside of [", -size, ",", size, ")");
}

namespace {

Support takes_indices(const OpCall& call) {
  if (element_bytes(call.input(0).dtype) == 0) return no(Reason::DType, call.input(0).dtype);
  return input_is(call, 1, {DType::I64, DType::I32});
}

// GatherElements: where rows of indices (along their last axis) begin in the data, and how far a step along the axis goes there.
struct ElementPlan {
  std::string who;
  std::vector<size_t> dims, steps;  // Of the indices' axes but the last; 0 along `axis`.
  size_t rows = 1, row = 1;
  int64_t length = 1;          // Of the axis.
  size_t step = 1, along = 1;  // Data elements for one index more, and for one place more in the row.
  bool wide = true;

  size_t base(size_t index) const {
    size_t at = 0;
    for (size_t i = dims.size(); i-- > 0;) {
      at += index % dims[i] * steps[i];
      index /= dims[i];
    }
    return at;
  }
};

ElementPlan element_plan(const OpCall& call) {
  const Shape& data = call.input(0).shape;
  const Shape& indices = call.input(1).shape;
  const size_t axis = data.axis(call.integer("axis", 0));
  const std::vector<int64_t> steps = dense_steps(data);
  ElementPlan plan{.who = title(call), .dims = {}, .steps = {}};
  for (size_t i = 0; i + 1 < data.rank(); ++i) {
    plan.dims.push_back(static_cast<size_t>(indices[i]));
    plan.steps.push_back(i == axis ? 0 : static_cast<size_t>(steps[i]));
    plan.rows *= plan.dims.back();
  }
  plan.row = static_cast<size_t>(indices[data.rank() - 1]);
  plan.length = data[axis];
  plan.step = static_cast<size_t>(steps[axis]);
  plan.along = axis + 1 == data.rank() ? 0 : 1;
  plan.wide = call.input(1).dtype == DType::I64;
  return plan;
}

Support supports_elements(const OpCall& call) {
  return call.input(0).shape.rank() == 0 ? no(Reason::Rank, "a scalar") : takes_indices(call);
}

template <class T, class Index>
void pick_row(const ElementPlan& plan, const T* from, const Index* indices, T* y) {
  for (size_t j = 0; j < plan.row; ++j)
    y[j] = from[checked_index(plan.who, indices[j], plan.length) * plan.step + j * plan.along];
}

Prepared prepare_elements(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), plan = element_plan(call), size = element_bytes(call.input(0).dtype)](
                     Stream&, const KernelArgs& args) {
    if (plan.row == 0) return;
    with_element(size, [&](auto zero) {
      using T = decltype(zero);
      const T* const x = input_as<T>(args, 0);
      T* const y = output_as<T>(args, 0);
      machine.pool().ranges(plan.rows, 8192 / (plan.row + 1) + 1, [&](size_t begin, size_t end) {
        for (size_t row = begin; row < end; ++row) {
          const size_t at = row * plan.row;
          if (plan.wide) {
            pick_row(plan, x + plan.base(row), input_as<int64_t>(args, 1) + at, y + at);
          } else {
            pick_row(plan, x + plan.base(row), input_as<int32_t>(args, 1) + at, y + at);
          }
        }
      });
    });
  }};
}

// GatherND: each tuple of indices picks a run of the data.
struct TuplePlan {
  std::string who;
  std::vector<int64_t> dims;  // Of the axes that a tuple counts.
  std::vector<size_t> steps;  // In bytes.
  size_t rows, rows_per_batch, batch_bytes, run;
};

TuplePlan tuple_plan(const OpCall& call) {
  const Shape& data = call.input(0).shape;
  const Shape& indices = call.input(1).shape;
  const auto batch = static_cast<size_t>(call.integer("batch_dims", 0));
  const auto depth = static_cast<size_t>(indices[indices.rank() - 1]);
  const size_t size = element_bytes(call.input(0).dtype);
  const std::vector<int64_t> steps = dense_steps(data);
  TuplePlan plan{.who = title(call),
                 .dims = {},
                 .steps = {},
                 .rows = static_cast<size_t>(indices.elements(0, indices.rank() - 1)),
                 .rows_per_batch = static_cast<size_t>(indices.elements(batch, indices.rank() - 1)),
                 .batch_bytes = static_cast<size_t>(data.elements(batch, data.rank())) * size,
                 .run = static_cast<size_t>(data.elements(batch + depth, data.rank())) * size};
  for (size_t i = 0; i < depth; ++i) {
    plan.dims.push_back(data[batch + i]);
    plan.steps.push_back(static_cast<size_t>(steps[batch + i]) * size);
  }
  if (depth == 0 && plan.run == 0) plan.rows = 0;  // Rows without either are no data and may be 2^40.
  return plan;
}

Prepared prepare_tuples(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), plan = tuple_plan(call)](Stream&, const KernelArgs& args) {
    const auto* const indices = input_as<int64_t>(args, 1);
    const std::byte* const x = args.inputs[0].host();
    std::byte* const y = args.outputs[0].host();
    const size_t depth = plan.dims.size();
    machine.pool().ranges(plan.rows, 65536 / (plan.run + 16 * depth + 16) + 1, [&](size_t begin, size_t end) {
      for (size_t row = begin; row < end; ++row) {
        size_t from = row / plan.rows_per_batch * plan.batch_bytes;
        for (size_t k = 0; k < depth; ++k)
          from += checked_index(plan.who, indices[row * depth + k], plan.dims[k]) * plan.steps[k];
        if (plan.run == 4) {
          std::memcpy(y + row * 4, x + from, 4);
        } else if (plan.run != 0) {
          std::memcpy(y + row * plan.run, x + from, plan.run);
        }
      }
    });
  }};
}

}  // namespace

void add_pick_kernels(KernelTable& table) {
  table.add("GatherElements", {.name = "cpu.gatherelements.rows", .supports = supports_elements, .prepare = prepare_elements});
  table.add("GatherND", {.name = "cpu.gathernd.runs", .supports = takes_indices, .prepare = prepare_tuples});
}

}  // namespace unmoor::cpu
