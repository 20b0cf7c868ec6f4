#pragma once

#include <map>
#include <set>

#include "unmoor/runtime/runner.h"
#include "unmoor/workbench/noise/floor.h"

namespace unmoor {

// A model's graph as noise is made in it: the file's nodes, cleaned, with attributes in float64 and types for certain inputs.
// Immutable: any thread.
class ModelGraph {
 public:
  enum class Form {
    File,    // Every value of the file is there.
    Raised,  // Chains that stand for one operator, such as HardSwish in arithmetic, are that operator, with its own expansion;
             // others are fused.
  };
  // `model` as it was read. Fails as planning does.
  ModelGraph(const Graph& model, const NamedData& inputs, Form form = Form::File);

  const Graph& graph() const { return graph_; }
  // By the file's name. Outputs of the model are also known by their output names.
  std::optional<ValueId> find(std::string_view name) const;
  std::optional<NodeId> maker(ValueId value) const { return makers_[Graph::index(value)]; }
  // The file's name of a value.
  const std::string& name_of(ValueId value) const;
  // The nearest values above this one that are in `visible` or inputs of the model, by name.
  std::set<std::string> visible_above(ValueId value, const std::set<std::string>& visible) const;
  // The last nodes that make a value, as far back as four of them in a row.
  Region last_nodes(ValueId value) const;
  // The nodes that make `wanted` of `given` (both by name). Nothing if a name is not in the graph, or if something else is
  // needed.
  std::optional<Region> region(const std::vector<std::string>& wanted, const NamedData& given) const;

 private:
  Graph graph_;
  std::map<std::string, ValueId, std::less<>> names_;
  std::vector<std::optional<NodeId>> makers_;  // By value.
};

// The whole model run exactly and with noise at every node, the copies in step: what error rounding alone gathers until each
// value. Values are made as far as they are asked for, and let go after their last use and once they were taken: at most the
// copies and two more live sets. Control flow, and what has no noise model, leaves unknown what depends on it. One thread at a
// time.
class WholeModelNoise {
 public:
  // Floating values called `shown` are rounded to the dtypes given as they are made, as a target does that stores them; others
  // only as steps inside. So are those in `stored`, which cannot be taken. `graph` must outlive it.
  WholeModelNoise(const ModelGraph& graph, const NamedData& inputs, const std::map<std::string, DType, std::less<>>& shown,
                  NoiseOptions options, const std::map<std::string, DType, std::less<>>& stored = {});

  // The value of this name, made now if it was not. It can be taken once, an output of the model once more. Nothing if it is not
  // known.
  std::optional<Sampled> take(std::string_view name);
  // The first operator without a noise model that was met; empty if there was none.
  const std::string& unknown() const { return unknown_; }

 private:
  void run_next();
  void put(ValueId id, Sampled value);
  void drop(ValueId id);

  const ModelGraph& model_;
  std::map<size_t, DType> stored_;  // By value index.
  NoiseSampler sampler_;
  std::vector<Sampled> values_;
  std::vector<uint32_t> uses_;  // By value: of nodes to come, and one if it is to be taken.
  size_t next_ = 0;             // Node.
  std::string unknown_;
};

}  // namespace unmoor
