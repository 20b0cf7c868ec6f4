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

TEST(Lock, what_pip_or_apt_get_would_take_for_something_else_gets_no_command_and_a_reason) {
  const std::vector<std::pair<std::string, std::string>> pip{
      {"--index-url=x", "1"},   {"https://example.com/x.whl", "1"}, {"x @ https://example.com/x", "1"}, {"./x", "1"},
      {"x", "1 --pre"},         {"x", "1@https://example.com"},     {"x", "1.whl"},                     {"x", "1+x.tar.gz"},
      {"x[extra]", "1"},        {"x", ""},                          {"x", "1;python_version>'3'"},      {"x", "-1"},
      {"x\n-e y", "1"},         {"x", "$(touch here)"},             {"x-", "1"},                        {"", "1"}};
  for (const auto& [name, version] : pip) {
    const auto found = compare_locks(lock_of({{"package " + name, version, "", "", ""}}), lock_of({}), {});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].command, "") << name << " " << version;
    EXPECT_NE(found[0].detail.find("no command: "), std::string::npos) << found[0].detail;
  }
  for (const char* const package : {"--fix=1", "x-", "x-=1", "x=1-", "x=1+", "x+", "x", "x/testing", "./x.deb=1", "x=", "=1", "x^=1",
                                    "x=1 y=1", "X=1", "x=a", "x=1\ny", "-y=1"}) {
    const auto found = compare_locks(lock_of({{"library libx.so", "1", "/x", "", package}}), lock_of({}), {});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].command, "") << package;
    EXPECT_NE(found[0].detail.find("no command: "), std::string::npos) << found[0].detail;
  }
}

TEST(Lock, ordinary_packages_get_a_command) {
  for (const char* const package : {"libstdc++6=12.2.0-14+deb12u1", "libc6=2.36-9+deb12u10", "libx=1:2.0~rc1-3", "g++=4:12.2.0-3"}) {
    const auto found = compare_locks(lock_of({{"library libx.so", "1", "/x", "", package}}), lock_of({}), {});
    EXPECT_EQ(found.at(0).command, std::string("sudo apt-get install ") + package);
  }
  for (const auto& [name, version] : std::vector<std::pair<std::string, std::string>>{
           {"torch", "2.6.0+cu126"}, {"ruamel.yaml", "0.17.21"}, {"x_y", "1!2.0.post1.dev3"}, {"nvidia-cudnn-cu12", "9.1.0.70"}}) {
    const auto found = compare_locks(lock_of({{"package " + name, version, "", "", ""}}), lock_of({}), {});
    EXPECT_EQ(found.at(0).command, "python3 -m pip install " + name + "==" + version);
  }
}

TEST(Lock, the_same_version_with_other_content_is_installed_again) {
  const auto found = compare_locks(lock_of({{"package a", "1", "", "00", ""}, {"library libx.so", "1", "/x", "00", "libx1=1.0-2"}}),
                                   lock_of({{"package a", "1", "", "11", ""}, {"library libx.so", "1", "/x", "11", "libx1=1.0-2"}}), {});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].command, "python3 -m pip install --force-reinstall --no-deps a==1");
  EXPECT_EQ(found[1].command, "sudo apt-get install --reinstall libx1=1.0-2");
}

TEST(Lock, another_package_that_brings_the_same_version_is_not_installed_again) {
  const auto found = compare_locks(lock_of({{"library libx.so", "1", "/x", "00", "libx1=1.0-2"}}),
                                   lock_of({{"library libx.so", "1", "/x", "11", "libx1=1.0-3"}}), {});
  EXPECT_EQ(found.at(0).command, "sudo apt-get install libx1=1.0-2");
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
