#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <memory>
#include <string>

#include "unmoor/base/library.h"

namespace unmoor::gpu {

// The functions used, all of OpenCL 1.2. The header gives each its type, so a wrong call does not compile.
#define UNMOOR_OPENCL_FUNCTIONS(X)                                                                                        \
  X(clGetPlatformIDs)                                                                                                     \
  X(clGetPlatformInfo)                                                                                                    \
  X(clGetDeviceIDs)                                                                                                       \
  X(clGetDeviceInfo)                                                                                                      \
  X(clCreateContext)                                                                                                      \
  X(clReleaseContext)                                                                                                     \
  X(clCreateCommandQueue)                                                                                                 \
  X(clReleaseCommandQueue)                                                                                                \
  X(clCreateBuffer)                                                                                                       \
  X(clReleaseMemObject)                                                                                                   \
  X(clEnqueueWriteBuffer)                                                                                                 \
  X(clEnqueueReadBuffer)                                                                                                  \
  X(clEnqueueCopyBuffer)                                                                                                  \
  X(clEnqueueFillBuffer)                                                                                                  \
  X(clEnqueueMarkerWithWaitList)                                                                                          \
  X(clEnqueueBarrierWithWaitList)                                                                                         \
  X(clEnqueueNDRangeKernel)                                                                                               \
  X(clFinish)                                                                                                             \
  X(clFlush)                                                                                                              \
  X(clWaitForEvents)                                                                                                      \
  X(clGetEventProfilingInfo)                                                                                              \
  X(clReleaseEvent)                                                                                                       \
  X(clCreateProgramWithSource)                                                                                            \
  X(clCreateProgramWithBinary)                                                                                            \
  X(clBuildProgram)                                                                                                       \
  X(clGetProgramBuildInfo)                                                                                                \
  X(clGetProgramInfo)                                                                                                     \
  X(clReleaseProgram)                                                                                                     \
  X(clCreateKernel)                                                                                                       \
  X(clSetKernelArg)                                                                                                       \
  X(clReleaseKernel)

// libOpenCL, opened once at first use and never closed. Immutable.
struct OpenCl {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name cannot be declared in parentheses.
#define UNMOOR_DECLARE(function) decltype(&::function) function = nullptr;
  UNMOOR_OPENCL_FUNCTIONS(UNMOOR_DECLARE)
#undef UNMOOR_DECLARE
  std::unique_ptr<Library> library;
  std::string problem;  // Why it cannot be used; empty if it can.
};

const OpenCl& opencl();

// "CL_INVALID_VALUE (-30)".
std::string opencl_error(cl_int code);

}  // namespace unmoor::gpu
