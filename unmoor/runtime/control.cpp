#include <algorithm>
#include <cstring>

#include "unmoor/base/error.h"
#include "unmoor/base/memory.h"
#include "unmoor/base/stop.h"
#include "unmoor/runtime/body.h"
#include "unmoor/runtime/generation.h"
#include "unmoor/runtime/loop_limit.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

constexpr size_t value_plan_limit = 8;  // A body planned for more sets of values than this is planned for types only.

int64_t integer_of(const Node& node, std::string_view key, int64_t otherwise) {
  const auto found = node.attributes.find(key);
  const auto* held = found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return held == nullptr ? otherwise : *held;
}

std::vector<int64_t> integers_of(const Node& node, std::string_view key, size_t count) {
  const auto found = node.attributes.find(key);
  const auto* held = found == node.attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
  if (held == nullptr) return std::vector<int64_t>(count, 0);
  if (held->size() != count) fail(ErrorKind::InvalidModel, "its '", key, "' has ", held->size(), " entries, not ", count);
  return *held;
}

int64_t only_integer(const Data& data, std::string_view what) {
  const Tensor& tensor = data.tensor();
  if (tensor.elements() != 1) fail(ErrorKind::InvalidModel, what, " has ", tensor.elements(), " elements, not one");
  return integers(tensor)[0];
}

bool truth(const Data& data, std::string_view what) { return only_integer(data, what) != 0; }

std::vector<Data> run_if(const Node& node, std::vector<Data> inputs, BodySessions& bodies, Observer* observer) {
  const bool taken = truth(inputs.at(0), "its condition");
  const std::string_view branch = taken ? "then_branch" : "else_branch";
  inputs.erase(inputs.begin());
  BodyObserver shown(observer, cat(node_label(node), "/", branch, "/"), "");
  Session& session = bodies.get(body_of(node, branch), inputs, true);
  return session.run_in_order(std::move(inputs), observer == nullptr ? nullptr : &shown);
}

// The size of so many elements in a row. Fails with Unsupported where they end inside a byte, as an odd number of 4-bit integers does.
size_t whole_bytes(DType dtype, int64_t elements) {
  const auto count = static_cast<size_t>(elements);
  if (dtype != DType::String && count * bits_of(dtype) % 8 != 0) fail(ErrorKind::Unsupported, "slices of ", count, " elements of ", dtype);
  return bytes_of(dtype, count);
}

// Tensors of equal type joined along a new axis.
Tensor joined(const std::vector<Tensor>& parts, const TensorType& type, size_t axis, bool backward) {
  std::vector<int64_t> dims = type.shape.dims();
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<int64_t>(parts.size()));
  Tensor result(TensorType{type.dtype, Shape(dims)});
  if (result.elements() == 0) return result;
  const auto outer = static_cast<size_t>(type.shape.elements(0, axis));
  const size_t inner = whole_bytes(type.dtype, type.shape.elements(axis, type.shape.rank()));
  for (size_t part = 0; part < parts.size(); ++part) {
    const size_t at = backward ? parts.size() - 1 - part : part;
    if (!(parts[part].type() == type)) {
      fail(ErrorKind::InvalidModel, "its body gave ", parts[part].type(), " after ", type, " for one output");
    }
    if (type.dtype == DType::String) {
      const auto& from = parts[part].strings();
      const size_t run = from.size() / std::max<size_t>(outer, 1);
      for (size_t i = 0; i < from.size(); ++i) result.writable_strings()[((i / run) * parts.size() + at) * run + i % run] = from[i];
      continue;
    }
    for (size_t i = 0; i < outer; ++i) {
      std::memcpy(result.writable_bytes().data() + (i * parts.size() + at) * inner, parts[part].bytes().data() + i * inner, inner);
    }
  }
  return result;
}

TensorType declared_type(const Graph& body, size_t output) {
  const Type& type = body.value(body.outputs()[output]).type;
  const auto* tensor = std::get_if<TensorType>(&type);
  TensorType result = tensor == nullptr ? TensorType{} : *tensor;
  std::vector<int64_t> dims;
  for (size_t i = 0; result.shape.has_rank() && i < result.shape.rank(); ++i) dims.push_back(std::max<int64_t>(result.shape[i], 0));
  result.shape = Shape(dims);
  return result;
}

Tensor gathered(const std::vector<Tensor>& parts, const Graph& body, size_t output, size_t axis, bool backward) {
  const TensorType type = parts.empty() ? declared_type(body, output) : parts[0].type();
  return joined(parts, type, std::min(axis, type.shape.rank()), backward);
}

