#include <chrono>

#include "unmoor/base/error.h"
#include "unmoor/runtime/constants.h"
#include "unmoor/runtime/session.h"
#include "unmoor/runtime/state.h"

namespace unmoor {
namespace {

constexpr size_t session_limit = 16;  // Plans kept for different shapes.

// The input's shape for a plan made without data: as asked, unknown dimensions 1.
Shape default_shape(const Value& value, const InputShapes& shapes) {
  if (const auto found = shapes.find(value.name); found != shapes.end()) return found->second;
  const auto* tensor = std::get_if<TensorType>(&value.type);
  Shape shape = tensor == nullptr ? Shape() : tensor->shape;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] < 0) shape.set(i, 1);
  }
  return shape.has_rank() ? shape : Shape();
}

}  // namespace

ModelRunner::ModelRunner(std::shared_ptr<const Graph> graph, std::vector<std::shared_ptr<Device>> devices, PlanOptions options)
    : graph_(std::move(graph)), devices_(std::move(devices)), options_(std::move(options)), sessions_(session_limit) {
  if (options_.constants == nullptr) options_.constants = std::make_shared<SharedConstants>();
}

Session& ModelRunner::session_of(const std::string& key, const InputShapes& shapes) {
  if (const auto* const found = sessions_.find(key)) {
    last_ = found->get();
    return *last_;
  }
  const auto start = std::chrono::steady_clock::now();
  if (prepared_ == nullptr) {
    const bool widen = options_.passes.widen_to_float64;
    prepared_ = std::make_unique<const Graph>(widen ? preoptimized(widened(*graph_), options_.passes) : preoptimized(*graph_, options_.passes));
  }
  PlanOptions options = options_;
  options.passes.widen_to_float64 = false;  // It is done.
  for (const auto& [name, shape] : shapes) options.shapes[name] = shape;
  auto session = std::make_unique<Session>(make_plan(*prepared_, devices_, options));
  prepare_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  last_ = sessions_.put(key, std::move(session)).get();
  return *last_;
}

Session& ModelRunner::session_for(const NamedData& inputs) {
  InputShapes shapes;
  std::string key;
  for (const ValueId id : graph_->inputs()) {
    const Value& value = graph_->value(id);
    const auto found = inputs.find(value.name);
    if (found == inputs.end()) fail(ErrorKind::InvalidArgument, "input '", value.name, "' was not given");
    // An optional that is declared as such keeps its type: its shape is met when it is unpacked.
    if (!found->second.is_tensor() || !std::holds_alternative<TensorType>(value.type)) continue;
    shapes[value.name] = found->second.tensor().shape();
    key += cat(value.name, found->second.tensor().shape(), ";");
  }
  return session_of(key, shapes);
}

Session& ModelRunner::default_session() {
  if (last_ != nullptr) return *last_;
  InputShapes shapes;
  std::string key;
  for (const ValueId id : graph_->inputs()) {
    const Value& value = graph_->value(id);
    if (!std::holds_alternative<TensorType>(value.type)) continue;
    shapes[value.name] = default_shape(value, options_.shapes);
    key += cat(value.name, shapes[value.name], ";");
  }
  return session_of(key, shapes);
}

std::string ModelRunner::name() const { return devices_.at(0)->info().id; }

std::vector<ValueInfo> ModelRunner::inputs() const {
  std::vector<ValueInfo> result;
  for (const ValueId id : graph_->inputs()) {
    const Value& value = graph_->value(id);
    result.push_back({value.name, value.type, "", ""});
  }
  return result;
}

std::vector<ValueInfo> ModelRunner::outputs() const {
  std::vector<ValueInfo> result;
  for (size_t i = 0; i < graph_->outputs().size(); ++i) {
    result.push_back({graph_->output_names()[i], graph_->value(graph_->outputs()[i]).type, "", ""});
  }
  return result;
}

std::vector<ValueInfo> ModelRunner::values() const { return last_ == nullptr ? std::vector<ValueInfo>() : last_->values(); }
NamedData ModelRunner::run(const NamedData& inputs, Observer* observer) { return session_for(inputs).run(inputs, observer); }
std::vector<double> ModelRunner::time_runs(const NamedData& inputs, size_t count, double seconds) {
  return session_for(inputs).time_runs(inputs, count, seconds);
}
std::vector<StepInfo> ModelRunner::steps() const { return last_ == nullptr ? std::vector<StepInfo>() : last_->steps(); }
std::vector<Data> ModelRunner::run_step(size_t step, const NamedData& inputs) { return default_session().run_step(step, inputs); }
PlanInfo ModelRunner::plan() { return default_session().plan_info(); }
size_t ModelRunner::peak_bytes() const { return peak_memory_bytes(); }
double ModelRunner::prepare_ms() const { return prepare_ms_; }

}  // namespace unmoor
