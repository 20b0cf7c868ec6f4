#include "unmoor/workbench/cuts.h"

#include <algorithm>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/workbench/keep_list.h"

namespace unmoor {
namespace {

const std::string& file_name(const Value& value) { return value.origin.name.empty() ? value.name : value.origin.name; }

}  // namespace

Cuts::Cuts(const OnnxParts& parts, const Graph& typed, const std::string& output) : parts_(parts) {
  for (const Value& value : typed.values()) values_[file_name(value)] = &value;
  for (const Node& node : typed.nodes()) {
    for (const ValueId id : node.outputs) {
      if (id != no_value) makers_[file_name(typed.value(id))] = &node;
    }
  }
  // An output may be known under a second name, that of the file.
  for (size_t i = 0; i < typed.outputs().size(); ++i) values_.emplace(typed.output_names()[i], &typed.value(typed.outputs()[i]));
  find_spans(output);
}

void Cuts::find_spans(const std::string& output) {
  const auto is_constant = [this](const std::string& name) {
    const auto found = values_.find(name);
    return found != values_.end() && found->second->constant.has_value();
  };
  std::map<std::string_view, size_t> read_last;  // Of what is needed: the last node that reads it, by place in the file.
  const size_t end = parts_.nodes().size();
  read_last[output] = end;
  for (size_t i = end; i-- > 0;) {
    const OnnxParts::Node& node = parts_.nodes()[i];
    const auto is_needed = [&](const std::string& name) { return read_last.contains(name) && !is_constant(name); };
    if (std::ranges::none_of(node.makes, is_needed)) continue;
    nodes_.push_back(i);
    for (const std::string& name : node.reads) read_last.emplace(name, i);
  }
  std::ranges::reverse(nodes_);
  if (nodes_.empty()) fail(ErrorKind::InvalidArgument, "no node of the main graph makes the output '", output, "' of what is given");
  const auto place = [this, end](size_t file) { return file == end ? nodes_.size() : static_cast<size_t>(std::ranges::lower_bound(nodes_, file) - nodes_.begin()); };
  counts_.assign(nodes_.size() + 2, 0);  // Changes from cut to cut first.
  for (size_t at = 0; at < nodes_.size(); ++at) {
    for (const std::string& name : parts_.nodes()[nodes_[at]].makes) {
      const auto read = read_last.find(name);
      if (read == read_last.end() || is_constant(name)) continue;
      spans_.push_back({name, at, place(read->second)});
      ++counts_[at + 1];
      --counts_[spans_.back().last_read + 1];
    }
  }
  std::partial_sum(counts_.begin(), counts_.end(), counts_.begin());
}

std::vector<std::string> Cuts::crossing(size_t cut) const {
  std::vector<std::string> names;
  for (const Span& span : spans_) {
    if (span.made < cut && cut <= span.last_read) names.push_back(span.name);
  }
  return names;
}

std::optional<std::vector<RimValue>> Cuts::rim(const std::vector<std::string>& values) const {
  std::vector<RimValue> rim;
  for (const std::string& name : values) {
    const auto found = values_.find(name);
    const auto* const type = found == values_.end() ? nullptr : std::get_if<TensorType>(&found->second->type);
    if (type == nullptr) return std::nullopt;
    rim.push_back({name, *type});
  }
  return rim;
}

const Node* Cuts::maker(const std::string& value) const {
  const auto found = makers_.find(value);
  return found == makers_.end() ? nullptr : found->second;
}

const std::string& Cuts::node_behind(size_t cut) const {
  static const std::string unnamed = "a node without a name";
  for (const std::string& made : parts_.nodes()[nodes_[cut]].makes) {
    if (const Node* const node = maker(made)) return name_in_file(*node);
  }
  return unnamed;
}

const std::string& Cuts::op_behind(size_t cut) const {
  static const std::string unknown;
  for (const std::string& made : parts_.nodes()[nodes_[cut]].makes) {
    if (const Node* const node = maker(made)) return node->origin.op.empty() ? node->op : node->origin.op;
  }
  return unknown;
}

std::vector<std::string> Cuts::made_behind(size_t cut) const {
  std::vector<std::string> names;
  for (const Span& span : spans_) {
    if (span.made == cut) names.push_back(span.name);
  }
  return names;
}

std::vector<std::string> Cuts::read_behind(size_t cut) const {
  const auto& reads = parts_.nodes()[nodes_[cut]].reads;
  std::vector<std::string> names;
  for (const Span& span : spans_) {
    if (span.made < cut && std::ranges::find(reads, span.name) != reads.end()) names.push_back(span.name);
  }
  return names;
}

std::optional<DType> Cuts::stored(const std::string& value) const {
  const auto rim_of = rim({value});
  return rim_of ? std::optional(rim_of->front().type.dtype) : std::nullopt;
}

std::vector<std::string> Cuts::all_values() const {
  std::vector<std::string> names;
  for (const Span& span : spans_) names.push_back(span.name);
  return names;
}

}  // namespace unmoor
