#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/opset_rules.h"

namespace unmoor::onnx {
namespace {

// What a Scan of opset 8 has: lengths of the sequences, or none; states; scanned inputs; captured values.
struct OldScan {
  SubGraph body;
  size_t states = 0, scanned = 0, captures = 0;
  std::vector<int64_t> directions;
  bool has_lengths = false;
};

OldScan take_scan(NodeDraft& draft) {
  OldScan scan;
  const auto found = draft.node.attributes.find("body");
  const auto* const body = found == draft.node.attributes.end() ? nullptr : std::get_if<SubGraph>(&found->second);
  const auto scanned = draft.take<int64_t>("num_scan_inputs", 0);
  const auto captures = draft.take<int64_t>("captures", 0);
  const auto given = static_cast<int64_t>(draft.node.inputs.size()) - 1 - captures;
  if (body == nullptr || scanned < 1 || scanned > given) {
    fail(ErrorKind::InvalidModel, "it has no body, or num_scan_inputs is ", scanned, " of ", std::max<int64_t>(given, 0),
         " inputs");
  }
  scan.body = *body;
  scan.scanned = static_cast<size_t>(scanned);
  scan.states = static_cast<size_t>(given - scanned);
  scan.captures = static_cast<size_t>(captures);
  scan.directions = draft.take<std::vector<int64_t>>("directions", {});
  scan.has_lengths = draft.input(0) != no_value;
  const size_t inputs = scan.states + scan.scanned + scan.captures;
  if (scan.body->inputs().size() != inputs || scan.body->outputs().size() < scan.states) {
    fail(ErrorKind::InvalidModel, "its body has ", scan.body->inputs().size(), " inputs and ", scan.body->outputs().size(),
         " outputs, not ", inputs, " and at least ", scan.states);
  }
  return scan;
}

// The graph of one item of the batch: a Scan of the newest form.
class ItemGraph {
 public:
  ItemGraph(const OldScan& scan, const Node& node) : scan_(scan), node_(node) {}

  Graph build() {
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < scan_.states + scan_.scanned; ++i) {
      const Type& type = scan_.body->value(scan_.body->inputs()[i]).type;
      const auto* const tensor = std::get_if<TensorType>(&type);
      inputs.push_back(graph_.add_input(cat("item_", i),
                                        TensorType{tensor == nullptr ? DType::F32 : tensor->dtype, Shape::of_unknown_rank()}));
    }
    if (scan_.has_lengths) use_length(inputs);
    for (size_t i = scan_.states + scan_.scanned; i < scan_.body->inputs().size(); ++i) {
      inputs.push_back(graph_.add_input(cat("captured_", i), scan_.body->value(scan_.body->inputs()[i]).type));
    }
    Attributes attributes{{"body", scan_.body},
                          {"num_scan_inputs", static_cast<int64_t>(scan_.scanned)},
                          {"captures", static_cast<int64_t>(scan_.captures)}};
    if (!scan_.directions.empty()) attributes["scan_input_directions"] = scan_.directions;
    const auto results = add("Scan", inputs, attributes, scan_.body->outputs().size());
    for (size_t i = 0; i < results.size(); ++i) {
      const bool is_short = scan_.has_lengths && i >= scan_.states;
      graph_.mark_output(is_short ? add("Pad", {results[i], missing_, no_value, ints({0})}, {})[0] : results[i],
                         cat("output_", i));
    }
    return std::move(graph_);
  }

 private:
  // Cuts the scanned inputs to the item's length; what lies beyond it, at the end, is not looked at.
  void use_length(std::vector<ValueId>& inputs) {
    const ValueId length = add("Unsqueeze", {graph_.add_input("length", TensorType{DType::I64, Shape()}), ints({0})}, {})[0];
    const ValueId whole = add("Shape", {inputs[scan_.states]}, {{"start", int64_t{0}}, {"end", int64_t{1}}})[0];
    const ValueId rest = add("Sub", {whole, length}, {})[0];
    const ValueId parts = add("Concat", {length, rest}, {{"axis", int64_t{0}}})[0];
    missing_ = add("Concat", {ints({0}), rest}, {{"axis", int64_t{0}}})[0];
    for (size_t i = scan_.states; i < inputs.size(); ++i)
      inputs[i] = add("Split", {inputs[i], parts}, {{"axis", int64_t{0}}}, 2)[0];
  }

  ValueId ints(std::vector<int64_t> values) {
    const auto count = static_cast<int64_t>(values.size());
    return graph_.add_constant(cat("constant_", graph_.values().size()),
                               Tensor::from<int64_t>({count}, std::span<const int64_t>(values)));
  }

  std::vector<ValueId> add(const std::string& op, std::vector<ValueId> inputs, Attributes attributes, size_t outputs = 1) {
    Node added;
    added.name = cat(node_.name, '/', op, '_', graph_.nodes().size());
    added.op = op;
    added.inputs = std::move(inputs);
    added.attributes = std::move(attributes);
    added.origin = node_.origin;
    for (size_t i = 0; i < outputs; ++i) {
      Value value;
      value.name = cat(added.name, ':', i);
      value.type = TensorType{DType::F32, Shape::of_unknown_rank()};
      added.outputs.push_back(graph_.add_value(std::move(value)));
    }
    auto results = added.outputs;
    graph_.add_node(std::move(added));
    return results;
  }

  const OldScan& scan_;
  const Node& node_;
  Graph graph_;
  ValueId missing_ = no_value;  // Pads: nothing before, what an item is shorter by after.
};

}  // namespace

// In opset 8 axis 0 was that of a batch, and axis 1 the one scanned: now a Scan over the batch, whose body scans one item.
void modernize_scan(NodeDraft& draft) {
  if (draft.opset >= 9) return;
  const OldScan scan = take_scan(draft);
  auto inputs = draft.node.inputs;
  const ValueId lengths = inputs[0];
  inputs.erase(inputs.begin());
  const size_t own = scan.states + scan.scanned;
  if (scan.has_lengths) inputs.insert(inputs.begin() + static_cast<std::ptrdiff_t>(own), lengths);
  SubGraph body = std::make_shared<const Graph>(ItemGraph(scan, draft.node).build());
  draft.node.inputs = std::move(inputs);
  draft.node.attributes = {{"body", std::move(body)},
                           {"num_scan_inputs", static_cast<int64_t>(own + (scan.has_lengths ? 1 : 0))},
                           {"captures", static_cast<int64_t>(scan.captures)}};
}

}  // namespace unmoor::onnx
