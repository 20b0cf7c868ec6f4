#include "unmoor/runtime/search.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

// The limits of ONNX Runtime's operators.
constexpr int64_t most_tokens = 4096;
constexpr int64_t most_beams = 128;

template <class T>
T attribute(const Node& node, std::string_view key, T otherwise) {
  const auto found = node.attributes.find(key);
  if (found == node.attributes.end()) return otherwise;
  if (const auto* held = std::get_if<T>(&found->second)) return *held;
  fail(ErrorKind::InvalidModel, "its attribute '", key, "' has the wrong type: ", found->second);
}

int64_t token_attribute(const Node& node, std::string_view key) {
  const int64_t token = attribute<int64_t>(node, key, -1);
  if (token < 0) fail(ErrorKind::InvalidModel, "its attribute '", key, "' is ", token, ", not a token");
  return token;
}

const Tensor* one_element(const std::vector<Data>& inputs, size_t i, std::string_view what) {
  const Data& data = input_at(inputs, i);
  if (!data) return nullptr;
  if (data.tensor().elements() != 1)
    fail(ErrorKind::InvalidArgument, what, " has ", data.tensor().elements(), " elements, not one");
  return &data.tensor();
}

int64_t whole(const std::vector<Data>& inputs, size_t i, std::string_view what, int64_t otherwise) {
  const Tensor* tensor = one_element(inputs, i, what);
  return tensor == nullptr ? otherwise : integers(*tensor)[0];
}

double real(const std::vector<Data>& inputs, size_t i, std::string_view what, double otherwise) {
  const Tensor* tensor = one_element(inputs, i, what);
  return tensor == nullptr ? otherwise : doubles(*tensor)[0];
}

size_t between(int64_t value, int64_t low, int64_t high, std::string_view what) {
  if (value < low || value > high) fail(ErrorKind::InvalidArgument, what, " is ", value, ", not from ", low, " to ", high);
  return static_cast<size_t>(value);
}

std::vector<int64_t> mask(const std::vector<Data>& inputs, size_t i, size_t rank, size_t batch, std::string_view what) {
  const Data& data = input_at(inputs, i);
  if (!data) return {};
  const Shape& shape = data.tensor().shape();
  if (shape.rank() != rank || (rank == 2 && shape[0] != static_cast<int64_t>(batch))) {
    fail(ErrorKind::InvalidArgument, what, " has shape ", shape, ", not ", rank == 1 ? "" : cat("[", batch, ",vocabulary] or "),
         "rank ", rank);
  }
  return integers(data.tensor());
}

// Inputs of GreedySearch and Sampling after max_length: min_length, repetition_penalty, vocab_mask, prefix_vocab_mask,
// attention_mask, presence_mask, seed. Of BeamSearch: min_length, num_beams, num_return_sequences, length_penalty,
// repetition_penalty, vocab_mask, prefix_vocab_mask, attention_mask, decoder_input_ids, logits_processor.
void read_beams(const std::vector<Data>& inputs, Search& search) {
  search.beams = between(whole(inputs, 3, "num_beams", 1), 1, most_beams, "num_beams");
  search.returned =
      between(whole(inputs, 4, "num_return_sequences", 1), 1, static_cast<int64_t>(search.beams), "num_return_sequences");
  search.length_penalty = real(inputs, 5, "length_penalty", 1);
  if (input_at(inputs, 10)) fail(ErrorKind::Unsupported, "its input decoder_input_ids is not supported");
  if (whole(inputs, 11, "logits_processor", 0) != 0) fail(ErrorKind::Unsupported, "its input logits_processor is not 0");
}

void read_sampling(const Node& node, const std::vector<Data>& inputs, Search& search) {
  search.temperature = static_cast<double>(attribute<float>(node, "temperature", 1));
  search.top_p = static_cast<double>(attribute<float>(node, "top_p", 0));
  search.filter_value = static_cast<double>(attribute<float>(node, "filter_value", -1e20F));
  search.presence_penalty = static_cast<double>(attribute<float>(node, "presence_penalty", 0));
  search.least_kept = between(attribute<int64_t>(node, "min_tokens_to_keep", 0), 0, INT32_MAX, "min_tokens_to_keep");
  search.custom = attribute<int64_t>(node, "custom", 0) == 1;
  search.presence_mask = mask(inputs, 7, 2, search.batch, "presence_mask");
  search.seed = static_cast<uint32_t>(between(whole(inputs, 8, "seed", 0), 0, INT32_MAX, "seed"));
}

}  // namespace

const Data& input_at(const std::vector<Data>& inputs, size_t i) {
  static const Data nothing;
  return i < inputs.size() ? inputs[i] : nothing;
}

size_t attention_mask_place(const Search& search) { return search.kind == Search::Kind::Beams ? 9 : 6; }

Search search_of(const Node& node, const std::vector<Data>& inputs) {
  Search search;
  const bool beams = node.op == "com.microsoft:BeamSearch";
  search.kind = beams ? Search::Kind::Beams : node.op == "com.microsoft:Sampling" ? Search::Kind::Sampling : Search::Kind::Greedy;
  search.has_encoder = attribute<int64_t>(node, "model_type", 0) == 1;
  search.end_token = token_attribute(node, "eos_token_id");
  search.pad_token = token_attribute(node, "pad_token_id");
  search.start_token = attribute<int64_t>(node, "decoder_start_token_id", -1);
  search.vocabulary = std::max<int64_t>(attribute<int64_t>(node, "vocab_size", -1), 0);
  search.ngram = static_cast<size_t>(std::max<int64_t>(attribute<int64_t>(node, "no_repeat_ngram_size", 0), 0));
  search.early_stopping = attribute<int64_t>(node, "early_stopping", 0) == 1;
  const Data& prompt = input_at(inputs, 0);
  if (!prompt || prompt.tensor().shape().rank() != 2 || prompt.tensor().elements() == 0) {
    fail(ErrorKind::InvalidArgument, "input_ids has shape ", prompt ? prompt.tensor().shape() : Shape(), ", not [batch,tokens]");
  }
  search.batch = static_cast<size_t>(prompt.tensor().shape()[0]);
  search.start = search.has_encoder ? 1 : static_cast<size_t>(prompt.tensor().shape()[1]);
  search.longest =
      between(whole(inputs, 1, "max_length", most_tokens), static_cast<int64_t>(search.start) + 1, most_tokens, "max_length");
  search.shortest = whole(inputs, 2, "min_length", 0);
  if (beams) read_beams(inputs, search);
  search.repetition_penalty = real(inputs, beams ? 6 : 3, "repetition_penalty", 1);
  if (!(search.repetition_penalty > 0))
    fail(ErrorKind::InvalidArgument, "repetition_penalty is ", search.repetition_penalty, ", not above 0");
  search.vocabulary_mask = mask(inputs, beams ? 7 : 4, 1, 0, "vocab_mask");
  search.prefix_mask = mask(inputs, beams ? 8 : 5, 2, search.batch, "prefix_vocab_mask");
  const Data& attention = input_at(inputs, attention_mask_place(search));
  if (attention && attention.tensor().shape() != prompt.tensor().shape()) {
    fail(ErrorKind::InvalidArgument, "attention_mask has shape ", attention.tensor().shape(), ", not ", prompt.tensor().shape());
  }
  if (search.kind == Search::Kind::Sampling) read_sampling(node, inputs, search);
  if (search.has_encoder && search.start_token < 0) {
    fail(ErrorKind::InvalidModel, "its attribute 'decoder_start_token_id' is missing, which a model with an encoder needs");
  }
  return search;
}

}  // namespace unmoor
