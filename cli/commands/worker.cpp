#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/backends/gpu/compiler.h"
#include "unmoor/base/child.h"
#include "unmoor/base/error.h"
#include "unmoor/workbench/conformance.h"
#include "unmoor/workbench/doctor.h"

namespace unmoor::cli {
namespace {

std::shared_ptr<Device> open_cpu() { return make_backend("cpu")->open(0); }

// Writes one JSON text to what was standard output; drivers that print go to standard error.
int answer_with(const std::function<nlohmann::json()>& make) {
  const int output = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  const std::string text = make().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t written = ::write(output, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Status::internal;
    at += static_cast<size_t>(written);
  }
  return Status::fine;
}

}  // namespace

int worker_main(int argc, char** argv) {
  die_with_parent();
  const std::string_view what = argv[1];
  if (what == "--worker" && argc == 2) return serve_worker(open_for_worker);
  if (what == "--worker-compile" && argc == 2) return gpu::compile_worker();
  if (what == "--worker-probe" && argc == 3) {
    return answer_with([&] { return probe_backend(*make_backend(argv[2]), open_cpu); });
  }
  const auto open = [&] { return open_devices(parse_device(argv[2]), parse_settings(argv + 3, argc - 3), {}); };
  if (what == "--worker-cases" && argc >= 3) return serve_cases(open);
  if (what == "--worker-placements" && argc >= 3) return serve_placements(open);
  if (what == "--worker-onnx-tests" && argc >= 3) return serve_onnx_tests(open);
  fail(ErrorKind::InvalidArgument, "'", what, "' is no worker of Unmoor");
}

}  // namespace unmoor::cli
