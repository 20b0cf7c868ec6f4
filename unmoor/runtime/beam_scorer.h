#pragma once

#include <span>

#include "unmoor/runtime/token_rules.h"

namespace unmoor {

// The sequences that ended, and which beams go on (as in the beam search of Hugging Face's transformers). One thread at a time.
class BeamScorer {
 public:
  BeamScorer(const Search& search, DType dtype);

  // Chooses the next token of every row from scores [rows, vocabulary] that include those of the beams. Ends sequences.
  void choose(const Scores& scores, const Sequences& sequences);
  // By row: the token chosen, the row it goes on from, and its score.
  const std::vector<int64_t>& tokens() const { return tokens_; }
  const std::vector<size_t>& origins() const { return origins_; }
  const std::vector<double>& scores() const { return scores_; }
  bool is_done() const;

  struct Ended {
    std::vector<int64_t> sequence;
    double score = 0;
  };
  // The best of each item, best first, those of open beams included.
  std::vector<std::vector<Ended>> results(const Sequences& sequences) const;

 private:
  struct Item {
    std::vector<Ended> ended;  // Best first; as many as there are beams at most.
    bool done = false;
  };
  struct Candidate {
    double score = 0;
    size_t beam = 0;
    size_t token = 0;
  };
  double penalized(double sum, size_t length) const;
  void end(Item& item, const std::vector<int64_t>& sequence, double sum) const;
  std::vector<Candidate> candidates(const Scores& scores, size_t item) const;
  bool is_done(const Item& item, double best, size_t length) const;

  const Search& search_;
  DType dtype_;
  std::vector<Item> items_;
  std::vector<int64_t> tokens_;
  std::vector<size_t> origins_;
  std::vector<double> scores_;
};

}  // namespace unmoor
