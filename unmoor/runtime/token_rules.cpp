#include "unmoor/runtime/token_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

void require_mask(const std::vector<int64_t>& mask, size_t rows, size_t vocabulary, std::string_view what) {
  if (mask.empty() || mask.size() == rows * vocabulary) return;
  fail(ErrorKind::InvalidArgument, what, " has ", mask.size(), " elements, not ", rows * vocabulary, " for a vocabulary of ",
       vocabulary);
}

size_t token_place(int64_t token, size_t vocabulary) {
  if (token < 0 || token >= static_cast<int64_t>(vocabulary)) {
    fail(ErrorKind::InvalidArgument, "token ", token, " is outside of the vocabulary of ", vocabulary);
  }
  return static_cast<size_t>(token);
}

void penalize_repetition(const Search& search, const std::vector<int64_t>& sequence, Scores& scores, std::span<double> row) {
  for (const int64_t token : std::set<int64_t>(sequence.begin(), sequence.end())) {
    double& score = row[token_place(token, row.size())];
    score = scores.rounded(score < 0 ? score * search.repetition_penalty : score / search.repetition_penalty);
  }
}

// Forbids every token that would end an n-gram the sequence already has.
void forbid_ngrams(size_t size, const std::vector<int64_t>& sequence, double lowest, std::span<double> row) {
  if (size == 0 || size > sequence.size()) return;
  const auto tail = sequence.end() - static_cast<std::ptrdiff_t>(size - 1);
  for (size_t i = 0; i + size <= sequence.size(); ++i) {
    const auto from = sequence.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::equal(tail, sequence.end(), from)) row[token_place(sequence[i + size - 1], row.size())] = lowest;
  }
}

void forbid_masked(std::span<const int64_t> mask, double lowest, std::span<double> row) {
  for (size_t token = 0; token < mask.size(); ++token) {
    if (mask[token] == 0) row[token] = lowest;
  }
}

}  // namespace

double Scores::rounded(double value) const {
  return dtype == DType::F64 ? value : static_cast<double>(static_cast<float>(value));
}

double Scores::lowest() const {
  return dtype == DType::F64 ? std::numeric_limits<double>::lowest() : static_cast<double>(std::numeric_limits<float>::lowest());
}

void apply_rules(const Search& search, const Sequences& sequences, size_t step, Scores& scores) {
  const size_t vocabulary = scores.vocabulary;
  require_mask(search.vocabulary_mask, 1, vocabulary, "vocab_mask");
  require_mask(search.prefix_mask, search.batch, vocabulary, "prefix_vocab_mask");
  require_mask(search.presence_mask, search.batch, vocabulary, "presence_mask");
  const auto of_item = [&](const std::vector<int64_t>& mask, size_t item) {
    return mask.empty() ? std::span<const int64_t>() : std::span<const int64_t>(mask).subspan(item * vocabulary, vocabulary);
  };
  for (size_t i = 0; i < search.rows(); ++i) {
    const auto row = scores.row(i);
    const size_t item = i / search.beams;
    if (search.repetition_penalty != 1) penalize_repetition(search, sequences[i], scores, row);
    forbid_ngrams(search.ngram, sequences[i], scores.lowest(), row);
    forbid_masked(search.vocabulary_mask, scores.lowest(), row);
    if (step == 1) forbid_masked(of_item(search.prefix_mask, item), scores.lowest(), row);
    if (static_cast<int64_t>(sequences[i].size()) < search.shortest)
      row[token_place(search.end_token, vocabulary)] = scores.lowest();
    if (search.temperature > 0 && search.temperature != 1) {
      for (double& score : row) score = scores.rounded(score / search.temperature);
    }
    const auto presence = of_item(search.presence_mask, item);
    for (size_t token = 0; token < presence.size() && search.presence_penalty != 0; ++token) {
      row[token] = scores.rounded(row[token] - static_cast<double>(presence[token]) * search.presence_penalty);
    }
  }
}

void log_softmax(Scores& scores) {
  for (size_t at = 0; at < scores.values.size(); at += scores.vocabulary) {
    const auto row = std::span<double>(scores.values).subspan(at, scores.vocabulary);
    const double largest = *std::ranges::max_element(row);
    double sum = 0;
    for (const double score : row) sum += std::exp(score - largest);
    for (double& score : row) score = scores.rounded(score - largest - std::log(sum));
  }
}

size_t best_of(std::span<const double> row) { return static_cast<size_t>(std::ranges::max_element(row) - row.begin()); }

namespace {

// Probabilities of the scores in this order, rounded.
std::vector<double> softmax_of(const Scores& scores, std::span<const double> row, const std::vector<size_t>& order) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const double score : row) largest = std::max(largest, score);
  double sum = 0;
  for (const double score : row) sum += std::exp(score - largest);
  std::vector<double> result;
  for (const size_t token : order) result.push_back(scores.rounded(std::exp(row[token] - largest) / sum));
  return result;
}

}  // namespace

// Keeps the tokens of the greatest probabilities that add up to top_p. The custom way sums from the top, the other one from the
// bottom.
void filter_unlikely(const Search& search, Scores& scores) {
  for (size_t i = 0; i < search.rows(); ++i) {
    const auto row = scores.row(i);
    std::vector<size_t> order(row.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return search.custom ? row[a] > row[b] : row[a] < row[b]; });
    const std::vector<double> probabilities = softmax_of(scores, row, order);
    const size_t count = order.size();
    const size_t last = search.custom ? count - 1 : count - std::min(search.least_kept, count);
    double sum = 0;
    for (size_t at = 0; at < std::max<size_t>(last, 1); ++at) {
      sum = scores.rounded(sum + probabilities[at]);
      if (search.custom && sum > search.top_p && at + 1 < count) row[order[at + 1]] = search.filter_value;
      if (!search.custom && sum <= scores.rounded(1 - search.top_p)) row[order[at]] = search.filter_value;
    }
  }
}

double TokenDraw::unit() {
  constexpr double range = static_cast<double>(modulus - 1);
  const auto next = [this] {
    state_ = state_ * 16807 % modulus;
    return static_cast<double>(state_ - 1);
  };
  const double low = next();
  return std::min((low + next() * range) / (range * range), std::nextafter(1.0, 0.0));
}

size_t TokenDraw::draw(std::span<const double> row) {
  double largest = std::numeric_limits<float>::lowest();
  for (const double score : row) {
    if (std::isfinite(score)) largest = std::max(largest, score);
  }
  std::vector<double> sums;
  double sum = 0;
  for (const double score : row) {
    if (std::isfinite(score)) sum += std::exp(score - largest);
    sums.push_back(sum);
  }
  const double at = unit() * sum;
  const auto found = std::ranges::upper_bound(sums, at);
  return std::min(static_cast<size_t>(found - sums.begin()), row.size() - 1);
}

}  // namespace unmoor
