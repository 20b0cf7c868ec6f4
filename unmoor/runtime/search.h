#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unmoor/graph/graph.h"

namespace unmoor {

// The tokens of each row, which is a beam of an item of the batch.
using Sequences = std::vector<std::vector<int64_t>>;

// What a search for tokens is told by its operator's attributes and inputs.
struct Search {
  enum class Kind { Greedy, Sampling, Beams };
  Kind kind = Kind::Greedy;
  bool has_encoder = false;
  size_t batch = 0, beams = 1, returned = 1;
  size_t start = 1;      // Tokens of a sequence before the first step: the prompt, or the decoder's start token.
  size_t longest = 0;    // Tokens of a sequence, its start included.
  int64_t shortest = 0;  // Below this many tokens, no end of sequence.
  int64_t end_token = 0, pad_token = 0, start_token = -1;
  int64_t vocabulary = 0;  // 0: as many as there are logits.
  size_t ngram = 0;        // No n-gram of this size comes twice; 0: any may.
  bool early_stopping = false;
  double length_penalty = 1, repetition_penalty = 1;
  std::vector<int64_t> vocabulary_mask, prefix_mask, presence_mask;  // Empty: none.
  // Sampling only.
  double temperature = 1, top_p = 0, filter_value = 0, presence_penalty = 0;
  size_t least_kept = 0;
  bool custom = false;
  uint32_t seed = 0;

  size_t rows() const { return batch * beams; }
};

// Fails with InvalidModel or InvalidArgument where attributes or inputs make no sense. `inputs` without captured values.
Search search_of(const Node& node, const std::vector<Data>& inputs);
// Input `i`, or empty data.
const Data& input_at(const std::vector<Data>& inputs, size_t i);
// Where the custom attention mask is among the inputs.
size_t attention_mask_place(const Search& search);

}  // namespace unmoor
