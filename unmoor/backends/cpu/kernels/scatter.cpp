#include <cmath>
#include <cstring>
#include <type_traits>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/walk.h"
#include "unmoor/ops/numeric.h"

namespace unmoor::cpu {

namespace {

enum class Combine { Put, Add, Mul, Max, Min };

Combine combine_of(const OpCall& call) {
  const std::string reduction = call.text("reduction", "none");
  return reduction == "add"   ? Combine::Add
         : reduction == "mul" ? Combine::Mul
         : reduction == "max" ? Combine::Max
         : reduction == "min" ? Combine::Min
                              : Combine::Put;
}

// NaN stays, integers wrap around.
template <class T>
T combined(Combine combine, T old, T update) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    if (combine == Combine::Add) return static_cast<T>(static_cast<U>(old) + static_cast<U>(update));
    if (combine == Combine::Mul) return static_cast<T>(static_cast<U>(old) * static_cast<U>(update));
  } else {
    if (combine == Combine::Add) return old + update;
    if (combine == Combine::Mul) return old * update;
    if (std::isnan(old)) return old;
    if (std::isnan(update)) return update;
  }
  return combine == Combine::Max ? (old < update ? update : old) : (update < old ? update : old);
}

Support supports_scatter(const OpCall& call) {
  const DType dtype = call.input(0).dtype;
  if (element_bytes(dtype) == 0 || call.input(2).dtype != dtype)
    return no(Reason::DType, "data of ", dtype, ", updates of ", call.input(2).dtype);
  if (combine_of(call) != Combine::Put && dtype != DType::F32 && dtype != DType::I32 && dtype != DType::I64) {
    return no(Reason::DType, "reduction of ", dtype);
  }
  if (call.input(0).shape.rank() == 0) return no(Reason::Rank, "a scalar");
  return input_is(call, 1, {DType::I64, DType::I32});
}

// Calls body(combine) with what an element of the dtype becomes; elements that are only put are as wide as it.
template <class Body>
void with_combine(DType dtype, Combine combine, Body&& body) {
  if (combine == Combine::Put)
    return with_element(element_bytes(dtype), [&](auto zero) { body(zero, [](auto, auto update) { return update; }); });
  const auto step = [combine](auto old, auto update) { return combined(combine, old, update); };
  switch (dtype) {
    case DType::F32:
      return body(float{}, step);
    case DType::I32:
      return body(int32_t{}, step);
    default:
      return body(int64_t{}, step);
  }
}

void copy_data(const Machine& machine, const KernelArgs& args, size_t bytes) {
  const std::byte* const x = args.inputs[0].host();
  std::byte* const y = args.outputs[0].host();
  if (x == y || bytes == 0) return;
  machine.pool().ranges(bytes, size_t{1} << 18,
                        [&](size_t begin, size_t end) { std::memcpy(y + begin, x + begin, end - begin); });
}

struct ElementPlan {
  std::string who;
  DType dtype;
  Combine combine;
  bool wide;
  size_t bytes = 0;
  int64_t length = 1;               // Of the axis.
  size_t step = 1;                  // Along it, in the data.
  std::vector<size_t> dims, steps;  // Of the indices; steps in the data, 0 along the axis.
  size_t slices = 1;                // Parts that never meet: those before the axis.
  size_t slice = 1;                 // Indices in one.
};

ElementPlan element_plan(const OpCall& call) {
  const Shape& data = call.input(0).shape;
  const Shape& indices = call.input(1).shape;
  const size_t axis = data.axis(call.integer("axis", 0));
  const std::vector<int64_t> steps = dense_steps(data);
  ElementPlan plan{.who = title(call),
                   .dtype = call.input(0).dtype,
                   .combine = combine_of(call),
                   .wide = call.input(1).dtype == DType::I64,
                   .bytes = call.input(0).bytes(),
                   .length = data[axis],
                   .step = static_cast<size_t>(steps[axis]),
                   .dims = {},
                   .steps = {},
                   .slices = static_cast<size_t>(indices.elements(0, axis)),
                   .slice = static_cast<size_t>(indices.elements(axis, indices.rank()))};
  for (size_t i = 0; i < data.rank(); ++i) {
    plan.dims.push_back(static_cast<size_t>(indices[i]));
    plan.steps.push_back(i == axis ? 0 : static_cast<size_t>(steps[i]));
  }
  return plan;
}

