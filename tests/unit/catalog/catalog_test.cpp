#include "unmoor/catalog/catalog.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/catalog/compare.h"
#include "unmoor/catalog/embedded.h"

namespace unmoor {
namespace {

using nlohmann::json;

CatalogQuestion question(const std::string& op, int64_t opset, const std::vector<std::string>& dtypes, int rank = 4) {
  CatalogQuestion asked{op, opset, {}, {}, {}};
  for (const auto& dtype : dtypes) asked.inputs.push_back({dtype, rank, true, false, true});
  asked.outputs.push_back({dtypes.empty() ? "" : dtypes[0], rank, true, false, true});
  return asked;
}

// A catalogue with one file of the user's own in a folder that goes with it.
class WithFile {
 public:
  explicit WithFile(const std::string& text) { write_file(folder_.path() + "/mine.json", text); }
  Catalog open() const { return Catalog(folder_.path()); }

 private:
  TemporaryFolder folder_;
};

json own_file(const std::string& version = "1") {
  return {{"schema", 1},
          {"platform", "acme"},
          {"version", version},
          {"vocabulary", "onnx"},
          {"sources", {"a letter of 2026-11-30"}},
          {"types", {{"float16", "float32"}}},
          {"ops",
           {{"Relu", {{{"since", 6}, {"dtypes", {{"T", 0}}}, {"in", {"T"}}, {"out", {"T"}}}}},
            {"Conv", {{{"since", 1}, {"limits", {{{"rank", {4, 4}}}}}}}},
            {"Resize", {{{"since", 10}, {"limits", {{{"attribute", "mode"}, {"not", {"cubic"}}}}}}}},
            {"Gather", {{{"since", 1}, {"limits", {{{"constant", {1}}}}}}}},
            {"TopK", {{{"since", 1}, {"limits", {{{"text", "k below 100"}}}}}}},
            {"Loop", {{{"since", 1}, {"state", "unsupported"}}}}}}};
}

TEST(Catalog, every_embedded_file_opens_and_holds_sorted_operators) {
  for (const auto& each : embedded_facts()) {
    const auto facts = Facts::open(each.text, std::string(each.name));
    EXPECT_FALSE(facts->header().sources.empty()) << each.name;
    EXPECT_FALSE(facts->header().date.empty()) << each.name;
    for (const auto& op : facts->ops()) EXPECT_FALSE(facts->entry(op).is_null()) << each.name << " " << op;
  }
}

TEST(Catalog, opening_all_platforms_takes_less_than_ten_milliseconds) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const Catalog catalog("");
    for (const auto& item : catalog.items()) (void)catalog.find(item.platform + "@" + item.version);
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  EXPECT_LT(best, 10);
}

TEST(Catalog, every_platform_of_the_issue_is_there) {
  const Catalog catalog("");
  for (const char* each : {"ort-cpu",   "ort-cuda",   "ort-dml",    "ort-cann",    "ort-migraphx", "ort-openvino", "ort-coreml",
                           "ort-qnn",   "ort-nnapi",  "ort-webgpu", "ort-xnnpack", "ort-rocm",     "ort-vsinpu",   "tensorrt",
                           "openvino",  "migraphx",   "mnn",        "ncnn",        "ascend-atc",   "torch-npu",    "torchair",
                           "torch-mlu", "torch-musa", "torch-xpu",  "torch-rocm",  "torch-hygon",  "torch-cuda"}) {
    EXPECT_TRUE(catalog.has(each)) << each;
    EXPECT_NE(catalog.find(each), nullptr);
  }
}

TEST(Catalog, a_bare_name_means_the_newest_version_and_a_beginning_fits) {
  const Catalog catalog("");
  EXPECT_EQ(catalog.find("tensorrt")->header().version, "10.15");
  EXPECT_EQ(catalog.find("tensorrt@10.1")->header().version, "10.1");
  EXPECT_EQ(catalog.find("tensorrt@10")->header().version, "10.15");
  EXPECT_EQ(catalog.find("torch-xpu")->header().version, "2.12");
  EXPECT_EQ(catalog.find("ort-coreml")->header().version, "1.25.0");
  EXPECT_THROW((void)catalog.find("tensorrt@9"), Error);
  EXPECT_THROW((void)catalog.find("tensorrt@10.1x"), Error);
  EXPECT_THROW((void)catalog.find("nosuch"), Error);
}

TEST(Catalog, versions_sort_by_value) {
  EXPECT_TRUE(older_version("10.9", "10.15"));
  EXPECT_FALSE(older_version("10.15", "10.9"));
  EXPECT_TRUE(older_version("2.6", "2.6.1"));
  EXPECT_TRUE(older_version("1.25.0-variant", "1.25.0"));
  EXPECT_FALSE(older_version("1.25.0", "1.25.0"));
  EXPECT_TRUE(older_version("99999999999999999999", "999999999999999999999"));  // No overflow, whatever is written.
}

TEST(Catalog, a_kernel_answers_by_opset_and_dtype) {
  const Catalog catalog("");
  const auto cpu = catalog.find("ort-cpu");
  EXPECT_EQ(catalog.answer(*cpu, question("Conv", 17, {"float32", "float32"})).claim, Claim::Native);
  const auto half = catalog.answer(*cpu, question("Acos", 17, {"float16"}));
  EXPECT_EQ(half.claim, Claim::Unsupported);
  EXPECT_EQ(half.reason, "dtype");
  EXPECT_NE(half.detail.find("float16"), std::string::npos);
  EXPECT_NE(half.source.find("onnxruntime"), std::string::npos);
  // RoiAlign has a newer version in ONNX than ONNX Runtime has a kernel for.
  EXPECT_EQ(catalog.answer(*cpu, question("RoiAlign", 16, {"float32", "float32", "int64"})).claim, Claim::Native);
  EXPECT_EQ(catalog.answer(*cpu, question("RoiAlign", 22, {"float32", "float32", "int64"})).reason, "opset");
  EXPECT_EQ(catalog.answer(*cpu, question("Conv", 1000, {"float32"})).claim, Claim::Unknown);
}

TEST(Catalog, what_is_refused_falls_back_only_to_what_takes_it) {
  const Catalog catalog("");
  const auto cann = catalog.find("ort-cann");
  EXPECT_EQ(catalog.answer(*cann, question("LayerNormalization", 17, {"float32", "float32"})).claim, Claim::Fallback);
  EXPECT_EQ(catalog.answer(*cann, question("Adagrad", 1, {"float32"})).claim, Claim::Unsupported);
}

TEST(Catalog, what_is_not_listed_is_unknown_where_the_list_may_be_incomplete) {
  const Catalog catalog("");
  EXPECT_EQ(catalog.answer(*catalog.find("mnn"), question("FlexAttention", 20, {"float32"})).claim, Claim::Unknown);
  EXPECT_EQ(catalog.answer(*catalog.find("torch-mlu"), question("NoSuchOp", 20, {"float32"})).claim, Claim::Unknown);
  EXPECT_EQ(catalog.answer(*catalog.find("torch-mlu"), question("aten::nosuch", 0, {"float32"})).claim, Claim::Unknown);
}

TEST(Catalog, hygon_answers_as_rocm_and_says_so) {
  const Catalog catalog("");
  const auto asked = question("MatMul", 17, {"float32", "float32"}, 2);
  const auto hygon = catalog.answer(*catalog.find("torch-hygon"), asked);
  EXPECT_EQ(hygon.claim, catalog.answer(*catalog.find("torch-rocm"), asked).claim);
  EXPECT_NE(hygon.detail.find("torch-rocm"), std::string::npos);
  EXPECT_NE(hygon.source.find("DTK"), std::string::npos) << hygon.source;      // Why it answers so,
  EXPECT_NE(hygon.source.find("pytorch"), std::string::npos) << hygon.source;  // and where the answer stands.
}

TEST(Catalog, an_older_version_inherits_and_differs) {
  const Catalog catalog("");
  const auto old = catalog.find("torch-npu@6.0.0");
  const auto now = catalog.find("torch-npu");
  EXPECT_EQ(catalog.answer(*old, question("aten::mm", 0, {"float32"})).claim, Claim::Native);  // Stands in the newer file alone.
  const auto differs = differences(catalog, *old, *now);
  EXPECT_FALSE(differs.empty());
  EXPECT_LT(differs.size(), 400U);
  EXPECT_TRUE(differences(catalog, *now, *now).empty());
}

TEST(Catalog, limits_refuse_when_broken_and_constrain_when_they_cannot_be_told) {
  const WithFile file(own_file().dump());
  const Catalog catalog = file.open();
  const auto acme = catalog.find("acme");
  const auto claim = [&](const CatalogQuestion& asked) { return catalog.answer(*acme, asked).claim; };
  EXPECT_EQ(claim(question("Relu", 14, {"float32"})), Claim::Native);
  EXPECT_EQ(claim(question("Relu", 14, {"float64"})), Claim::Unsupported);
  EXPECT_EQ(claim(question("Relu", 5, {"float32"})), Claim::Unsupported);
  EXPECT_EQ(claim(question("Conv", 11, {"float32"}, 4)), Claim::Native);
  EXPECT_EQ(claim(question("Conv", 11, {"float32"}, 3)), Claim::Unsupported);
  EXPECT_EQ(claim(question("Conv", 11, {"float32"}, -1)), Claim::Constrained);
  EXPECT_EQ(claim(question("TopK", 11, {"float32"})), Claim::Constrained);
  EXPECT_EQ(claim(question("Loop", 11, {})), Claim::Unsupported);
  EXPECT_EQ(claim(question("Softmax", 11, {"float32"})), Claim::Unknown);
  auto resize = question("Resize", 13, {"float32"});
  EXPECT_EQ(claim(resize), Claim::Native);
  resize.attributes["mode"] = "cubic";
  EXPECT_EQ(claim(resize), Claim::Unsupported);
  auto gather = question("Gather", 13, {"float32", "int64"});
  EXPECT_EQ(claim(gather), Claim::Unsupported);
  gather.inputs[1].constant = true;
  EXPECT_EQ(claim(gather), Claim::Native);
}

TEST(Catalog, the_users_file_takes_the_place_of_ours) {
  json mine = own_file();
  mine["platform"] = "ort-cpu";
  mine["version"] = "1.32.0";
  const WithFile file(mine.dump(2));  // However it is laid out.
  const Catalog catalog = file.open();
  EXPECT_EQ(catalog.answer(*catalog.find("ort-cpu"), question("Softmax", 13, {"float32"})).claim, Claim::Unknown);
  EXPECT_EQ(catalog.find("ort-cpu")->source(0), "a letter of 2026-11-30");
}

TEST(Catalog, the_version_that_is_written_wins_over_a_newer_one_that_begins_with_it) {
  TemporaryFolder folder;
  for (const char* version : {"2", "2.9", "2.10"}) write_file(fmt::format("{}/{}.json", folder.path(), version), own_file(version).dump());
  const Catalog catalog(folder.path());
  EXPECT_EQ(catalog.find("acme@2")->header().version, "2");
  EXPECT_EQ(catalog.find("acme@2.9")->header().version, "2.9");
  EXPECT_EQ(catalog.find("acme")->header().version, "2.10");
}

TEST(Catalog, a_file_like_the_one_whose_place_it_takes_holds_what_differs) {
  json mine = own_file("1.25.0");
  mine["platform"] = "ort-cuda";
  for (const char* like : {"ort-cuda@1.25.0", "ort-cuda", "ort-cuda@1.25"}) {
    mine["like"] = like;
    const WithFile file(mine.dump());
    const Catalog catalog = file.open();
    const auto cuda = catalog.find("ort-cuda");
    EXPECT_EQ(catalog.answer(*cuda, question("Loop", 11, {})).claim, Claim::Unsupported) << like;                         // Mine.
    EXPECT_EQ(catalog.answer(*cuda, question("Conv", 11, {"float32", "float32"}, 3)).claim, Claim::Unsupported) << like;  // Mine.
    EXPECT_EQ(catalog.answer(*cuda, question("MatMul", 13, {"float32", "float32"}, 2)).claim, Claim::Native) << like;     // Ours.
    EXPECT_EQ(all_listed(catalog, *cuda).size(), all_listed(Catalog(""), *Catalog("").find("ort-cuda")).size()) << like;
  }
}

TEST(Catalog, links_may_name_a_platform_alone_and_must_lead_somewhere) {
  json mine = own_file();
  mine["same_as"] = "torch-rocm@2.6";
  mine["vocabulary"] = "aten";
  const WithFile file(mine.dump());
  const Catalog catalog = file.open();
  EXPECT_EQ(catalog.answer(*catalog.find("acme"), question("aten::mm", 0, {"float32"}, 2)).claim, Claim::Native);
  for (const char* key : {"like", "same_as", "fallback"}) {
    for (const char* link : {"ort-cpu@99", "nosuch"}) {
      json wrong = own_file();
      wrong[key] = link;
      const WithFile broken(wrong.dump());
      try {
        (void)broken.open();
        FAIL() << key << " " << link;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::InvalidModel);
        EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
      }
    }
  }
}

