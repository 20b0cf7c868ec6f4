#pragma once

#include "unmoor/graph/graph.h"

namespace unmoor::onnx {

// Functions and bodies multiply what is in a file: this counts what they make in all. Each call fails with InvalidModel where it is
// too much. One thread at a time.
class Limits {
 public:
  // Nodes and values that calls of functions make.
  void add_nodes(size_t count);
  // Names, and numbers of attributes, that they copy, in 8 bytes each.
  void add_copies(size_t count);
  void add_copy(const Attribute& attribute);
  // A body inside of the one before, with inputs for values from outside.
  void open_body(size_t captured);
  void close_body() { --open_bodies_; }

 private:
  size_t nodes_ = 0;
  size_t copies_ = 0;
  size_t captured_ = 0;
  size_t open_bodies_ = 0;
};

}  // namespace unmoor::onnx