// What the rounds of a body gave for one output, to be joined. Memory for that counts as it grows, so that a body that goes on and on meets the
// limit in the round that passes it.
class Rounds {
 public:
  void add(const Data& made) {
    const Tensor& tensor = made.tensor();
    taken_.emplace_back(tensor.bytes().size() + sizeof(Tensor));
    parts_.push_back(tensor);
  }
  // The rounds along a new axis; with no round at all, none of what the body declares.
  Tensor joined(const Graph& body, size_t output, size_t axis, bool backward) {
    taken_.clear();
    return gathered(parts_, body, output, axis, backward);
  }
  size_t rank(const Graph& body, size_t output) const {
    return parts_.empty() ? declared_type(body, output).shape.rank() : parts_[0].shape().rank();
  }

 private:
  std::vector<Tensor> parts_;
  std::vector<TakenMemory> taken_;
};

void check_round(int64_t round) {
  check_stop();
  if (round < loop_limit()) return;
  fail(ErrorKind::InvalidModel, "it has run ", round, " rounds and goes on, which is taken for one that never ends; if it does end, set UNMOOR_LOOP_LIMIT to more");
}

std::vector<Data> run_loop(const Node& node, std::vector<Data> inputs, BodySessions& bodies, Observer* observer) {
  const Graph& body = body_of(node, "body");
  const auto captures = static_cast<size_t>(integer_of(node, "captures", 0));
  if (inputs.size() < 2 + captures) fail(ErrorKind::InvalidModel, "it has ", inputs.size(), " inputs, not at least ", 2 + captures);
  const int64_t limit = inputs[0] ? only_integer(inputs[0], "its trip count") : INT64_MAX;
  bool going = inputs[1] ? truth(inputs[1], "its condition") : true;
  std::vector<Data> carried(inputs.begin() + 2, inputs.end() - static_cast<std::ptrdiff_t>(captures));
  const std::vector<Data> captured(inputs.end() - static_cast<std::ptrdiff_t>(captures), inputs.end());
  const size_t kept = carried.size();
  if (body.outputs().size() < 1 + kept) fail(ErrorKind::InvalidModel, "its body gives too few values");
  const size_t scanned = body.outputs().size() - 1 - kept;
  std::vector<Rounds> scans(scanned);
  for (int64_t iteration = 0; going && iteration < limit; ++iteration) {
    check_round(iteration);
    std::vector<Data> arguments{Tensor::scalar<int64_t>(iteration), Tensor::scalar<bool>(going)};
    std::ranges::copy(carried, std::back_inserter(arguments));
    std::ranges::copy(captured, std::back_inserter(arguments));
    BodyObserver shown(observer, cat(node_label(node), "/body/"), cat("#", iteration));
    Session& session = bodies.get(body, arguments, false);
    auto results = session.run_in_order(std::move(arguments), observer == nullptr ? nullptr : &shown);
    going = truth(results[0], "its body's condition");
    for (size_t i = 0; i < kept; ++i) carried[i] = std::move(results[1 + i]);
    for (size_t i = 0; i < scanned; ++i) scans[i].add(results[1 + kept + i]);
  }
  for (size_t i = 0; i < scanned; ++i) carried.emplace_back(scans[i].joined(body, 1 + kept + i, 0, false));
  return carried;
}

Tensor slice_of(const Tensor& tensor, size_t axis, size_t at) {
  std::vector<int64_t> dims = tensor.shape().dims();
  const auto count = static_cast<size_t>(dims[axis]);
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  Tensor result(TensorType{tensor.dtype(), Shape(dims)});
  const auto outer = static_cast<size_t>(tensor.shape().elements(0, axis));
  const auto inner_elements = static_cast<size_t>(tensor.shape().elements(axis + 1, tensor.shape().rank()));
  if (tensor.dtype() == DType::String) {
    for (size_t i = 0; i < result.elements(); ++i) {
      result.writable_strings()[i] = tensor.strings()[(i / inner_elements * count + at) * inner_elements + i % inner_elements];
    }
    return result;
  }
  const size_t inner = whole_bytes(tensor.dtype(), static_cast<int64_t>(inner_elements));
  for (size_t i = 0; i < outer && inner > 0; ++i) {
    std::memcpy(result.writable_bytes().data() + i * inner, tensor.bytes().data() + (i * count + at) * inner, inner);
  }
  return result;
}

