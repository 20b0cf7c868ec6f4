#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/numeric.h"

// BeamSearch, GreedySearch and Sampling have no reference: the runtime runs them, their decoders being graphs with plans of their
// own.
namespace unmoor {
namespace {

const std::vector<DType> whole{DType::I32};
const std::vector<DType> real{DType::F32, DType::F16};

// The number an input holds where it is a constant, else unknown.
int64_t known_number(const OpCall& call, size_t i) {
  const auto values = constant_integers(call, i);
  return values && values->size() == 1 && (*values)[0] >= 0 ? (*values)[0] : Shape::unknown;
}

int64_t batch_of(const OpCall& call) {
  const Shape& shape = call.input(0).shape;
  return shape.has_rank() && shape.rank() > 0 ? shape[0] : Shape::unknown;
}

void check_bodies(const OpCall& call) {
  (void)call.graph("decoder");
  const int64_t type = call.integer("model_type", 0);
  if (type != 0 && type != 1) {
    fail(ErrorKind::Unsupported, title(call), ": model_type ", type,
         " is not supported, only 0 (decoder) and 1 (encoder and decoder) are");
  }
  if (type == 1) (void)call.graph("encoder");
  for (const char* key : {"eos_token_id", "pad_token_id"}) {
    if (!call.has_attribute(key)) fail(ErrorKind::InvalidModel, title(call), ": attribute '", key, "' is missing");
  }
  require_rank(call, 0, 2);
}

// What comes after a token: the vocabulary's size.
int64_t vocabulary_of(const OpCall& call) {
  if (const int64_t given = call.integer("vocab_size", -1); given > 0) return given;
  const Graph& decoder = *call.graph("decoder");
  if (decoder.outputs().empty()) return Shape::unknown;
  const auto* logits = std::get_if<TensorType>(&decoder.value(decoder.outputs()[0]).type);
  return logits == nullptr || logits->shape.rank() != 3 ? Shape::unknown : logits->shape[2];
}

std::vector<Type> infer_greedy(const OpCall& call) {
  check_bodies(call);
  return {TensorType{DType::I32, Shape{batch_of(call), known_number(call, 1)}},
          TensorType{DType::F32, Shape{batch_of(call), vocabulary_of(call)}}};
}

std::vector<Type> infer_beams(const OpCall& call) {
  check_bodies(call);
  const int64_t own = static_cast<int64_t>(call.input_count()) - call.integer("captures", 0);
  const DType dtype = own > 5 && call.has(5) ? call.input(5).dtype : DType::F32;  // The length penalty.
  const int64_t longest = known_number(call, 1);
  const int64_t returned = known_number(call, 4);
  const Shape& prompt = call.input(0).shape;
  const int64_t start = call.integer("model_type", 0) == 1 ? 1 : prompt.has_rank() ? prompt[1] : Shape::unknown;
  const int64_t steps = longest < 0 || start < 0 || longest < start ? Shape::unknown : longest - start;
  return {TensorType{DType::I32, Shape{batch_of(call), returned, longest}}, TensorType{dtype, Shape{batch_of(call), returned}},
          TensorType{dtype, Shape{steps, batch_of(call), known_number(call, 3), vocabulary_of(call)}}};
}

Op search(std::string name, std::string summary, std::vector<std::string> required_inputs) {
  Op op;
  op.name = cat("com.microsoft:", name);
  op.summary = std::move(summary);
  for (std::string& input : required_inputs) op.inputs.push_back(required(std::move(input), whole));
  // Optional inputs may end early, and what the graphs capture follows: the runtime tells them apart.
  op.inputs.push_back(variadic("further", {}));
  op.outputs = {required("sequences", whole)};
  op.attributes = {{"captures", int64_t{0}},
                   {"decoder_start_token_id", int64_t{-1}},
                   {"model_type", int64_t{0}},
                   {"no_repeat_ngram_size", int64_t{0}},
                   {"vocab_size", int64_t{-1}}};
  op.infer = infer_greedy;
  op.category = Category::ControlFlow;
  return op;
}

}  // namespace

void add_generation_ops(OpSet& ops) {
  ops.add(search("GreedySearch", "Tokens that a decoder gives, the likeliest after each other.", {"input_ids", "max_length"}));

  Op sampling = search("Sampling", "Tokens that a decoder gives, drawn by their likelihood.", {"input_ids", "max_length"});
  sampling.outputs.push_back(optional("filtered_logits", real));
  for (const auto& [key, value] : Attributes{{"custom", int64_t{0}},
                                             {"filter_value", -1e20F},
                                             {"min_tokens_to_keep", int64_t{0}},
                                             {"presence_penalty", 0.0F},
                                             {"temperature", 1.0F},
                                             {"top_p", 0.0F}}) {
    sampling.attributes[key] = value;
  }
  ops.add(std::move(sampling));

  Op beams = search("BeamSearch", "The likeliest sequences of tokens that a decoder gives, several followed at a time.",
                    {"input_ids", "max_length", "min_length", "num_beams", "num_return_sequences"});
  beams.inputs[2].arity = Arity::Optional;
  beams.outputs.push_back(optional("sequences_scores", real));
  beams.outputs.push_back(optional("scores", real));
  beams.attributes["early_stopping"] = int64_t{0};
  beams.infer = infer_beams;
  ops.add(std::move(beams));
}

}  // namespace unmoor
