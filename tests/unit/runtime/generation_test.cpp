#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/passes/sketch.h"
#include "unmoor/backends/reference/reference.h"
#include "unmoor/runtime/session.h"
#include "unmoor/runtime/token_rules.h"

namespace unmoor {
namespace {

using test::Sketch;
using testing::ElementsAre;
using testing::HasSubstr;

// A decoder whose next token depends on the last one alone: row t of `table` has the logits after token t. The past grows as it
// must.
SubGraph table_decoder(int64_t vocabulary, const std::vector<float>& table) {
  Sketch body;
  const ValueId ids = body.input("input_ids", {Shape::unknown, Shape::unknown}, DType::I32);
  (void)body.input("position_ids", {Shape::unknown, Shape::unknown}, DType::I32);
  (void)body.input("attention_mask", {Shape::unknown, Shape::unknown}, DType::I32);
  const ValueId past = body.input("past_0", {2, Shape::unknown, 1, Shape::unknown, 1});
  const ValueId rows = body.constant(Tensor::from<float>({vocabulary, vocabulary}, std::span<const float>(table)));
  const ValueId logits = body.node("Gather", {rows, ids});
  const ValueId tokens = body.node("Cast", {ids}, {{"to", int64_t{1}}});
  const ValueId key = body.node("Unsqueeze", {tokens, body.ints({0, 2, 4})});
  const ValueId both = body.node("Concat", {key, key}, {{"axis", int64_t{0}}});
  const ValueId present = body.node("Concat", {past, both}, {{"axis", int64_t{3}}});
  return std::make_shared<const Graph>(body.done({logits, present}));
}

// Logits after each token: of the one named, then less for those further on.
std::vector<float> cycle(int64_t vocabulary) {
  std::vector<float> table;
  for (int64_t from = 0; from < vocabulary; ++from) {
    for (int64_t to = 0; to < vocabulary; ++to) table.push_back(static_cast<float>(-((to - from - 1 + vocabulary) % vocabulary)));
  }
  return table;
}

Tensor whole(Shape shape, std::initializer_list<int32_t> values) { return Tensor::from<int32_t>(std::move(shape), values); }

struct Found {
  std::vector<double> sequences, scores;
  size_t prepared = 0;
};

Found run(const std::string& op, const SubGraph& decoder, const std::vector<Data>& inputs, Attributes attributes = {},
          size_t outputs = 1) {
  Sketch sketch;
  std::vector<ValueId> ids;
  NamedData given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) {
      ids.push_back(no_value);
      continue;
    }
    const TensorType& type = inputs[i].tensor().type();
    ids.push_back(sketch.input(cat("in", i), type.shape, type.dtype));
    given[cat("in", i)] = inputs[i];
  }
  attributes.insert({{"decoder", decoder}, {"eos_token_id", int64_t{1}}, {"pad_token_id", int64_t{0}}});
  (void)sketch.node(cat("com.microsoft:", op), ids, attributes, outputs);
  const std::vector<ValueId> made = sketch.graph.nodes().back().outputs;
  Session session(make_plan(sketch.done(made), {make_reference_backend()->open(0)}, {}));
  const NamedData results = session.run(given);
  const std::string name = cat(sketch.graph.nodes().back().name, ":");
  Found found{doubles(results.at(cat(name, 0)).tensor()), {}, session.late_preparations()};
  if (outputs > 1) found.scores = doubles(results.at(cat(name, 1)).tensor());
  return found;
}

