#include "unmoor/workbench/lock.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unmoor/workbench/machine_facts.h"

namespace unmoor {
namespace {

Lock lock_of(std::vector<LockComponent> components) { return {"2026-01-01T00:00:00Z", std::move(components)}; }

TEST(Lock, the_worst_difference_comes_first) {
  const auto found =
      compare_locks(lock_of({{"kernel", "1", "", "", ""}, {"package a", "1", "", "", ""}, {"engine ort", "1", "", "", ""}}),
                    lock_of({{"kernel", "2", "", "", ""}, {"package a", "2", "", "", ""}, {"engine ort", "2", "", "", ""}}), {});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].name + found[1].name + found[2].name, "engine ortpackage akernel");
}

TEST(Lock, an_engine_is_mended_by_the_package_that_brings_it) {
  const Lock locked = lock_of({{"engine ort", "1.20.1", "", "", ""}, {"package onnxruntime-gpu", "1.20.1", "", "", ""}});
  const auto found = compare_locks(locked, lock_of({{"python", "3.11.2", "/opt/my python/bin/python", "", ""}}),
                                   {{"engine ort", "no onnxruntime"}});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].detail, "no onnxruntime");
  EXPECT_EQ(found[0].command, "'/opt/my python/bin/python' -m pip install onnxruntime-gpu==1.20.1");
  EXPECT_EQ(found[1].command, found[0].command);
}

TEST(Lock, a_library_is_mended_by_its_package) {
  const auto found = compare_locks(lock_of({{"library libx.so", "1", "/usr/lib/libx.so.1", "", "libx1=1.0-2"}}), lock_of({}), {});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].command, "sudo apt-get install libx1=1.0-2");
}

TEST(Lock, an_option_is_no_package) {
  const auto found = compare_locks(
      lock_of({{"package --index-url=x", "1", "", "", ""}, {"library libx.so", "1", "/x", "", "--fix=1"}}), lock_of({}), {});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].command + found[1].command, "");
}

TEST(Lock, paths_are_not_compared) {
  EXPECT_TRUE(compare_locks(lock_of({{"python", "3", "/a", "", ""}}), lock_of({{"python", "3", "/b", "", ""}}), {}).empty());
}

TEST(Lock, requirements_hold_packages_only) {
  const std::string text = requirements_text(
      lock_of({{"os", "1", "", "", ""}, {"python", "3.11.2", "", "", ""}, {"package numpy", "2.1.0", "", "", ""}}));
  EXPECT_NE(text.find("# Python 3.11.2\nnumpy==2.1.0\n"), std::string::npos);
  EXPECT_EQ(text.find("os"), std::string::npos);
}

TEST(Lock, this_process_has_mapped_libc) {
  const auto files = mapped_libraries();
  EXPECT_TRUE(std::ranges::any_of(files, [](const std::string& file) { return file.find("/libc.so") != std::string::npos; }));
}

}  // namespace
}  // namespace unmoor
