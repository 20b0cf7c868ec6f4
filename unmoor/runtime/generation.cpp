#include "unmoor/runtime/generation.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/runtime/beam_scorer.h"
#include "unmoor/runtime/decoder.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

// The last token's logits for each row, of which a call may give one an item.
Scores last_scores(const Search& search, const Tensor& logits) {
  const Shape& shape = logits.shape();
  if (shape.rank() != 3 || shape[1] < 1)
    fail(ErrorKind::InvalidModel, "its decoder gives logits of shape ", shape, ", not [rows,tokens,vocabulary]");
  const auto given = static_cast<size_t>(shape[0]);
  const int64_t wanted = search.vocabulary == 0 ? shape[2] : search.vocabulary;
  if ((given != search.rows() && given != search.batch) || wanted > shape[2] || wanted < 1) {
    fail(ErrorKind::InvalidModel, "its decoder gives logits of shape ", shape, " for ", search.rows(),
         " rows and a vocabulary of ", wanted);
  }
  Scores scores{logits.dtype() == DType::F64 ? DType::F64 : DType::F32, static_cast<size_t>(wanted), {}};
  scores.values.reserve(search.rows() * scores.vocabulary);
  const std::vector<double> all = doubles(logits);
  const auto width = static_cast<size_t>(shape[2]);
  const auto tokens = static_cast<size_t>(shape[1]);
  for (size_t row = 0; row < search.rows(); ++row) {
    const size_t from = given == search.rows() ? row : row / search.beams;
    const auto start = all.begin() + static_cast<std::ptrdiff_t>((from * tokens + tokens - 1) * width);
    scores.values.insert(scores.values.end(), start, start + wanted);
  }
  return scores;
}

Sequences starts_of(const Search& search, const Data& prompt) {
  const std::vector<int64_t> tokens = integers(prompt.tensor());
  Sequences sequences;
  for (size_t row = 0; row < search.rows(); ++row) {
    if (search.has_encoder) {
      sequences.push_back({search.start_token});
      continue;
    }
    const auto from = tokens.begin() + static_cast<std::ptrdiff_t>(row / search.beams * search.start);
    sequences.emplace_back(from, from + static_cast<std::ptrdiff_t>(search.start));
  }
  return sequences;
}

Tensor numbers(DType dtype, const Shape& shape, std::span<const double> values) {
  Tensor tensor(TensorType{dtype, shape});
  store(tensor, values);
  return tensor;
}

int64_t signed_size(size_t value) { return static_cast<int64_t>(value); }

// Sequences of equal length at most `longest`, filled up with the pad token.
std::vector<double> padded(const Search& search, const std::vector<int64_t>& sequence) {
  std::vector<double> result(sequence.begin(), sequence.end());
  result.resize(search.longest, static_cast<double>(search.pad_token));
  return result;
}

// GreedySearch and Sampling: one sequence an item.
std::vector<Data> run_single(const Search& search, Sequences sequences, Decoder& decoder) {
  const bool samples = search.kind == Search::Kind::Sampling;
  TokenDraw draws(search.seed);
  std::vector<bool> ended(search.rows());
  std::vector<size_t> origins(search.rows());
  for (size_t row = 0; row < origins.size(); ++row) origins[row] = row;
  Scores scores;
  for (size_t step = 1; sequences[0].size() < search.longest; ++step) {
    scores = last_scores(search, step == 1 ? decoder.first() : decoder.next(sequences, origins));
    apply_rules(search, sequences, step, scores);
    if (samples) filter_unlikely(search, scores);
    for (size_t row = 0; row < search.rows(); ++row) {
      const auto token = static_cast<int64_t>(samples ? draws.draw(scores.row(row)) : best_of(scores.row(row)));
      ended[row] = ended[row] || token == search.end_token;
      sequences[row].push_back(ended[row] ? search.pad_token : token);
    }
    if (std::ranges::all_of(ended, [](bool value) { return value; })) break;
  }
  std::vector<double> all;
  for (const auto& sequence : sequences) std::ranges::copy(padded(search, sequence), std::back_inserter(all));
  std::vector<Data> results{numbers(DType::I32, Shape{signed_size(search.batch), signed_size(search.longest)}, all)};
  results.emplace_back(numbers(scores.dtype, Shape{signed_size(search.batch), signed_size(scores.vocabulary)}, scores.values));
  return results;
}

