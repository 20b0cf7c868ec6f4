#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/simd/functions.h"
#include "unmoor/ops/numeric.h"

namespace unmoor::cpu {

namespace {

// The losses of scores [outer, classes, inner].
struct Loss {
  std::string who;
  Split at;
  bool logits;  // The scores' LogSoftmax over the classes is taken first.
  bool wide, mean, sum;
  std::optional<int64_t> ignored;
};

// Of one line of scores, the largest and the logarithm of the sum of e^(x - largest).
struct Line {
  float top;
  double logarithm;
};
Line line_of(const Loss& loss, const float* first) {
  Line line{*first, 0};
  for (size_t c = 1; c < loss.at.length; ++c) line.top = std::max(line.top, first[c * loss.at.inner]);
  double sum = 0;
  for (size_t c = 0; c < loss.at.length; ++c) sum += static_cast<double>(std::exp(first[c * loss.at.inner] - line.top));
  line.logarithm = std::log(sum);
  return line;
}

// One target's loss and weight.
struct Part {
  double loss = 0, weight = 0;
};

Part part_of(const Loss& loss, const KernelArgs& args, size_t i, float* logarithms) {
  const size_t first = i / loss.at.inner * loss.at.length * loss.at.inner + i % loss.at.inner;
  const float* const scores = input_as(args, 0) + first;
  const Line line = loss.logits ? line_of(loss, scores) : Line{0, 0};
  const auto at = [&](size_t c) { return static_cast<double>(scores[c * loss.at.inner] - line.top) - line.logarithm; };
  for (size_t c = 0; logarithms != nullptr && c < loss.at.length; ++c)
    logarithms[first + c * loss.at.inner] = static_cast<float>(at(c));
  const int64_t target = Indices(args, 1, loss.wide)[i];
  if (target == loss.ignored) return {};
  if (target < 0 || target >= static_cast<int64_t>(loss.at.length)) {
    fail(ErrorKind::InvalidArgument, loss.who, ": target ", target, " is none of ", loss.at.length, " classes");
  }
  const float* const weights = input_as(args, 2);
  const double weight = weights == nullptr ? 1 : static_cast<double>(weights[target]);
  return {-at(static_cast<size_t>(target)) * weight, weight};
}

void run_loss(const Machine& machine, const Loss& loss, const KernelArgs& args) {
  float* const y = output_as(args, 0);
  float* const logarithms = loss.logits ? output_as(args, 1) : nullptr;
  const size_t count = loss.at.outer * loss.at.inner;
  constexpr size_t block = 64;
  std::vector<Part> parts(loss.sum ? (count + block - 1) / block : 0);  // Added up in order, whoever made them.
  machine.pool().ranges((count + block - 1) / block, 8192 / (block * (loss.logits ? 4 * loss.at.length : 1)) + 1,
                        [&](size_t begin, size_t end) {
                          for (size_t b = begin; b < end; ++b) {
                            for (size_t i = b * block; i < std::min((b + 1) * block, count); ++i) {
                              const Part part = part_of(loss, args, i, logarithms);
                              if (!loss.sum && y != nullptr) y[i] = static_cast<float>(part.loss);
                              if (!loss.sum) continue;
                              parts[b].loss += part.loss;
                              parts[b].weight += part.weight;
                            }
                          }
                        });
  if (!loss.sum || y == nullptr) return;
  Part all;
  for (const Part& part : parts) all = {all.loss + part.loss, all.weight + part.weight};
  *y = static_cast<float>(loss.mean ? all.loss / all.weight : all.loss);
}

Support supports_loss(const OpCall& call) {
  if (Support types = all_of(input_is(call, 0, {DType::F32}), input_is(call, 1, {DType::I64, DType::I32})); !types) return types;
  if (call.input(0).shape.elements() == 0) return no(Reason::Size, "an empty input");
  return call.has(2) ? input_is(call, 2, {DType::F32}) : yes();
}

Prepared prepare_loss(const OpCall& call, Device& device) {
  const std::string reduction = call.text("reduction", "mean");
  Loss loss{title(call),
            split_at(call.input(0).shape, 1),
            call.node.op == "SoftmaxCrossEntropyLoss",
            call.input(1).dtype == DType::I64,
            reduction == "mean",
            reduction != "none",
            std::nullopt};
  if (call.has_attribute("ignore_index")) loss.ignored = call.integer("ignore_index", 0);
  return {.run = [&machine = machine_of(device), loss = std::move(loss)](Stream&, const KernelArgs& args) {
    run_loss(machine, loss, args);
  }};
}

}  // namespace

void add_loss_kernels(KernelTable& table) {
  table.add("NegativeLogLikelihoodLoss",
            {.name = "cpu.negativeloglikelihoodloss.targets", .supports = supports_loss, .prepare = prepare_loss});
  table.add("SoftmaxCrossEntropyLoss",
            {.name = "cpu.softmaxcrossentropyloss.lines", .supports = supports_loss, .prepare = prepare_loss});
}

}  // namespace unmoor::cpu
