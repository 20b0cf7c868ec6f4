#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/formats/model_text.h"
#include "unmoor/base/sha256.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

using namespace model_text;
using testing::ElementsAre;
using testing::HasSubstr;

std::string entry(std::string_view key, std::string_view text) { return bytes(13, bytes(1, key) + bytes(2, text)); }

std::string external_model(std::string_view entries, const std::vector<int64_t>& dims = {2}) {
  return model(initializer(tensor("w", 1, dims, std::string(entries) + number(14, 1))));
}

std::string error_of(const ModelFile& file) {
  try {
    file.read();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(OnnxExternal, weights_beside_the_model_are_viewed_in_place) {
  const ModelFile file(external_model(entry("location", "w.bin") + entry("offset", "3") + entry("length", "8")));
  const std::vector<float> values{1, 2};
  write_file(file.path("w.bin"), cat("abc", std::string_view(reinterpret_cast<const char*>(values.data()), 8)));
  const Graph graph = file.read().graph;
  EXPECT_THAT(doubles(graph.values()[0].constant->tensor()), ElementsAre(1, 2));
}

TEST(OnnxExternal, files_that_are_missing_or_too_short_are_errors) {
  const ModelFile file(external_model(entry("location", "w.bin")));
  EXPECT_THAT(error_of(file), HasSubstr("w.bin"));
  write_file(file.path("w.bin"), "1234567");
  EXPECT_THAT(error_of(file), HasSubstr("too short"));
  const ModelFile far(external_model(entry("location", "w.bin") + entry("offset", "18446744073709551615")));
  write_file(far.path("w.bin"), "12345678");
  EXPECT_THAT(error_of(far), HasSubstr("too short"));
  EXPECT_THAT(error_of(ModelFile(external_model(entry("location", "w.bin") + entry("length", "7")))), HasSubstr("7 bytes long"));
  EXPECT_THAT(error_of(ModelFile(external_model(entry("location", "w.bin") + entry("offset", "-1")))), HasSubstr("not a number"));
}

TEST(OnnxExternal, paths_may_not_leave_the_folder) {
  const ModelFile elsewhere("12345678");
  EXPECT_THAT(error_of(ModelFile(external_model(entry("location", elsewhere.path())))),
              HasSubstr("relative to the model's folder"));
  EXPECT_THAT(error_of(ModelFile(external_model(entry("location", "a/../../w.bin")))), HasSubstr("leaves the model's folder"));
  const ModelFile linked(external_model(entry("location", "w.bin")));
  std::filesystem::create_symlink(elsewhere.path(), linked.path("w.bin"));
  EXPECT_THAT(error_of(linked), HasSubstr("link that leaves"));
  EXPECT_THAT(error_of(ModelFile(external_model(""))), HasSubstr("no location"));
}

TEST(OnnxExternal, a_folder_of_links_to_one_store_is_fine) {
  const ModelFile store(external_model(entry("location", "w.bin")));
  write_file(store.path("stored"), "12345678");
  const TemporaryFolder links;
  std::filesystem::create_symlink(store.path(), cat(links.path(), "/m.onnx"));
  std::filesystem::create_symlink(store.path("stored"), cat(links.path(), "/w.bin"));
  EXPECT_EQ(read_onnx(cat(links.path(), "/m.onnx")).graph.values().size(), 1U);
}

TEST(Sha256, agrees_with_the_standard) {
  const auto hash = [](std::string_view text) {
    Sha256 sha;
    sha.add(text);
    return sha.finish();
  };
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  Sha256 pieces;
  for (int i = 0; i < 1000; ++i) pieces.add(std::string(1000, 'a'));
  EXPECT_EQ(pieces.finish(), hash(std::string(1000000, 'a')));
}

TEST(Fingerprint, sees_structure_and_the_ends_of_weights_but_not_their_middle) {
  const auto of = [](size_t changed, std::string_view name) {
    std::string weights(40000, '\0');
    if (changed < weights.size()) weights[changed] = 1;
    return ModelFile(model(initializer(tensor(name, 1, {10000}, bytes(9, weights))))).read().fingerprint;
  };
  const std::string plain = of(40000, "w");
  EXPECT_EQ(plain.size(), 64U);
  EXPECT_EQ(of(40000, "w"), plain);
  EXPECT_EQ(of(20000, "w"), plain);
  EXPECT_NE(of(4095, "w"), plain);
  EXPECT_NE(of(39999 - 4095, "w"), plain);
  EXPECT_NE(of(40000, "v"), plain);
}

}  // namespace
}  // namespace unmoor
