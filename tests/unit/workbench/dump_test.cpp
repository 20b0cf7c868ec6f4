#include "unmoor/workbench/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"

namespace unmoor {
namespace {

TEST(Dump, one_that_was_not_finished_leaves_no_manifest_of_another) {
  const TemporaryFolder folder;
  {
    DumpWriter first(folder.path());
    first.add("a", Tensor::from<float>({1}, {1}));
    first.add("b", Tensor::from<float>({1}, {2}));
    first.finish();
  }
  DumpWriter second(folder.path());
  second.add("other", Tensor::from<float>({1}, {3}));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/manifest.json"));
  second.finish();
  const auto values = open_dump(folder.path())->run({});
  EXPECT_EQ(values.size(), 1U);
  EXPECT_TRUE(values.contains("other"));
}

TEST(Dump, values_that_are_no_tensors_are_named) {
  const TemporaryFolder folder;
  DumpWriter writer(folder.path());
  writer.add("list", Sequence{{Data(Tensor::from<float>({1}, {1}))}});
  EXPECT_THAT(writer.left_out(), testing::ElementsAre("list"));
  EXPECT_EQ(writer.count(), 0U);
}

TEST(Dump, a_manifest_that_nests_without_end_is_no_manifest) {
  const TemporaryFolder folder;
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  write_file(folder.path() + "/manifest.json", R"({"values": [{"name": "a", "file": "a.npy", "dtype": )" + deep + "}]}");
  try {
    (void)open_dump(folder.path());
    ADD_FAILURE() << "it was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidModel);
  }
}

TEST(Dump, a_folder_that_cannot_be_read_is_an_error_of_input) {
  try {
    (void)open_dump("/nowhere/at/all");
    ADD_FAILURE() << "it was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Io);
  }
}

}  // namespace
}  // namespace unmoor
