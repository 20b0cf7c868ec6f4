#include "unmoor/runtime/beam_scorer.h"

#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"

namespace unmoor {

BeamScorer::BeamScorer(const Search& search, DType dtype)
    : search_(search),
      dtype_(dtype),
      items_(search.batch),
      tokens_(search.rows()),
      origins_(search.rows()),
      scores_(search.rows()) {
  // All beams of an item start alike: only the first may win the first step.
  for (size_t row = 0; row < scores_.size(); ++row) scores_[row] = row % search.beams == 0 ? 0 : -1e9;
}

double BeamScorer::penalized(double sum, size_t length) const {
  const double score = sum / std::pow(static_cast<double>(length), search_.length_penalty);
  return Scores{dtype_, 0, {}}.rounded(score);
}

void BeamScorer::end(Item& item, const std::vector<int64_t>& sequence, double sum) const {
  const double score = penalized(sum, sequence.size());
  if (item.ended.size() == search_.beams) {
    if (score <= item.ended.back().score) return;
    item.ended.pop_back();
  }
  const auto place = std::ranges::find_if(item.ended, [score](const Ended& other) { return score > other.score; });
  item.ended.insert(place, Ended{sequence, score});
}

// The best twice as many as there are beams; of equal scores the first.
std::vector<BeamScorer::Candidate> BeamScorer::candidates(const Scores& scores, size_t item) const {
  const size_t count = 2 * search_.beams;
  std::vector<Candidate> all;
  all.reserve(search_.beams * scores.vocabulary);
  for (size_t beam = 0; beam < search_.beams; ++beam) {
    const auto row = scores.row(item * search_.beams + beam);
    for (size_t token = 0; token < row.size(); ++token) all.push_back({row[token], beam, token});
  }
  if (all.size() < count) {
    fail(ErrorKind::InvalidArgument, "a vocabulary of ", scores.vocabulary, " is too small for ", search_.beams, " beams");
  }
  const auto better = [](const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.beam != b.beam ? a.beam < b.beam : a.token < b.token;
  };
  std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(count), better);
  all.resize(count);
  return all;
}

// With as many ended sequences as beams, an item is done if it may stop early or if no open beam can get better than the worst of
// them.
bool BeamScorer::is_done(const Item& item, double best, size_t length) const {
  if (item.ended.size() < search_.beams) return false;
  return search_.early_stopping || item.ended.back().score >= penalized(best, length);
}

void BeamScorer::choose(const Scores& scores, const Sequences& sequences) {
  for (size_t i = 0; i < items_.size(); ++i) {
    const size_t first = i * search_.beams;
    if (items_[i].done) {
      std::fill_n(tokens_.begin() + static_cast<std::ptrdiff_t>(first), search_.beams, search_.pad_token);
      std::fill_n(origins_.begin() + static_cast<std::ptrdiff_t>(first), search_.beams, first);
      std::fill_n(scores_.begin() + static_cast<std::ptrdiff_t>(first), search_.beams, 0.0);
      continue;
    }
    const std::vector<Candidate> best = candidates(scores, i);
    size_t chosen = 0;
    for (size_t rank = 0; rank < best.size() && chosen < search_.beams; ++rank) {
      const Candidate& candidate = best[rank];
      if (static_cast<int64_t>(candidate.token) == search_.end_token) {
        if (rank < search_.beams) end(items_[i], sequences[first + candidate.beam], candidate.score);
        continue;
      }
      tokens_[first + chosen] = static_cast<int64_t>(candidate.token);
      origins_[first + chosen] = first + candidate.beam;
      scores_[first + chosen] = candidate.score;
      ++chosen;
    }
    items_[i].done = is_done(items_[i], best[0].score, sequences[first].size());
  }
}

bool BeamScorer::is_done() const { return std::ranges::all_of(items_, &Item::done); }

std::vector<std::vector<BeamScorer::Ended>> BeamScorer::results(const Sequences& sequences) const {
  std::vector<std::vector<Ended>> results;
  for (size_t i = 0; i < items_.size(); ++i) {
    Item item = items_[i];
    for (size_t beam = 0; beam < search_.beams && !item.done; ++beam) {
      const size_t row = i * search_.beams + beam;
      end(item, sequences[row], scores_[row]);
    }
    item.ended.resize(search_.returned);
    results.push_back(std::move(item.ended));
  }
  return results;
}

}  // namespace unmoor
