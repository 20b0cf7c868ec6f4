#pragma once

#include <string>

#include "unmoor/runtime/state.h"

namespace unmoor {

// Shows the values of a body under the name of its node.
class BodyObserver : public Observer {
 public:
  BodyObserver(Observer* outer, std::string prefix, std::string suffix)
      : outer_(outer), prefix_(std::move(prefix)), suffix_(std::move(suffix)) {}
  bool wants(const ValueInfo& info) override { return outer_ != nullptr && outer_->wants(renamed(info)); }
  void on_value(const ValueInfo& info, const Data& data) override { outer_->on_value(renamed(info), data); }

 private:
  ValueInfo renamed(const ValueInfo& info) const;

  Observer* outer_;
  std::string prefix_;
  std::string suffix_;
};

// A node's graph. Fails with InvalidModel if it has none of this name.
const Graph& body_of(const Node& node, std::string_view key);
// The node's name in the file.
std::string node_label(const Node& node);

}  // namespace unmoor