template <class T, class Step>
void scatter_elements(const ElementPlan& plan, const KernelArgs& args, size_t begin, size_t end, Step step) {
  const Indices indices(args, 1, plan.wide);
  const T* const updates = input_as<T>(args, 2);
  T* const y = output_as<T>(args, 0);
  const size_t row = plan.dims.back();
  const size_t along = plan.steps.back();
  for (size_t at = begin; at < end; at += row) {
    size_t base = 0;
    size_t rest = at / row;
    for (size_t i = plan.dims.size() - 1; i-- > 0;) {
      base += rest % plan.dims[i] * plan.steps[i];
      rest /= plan.dims[i];
    }
    for (size_t j = 0; j < row; ++j) {
      T& to = y[base + j * along + checked_index(plan.who, indices[at + j], plan.length) * plan.step];
      to = step(to, updates[at + j]);
    }
  }
}

Prepared prepare_elements(const OpCall& call, Device& device) {
  return {.run =
              [&machine = machine_of(device), plan = element_plan(call)](Stream&, const KernelArgs& args) {
                copy_data(machine, args, plan.bytes);
                if (plan.slice == 0) return;
                with_combine(plan.dtype, plan.combine, [&](auto zero, auto step) {
                  machine.pool().ranges(plan.slices, 8192 / (plan.slice + 1) + 1, [&](size_t begin, size_t end) {
                    scatter_elements<decltype(zero)>(plan, args, begin * plan.slice, end * plan.slice, step);
                  });
                });
              },
          .unused_inputs = {}};
}

struct TuplePlan {
  std::string who;
  DType dtype;
  Combine combine;
  bool wide;
  size_t bytes;
  std::vector<int64_t> dims;  // Of the axes that a tuple counts.
  std::vector<size_t> steps;  // In elements.
  size_t rows, run;           // Tuples, and elements that each replaces.
};

TuplePlan tuple_plan(const OpCall& call) {
  const Shape& data = call.input(0).shape;
  const Shape& indices = call.input(1).shape;
  const auto depth = static_cast<size_t>(indices[indices.rank() - 1]);
  const std::vector<int64_t> steps = dense_steps(data);
  TuplePlan plan{.who = title(call),
                 .dtype = call.input(0).dtype,
                 .combine = combine_of(call),
                 .wide = call.input(1).dtype == DType::I64,
                 .bytes = call.input(0).bytes(),
                 .dims = {data.dims().begin(), data.dims().begin() + static_cast<std::ptrdiff_t>(depth)},
                 .steps = {steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(depth)},
                 .rows = static_cast<size_t>(indices.elements(0, indices.rank() - 1)),
                 .run = static_cast<size_t>(data.elements(depth, data.rank()))};
  if (depth == 0 && plan.run == 0) plan.rows = 0;  // Rows without either are no data and may be 2^40.
  return plan;
}

// Tuples may name one place twice, and then their order counts: so threads share out the runs, not the tuples.
Prepared prepare_tuples(const OpCall& call, Device& device) {
  return {.run = [&machine = machine_of(device), plan = tuple_plan(call)](Stream&, const KernelArgs& args) {
    copy_data(machine, args, plan.bytes);
    const Indices indices(args, 1, plan.wide);
    const size_t depth = plan.dims.size();
    const auto place = [&](size_t row) {
      size_t at = 0;
      for (size_t k = 0; k < depth; ++k) at += checked_index(plan.who, indices[row * depth + k], plan.dims[k]) * plan.steps[k];
      return at;
    };
    if (plan.run == 0) {
      for (size_t row = 0; row < plan.rows; ++row) place(row);
      return;
    }
    with_combine(plan.dtype, plan.combine, [&](auto zero, auto step) {
      using T = decltype(zero);
      const T* const updates = input_as<T>(args, 2);
      T* const y = output_as<T>(args, 0);
      machine.pool().ranges(plan.run, 65536 / (plan.rows + 1) + 64, [&](size_t begin, size_t end) {
        for (size_t row = 0; row < plan.rows; ++row) {
          T* const to = y + place(row);
          const T* const from = updates + row * plan.run;
          for (size_t i = begin; i < end; ++i) to[i] = step(to[i], from[i]);
        }
      });
    });
  }};
}