// The third output: the scores of every step; zeros after the last one.
class StepScores {
 public:
  void add(const Search& search, const Scores& scores, size_t step) {
    if (!held_) {
      const Shape shape{signed_size(search.longest - search.start), signed_size(search.batch), signed_size(search.beams),
                        signed_size(scores.vocabulary)};
      held_ = Tensor(TensorType{scores.dtype, shape});
    }
    const size_t from = (step - 1) * scores.values.size();
    if (scores.dtype == DType::F64) {
      std::ranges::copy(scores.values, held_.writable_span<double>().begin() + static_cast<std::ptrdiff_t>(from));
      return;
    }
    const auto to = held_.writable_span<float>().subspan(from, scores.values.size());
    std::ranges::transform(scores.values, to.begin(), [](double value) { return static_cast<float>(value); });
  }
  const Tensor& tensor() const { return held_; }

 private:
  Tensor held_;
};

void continue_from(Sequences& sequences, const BeamScorer& scorer) {
  Sequences next;
  for (size_t row = 0; row < sequences.size(); ++row) {
    next.push_back(sequences[scorer.origins()[row]]);
    next.back().push_back(scorer.tokens()[row]);
  }
  sequences = std::move(next);
}

std::vector<Data> run_beams(const Search& search, Sequences sequences, Decoder& decoder, bool wants_steps) {
  std::optional<BeamScorer> scorer;
  StepScores steps;
  DType dtype = DType::F32;
  for (size_t step = 1; sequences[0].size() < search.longest; ++step) {
    Scores scores = last_scores(search, step == 1 ? decoder.first() : decoder.next(sequences, scorer->origins()));
    if (!scorer) scorer.emplace(search, dtype = scores.dtype);
    log_softmax(scores);
    apply_rules(search, sequences, step, scores);
    for (size_t row = 0; row < search.rows(); ++row) {
      for (double& score : scores.row(row)) score = scores.rounded(score + scorer->scores()[row]);
    }
    if (wants_steps) steps.add(search, scores, step);
    scorer->choose(scores, sequences);
    continue_from(sequences, *scorer);
    if (scorer->is_done()) break;
  }
  std::vector<double> tokens, sums;
  for (const auto& item : scorer->results(sequences)) {
    for (const BeamScorer::Ended& ended : item) {
      std::ranges::copy(padded(search, ended.sequence), std::back_inserter(tokens));
      sums.push_back(ended.score);
    }
  }
  const Shape shape{signed_size(search.batch), signed_size(search.returned)};
  std::vector<Data> results{numbers(DType::I32, Shape{shape[0], shape[1], signed_size(search.longest)}, tokens),
                            numbers(dtype, shape, sums)};
  if (wants_steps) results.emplace_back(steps.tensor());
  return results;
}

// The dtype that the operator's output has by its inputs; scores are computed in another.
Data as_declared(const Data& data, DType dtype) {
  if (!data || !data.is_tensor() || !is_float(data.tensor().dtype()) || data.tensor().dtype() == dtype) return data;
  return numbers(dtype, data.tensor().shape(), doubles(data.tensor()));
}

}  // namespace

bool is_generation(const Node& node) {
  return node.op == "com.microsoft:BeamSearch" || node.op == "com.microsoft:GreedySearch" || node.op == "com.microsoft:Sampling";
}

std::vector<Data> run_generation(const Node& node, const std::vector<Data>& inputs, BodySessions& bodies, Observer* observer) {
  const auto found = node.attributes.find("captures");
  const auto* held = found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  const int64_t captures = held == nullptr ? 0 : *held;
  if (captures < 0 || captures > signed_size(inputs.size()))
    fail(ErrorKind::InvalidModel, "it captures ", captures, " of ", inputs.size(), " inputs");
  const auto border = inputs.end() - captures;
  const std::vector<Data> own(inputs.begin(), border);
  const Search search = search_of(node, own);
  const auto decoder = make_decoder(node, search, own, std::vector<Data>(border, inputs.end()), bodies, observer);
  Sequences sequences = starts_of(search, own[0]);
  const bool beams = search.kind == Search::Kind::Beams;
  std::vector<Data> results =
      beams ? run_beams(search, std::move(sequences), *decoder, node.outputs.size() > 2 && node.outputs[2] != no_value)
            : run_single(search, std::move(sequences), *decoder);
  const Data& penalty = input_at(own, 5);
  const DType dtype = beams && penalty ? penalty.tensor().dtype() : DType::F32;
  for (Data& result : results) result = as_declared(result, dtype);
  return results;
}

}  // namespace unmoor
