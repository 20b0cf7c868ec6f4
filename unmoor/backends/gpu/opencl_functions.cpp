#include "unmoor/backends/gpu/opencl_functions.h"

#include <array>

#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

OpenCl open_library() {
  OpenCl cl;
  constexpr std::array names{"libOpenCL.so.1", "libOpenCL.so"};
  std::string reason;
  cl.library = Library::open(names, reason);
  if (cl.library == nullptr) {
    cl.problem = cat("libOpenCL.so.1 was not found: ", reason);
    return cl;
  }
  const auto find = [&cl](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(cl.library->symbol(symbol));
    if (function == nullptr && cl.problem.empty()) {
      cl.problem = cat(cl.library->path(), " has no ", symbol, ": it is older than OpenCL 1.2");
    }
  };
#define UNMOOR_FIND(function) find(cl.function, #function);
  UNMOOR_OPENCL_FUNCTIONS(UNMOOR_FIND)
#undef UNMOOR_FIND
  return cl;
}

struct Code {
  cl_int code;
  const char* label;
};

#define UNMOOR_CODE(label) Code{label, #label}
constexpr std::array codes{
    UNMOOR_CODE(CL_DEVICE_NOT_FOUND),
    UNMOOR_CODE(CL_DEVICE_NOT_AVAILABLE),
    UNMOOR_CODE(CL_COMPILER_NOT_AVAILABLE),
    UNMOOR_CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    UNMOOR_CODE(CL_OUT_OF_RESOURCES),
    UNMOOR_CODE(CL_OUT_OF_HOST_MEMORY),
    UNMOOR_CODE(CL_PROFILING_INFO_NOT_AVAILABLE),
    UNMOOR_CODE(CL_MEM_COPY_OVERLAP),
    UNMOOR_CODE(CL_BUILD_PROGRAM_FAILURE),
    UNMOOR_CODE(CL_MISALIGNED_SUB_BUFFER_OFFSET),
    UNMOOR_CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    UNMOOR_CODE(CL_COMPILE_PROGRAM_FAILURE),
    UNMOOR_CODE(CL_LINKER_NOT_AVAILABLE),
    UNMOOR_CODE(CL_LINK_PROGRAM_FAILURE),
    UNMOOR_CODE(CL_INVALID_VALUE),
    UNMOOR_CODE(CL_INVALID_DEVICE_TYPE),
    UNMOOR_CODE(CL_INVALID_PLATFORM),
    UNMOOR_CODE(CL_INVALID_DEVICE),
    UNMOOR_CODE(CL_INVALID_CONTEXT),
    UNMOOR_CODE(CL_INVALID_QUEUE_PROPERTIES),
    UNMOOR_CODE(CL_INVALID_COMMAND_QUEUE),
    UNMOOR_CODE(CL_INVALID_MEM_OBJECT),
    UNMOOR_CODE(CL_INVALID_BINARY),
    UNMOOR_CODE(CL_INVALID_BUILD_OPTIONS),
    UNMOOR_CODE(CL_INVALID_PROGRAM),
    UNMOOR_CODE(CL_INVALID_PROGRAM_EXECUTABLE),
    UNMOOR_CODE(CL_INVALID_KERNEL_NAME),
    UNMOOR_CODE(CL_INVALID_KERNEL),
    UNMOOR_CODE(CL_INVALID_ARG_INDEX),
    UNMOOR_CODE(CL_INVALID_ARG_VALUE),
    UNMOOR_CODE(CL_INVALID_ARG_SIZE),
    UNMOOR_CODE(CL_INVALID_KERNEL_ARGS),
    UNMOOR_CODE(CL_INVALID_WORK_GROUP_SIZE),
    UNMOOR_CODE(CL_INVALID_WORK_ITEM_SIZE),
    UNMOOR_CODE(CL_INVALID_GLOBAL_OFFSET),
    UNMOOR_CODE(CL_INVALID_EVENT_WAIT_LIST),
    UNMOOR_CODE(CL_INVALID_EVENT),
    UNMOOR_CODE(CL_INVALID_OPERATION),
    UNMOOR_CODE(CL_INVALID_BUFFER_SIZE),
    UNMOOR_CODE(CL_INVALID_GLOBAL_WORK_SIZE),
    Code{-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};
#undef UNMOOR_CODE

}  // namespace

const OpenCl& opencl() {
  static const OpenCl cl = open_library();
  return cl;
}

std::string opencl_error(cl_int code) {
  for (const auto& known : codes) {
    if (known.code == code) return cat(known.label, " (", code, ")");
  }
  return cat("error ", code);
}

}  // namespace unmoor::gpu
