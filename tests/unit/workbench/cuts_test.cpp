#include "unmoor/workbench/cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/formats/model_text.h"

namespace unmoor {
namespace {

using namespace model_text;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

// x -> a -> (b -> c) + a = d -> e; z takes no part in e.
struct Residual {
  ModelFile file{model(node("Relu", {"x"}, {"a"}, "", "first") + node("Tanh", {"x"}, {"z"}) + node("Neg", {"a"}, {"b"}) + node("Abs", {"b"}, {"c"}) +
                       node("Add", {"a", "c"}, {"d"}, "", "join") + node("Exp", {"d"}, {"e"}, "", "last") + input("x") + value(12, "e", type(1, {2, 3})) +
                       value(12, "z", type(1, {2, 3})))};
  Model read = file.read();
  OnnxParts parts{file.path()};
  Cuts cuts{parts, read.graph, "e"};
};

TEST(Cuts, what_crosses_is_made_before_and_read_behind) {
  const Residual model;
  EXPECT_EQ(model.cuts.nodes(), 5U) << "what the output does not need takes no part";
  EXPECT_THAT(model.cuts.crossing(0), IsEmpty());
  EXPECT_THAT(model.cuts.crossing(1), ElementsAre("a"));
  EXPECT_THAT(model.cuts.crossing(2), ElementsAre("a", "b"));
  EXPECT_THAT(model.cuts.crossing(3), ElementsAre("a", "c"));
  EXPECT_THAT(model.cuts.crossing(4), ElementsAre("d"));
  EXPECT_THAT(model.cuts.crossing(5), ElementsAre("e"));
}

TEST(Cuts, a_node_reads_and_makes_what_others_do_not) {
  const Residual model;
  EXPECT_EQ(model.cuts.node_behind(3), "join");
  EXPECT_EQ(model.cuts.op_behind(3), "Add");
  EXPECT_THAT(model.cuts.read_behind(3), ElementsAre("a", "c"));
  EXPECT_THAT(model.cuts.made_behind(3), ElementsAre("d"));
  EXPECT_THAT(model.cuts.read_behind(0), IsEmpty()) << "inputs of the model are no node's";
}

TEST(Cuts, the_next_cut_is_near_the_middle_and_crossed_by_few) {
  const Residual model;
  const auto any = [](size_t) { return true; };
  EXPECT_THAT(model.cuts.best_between(0, 5, any), Optional(1U)) << "of 1, 2 and 3 one value crosses only the first";
  EXPECT_THAT(model.cuts.best_between(1, 5, any), Optional(4U));
  EXPECT_THAT(model.cuts.best_between(0, 5, [](size_t cut) { return cut > 3; }), Optional(4U));
  EXPECT_EQ(model.cuts.best_between(0, 5, [](size_t) { return false; }), std::nullopt);
  EXPECT_EQ(model.cuts.best_between(2, 3, any), std::nullopt);
}

TEST(Cuts, an_output_that_no_node_makes_is_an_error) {
  const Residual model;
  EXPECT_THROW(Cuts(model.parts, model.read.graph, "x"), Error);
}

}  // namespace
}  // namespace unmoor
