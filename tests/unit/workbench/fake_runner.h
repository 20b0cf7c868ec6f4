#pragma once

#include <map>
#include <string>
#include <vector>

#include "unmoor/base/error.h"
#include "unmoor/runtime/runner.h"

namespace unmoor::test {

// A runner whose values, times and kernels a test sets.
class FakeRunner : public Runner {
 public:
  explicit FakeRunner(std::string name) : name_(std::move(name)) {}

  std::string name() const override { return name_; }
  std::vector<ValueInfo> inputs() const override { return declared; }
  std::vector<ValueInfo> outputs() const override { return {}; }
  std::vector<ValueInfo> values() const override { return {}; }
  NamedData run(const NamedData&, Observer* observer) override {
    for (const auto& [info, data] : shown) {
      if (observer != nullptr && observer->wants(info)) observer->on_value(info, data);
    }
    return results;
  }
  std::vector<double> time_runs(const NamedData&, size_t count, double) override {
    ++calls;
    return std::vector<double>(count, milliseconds);
  }
  std::vector<StepInfo> steps() const override { return kernels; }
  std::vector<Data> run_step(size_t step, const NamedData&) override { return {alone.at(step)}; }
  PlanInfo plan() override { return planned; }

  std::vector<ValueInfo> declared;
  std::vector<std::pair<ValueInfo, Data>> shown;
  NamedData results;
  std::vector<StepInfo> kernels;
  std::vector<Data> alone;  // What each kernel gives.
  PlanInfo planned;
  double milliseconds = 1;
  size_t calls = 0;

 private:
  std::string name_;
};

}  // namespace unmoor::test