TEST(Catalog, element_types_of_calls_are_about_the_data_and_not_about_its_indices) {
  const json calls{{"schema", 1},
                   {"platform", "acme"},
                   {"version", "1"},
                   {"vocabulary", "aten"},
                   {"sources", {"made up"}},
                   {"reasons", {"a kernel"}},
                   {"types", {{"float32", "int64"}, {"bool", "float32", "int64"}}},
                   {"ops",
                    {{"aten::gather", {{"", {"native", 0, 0}}}},
                     {"aten::where", {{"self", {"native", 0, 1}}}},
                     {"aten::index_select", {{"", {"native", 0, 0}}}},
                     {"aten::add", {{"Tensor", {"native", 0, 0}}}},
                     {"aten::lt", {{"Scalar", {"native", 0, 0}}}},
                     {"aten::view", {{"", {"native", 0}}}}}}};
  const WithFile file(calls.dump());
  const Catalog catalog = file.open();
  const auto acme = catalog.find("acme");
  const auto claim = [&](const CatalogQuestion& asked) { return catalog.answer(*acme, asked).claim; };
  EXPECT_EQ(claim(question("aten::gather", 0, {"float32", "int64"})), Claim::Native);
  EXPECT_EQ(claim(question("aten::gather", 0, {"float64", "int64"})), Claim::Unsupported);
  EXPECT_EQ(claim(question("aten::gather", 0, {"int32", "int64"})), Claim::Unsupported);
  auto where = question("aten::where.self", 0, {"bool", "int32", "int32"});
  where.outputs[0].dtype = "int32";
  EXPECT_EQ(claim(where), Claim::Unsupported);
  // Of several calls that stand for a node, some are about its indices: which, the trace does not tell.
  EXPECT_EQ(claim(question("Gather", 13, {"float64", "int64"})), Claim::Constrained);
  EXPECT_EQ(claim(question("Gather", 13, {"float64", "int32"})), Claim::Unsupported);
}