std::vector<Data> run_scan(const Node& node, std::vector<Data> inputs, BodySessions& bodies, Observer* observer) {
  const Graph& body = body_of(node, "body");
  const auto captures = static_cast<size_t>(integer_of(node, "captures", 0));
  const auto scanned = static_cast<size_t>(integer_of(node, "num_scan_inputs", 1));
  if (inputs.size() < scanned + captures) fail(ErrorKind::InvalidModel, "it has ", inputs.size(), " inputs, not at least ", scanned + captures);
  const size_t kept = inputs.size() - scanned - captures;
  if (body.outputs().size() < kept) fail(ErrorKind::InvalidModel, "its body gives too few values");
  const size_t made = body.outputs().size() - kept;
  const auto input_axes = integers_of(node, "scan_input_axes", scanned);
  const auto input_ways = integers_of(node, "scan_input_directions", scanned);
  const auto output_axes = integers_of(node, "scan_output_axes", made);
  const auto output_ways = integers_of(node, "scan_output_directions", made);
  std::vector<Data> carried(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(kept));
  std::vector<size_t> axes;
  int64_t length = -1;
  for (size_t i = 0; i < scanned; ++i) {
    const Shape& shape = inputs[kept + i].tensor().shape();
    axes.push_back(shape.axis(input_axes[i]));
    if (length >= 0 && shape[axes[i]] != length) fail(ErrorKind::InvalidModel, "its inputs scan ", length, " and ", shape[axes[i]], " steps");
    length = shape[axes[i]];
  }
  if (length > loop_limit()) {
    fail(ErrorKind::InvalidModel, "it would run ", length, " rounds, more than the ", loop_limit(), " that are taken for sane; set UNMOOR_LOOP_LIMIT to more if they are");
  }
  std::vector<Rounds> scans(made);
  for (int64_t step = 0; step < length; ++step) {
    check_stop();
    std::vector<Data> arguments = carried;
    for (size_t i = 0; i < scanned; ++i) {
      const int64_t at = input_ways[i] == 1 ? length - 1 - step : step;
      arguments.emplace_back(slice_of(inputs[kept + i].tensor(), axes[i], static_cast<size_t>(at)));
    }
    std::copy(inputs.end() - static_cast<std::ptrdiff_t>(captures), inputs.end(), std::back_inserter(arguments));
    BodyObserver shown(observer, cat(node_label(node), "/body/"), cat("#", step));
    Session& session = bodies.get(body, arguments, false);
    auto results = session.run_in_order(std::move(arguments), observer == nullptr ? nullptr : &shown);
    for (size_t i = 0; i < kept; ++i) carried[i] = std::move(results[i]);
    for (size_t i = 0; i < made; ++i) scans[i].add(results[kept + i]);
  }
  for (size_t i = 0; i < made; ++i) {
    const auto rank = static_cast<int64_t>(scans[i].rank(body, kept + i)) + 1;
    const int64_t axis = output_axes[i] < 0 ? output_axes[i] + rank : output_axes[i];
    if (axis < 0 || axis >= rank) fail(ErrorKind::InvalidModel, "scan output axis ", output_axes[i], " is outside of rank ", rank);
    carried.emplace_back(scans[i].joined(body, kept + i, static_cast<size_t>(axis), output_ways[i] == 1));
  }
  return carried;
}

// The element that each input gives to round `step`: of a sequence that one, of all else itself.
std::vector<Data> round_arguments(const std::vector<Data>& inputs, size_t own, size_t step) {
  std::vector<Data> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    arguments.push_back(i < own && inputs[i].is_sequence() ? inputs[i].sequence().items[step] : inputs[i]);
  }
  return arguments;
}

std::vector<Data> run_sequence_map(const Node& node, const std::vector<Data>& inputs, BodySessions& bodies, Observer* observer) {
  const Graph& body = body_of(node, "body");
  const auto captures = static_cast<size_t>(integer_of(node, "captures", 0));
  if (inputs.size() < 1 + captures) fail(ErrorKind::InvalidModel, "it has ", inputs.size(), " inputs, not at least ", 1 + captures);
  const size_t own = inputs.size() - captures;
  const size_t length = inputs[0].sequence().items.size();
  for (size_t i = 1; i < own; ++i) {
    if (!inputs[i].is_sequence() || inputs[i].sequence().items.size() == length) continue;
    fail(ErrorKind::InvalidArgument, "its input ", i, " has ", inputs[i].sequence().items.size(), " elements, not ", length, " as input 0");
  }
  std::vector<Sequence> made(body.outputs().size());
  for (size_t step = 0; step < length; ++step) {
    check_stop();
    std::vector<Data> arguments = round_arguments(inputs, own, step);
    BodyObserver shown(observer, cat(node_label(node), "/body/"), cat("#", step));
    Session& session = bodies.get(body, arguments, false);
    auto results = session.run_in_order(std::move(arguments), observer == nullptr ? nullptr : &shown);
    for (size_t i = 0; i < made.size(); ++i) made[i].items.push_back(std::move(results[i]));
  }
  return {made.begin(), made.end()};
}

}  // namespace

