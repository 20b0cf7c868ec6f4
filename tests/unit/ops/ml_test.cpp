#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/ops/cases.h"
#include "unmoor/ops/ml/forest.h"
#include "unmoor/tensor/convert.h"

// What operators of ai.onnx.ml do at the edges, and what they refuse. tests/conformance/ort_ml_cases.py compares them with
// another runtime.
namespace unmoor {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

std::vector<Data> run(const std::string& text) {
  const CaseGraph built = build_case(parse_case(text));
  const OpCall call = call_for(built.graph, built.graph.node(NodeId{0}));
  std::vector<Data> in;
  size_t next = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    in.push_back(call.constants[i] != nullptr ? Data(*call.constants[i]) : built.inputs.at(next++));
  Outputs out(call.node.outputs.size());
  run_reference(call, in, out);
  return out.all();
}

std::vector<double> numbers(const std::string& text, size_t output = 0) { return doubles(run(text).at(output).tensor()); }
std::vector<std::string> texts(const std::string& text) { return run(text).at(0).tensor().strings(); }

std::string refusal(const std::string& text) {
  try {
    run(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The nodes' lists of a TreeEnsembleRegressor in which leaf i votes i+1: node ids 0 to n-1 of tree 0 unless said otherwise.
struct Lists {
  std::vector<std::string> modes;
  std::vector<int64_t> yes;
  std::vector<int64_t> no;
  std::vector<int64_t> ids = {};
  std::vector<int64_t> trees = {};

  std::string text() const {
    std::string result = "ai.onnx.ml:TreeEnsembleRegressor f32[2,1]{0,1} n_targets=1";
    std::string votes[4];
    const auto add = [](std::string& list, const auto& item) { list += cat(list.empty() ? "" : ",", item); };
    std::string lists[7];
    for (size_t i = 0; i < modes.size(); ++i) {
      const int64_t id = ids.empty() ? static_cast<int64_t>(i) : ids[i];
      const int64_t tree = trees.empty() ? 0 : trees[i];
      add(lists[0], tree), add(lists[1], id), add(lists[2], 0), add(lists[3], 0.5), add(lists[4], modes[i]),
          add(lists[5], yes[i]), add(lists[6], no[i]);
      if (modes[i] == "LEAF") add(votes[0], tree), add(votes[1], id), add(votes[2], 0), add(votes[3], i + 1);
    }
    constexpr const char* names[] = {"treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids"};
    constexpr const char* vote_names[] = {"treeids", "nodeids", "ids", "weights"};
    for (size_t i = 0; i < 7; ++i) result += cat(" nodes_", names[i], "=[", lists[i], "]");
    for (size_t i = 0; i < 4; ++i) result += cat(" target_", vote_names[i], "=[", votes[i], "]");
    return result;
  }
};

const std::string leaf = "LEAF";
const std::string branch = "BRANCH_LEQ";

TEST(Trees, lead_each_row_to_its_leaf) {
  EXPECT_THAT(numbers(Lists{{branch, leaf, leaf}, {1, 0, 0}, {2, 0, 0}}.text()), ElementsAre(2, 3));
  // The root is the node that no other leads to, wherever it is listed.
  EXPECT_THAT(numbers(Lists{{leaf, leaf, branch}, {0, 0, 0}, {0, 0, 1}}.text()), ElementsAre(1, 2));
  // Node ids with gaps, and two trees.
  EXPECT_THAT(numbers(Lists{{branch, leaf, leaf, leaf}, {40, 0, 0, 0}, {7, 0, 0, 0}, {9, 7, 40, 0}, {1, 1, 1, -3}}.text()),
              ElementsAre(7, 6));
  // Converters write a set as a chain of tests with one end.
  EXPECT_THAT(numbers(Lists{{"BRANCH_EQ", "BRANCH_EQ", leaf, leaf}, {2, 2, 0, 0}, {1, 3, 0, 0}}.text()), ElementsAre(4, 4));
}

TEST(Trees, that_are_none_are_refused) {
  EXPECT_THAT(refusal(Lists{{branch, branch, leaf}, {1, 0, 0}, {2, 2, 0}}.text()), HasSubstr("tree 0 has no root"));
  EXPECT_THAT(refusal(Lists{{branch, branch, leaf, branch}, {1, 3, 0, 1}, {2, 2, 0, 2}}.text()),
              HasSubstr("the way from node 1 of tree 0 leads back"));
  EXPECT_THAT(refusal(Lists{{branch, leaf, leaf, leaf}, {1, 0, 0, 0}, {2, 0, 0, 0}}.text()),
              HasSubstr("two roots: no node leads to its nodes 0 and 3"));
  EXPECT_THAT(refusal(Lists{{branch, leaf, leaf, branch}, {1, 0, 0, 3}, {2, 0, 0, 3}}.text()),
              HasSubstr("no way leads to node 3 of tree 0"));
  EXPECT_THAT(refusal(Lists{{branch, leaf}, {1, 0}, {5, 0}}.text()),
              HasSubstr("node 0 of tree 0 leads to node 5, which the tree does not have"));
  EXPECT_THAT(refusal(Lists{{branch, leaf, leaf}, {1, 0, 0}, {2, 0, 0}, {0, 1, 1}}.text()), HasSubstr("has node 1 twice"));
  EXPECT_THAT(refusal(Lists{{"BRANCH_MAYBE", leaf, leaf}, {1, 0, 0}, {2, 0, 0}}.text()), HasSubstr("'BRANCH_MAYBE'"));
  const std::string good = Lists{{branch, leaf, leaf}, {1, 0, 0}, {2, 0, 0}}.text();
  const auto changed = [&good](std::string_view from, std::string_view to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THAT(refusal(changed("nodes_featureids=[0,0,0]", "nodes_featureids=[4,0,0]")),
              HasSubstr("feature 4, but the input has 1"));
  EXPECT_THAT(refusal(changed("nodes_featureids=[0,0,0]", "nodes_featureids=[-1,0,0]")), HasSubstr("nodes_featureids has -1"));
  EXPECT_THAT(refusal(changed("nodes_values=[0.5,0.5,0.5]", "nodes_values=[0.5]")),
              HasSubstr("'nodes_values' has 1 elements, not 3"));
  EXPECT_THAT(refusal(changed("target_nodeids=[1,2]", "target_nodeids=[1,3]")),
              HasSubstr("node 3 of tree 0, which does not exist"));
  EXPECT_THAT(refusal(changed("target_ids=[0,0]", "target_ids=[0,1]")), HasSubstr("'target_ids' has 1; there are 1"));
  EXPECT_THAT(refusal(changed("f32[2,1]{0,1}", "f32[2]{0,1}")), HasSubstr("rank 2"));
  EXPECT_THAT(refusal(cat(good, " base_values=[1,2]")), HasSubstr("'base_values' has 2 elements, not 1"));
  EXPECT_THAT(refusal(cat(good, " aggregate_function=MOST")), HasSubstr("'MOST'"));
  EXPECT_THAT(refusal(cat(good, " post_transform=TWICE")), HasSubstr("'TWICE'"));
}

TEST(Trees, votes_of_branches_never_count) {
  std::string text = Lists{{branch, leaf, leaf}, {1, 0, 0}, {2, 0, 0}}.text();
  text.replace(text.find("target_nodeids=[1,2]"), 20, "target_nodeids=[1,0]");
  EXPECT_THAT(numbers(text), ElementsAre(2, 0));
}

// A chain of branches, each with a leaf: deep, and large.
std::string chain(size_t branches) {
  Lists lists;
  for (size_t i = 0; i < branches; ++i) {
    lists.modes.insert(lists.modes.end(), {"BRANCH_GT", leaf});
    lists.yes.insert(lists.yes.end(), {static_cast<int64_t>(2 * i + 1), 0});
    lists.no.insert(lists.no.end(), {static_cast<int64_t>(2 * i + 2), 0});
  }
  lists.modes.push_back(leaf);
  lists.yes.push_back(0);
  lists.no.push_back(0);
  return lists.text();
}

TEST(Trees, of_many_nodes_are_read_in_little_time) { EXPECT_THAT(numbers(chain(50'000)), ElementsAre(100'001, 2)); }

TEST(TreeEnsemble, refuses_places_that_do_not_exist) {
  const std::string good =
      "ai.onnx.ml:TreeEnsemble f32[1,1]{0} n_targets=2 tree_roots=[0] nodes_featureids=[0,0] nodes_modes=u8[2]{0,6} "
      "nodes_splits=f32[2]{1,1} "
      "nodes_truenodeids=[1,0] nodes_trueleafs=[0,1] nodes_falsenodeids=[0,1] nodes_falseleafs=[1,1] leaf_targetids=[0,1] "
      "leaf_weights=f32[2]{1,2} membership_values=f32[2]{0,nan}";
  const auto changed = [&good](std::string_view from, std::string_view to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THAT(numbers(good), ElementsAre(1, 0));
  EXPECT_THAT(refusal(changed("tree_roots=[0]", "tree_roots=[2]")), HasSubstr("tree_roots has 2; there are 2 nodes"));
  EXPECT_THAT(refusal(changed("tree_roots=[0]", "tree_roots=[1]")), HasSubstr("no way leads to node 0"));
  EXPECT_THAT(refusal(changed("nodes_truenodeids=[1,0]", "nodes_truenodeids=[0,0]")),
              HasSubstr("the way from node 0 leads back to it"));
  EXPECT_THAT(refusal(changed("nodes_truenodeids=[1,0]", "nodes_truenodeids=[1,-1]")),
              HasSubstr("nodes_truenodeids of node 1 is -1; there are 2 leaves"));
  EXPECT_THAT(refusal(changed("nodes_falsenodeids=[0,1]", "nodes_falsenodeids=[7,1]")), HasSubstr("there are 2 leaves"));
  EXPECT_THAT(refusal(changed("u8[2]{0,6}", "u8[2]{0,7}")), HasSubstr("nodes_modes of node 1 is 7"));
  EXPECT_THAT(refusal(changed("f32[2]{0,nan}", "f32[3]{0,nan,nan}")), HasSubstr("2 sets for 1 nodes"));
  EXPECT_THAT(refusal(changed(" membership_values=f32[2]{0,nan}", "")), HasSubstr("0 sets for 1 nodes"));
  EXPECT_THAT(refusal(changed("leaf_targetids=[0,1]", "leaf_targetids=[0,2]")), HasSubstr("'leaf_targetids' has 2"));
  EXPECT_THAT(refusal(changed("n_targets=2", "n_targets=0")), HasSubstr("0 targets"));
  EXPECT_THAT(refusal(changed("leaf_weights=f32[2]{1,2}", "leaf_weights=f64[2]{1,2}")), HasSubstr("not float32[n]"));
  EXPECT_THAT(refusal(changed("nodes_splits=f32[2]{1,1} ", "")), HasSubstr("'nodes_splits' is missing"));
  EXPECT_THAT(refusal(cat(good, " post_transform=5")), HasSubstr("post_transform is 5"));
  EXPECT_THAT(refusal(cat(good, " aggregate_function=-1")), HasSubstr("aggregate_function is -1"));
}

TEST(TreeEnsemble, sends_nan_where_the_node_says_whatever_the_test) {
  const auto with = [](int mode, int tracks) {
    return cat("ai.onnx.ml:TreeEnsemble f32[1,1]{nan} tree_roots=[0] nodes_featureids=[0] nodes_modes=u8[1]{", mode,
               "} nodes_splits=f32[1]{1} ",
               "nodes_truenodeids=[0] nodes_trueleafs=[1] nodes_falsenodeids=[1] nodes_falseleafs=[1] leaf_targetids=[0,0] ",
               "leaf_weights=f32[2]{1,2} nodes_missing_value_tracks_true=[", tracks, "]");
  };
  for (int mode = 0; mode < 6; ++mode) {
    EXPECT_THAT(numbers(with(mode, 1)), ElementsAre(1)) << mode;
    EXPECT_THAT(numbers(with(mode, 0)), ElementsAre(2)) << mode;
  }
}

TEST(LabelEncoder, finds_keys_as_the_text_says) {
  EXPECT_THAT(numbers("ai.onnx.ml:LabelEncoder f32[3]{-0,nan,1} keys_floats=[0,nan] values_int64s=[5,6]"), ElementsAre(5, 6, -1));
  EXPECT_THAT(numbers("ai.onnx.ml:LabelEncoder i64[2]{1,2} keys_int64s=[1,1] values_int64s=[5,6]"), ElementsAre(6, -1));
  EXPECT_THAT(texts("ai.onnx.ml:LabelEncoder i64[2]{1,2} keys_int64s=[1] values_strings=[a]"), ElementsAre("a", "_Unused"));
  const double otherwise = numbers("ai.onnx.ml:LabelEncoder i64[1]{2} keys_int64s=[1] values_floats=[3]").at(0);
  EXPECT_TRUE(otherwise == 0 && std::signbit(otherwise));
}

TEST(LabelEncoder, refuses_lists_that_do_not_fit) {
  EXPECT_THAT(refusal("ai.onnx.ml:LabelEncoder i64[1]{1} keys_int64s=[1,2] values_int64s=[5]"), HasSubstr("2 keys for 1 values"));
  EXPECT_THAT(refusal("ai.onnx.ml:LabelEncoder i64[1]{1} keys_floats=[1] values_int64s=[5]"), HasSubstr("the keys are float32"));
  EXPECT_THAT(refusal("ai.onnx.ml:LabelEncoder i64[1]{1} keys_int64s=[1] keys_strings=[a] values_int64s=[5]"),
              HasSubstr("must be set, not 2"));
  EXPECT_THAT(refusal("ai.onnx.ml:LabelEncoder i64[1]{1} keys_int64s=[1]"), HasSubstr("must be set, not 0"));
  EXPECT_THAT(refusal("ai.onnx.ml:LabelEncoder i64[1]{1} keys_int64s=[1] values_int64s=[5] default_tensor=f32[1]{1}"),
              HasSubstr("not one int64"));
  EXPECT_THAT(refusal("ai.onnx.ml:LabelEncoder i64[1]{1} keys_int64s=[1] values_tensor=u8[1]{1}"),
              HasSubstr("values cannot be uint8"));
  EXPECT_THAT(refusal("ai.onnx.ml:CategoryMapper i64[1]{1} cats_int64s=[1,2] cats_strings=[a]"),
              HasSubstr("has 2 elements, not 1"));
}

TEST(Binarizer, is_exact_for_large_integers) {
  EXPECT_THAT(numbers("ai.onnx.ml:Binarizer i64[2]{9223372036854775807,-9223372036854775808} threshold=-9.2233720368547758e18"),
              ElementsAre(1, 0));
  EXPECT_THAT(numbers("ai.onnx.ml:Binarizer i32[3]{2,1,-1} threshold=1.5"), ElementsAre(1, 0, 0));
}

TEST(Features, refuse_what_does_not_fit) {
  EXPECT_THAT(refusal("ai.onnx.ml:ArrayFeatureExtractor f32[2,3] i64[1]{3}"), HasSubstr("index 3 is outside of [0,3)"));
  EXPECT_THAT(refusal("ai.onnx.ml:ArrayFeatureExtractor f32[2,3] i64[1]{-1}"), HasSubstr("index -1"));
  EXPECT_THAT(refusal("ai.onnx.ml:FeatureVectorizer f32[2,3] f32[3,3]"), HasSubstr("the number of rows is 2 in one place and 3"));
  EXPECT_THAT(refusal("ai.onnx.ml:FeatureVectorizer f32[2,3] inputdimensions=[3,1]"), HasSubstr("has 2 elements, not 1"));
  EXPECT_THAT(refusal("ai.onnx.ml:FeatureVectorizer f32[2,3] inputdimensions=[-1]"), HasSubstr("-1, which is no size"));
  EXPECT_THAT(refusal("ai.onnx.ml:Imputer f32[2,3] imputed_value_floats=[1,2]"), HasSubstr("2 elements for 3 features"));
  EXPECT_THAT(refusal("ai.onnx.ml:Imputer f32[2,3] imputed_value_int64s=[1]"), HasSubstr("'imputed_value_floats' and no other"));
  EXPECT_THAT(refusal("ai.onnx.ml:Imputer i32[1]{1} imputed_value_int64s=[4294967296]"), HasSubstr("does not fit int32"));
  EXPECT_THAT(refusal("ai.onnx.ml:Scaler f32[2,3] offset=[1,2,3] scale=[1]"), HasSubstr("'scale' has 1 elements, not 3"));
  EXPECT_THAT(refusal("ai.onnx.ml:Normalizer f32[2,3] norm=L3"), HasSubstr("'L3'"));
  EXPECT_THAT(refusal("ai.onnx.ml:Normalizer f32[2,3,4]"), HasSubstr("not [N,C] or [C]"));
  EXPECT_THAT(refusal("ai.onnx.ml:OneHotEncoder i64[1]{3} cats_int64s=[1,2] zeros=0"), HasSubstr("element 0 is in no category"));
  EXPECT_THAT(refusal("ai.onnx.ml:OneHotEncoder i64[1]{3} cats_strings=[a]"), HasSubstr("the categories are string"));
}

TEST(Features, of_no_width_take_no_time_however_many_rows_there_are) {
  EXPECT_EQ(run("ai.onnx.ml:FeatureVectorizer f32[1099511627776,0] f32[1099511627776,0]").at(0).tensor().elements(), 0U);
  EXPECT_EQ(run("ai.onnx.ml:ArrayFeatureExtractor f32[1099511627776,0] i64[0]").at(0).tensor().elements(), 0U);
  EXPECT_THAT(refusal("ai.onnx.ml:FeatureVectorizer f32[1,2] inputdimensions=[4611686018427387904]"), HasSubstr("more than"));
}

TEST(Normalizer, leaves_rows_whose_divisor_is_zero) {
  EXPECT_THAT(numbers("ai.onnx.ml:Normalizer f32[2,2]{-1,0,-2,-4} norm=MAX"), ElementsAre(-1, 0, 1, 2));
  EXPECT_THAT(numbers("ai.onnx.ml:Normalizer f32[1,2]{-3,1} norm=L1"), ElementsAre(-0.75, 0.25));
  EXPECT_THAT(numbers("ai.onnx.ml:Normalizer f32[1,2]{-3,4} norm=L2"), Pointwise(DoubleNear(1e-7), {-0.6, 0.8}));
}

TEST(LinearClassifier, applies_the_transform_to_both_labels_of_one_row) {
  const std::string text =
      "ai.onnx.ml:LinearClassifier f32[2,1]{2,-1} coefficients=[1] intercepts=[0] classlabels_ints=[7,9] outputs=2";
  EXPECT_THAT(numbers(text), ElementsAre(9, 7));
  EXPECT_THAT(numbers(text, 1), ElementsAre(-2, 2, 1, -1));
  const double high = 1 / (1 + std::exp(-2.0));
  const double low = 1 / (1 + std::exp(1.0));
  EXPECT_THAT(numbers(cat(text, " post_transform=LOGISTIC"), 1), Pointwise(DoubleNear(1e-6), {1 - high, high, 1 - low, low}));
}

TEST(Classifiers, refuse_what_does_not_fit) {
  const std::string linear = "ai.onnx.ml:LinearClassifier f32[2,2]";
  EXPECT_THAT(refusal(cat(linear, " coefficients=[1,2,3,4]")), HasSubstr("one and only one"));
  EXPECT_THAT(refusal(cat(linear, " coefficients=[1,2] classlabels_ints=[1] classlabels_strings=[a]")),
              HasSubstr("one and only one"));
  EXPECT_THAT(refusal(cat(linear, " coefficients=[1,2,3] classlabels_ints=[1,2,3]")),
              HasSubstr("3 coefficients for 3 scores of 2 features"));
  EXPECT_THAT(refusal(cat(linear, " coefficients=[1,2,3,4,5,6] intercepts=[1,2] classlabels_ints=[1,2,3]")),
              HasSubstr("'intercepts' has 2"));
  EXPECT_THAT(refusal(cat(linear, " classlabels_ints=[1,2,3]")), HasSubstr("'coefficients' is missing"));
  EXPECT_THAT(refusal("ai.onnx.ml:LinearRegressor f32[2,2] coefficients=[1,2] targets=0"), HasSubstr("targets is 0"));
  const std::string svm = "ai.onnx.ml:SVMClassifier f32[2,2] classlabels_ints=[1,2]";
  EXPECT_THAT(refusal(cat(svm, " vectors_per_class=[1] support_vectors=[1,2] coefficients=[1] rho=[0]")),
              HasSubstr("'vectors_per_class' has 1"));
  EXPECT_THAT(refusal(cat(svm, " vectors_per_class=[1,-1] support_vectors=[1,2] coefficients=[1] rho=[0]")),
              HasSubstr("vectors_per_class has -1"));
  EXPECT_THAT(refusal(cat(svm, " vectors_per_class=[1,1] support_vectors=[1,2,3] coefficients=[1,1] rho=[0]")),
              HasSubstr("not 2 rows"));
  EXPECT_THAT(refusal(cat(svm, " vectors_per_class=[1,1] support_vectors=[1,2,3,4] coefficients=[1] rho=[0]")),
              HasSubstr("'coefficients' has 1"));
  EXPECT_THAT(refusal(cat(svm, " vectors_per_class=[1,1] support_vectors=[1,2,3,4] coefficients=[1,1] rho=[0] prob_a=[1]")),
              HasSubstr("'prob_b'"));
  EXPECT_THAT(refusal("ai.onnx.ml:SVMRegressor f32[2,2] n_supports=1 support_vectors=[1,2,3] coefficients=[1] rho=[0]"),
              HasSubstr("for 2 features"));
  EXPECT_THAT(refusal("ai.onnx.ml:SVMRegressor f32[2,2] coefficients=[1,2] rho=[0] kernel_type=COSINE"), HasSubstr("'COSINE'"));
}

TEST(Maps, become_tensors_by_their_keys) {
  EXPECT_THAT(numbers("ai.onnx.ml:CastMap i64->f32{7:1,-1:2,3:3}"), ElementsAre(2, 3, 1));
  EXPECT_THAT(numbers("ai.onnx.ml:CastMap i64->f32{2:1} map_form=SPARSE max_map=4"), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(numbers("ai.onnx.ml:CastMap i64->string{1:-2.5,0:3} cast_to=TO_FLOAT"), ElementsAre(3, -2.5));
  EXPECT_THAT(numbers("ai.onnx.ml:DictVectorizer string->f32{c:8,a:4} string_vocabulary=[a,c,b,z]"), ElementsAre(4, 8, 0, 0));
  EXPECT_THAT(texts("ai.onnx.ml:DictVectorizer i64->string{4:x} int64_vocabulary=[3,4]"), ElementsAre("", "x"));
}

TEST(Maps, refuse_keys_that_have_no_place) {
  EXPECT_THAT(refusal("ai.onnx.ml:CastMap i64->f32{4:1} map_form=SPARSE max_map=4"),
              HasSubstr("key 4 of the map is outside of [0,4)"));
  EXPECT_THAT(refusal("ai.onnx.ml:CastMap i64->f32{-1:1} map_form=SPARSE max_map=4"), HasSubstr("key -1"));
  EXPECT_THAT(refusal("ai.onnx.ml:CastMap i64->f32{1:1,1:2}"), HasSubstr("key 1 twice"));
  EXPECT_THAT(refusal("ai.onnx.ml:CastMap i64->string{1:x}"), HasSubstr("'x' is no float32"));
  EXPECT_THAT(refusal("ai.onnx.ml:CastMap string->f32{a:1}"), HasSubstr("not a map from int64"));
  EXPECT_THAT(refusal("ai.onnx.ml:CastMap f32[2]"), HasSubstr("not a map"));
  EXPECT_THAT(refusal("ai.onnx.ml:DictVectorizer string->f32{q:1} string_vocabulary=[a]"),
              HasSubstr("key 'q' of the map is not in the vocabulary"));
  EXPECT_THAT(refusal("ai.onnx.ml:DictVectorizer string->f32{q:1} int64_vocabulary=[1]"), HasSubstr("the vocabulary is int64"));
  EXPECT_THAT(refusal("ai.onnx.ml:ZipMap f32[2,3] classlabels_int64s=[1,2]"),
              HasSubstr("the number of labels is 3 in one place and 2"));
  EXPECT_THAT(refusal("ai.onnx.ml:ZipMap f32[2,2] classlabels_int64s=[1,1]"), HasSubstr("a label is given twice"));
}

TEST(ZipMap, makes_a_map_a_row) {
  const Data result = run("ai.onnx.ml:ZipMap f32[2,2]{1,2,3,4} classlabels_strings=[no,yes]").at(0);
  const auto& rows = result.sequence().items;
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[1].map().keys.strings(), ElementsAre("no", "yes"));
  EXPECT_EQ(doubles(rows[1].map().values.at(0).tensor()).at(0), 3);
  EXPECT_EQ(to_text(type_of(result)), "sequence(map(string,float32[]))");
}

}  // namespace
}  // namespace unmoor
