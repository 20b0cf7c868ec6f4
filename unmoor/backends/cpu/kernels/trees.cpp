#include <algorithm>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/walk.h"
#include "unmoor/ops/ml/tree_model.h"

namespace unmoor::cpu {

namespace {

constexpr size_t block = 64;  // Rows that go through a tree while a cache holds it.

bool is_plain_float(DType dtype) { return dtype == DType::F32 || dtype == DType::F64; }

size_t score_output(const OpCall& call) { return call.node.op == "ai.onnx.ml:TreeEnsembleClassifier" ? 1 : 0; }

Support supports_trees(const OpCall& call) {
  if (!is_plain_float(call.input(0).dtype)) {
    return no(Reason::DType, call.input(0).dtype);
  }
  if (score_output(call) == 1 && call.output(0).dtype != DType::I64) {
    return no(Reason::DType, "labels of ", call.output(0).dtype);
  }
  return yes();
}

double number_at(const std::byte* from, DType dtype, size_t i) {
  return dtype == DType::F32 ? static_cast<double>(reinterpret_cast<const float*>(from)[i])
                             : reinterpret_cast<const double*>(from)[i];
}

void store_at(std::byte* to, DType dtype, size_t i, double value) {
  if (dtype == DType::F32) {
    reinterpret_cast<float*>(to)[i] = static_cast<float>(value);
  } else {
    reinterpret_cast<double*>(to)[i] = value;
  }
}

// A prepared call: the trees were read and checked once.
struct Trees {
  ml::TreeModel model;
  size_t rows, width, scores_at;
  DType from, to;

  void predict(const KernelArgs& args, size_t begin, size_t end) const {
    const size_t columns = model.forest.targets;
    const size_t count = end - begin;
    std::vector<double> x(count * width);
    std::vector<double> scores(count * columns);
    std::vector<int64_t> places(count);
    for (size_t i = 0; i < x.size(); ++i) x[i] = number_at(args.inputs[0].host(), from, begin * width + i);
    model.predict(x, width, scores, places);
    std::byte* const scores_to = scores_at < args.outputs.size() ? args.outputs[scores_at].host() : nullptr;
    for (size_t i = 0; scores_to != nullptr && i < scores.size(); ++i) store_at(scores_to, to, begin * columns + i, scores[i]);
    auto* const labels_to = model.labels.size() == 0 ? nullptr : reinterpret_cast<int64_t*>(args.outputs[0].host());
    for (size_t i = 0; labels_to != nullptr && i < count; ++i) {
      labels_to[begin + i] = places[i] < 0 ? 0 : model.labels.numbers[static_cast<size_t>(places[i])];
    }
  }
};

Prepared prepare_trees(const OpCall& call, Device& device) {
  const Shape& shape = call.input(0).shape;
  const size_t scores_at = score_output(call);
  const DType to = call.wants_output(scores_at) ? call.output(scores_at).dtype : DType::F32;
  const auto trees = std::make_shared<const Trees>(Trees{ml::tree_model(call), static_cast<size_t>(shape[0]),
                                                         static_cast<size_t>(shape[1]), scores_at, call.input(0).dtype, to});
  return {.run = [&machine = machine_of(device), trees](Stream&, const KernelArgs& args) {
    machine.pool().each((trees->rows + block - 1) / block,
                        [&](size_t i) { trees->predict(args, i * block, std::min(trees->rows, (i + 1) * block)); });
  }};
}

}  // namespace

void add_tree_kernels(KernelTable& table) {
  for (const char* op : {"TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"}) {
    table.add(cat("ai.onnx.ml:", op), {.name = "cpu.trees.rows", .supports = supports_trees, .prepare = prepare_trees});
  }
}

}  // namespace unmoor::cpu
