#include <gtest/gtest.h>

#include "tests/unit/backend_cpu/check_case.h"
#include "tests/unit/backend_cpu/support.h"

namespace unmoor::test {
namespace {

TEST(CpuConformance, every_kernel_agrees_with_the_reference_on_every_case_it_takes) {
  Count count;
  for_each_target([&](const std::string& target) {
    for (const size_t threads : std::initializer_list<size_t>{1, 2}) {
      const auto device = open_cpu(threads);
      for (const auto& [name, kernels] : device->kernels().all()) {
        const Op* const op = all_ops().find(name);
        if (op == nullptr) continue;
        for (const Case& one : cases_of(*op, {DType::F32, DType::I64, DType::I32, DType::Bool})) {
          try {
            check_case(*device, *op, one, cat(target, ", threads ", threads), count);
          } catch (const std::exception& error) {
            ADD_FAILURE() << one.text << ", " << target << ": " << error.what();
          }
        }
      }
    }
  });
  EXPECT_GT(count.run, 100U);
  std::string kernels;
  for (const std::string& kernel : count.kernels) kernels += kernel + " ";
  RecordProperty("kernels", kernels);
}

}  // namespace
}  // namespace unmoor::test
