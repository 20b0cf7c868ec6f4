#include "unmoor/runtime/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "unmoor/base/error.h"
#include "unmoor/runtime/wire.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PlanOptions unfused() {
  PlanOptions options;
  options.passes.fuse = false;
  return options;
}

std::unique_ptr<Runner> worker(const std::string& model = "fine") {
  return make_worker_runner({.model = model, .device = "test:0", .options = unfused()});
}

const NamedData inputs{{"x\xff", Tensor::from<float>({2}, {-1, 2})}};

Error error_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::Internal, "nothing was thrown"};
}

class Names : public Observer {
 public:
  bool wants(const ValueInfo&) override { return true; }
  void on_value(const ValueInfo& info, const Data&) override {
    names.push_back(info.name);
    if (fails) fail(ErrorKind::Io, "the disk is full");
  }
  std::vector<std::string> names;
  bool fails = false;
};

TEST(Worker, names_that_are_not_utf8_cross_unchanged) {
  const auto runner = worker();
  EXPECT_EQ(runner->inputs().at(0).name, "x\xff");
  Names names;
  const NamedData outputs = runner->run(inputs, &names);
  EXPECT_THAT(names.names, ElementsAre("value\xfe", "Neg_1:0"));
  EXPECT_EQ(outputs.begin()->first, "z\xfd");
  EXPECT_THAT(doubles(outputs.begin()->second.tensor()), ElementsAre(0, -2));
}

TEST(Worker, an_observer_that_throws_does_not_confuse_the_next_call) {
  const auto runner = worker();
  Names names;
  names.fails = true;
  const Error error = error_of([&] { (void)runner->run(inputs, &names); });
  EXPECT_EQ(error.kind(), ErrorKind::Io);
  EXPECT_STREQ(error.what(), "the disk is full");
  EXPECT_THAT(doubles(runner->run(inputs).begin()->second.tensor()), ElementsAre(0, -2));
  EXPECT_EQ(runner->steps().size(), 2U);
}

TEST(Worker, what_the_model_refuses_is_that_error_and_the_worker_goes_on) {
  const auto runner = worker();
  const Error error = error_of([&] { (void)runner->run({{"x\xff", Tensor::from<int64_t>({2}, {1, 2})}}); });
  EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
  EXPECT_EQ(runner->run(inputs).size(), 1U);
}

TEST(Worker, the_end_of_its_process_is_an_error_that_says_how) {
  const Error error = error_of([] { (void)worker("crash"); });
  EXPECT_EQ(error.kind(), ErrorKind::Device);
  EXPECT_THAT(error.what(), HasSubstr("SIGABRT"));
  EXPECT_EQ(error_of([] { (void)worker("broken"); }).kind(), ErrorKind::InvalidModel);
}

TEST(Worker, measuring_for_longer_than_a_worker_may_be_silent_is_no_hang) {
  const auto runner = worker();
  ::setenv("UNMOOR_PATIENCE", "1", 1);
  const auto times = runner->time_runs(inputs, 1, 1.5);
  ::unsetenv("UNMOOR_PATIENCE");
  EXPECT_GT(times.size(), 1U);
}

TEST(Worker, its_plan_is_told) {
  const auto runner = worker();
  const PlanInfo plan = runner->plan();
  ASSERT_EQ(plan.placements.size(), 2U);
  EXPECT_EQ(plan.placements[0].node, "Relu_0");
  EXPECT_EQ(plan.devices, (std::vector<std::string>{"reference"}));
}

TEST(Worker, a_plan_survives_the_way) {
  PlanInfo plan;
  plan.devices = {"cpu"};
  plan.versions = {{{"driver", "1"}}};
  plan.placements = {{"node",
                      "Op",
                      "cpu",
                      "cpu.b",
                      "native",
                      {{"cpu", "cpu.a", "size", "too small"}},
                      {{"cpu", "cpu.c", "", ""}},
                      {"also"},
                      "matmul"}};
  plan.copies = {{"value", "before", "a", "b", 7}};
  plan.fallback_summary = "summary";
  plan.notes = {"a note"};
  const PlanInfo found = plan_info_from(to_json(plan));
  EXPECT_EQ(to_json(found), to_json(plan));
  EXPECT_EQ(found.placements.at(0).refusals.at(0).detail, "too small");
  EXPECT_EQ(found.placements.at(0).later.at(0).kernel, "cpu.c");
  EXPECT_EQ(found.notes, plan.notes);
}

}  // namespace
}  // namespace unmoor
