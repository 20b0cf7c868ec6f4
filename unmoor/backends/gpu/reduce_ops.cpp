#include <algorithm>
#include <array>

#include "unmoor/backends/gpu/kernels.h"
#include "unmoor/backends/gpu/texts.h"
#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"

namespace unmoor::gpu {
namespace {

// With so many elements a result, a work-group makes each.
constexpr int64_t worth_a_group = 128;
constexpr size_t most_walked = 3;

struct Rule {
  const char* op;
  const char* kernel;
  const char* start;
  const char* start_integer;  // Empty: no integers.
  const char* join;
  const char* merge;
  const char* finish;
};

constexpr const char* sums = "(s) + (o)";
constexpr std::array rules{
    Rule{"ReduceSum", "sum", "0", "0", "(s) + (x)", sums, "(s)"},
    Rule{"ReduceMean", "mean", "0", "", "(s) + (x)", sums, "(s) / (c)"},
    Rule{"ReduceProd", "prod", "1", "1", "(s) * (x)", "(s) * (o)", "(s)"},
    Rule{"ReduceMax", "max", "-INF", "LEAST", "larger_of(x, s)", "larger_of(o, s)", "(s)"},
    Rule{"ReduceMin", "min", "INF", "MOST", "smaller_of(x, s)", "smaller_of(o, s)", "(s)"},
    Rule{"ReduceSumSquare", "sum_square", "0", "0", "(s) + (x) * (x)", sums, "(s)"},
    Rule{"ReduceL1", "l1", "0", "", "(s) + fabs(x)", sums, "(s)"},
    Rule{"ReduceL2", "l2", "0", "", "(s) + (x) * (x)", sums, "sqrt(s)"},
    Rule{"ReduceLogSum", "log_sum", "0", "", "(s) + (x)", sums, "log(s)"},
};

bool takes(const Rule& rule, DType dtype) { return is_float(dtype) || *rule.start_integer != '\0'; }

// Which axes go; none of them for an empty list with noop_with_empty_axes.
std::vector<bool> gone_axes(const OpCall& call) {
  const auto& shape = call.input(0).shape;
  std::vector<int64_t> axes;
  if (call.has(1)) axes = integers(*call.constant(1));
  const bool none = axes.empty() && call.integer("noop_with_empty_axes", 0) != 0;
  std::vector<bool> gone(shape.rank(), axes.empty() && !none);
  for (const auto axis : axes) gone[shape.axis(axis)] = true;
  return gone;
}

// The walk over the axes that stay, or over those that go.
Walk part_of(const OpCall& call, const std::vector<bool>& gone, bool wanted) {
  const auto& shape = call.input(0).shape;
  const auto strides = shape.strides();
  Walk walk{{}, {{}}};
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (gone[axis] != wanted) continue;
    walk.dims.push_back(shape[axis]);
    walk.strides[0].push_back(strides[axis]);
  }
  return collapsed(walk);
}

std::vector<std::string> defines_for(const Rule& rule, DType dtype, bool rows) {
  std::vector<std::string> defines{cat("TYPE ", element_name(dtype)), cat("START ", is_float(dtype) ? rule.start : rule.start_integer),
                                   cat("JOIN(s, x) (", rule.join, ")"), cat("MERGE(s, o) (", rule.merge, ")"),
                                   cat("FINISH(s, c) (", rule.finish, ")")};
  if (dtype == DType::I32) defines.insert(defines.end(), {"LEAST (-2147483647 - 1)", "MOST 2147483647"});
  if (dtype == DType::I64) defines.insert(defines.end(), {"LEAST (-MOST - 1)", "MOST ((i64)0x7fffffffffffffff)"});
  if (rows) defines.emplace_back("ROWS");
  return real_defines(dtype, std::move(defines));
}

Support reduces(const OpCall& call, const std::vector<bool>& gone) {
  const auto kept_axes = part_of(call, gone, false).rank();
  const auto gone_count = part_of(call, gone, true).rank();
  if (kept_axes > most_walked || gone_count > most_walked) {
    return no(Reason::Rank, kept_axes, " axes stay and ", gone_count, " go, more than ", most_walked);
  }
  return yes();
}

Prepared reduce(const OpCall& call, GpuDevice& device, const Rule& rule, const std::vector<bool>& gone) {
  const auto kept = padded(part_of(call, gone, false), most_walked);
  const auto going = padded(part_of(call, gone, true), most_walked);
  const int64_t count = call.output(0).shape.elements();
  const bool rows = going.elements() >= worth_a_group;
  Launch launch("reduce", cat(math_text(), unmoor_gpu_text::unmoor_backends_gpu_kernels_reduce_inc),
                defines_for(rule, call.input(0).dtype, rows));
  launch.input(call, 0).output(call, 0).integers(kept.dims).integers(kept.strides[0]).integers(going.dims).integers(going.strides[0]);
  launch.integer(count);
  if (rows) {
    launch.rows(count);
  } else {
    launch.elements(count);
  }
  return run_in_order(call, device, {std::move(launch)});
}

Support dtype_fits(const OpCall& call, const Rule& rule, const Abilities& abilities) {
  const auto dtype = call.input(0).dtype;
  if (dtype != DType::I32 && dtype != DType::I64) return is_real(call, 0, abilities);
  return takes(rule, dtype) ? yes() : no(Reason::DType, "input 0 is ", dtype);
}

void add_reduce(Kernels& kernels, const Rule& rule) {
  const auto abilities = kernels.abilities();
  const auto supports = [abilities, &rule](const OpCall& call) {
    if (auto answer = dtype_fits(call, rule, abilities); !answer) return answer;
    if (call.has(1) && call.constant(1) == nullptr) return no(Reason::Dynamic, "the axes are known only at run time");
    return reduces(call, gone_axes(call));
  };
  const auto prepare = [&rule](const OpCall& call, GpuDevice& device) { return reduce(call, device, rule, gone_axes(call)); };
  kernels.add(rule.op, cat("reduce.", rule.kernel), supports, prepare);
}

void add_global_pool(Kernels& kernels, const std::string& op, const std::string& kernel, const Rule& rule) {
  const auto abilities = kernels.abilities();
  const auto spatial = [](const OpCall& call) {
    std::vector<bool> gone(call.input(0).shape.rank(), true);
    std::fill_n(gone.begin(), 2, false);
    return gone;
  };
  const auto supports = [abilities, spatial](const OpCall& call) {
    if (auto answer = is_real(call, 0, abilities); !answer) return answer;
    if (call.input(0).shape.rank() < 3) return no(Reason::Rank, "input 0 has rank ", call.input(0).shape.rank());
    if (const auto layout = call.text("layout", "NCHW"); layout != "NCHW") return no(Reason::Layout, "the layout is ", layout);
    return reduces(call, spatial(call));
  };
  const auto prepare = [&rule, spatial](const OpCall& call, GpuDevice& device) { return reduce(call, device, rule, spatial(call)); };
  kernels.add(op, kernel, supports, prepare);
}

}  // namespace

void add_reduce_kernels(Kernels& kernels) {
  for (const auto& rule : rules) add_reduce(kernels, rule);
  const auto find = [](std::string_view op) -> const Rule& { return *std::ranges::find(rules, op, &Rule::op); };
  add_global_pool(kernels, "GlobalAveragePool", "global_average_pool", find("ReduceMean"));
  add_global_pool(kernels, "GlobalMaxPool", "global_max_pool", find("ReduceMax"));
}

}  // namespace unmoor::gpu