ValueInfo BodyObserver::renamed(const ValueInfo& info) const {
  ValueInfo result = info;
  result.name = cat(prefix_, info.name, suffix_);
  result.node = cat(prefix_, info.node);
  return result;
}

const Graph& body_of(const Node& node, std::string_view key) {
  const auto found = node.attributes.find(key);
  const auto* body = found == node.attributes.end() ? nullptr : std::get_if<SubGraph>(&found->second);
  if (body == nullptr || *body == nullptr) fail(ErrorKind::InvalidModel, "it has no '", key, "'");
  return **body;
}

std::string node_label(const Node& node) { return node.origin.name.empty() ? node.name : node.origin.name; }

bool is_shape_like(const Data& data) {
  return data.is_tensor() && data.tensor().elements() <= 64 && (is_integer(data.tensor().dtype()) || data.tensor().dtype() == DType::Bool);
}

std::string binding_key(const std::vector<Data>& inputs, bool with_values) {
  std::string key;
  for (const Data& input : inputs) {
    key += input ? to_text(type_of(input)) : "-";
    if (with_values && is_shape_like(input)) {
      const auto bytes = input.tensor().bytes();
      key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    key += ';';
  }
  return key;
}

namespace {

// What the data says, or for an empty sequence or map, which does not tell what it would hold, what the body was inferred with.
Type bound_type(const Graph& body, size_t input, const Data& data) {
  Type type = type_of(data);
  const Type& inferred = body.value(body.inputs().at(input)).type;
  const bool is_empty = (data.is_sequence() && data.sequence().items.empty()) || (data.is_map() && data.map().values.empty());
  return is_empty && inferred.index() == type.index() ? inferred : type;
}

}  // namespace

Session& BodySessions::get(const Graph& body, const std::vector<Data>& inputs, bool bind_values) {
  Sessions& known = sessions_.try_emplace(&body).first->second;
  for (const bool with_values : {true, false}) {
    if (const auto* const found = known.by_inputs.find(binding_key(inputs, with_values))) return **found;
  }
  const bool bind = bind_values && known.value_plans < value_plan_limit;
  std::vector<InputBinding> bindings;
  bindings.reserve(inputs.size());
  for (size_t i = 0; i < std::min(inputs.size(), body.inputs().size()); ++i) {
    bindings.push_back({bound_type(body, i, inputs[i]), bind && is_shape_like(inputs[i]) ? &inputs[i] : nullptr});
  }
  ++planned_;
  if (bind) ++known.value_plans;
  return *known.by_inputs.put(binding_key(inputs, bind), std::make_unique<Session>(make_body_plan(body, bindings, parent_)));
}

std::vector<const Session*> BodySessions::of(const Graph& body) const {
  std::vector<const Session*> result;
  const auto found = sessions_.find(&body);
  if (found == sessions_.end()) return result;
  for (const auto& [key, session] : found->second.by_inputs.entries()) result.push_back(session.get());
  return result;
}

Session& BodySessions::get(const Graph& body, const std::vector<Type>& types) {
  std::string key = "open;";
  for (const Type& type : types) key += cat(to_text(type), ";");
  Sessions& known = sessions_.try_emplace(&body).first->second;
  if (const auto* const found = known.by_inputs.find(key)) return **found;
  std::vector<InputBinding> bindings;
  bindings.reserve(types.size());
  for (const Type& type : types) bindings.push_back({type, nullptr});
  ++planned_;
  return *known.by_inputs.put(std::move(key), std::make_unique<Session>(make_body_plan(body, bindings, parent_)));
}

std::vector<Data> run_control_flow(const Node& node, std::vector<Data> inputs, BodySessions& bodies, Observer* observer) {
  if (node.op == "If") return run_if(node, std::move(inputs), bodies, observer);
  if (node.op == "Loop") return run_loop(node, std::move(inputs), bodies, observer);
  if (node.op == "Scan") return run_scan(node, std::move(inputs), bodies, observer);
  if (is_generation(node)) return run_generation(node, inputs, bodies, observer);
  if (node.op == "SequenceMap") return run_sequence_map(node, inputs, bodies, observer);
  fail(ErrorKind::Internal, node.op, " is no control flow");
}

}  // namespace unmoor