// TensorScatter: rows written into a cache at each batch's place.
struct CachePlan {
  std::string who;
  size_t batch, middle;  // Items, and parts between the batch and the axis.
  int64_t length, rows;  // Of the cache and of the update along the axis.
  size_t run, bytes;     // Bytes of one row; of the cache.
  bool circular, given;
};

Support supports_cache(const OpCall& call) {
  const DType dtype = call.input(0).dtype;
  if (element_bytes(dtype) == 0 || call.input(1).dtype != dtype)
    return no(Reason::DType, "a cache of ", dtype, ", updates of ", call.input(1).dtype);
  if (call.has(2) && call.input(2).shape.elements() != call.input(0).shape[0])
    return no(Reason::Size, "write_indices of ", call.input(2).shape);
  return yes();
}

Prepared prepare_cache(const OpCall& call, Device& device) {
  const Shape& cache = call.input(0).shape;
  const size_t axis = cache.axis(call.integer("axis", -2));
  const CachePlan plan{.who = title(call),
                       .batch = call.input(1).shape.elements() == 0 ? 0 : static_cast<size_t>(cache[0]),
                       .middle = static_cast<size_t>(cache.elements(1, axis)),
                       .length = cache[axis],
                       .rows = call.input(1).shape[axis],
                       .run = static_cast<size_t>(cache.elements(axis + 1, cache.rank())) * element_bytes(call.input(0).dtype),
                       .bytes = call.input(0).bytes(),
                       .circular = call.text("mode", "linear") == "circular",
                       .given = call.has(2)};
  return {.run = [&machine = machine_of(device), plan](Stream&, const KernelArgs& args) {
    copy_data(machine, args, plan.bytes);
    const auto* const starts = plan.given ? input_as<int64_t>(args, 2) : nullptr;
    for (size_t b = 0; b < plan.batch; ++b) {
      const int64_t start = starts == nullptr ? 0 : starts[b];
      const bool outside = start < 0 || start > (int64_t{1} << 60) || (!plan.circular && start + plan.rows > plan.length);
      if (outside) {
        fail(ErrorKind::InvalidArgument, plan.who, ": writing at ", start, " passes the cache's end at ", plan.length);
      }
      for (size_t m = b * plan.middle; m < (b + 1) * plan.middle; ++m) {
        for (int64_t row = 0; row < plan.rows; ++row) {
          const auto to = m * static_cast<size_t>(plan.length) + static_cast<size_t>((start + row) % plan.length);
          std::memcpy(args.outputs[0].host() + to * plan.run,
                      args.inputs[1].host() + (m * static_cast<size_t>(plan.rows) + static_cast<size_t>(row)) * plan.run,
                      plan.run);
        }
      }
    }
  }};
}

}  // namespace

void add_scatter_kernels(KernelTable& table) {
  table.add("ScatterElements",
            {.name = "cpu.scatterelements.rows", .supports = supports_scatter, .prepare = prepare_elements, .in_place = true});
  table.add("ScatterND",
            {.name = "cpu.scatternd.runs", .supports = supports_scatter, .prepare = prepare_tuples, .in_place = true});
  table.add("TensorScatter",
            {.name = "cpu.tensorscatter.rows", .supports = supports_cache, .prepare = prepare_cache, .in_place = true});
}

}  // namespace unmoor::cpu