std::string error_of(const std::string& op, const std::vector<Data>& inputs, const Attributes& attributes = {},
                     int64_t vocabulary = 5) {
  try {
    run(op, table_decoder(vocabulary, cycle(vocabulary)), inputs, attributes);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Generation, greedy_search_takes_the_likeliest_token) {
  const Found found = run("GreedySearch", table_decoder(7, cycle(7)), {whole({1, 2}, {6, 2}), whole({1}, {6})});
  EXPECT_THAT(found.sequences, ElementsAre(6, 2, 3, 4, 5, 6));
}

TEST(Generation, what_has_ended_is_padded_while_others_go_on) {
  // After 5 comes the end, after 2 not for a while.
  std::vector<float> table = cycle(6);
  table[5 * 6 + 1] = 9;
  const Found found = run("GreedySearch", table_decoder(6, table), {whole({2, 1}, {5, 2}), whole({1}, {4})});
  EXPECT_THAT(found.sequences, ElementsAre(5, 0, 0, 0, 2, 3, 4, 5));
}

TEST(Generation, a_decoder_is_planned_for_the_prompt_and_once_for_all_further_steps) {
  const Found found =
      run("GreedySearch", table_decoder(7, cycle(7)), {whole({1, 2}, {3, 2}), whole({1}, {40}), whole({1}, {40})});
  EXPECT_EQ(found.sequences.size(), 40U);
  EXPECT_EQ(found.prepared, 2U);
}

// After 2 token 3 is the likeliest, but what follows 3 is not likely; 4 then 2 is better in all.
std::vector<float> tempting() {
  std::vector<float> table(5 * 5, -20.0F);
  table[2 * 5 + 3] = 0.1F;
  table[2 * 5 + 4] = 0;
  for (size_t to = 0; to < 5; ++to) table[3 * 5 + to] = 0;
  table[4 * 5 + 2] = 0;
  return table;
}

TEST(Generation, beam_search_finds_what_greedy_search_misses) {
  const std::vector<Data> inputs{whole({1, 1}, {2}), whole({1}, {3}), whole({1}, {0}), whole({1}, {2}), whole({1}, {1})};
  const Found greedy = run("GreedySearch", table_decoder(5, tempting()), {inputs[0], inputs[1]});
  EXPECT_THAT(greedy.sequences, ElementsAre(2, 3, 0));
  const Found beams = run("BeamSearch", table_decoder(5, tempting()), inputs, {}, 2);
  EXPECT_THAT(beams.sequences, ElementsAre(2, 4, 2));
  // log(1 / (1 + e^0.1)) + 0, over three tokens.
  EXPECT_NEAR(beams.scores.at(0), -std::log(1 + std::exp(0.1)) / 3, 1e-5);
}

TEST(Generation, sequences_come_best_first_and_padded) {
  const std::vector<Data> inputs{whole({1, 1}, {2}), whole({1}, {4}), whole({1}, {0}), whole({1}, {3}), whole({1}, {3})};
  const Found found = run("BeamSearch", table_decoder(5, cycle(5)), inputs, {}, 2);
  ASSERT_EQ(found.scores.size(), 3U);
  EXPECT_GE(found.scores[0], found.scores[1]);
  EXPECT_GE(found.scores[1], found.scores[2]);
  EXPECT_EQ(found.sequences.size(), 12U);
}

TEST(Generation, arguments_that_make_no_sense_are_named) {
  const Data prompt = whole({1, 2}, {3, 2});
  EXPECT_THAT(error_of("GreedySearch", {prompt, whole({1}, {2})}), HasSubstr("max_length is 2, not from 3 to 4096"));
  EXPECT_THAT(error_of("GreedySearch", {prompt, whole({2}, {4, 5})}), HasSubstr("max_length has 2 elements"));
  EXPECT_THAT(error_of("BeamSearch", {prompt, whole({1}, {6}), {}, whole({1}, {2}), whole({1}, {3})}),
              HasSubstr("num_return_sequences is 3"));
  EXPECT_THAT(error_of("BeamSearch", {whole({1, 1}, {0}), whole({1}, {6}), {}, whole({1}, {3}), whole({1}, {1})}, {}, 1),
              HasSubstr("too small for 3 beams"));
  EXPECT_THAT(error_of("GreedySearch", {prompt, whole({1}, {6})}, {{"vocab_size", int64_t{9}}}), HasSubstr("a vocabulary of 9"));
  EXPECT_THAT(error_of("GreedySearch", {prompt, whole({1}, {6})}, {{"model_type", int64_t{2}}}), HasSubstr("model_type 2"));
}

Scores scores_of(std::initializer_list<double> values) { return Scores{DType::F32, values.size(), values}; }

Search one_row() {
  Search search;
  search.batch = 1;
  search.end_token = 1;
  return search;
}

TEST(TokenRules, repetition_makes_tokens_less_likely_whatever_their_sign) {
  Search search = one_row();
  search.repetition_penalty = 2;
  Scores scores = scores_of({4, -4, 1, 1});
  apply_rules(search, {{0, 1, 0}}, 1, scores);
  EXPECT_THAT(scores.values, ElementsAre(2, -8, 1, 1));
  EXPECT_THROW(apply_rules(search, {{17}}, 1, scores), Error);
}

TEST(TokenRules, no_ngram_comes_twice) {
  Search search = one_row();
  search.ngram = 2;
  Scores scores = scores_of({1, 1, 1, 1});
  apply_rules(search, {{2, 3, 0, 2}}, 1, scores);
  EXPECT_THAT(scores.values, ElementsAre(1, 1, 1, scores.lowest()));
}

TEST(TokenRules, masks_forbid_and_the_prefix_mask_only_at_first) {
  Search search = one_row();
  search.vocabulary_mask = {1, 1, 0, 1};
  search.prefix_mask = {0, 1, 1, 1};
  for (const size_t step : {size_t{1}, size_t{2}}) {
    Scores scores = scores_of({5, 6, 7, 8});
    apply_rules(search, {{0}}, step, scores);
    EXPECT_THAT(scores.values, ElementsAre(step == 1 ? scores.lowest() : 5, 6, scores.lowest(), 8));
  }
  search.vocabulary_mask = {1, 1};
  Scores scores = scores_of({5, 6, 7, 8});
  EXPECT_THROW(apply_rules(search, {{0}}, 1, scores), Error);
}

TEST(TokenRules, a_short_sequence_does_not_end) {
  Search search = one_row();
  search.shortest = 3;
  Scores scores = scores_of({5, 6, 7});
  apply_rules(search, {{0, 2}}, 1, scores);
  EXPECT_THAT(scores.values, ElementsAre(5, scores.lowest(), 7));
  scores = scores_of({5, 6, 7});
  apply_rules(search, {{0, 2, 2}}, 1, scores);
  EXPECT_THAT(scores.values, ElementsAre(5, 6, 7));
}

TEST(TokenRules, the_tail_below_top_p_is_filtered) {
  Search search = one_row();
  search.top_p = 0.7;
  search.filter_value = -100;
  // Probabilities 0.1, 0.2, 0.3, 0.4.
  const auto logs = [] { return scores_of({std::log(0.1), std::log(0.2), std::log(0.3), std::log(0.4)}); };
  Scores scores = logs();
  filter_unlikely(search, scores);
  EXPECT_EQ(scores.values[0], -100);
  EXPECT_GT(scores.values[2], -2);
  search.custom = true;
  scores = logs();
  filter_unlikely(search, scores);
  EXPECT_EQ(scores.values[0], -100);
  EXPECT_GT(scores.values[3], -2);
  search.custom = false;
  search.top_p = 0.1;
  search.least_kept = 2;
  scores = logs();
  filter_unlikely(search, scores);
  EXPECT_EQ(scores.values[1], -100);
  EXPECT_GT(scores.values[2], -2);
}

// The generator's first numbers from seed 1 are 16807, 282475249, 1622650073 and 984943658: draws of 0.1315 and 0.4587.
TEST(TokenRules, draws_are_those_of_the_minimal_standard_generator) {
  TokenDraw draws(1);
  const std::vector<double> row(100, 0.5);
  EXPECT_EQ(draws.draw(row), 13U);
  EXPECT_EQ(draws.draw(row), 45U);
  TokenDraw same(0);
  EXPECT_EQ(same.draw(row), 13U);
}

}  // namespace
}  // namespace unmoor
