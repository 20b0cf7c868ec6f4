#pragma once

#include <string>

#include "unmoor/workbench/noise/model_noise.h"

namespace unmoor {

// Ties of ArgMax, ArgMin and TopK after a whole run: other indices are right where they select equal values. Of what these nodes
// read it keeps what the reference's run showed. One thread at a time.
class Selections {
 public:
  // `graph` must outlive it.
  Selections(const ModelGraph& graph, const NamedData& inputs);

  void on_value(const std::string& name, const Data& data);
  // Whether `actual` selects what `expected` does, values of this name in the model. False where it is not known.
  bool are_equal(const std::string& name, const Data& expected, const Data& actual) const;

 private:
  const ModelGraph& graph_;
  NamedData read_;  // Without data until it was shown.
};

}  // namespace unmoor
