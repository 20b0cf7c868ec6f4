#include "unmoor/formats/onnx/parts.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/external.h"
#include "unmoor/formats/onnx/fields.h"
#include "unmoor/formats/onnx/raw_graph.h"
#include "unmoor/formats/onnx/types.h"
#include "unmoor/formats/onnx/write_tensor.h"

namespace unmoor {
namespace {

using namespace onnx;
using protozero::pbf_writer;

void write_rim(pbf_writer& graph, uint32_t field, const RimValue& value) {
  pbf_writer info(graph, field);
  info.add_string(value_field::name, value.name);
  write_type(pbf_writer(info, value_field::type), value.type);
}

void add_bytes(pbf_writer& writer, uint32_t field, std::string_view bytes) { writer.add_message(field, bytes.data(), bytes.size()); }

}  // namespace

// Places of nodes, and names of all that is read.
struct OnnxParts::Needed {
  std::set<size_t> nodes;
  std::set<std::string, std::less<>> names;
};

OnnxParts::OnnxParts(std::string path) : path_(std::move(path)), file_(MappedFile::open(path_)) {
  const auto bytes = file_->bytes();
  Message model({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "ModelProto");
  std::string_view graph_bytes;
  while (model.next()) {
    switch (model.field()) {
      case model_field::ir_version: ir_version_ = model.integer(); break;
      case model_field::opset_import: opsets_.push_back(model.bytes()); break;
      case model_field::functions: functions_.push_back(model.bytes()); break;
      case model_field::graph: graph_bytes = model.bytes(); break;
      default: model.skip();
    }
  }
  Message graph(graph_bytes, "GraphProto");
  while (graph.next()) {
    switch (graph.field()) {
      case graph_field::node: node_bytes_.push_back(graph.bytes()); break;
      case graph_field::initializer: weights_.push_back({"", graph.bytes()}); break;
      case graph_field::sparse_initializer: sparse_.push_back({"", graph.bytes()}); break;
      case graph_field::input: inputs_.push_back({"", graph.bytes()}); break;
      default: graph.skip();
    }
  }
  for (Named& each : weights_) each.name = name_in(each.bytes, "TensorProto", tensor_field::name);
  for (Named& each : inputs_) each.name = name_in(each.bytes, "ValueInfoProto", value_field::name);
  for (Named& each : sparse_) each.name = name_of_sparse(each.bytes);
  for (const std::string_view each : node_bytes_) nodes_.push_back({reads_of(each), makes_of(each)});
  check_order();
}

void OnnxParts::check_order() const {
  std::set<std::string_view> made;
  std::set<std::string_view> to_come;
  for (const Node& node : nodes_) to_come.insert(node.makes.begin(), node.makes.end());
  for (const Node& node : nodes_) {
    for (const std::string& name : node.reads) {
      // Of what a subgraph makes itself nothing is known here, and it is not what a later node makes.
      if (to_come.contains(name) && !made.contains(name))
        fail(ErrorKind::Unsupported, "'", path_, "' cannot be cut: a node reads '", name, "', which only a later one makes; sort its nodes first");
    }
    made.insert(node.makes.begin(), node.makes.end());
  }
}

void OnnxParts::bring_weights(const std::string& folder) const {
  namespace fs = std::filesystem;
  std::set<std::string> locations;
  for (const Named& each : weights_) add_locations_of_tensor(each.bytes, locations);
  for (const std::string_view each : node_bytes_) add_locations_of_node(each, locations);
  for (const std::string_view each : functions_) add_locations_of_function(each, locations);
  for (const std::string& location : locations) {
    const fs::path from = fs::canonical(external_path(path_, location));
    const fs::path to = fs::path(folder) / location;
    std::error_code problem;
    fs::create_directories(to.parent_path(), problem);
    fs::copy_file(from, to, fs::copy_options::overwrite_existing, problem);
    if (problem) fail(ErrorKind::Io, "cannot put the weights in '", from.string(), "' beside a part of the model: ", problem.message());
  }
}

OnnxParts::Needed OnnxParts::needed_for(const std::vector<RimValue>& given, const std::vector<RimValue>& wanted) const {
  std::map<std::string_view, size_t> makers;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const std::string& name : nodes_[i].makes) makers[name] = i;
  }
  std::set<std::string_view> outside;
  for (const RimValue& each : given) outside.insert(each.name);
  Needed needed;
  std::vector<std::string_view> open;
  for (const RimValue& each : wanted) {
    if (!makers.contains(each.name)) fail(ErrorKind::InvalidArgument, "no node of the main graph of '", path_, "' makes '", each.name, "'");
    open.push_back(each.name);
  }
  while (!open.empty()) {
    const std::string_view name = open.back();
    open.pop_back();
    if (!needed.names.emplace(name).second || outside.contains(name)) continue;
    const auto maker = makers.find(name);
    if (maker == makers.end() || !needed.nodes.insert(maker->second).second) continue;
    for (const std::string& made : nodes_[maker->second].makes) {
      if (outside.contains(made)) fail(ErrorKind::InvalidArgument, "the node that makes '", name, "' makes '", made, "' too, which is given");
    }
    open.insert(open.end(), nodes_[maker->second].reads.begin(), nodes_[maker->second].reads.end());
  }
  return needed;
}

std::vector<std::string> OnnxParts::write(const std::vector<RimValue>& given, const std::vector<RimValue>& wanted, const std::string& path) const {
  const Needed needed = needed_for(given, wanted);
  const auto is_needed = [&needed](const Named& each) { return needed.names.contains(each.name); };
  std::set<std::string_view> constant;
  size_t size = 0;
  for (const auto* list : {&weights_, &sparse_}) {
    for (const Named& each : *list) {
      constant.insert(each.name);
      size += is_needed(each) ? each.bytes.size() : 0;
    }
  }
  if (size > most_bytes) fail(ErrorKind::Unsupported, "a part of '", path_, "' with ", size, " bytes of weights inside does not fit one file; protobuf holds 2 GiB");
  std::vector<std::string> read;
  std::string bytes;
  pbf_writer model(bytes);
  model.add_int64(model_field::ir_version, ir_version_);
  model.add_string(model_field::producer_name, "unmoor");
  {
    pbf_writer graph(model, model_field::graph);
    for (const size_t node : needed.nodes) add_bytes(graph, graph_field::node, node_bytes_[node]);
    graph.add_string(graph_field::name, "part");
    for (const Named& each : weights_) {
      if (is_needed(each)) add_bytes(graph, graph_field::initializer, each.bytes);
    }
    for (const Named& each : sparse_) {
      if (is_needed(each)) add_bytes(graph, graph_field::sparse_initializer, each.bytes);
    }
    for (const Named& each : inputs_) {
      if (!is_needed(each)) continue;
      add_bytes(graph, graph_field::input, each.bytes);
      if (!constant.contains(each.name)) read.push_back(each.name);
    }
    for (const RimValue& each : given) write_rim(graph, graph_field::input, each);
    for (const RimValue& each : wanted) write_rim(graph, graph_field::output, each);
  }
  for (const std::string_view each : opsets_) add_bytes(model, model_field::opset_import, each);
  for (const std::string_view each : functions_) add_bytes(model, model_field::functions, each);
  write_file(path, bytes);
  return read;
}

}  // namespace unmoor
