#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unmoor/base/error.h"
#include "unmoor/engines/engine.h"
#include "unmoor/engines/python_child.h"

namespace unmoor {
namespace {

using testing::HasSubstr;

std::string reason_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(EngineName, is_told_from_devices_and_folders) {
  EXPECT_EQ(parse_engine("ort:cuda:0")->text(), "ort:cuda:0");
  EXPECT_EQ(parse_engine("ort")->text(), "ort:cpu");
  EXPECT_EQ(parse_engine("ort:cpu:0")->text(), "ort:cpu");
  EXPECT_EQ(parse_engine("torch:npu:1")->device, "npu:1");
  EXPECT_EQ(parse_engine("py:some/engine.py")->device, "some/engine.py");
  for (const char* const text : {"cpu", "opencl:0", "py", "ortho:cpu", "./ort", "dump/py:x", ""})
    EXPECT_FALSE(is_engine(text)) << text;
}

TEST(EngineName, that_is_wrong_is_refused_with_the_right_spelling) {
  for (const char* const text : {"ort:", "ort:cuda:", "ort:cuda:x", "ort:cu da", "torch:cuda:0:1", "ort:cuda:99999", "ort:cpu:7", "torch:cpu:1"}) {
    EXPECT_THAT(reason_of([&] { (void)parse_engine(text); }), HasSubstr("write it as")) << text;
  }
  EXPECT_THAT(reason_of([] { (void)parse_engine("py:"); }), HasSubstr("py:FILE"));
}

TEST(Python, is_what_was_named_then_what_the_environment_says) {
  ::setenv("UNMOOR_PYTHON", "/somewhere/python", 1);
  EXPECT_EQ(find_python("/given/python"), "/given/python");
  EXPECT_EQ(find_python(""), "/somewhere/python");
  ::unsetenv("UNMOOR_PYTHON");
  ::setenv("VIRTUAL_ENV", "/no/such/folder", 1);
  ::unsetenv("CONDA_PREFIX");
  EXPECT_EQ(find_python(""), "python3");
  ::unsetenv("VIRTUAL_ENV");
}

TEST(Python, that_is_not_there_or_is_none_has_a_reason) {
  EngineRequest request;
  request.name = *parse_engine("ort:cpu");
  request.python = "/no/such/python";
  EXPECT_THAT(reason_of([&] { (void)make_engine_runner(request); }), HasSubstr("install Python 3.9"));
  request.python = "/bin/true";
  EXPECT_THAT(reason_of([&] { (void)make_engine_runner(request); }), HasSubstr("does not work as Python: exit status 0"));
  const auto found = find_engines("/no/such/python");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].state, "absent");
  EXPECT_THAT(found[1].reason, HasSubstr("/no/such/python"));
}

}  // namespace
}  // namespace unmoor
