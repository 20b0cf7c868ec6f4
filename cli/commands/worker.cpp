#include <string_view>

#include "cli/command.h"
#include "cli/lab.h"
#include "unmoor/backends/gpu/compiler.h"
#include "unmoor/base/error.h"

namespace unmoor::cli {

int worker_main(int argc, char** argv) {
  const std::string_view what = argv[1];
  if (what == "--worker" && argc == 2) return serve_worker(open_for_worker);
  if (what == "--worker-compile" && argc == 2) return gpu::compile_worker();
  fail(ErrorKind::InvalidArgument, "'", what, "' is no worker of Unmoor");
}

}  // namespace unmoor::cli
