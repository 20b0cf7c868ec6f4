#pragma once

#include <memory>

#include "unmoor/runtime/search.h"
#include "unmoor/runtime/state.h"

namespace unmoor {

// Runs the graphs of a search. One thread at a time.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Logits after what the sequences start with: [batch, tokens, vocabulary], one row for all beams of an item.
  virtual Tensor first() = 0;
  // Logits after the newest token of each sequence: [rows, tokens, vocabulary]. Row i goes on from row origins[i] of the call
  // before.
  virtual Tensor next(const Sequences& sequences, std::span<const size_t> origins) = 0;
};

// For the node's graphs; `inputs` without the captured values, `captured` with them alone.
std::unique_ptr<Decoder> make_decoder(const Node& node, const Search& search, const std::vector<Data>& inputs,
                                      std::vector<Data> captured, BodySessions& bodies, Observer* observer);

// The graphs of one node, called with their own inputs; captured values are added.
class BodyCalls {
 public:
  BodyCalls(const Node& node, std::vector<Data> captured, BodySessions& bodies, Observer* observer)
      : node_(node), captured_(std::move(captured)), bodies_(bodies), observer_(observer) {}

  // Without what it captures.
  size_t inputs(std::string_view key) const;
  size_t outputs(std::string_view key) const;
  bool has(std::string_view key) const { return node_.attributes.find(key) != node_.attributes.end(); }
  // As the graph declares it. Fails with InvalidModel if it is no tensor.
  TensorType input_type(std::string_view key, size_t i) const;
  const std::string& input_name(std::string_view key, size_t i) const;
  // `open` has the axis, by input, whose size changes from call to call; -1: none does.
  std::vector<Data> run(std::string_view key, std::vector<Data> inputs, const std::vector<int>& open = {});

 private:
  const Node& node_;
  std::vector<Data> captured_;
  BodySessions& bodies_;
  Observer* observer_;
  size_t steps_ = 0;
};

// What `rows` name along an axis, in their order.
Tensor picked(const Tensor& tensor, size_t axis, std::span<const size_t> rows);
// Whole numbers as a tensor of this dtype, which is int32 or int64.
Tensor whole_tensor(DType dtype, Shape shape, std::span<const int64_t> values);

// For models with an encoder (encoder_decoder.cpp).
std::unique_ptr<Decoder> make_encoder_decoder(const Search& search, const std::vector<Data>& inputs, BodyCalls calls);

}  // namespace unmoor