TEST(Catalog, operators_of_a_newer_release_are_not_in_an_older_one) {
  const Catalog catalog("");
  const auto old = catalog.find("torch-npu@6.0.0");
  const auto now = catalog.find("torch-npu@26.1.0");
  size_t newer = 0;
  for (const std::string& op : now->ops()) {
    if (!op.starts_with("npu::")) continue;
    const auto asked = question(op, 0, {"float16"});
    EXPECT_NE(catalog.answer(*old, asked).claim, Claim::Fallback) << op;  // PyTorch has no kernel of its own for them.
    newer += catalog.answer(*old, asked).claim == Claim::Unsupported ? 1 : 0;
  }
  EXPECT_GT(newer, 100U);
}

TEST(Catalog, a_broken_file_of_the_user_is_refused_with_its_name) {
  json no_source = own_file();
  no_source.erase("sources");
  json wrong_kind = own_file();
  wrong_kind["vocabulary"] = "klingon";
  json odd_name = own_file();
  odd_name["ops"]["a\"b"] = json::array();
  for (const std::string& text : {std::string("{"), std::string("[]"), std::string("null"), no_source.dump(), wrong_kind.dump(),
                                  odd_name.dump(), std::string(),
                                  std::string(R"({"ops":)") + std::string(100'000, '[') + std::string(100'000, ']') + "}"}) {
    const WithFile file(text);
    try {
      (void)file.open();
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidModel);
      EXPECT_NE(std::string(error.what()).find("mine.json"), std::string::npos) << error.what();
    }
  }
}

