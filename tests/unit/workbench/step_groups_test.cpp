#include "unmoor/workbench/step_groups.h"

#include <gtest/gtest.h>

#include "tests/unit/workbench/fake_runner.h"

namespace unmoor {
namespace {

// Each step gives one more than its first input.
class Counter : public test::FakeRunner {
 public:
  Counter() : FakeRunner("counter") {}
  std::vector<Data> run_step(size_t step, const NamedData& inputs) override {
    ran.push_back(step);
    const float x = inputs.at(kernels.at(step).inputs.at(0)).tensor().span<float>()[0];
    return std::vector<Data>(kernels[step].outputs.size(), Tensor::scalar<float>(x + 1));
  }
  std::vector<size_t> ran;
};

bool in_file(const std::string& name) { return name.find('/') == std::string::npos; }

TEST(StepGroups, steps_that_pass_on_what_the_file_does_not_have_are_run_as_one) {
  Counter runner;
  runner.kernels = {{"conv", "Conv", "cast", "cpu", {"x"}, {"x/wide"}},
                    {"relu", "Relu", "relu", "cpu", {"x"}, {"r"}},
                    {"conv", "Conv", "conv", "cpu", {"x/wide", "r"}, {"y/wide"}},
                    {"conv", "Conv", "cast", "cpu", {"y/wide"}, {"y"}}};
  StepGroups groups(runner, in_file);
  EXPECT_TRUE(groups.steps()[0].outputs.empty());
  EXPECT_TRUE(groups.steps()[2].outputs.empty());
  EXPECT_EQ(groups.steps()[1].inputs, std::vector<std::string>{"x"});
  EXPECT_EQ(groups.steps()[3].inputs, (std::vector<std::string>{"r", "x"}));
  const NamedData given{{"x", Tensor::scalar<float>(1)}, {"r", Tensor::scalar<float>(7)}};
  EXPECT_EQ(groups.run(3, given).at(0).tensor().span<float>()[0], 4);
  EXPECT_EQ(runner.ran, (std::vector<size_t>{0, 2, 3}));
}

TEST(StepGroups, what_no_step_makes_has_to_be_given) {
  Counter runner;
  runner.kernels = {{"loop", "Loop", "", "", {"a/b"}, {"y/wide"}}, {"add", "Add", "add", "cpu", {"y/wide"}, {"y"}}};
  StepGroups groups(runner, in_file);
  EXPECT_EQ(groups.steps()[1].inputs, std::vector<std::string>{"a/b"});
  EXPECT_THROW((void)groups.run(1, {}), Error);
}

}  // namespace
}  // namespace unmoor