TEST(Catalog, entries_of_odd_types_are_no_answer_and_no_crash) {
  json odd = own_file();
  for (const json& entry : {json(1), json("x"), json::array({1, "x", nullptr}), json::object({{"", 1}}),
                            json::array({{{"since", "x"},
                                          {"dtypes", {{"T", -1}}},
                                          {"in", {1, "T"}},
                                          {"limits", {1, {{"rank", "x"}}, {{"constant", {-1, "x"}}}}}}})}) {
    odd["ops"]["Relu"] = entry;
    const WithFile file(odd.dump());
    const Catalog catalog = file.open();
    (void)catalog.answer(*catalog.find("acme"), question("Relu", 14, {"float32"}));
    odd["vocabulary"] = "aten";
    const WithFile calls(odd.dump());
    const Catalog other = calls.open();
    (void)other.answer(*other.find("acme"), question("Relu", 14, {"float32"}));
    odd["vocabulary"] = "onnx";
  }
}

TEST(Catalog, a_file_like_itself_ends) {
  json circle = own_file();
  circle["like"] = "acme@1";
  circle["same_as"] = "acme@1";
  const WithFile file(circle.dump());
  const Catalog catalog = file.open();
  EXPECT_EQ(catalog.answer(*catalog.find("acme"), question("Nothing", 14, {"float32"})).claim, Claim::Unknown);
}

}  // namespace
}  // namespace unmoor
