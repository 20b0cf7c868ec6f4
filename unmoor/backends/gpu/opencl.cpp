#include <utility>

#include "unmoor/backends/gpu/driver.h"
#include "unmoor/backends/gpu/opencl_devices.h"
#include "unmoor/backends/gpu/program.h"
#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

template <class Handle, class Id>
Handle handle(Id id) {
  return static_cast<Handle>(reinterpret_cast<uintptr_t>(id));
}
cl_mem of(Memory memory) { return reinterpret_cast<cl_mem>(memory); }
cl_command_queue of(Queue queue) { return reinterpret_cast<cl_command_queue>(queue); }
cl_event of(Mark mark) { return reinterpret_cast<cl_event>(mark); }
cl_program of(Module module) { return reinterpret_cast<cl_program>(module); }
cl_kernel of(Function function) { return reinterpret_cast<cl_kernel>(function); }

void check(cl_int code, const char* function) {
  if (code == CL_SUCCESS) return;
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY || code == CL_OUT_OF_RESOURCES;
  fail(memory ? ErrorKind::OutOfMemory : ErrorKind::Device, function, " gives ", opencl_error(code));
}

class OpenClDriver final : public Driver {
 public:
  explicit OpenClDriver(OpenClDevice device) : device_(std::move(device)) {
    cl_int code = CL_SUCCESS;
    context_ = cl_.clCreateContext(nullptr, 1, &device_.id, nullptr, nullptr, &code);
    check(code, "clCreateContext");
  }
  ~OpenClDriver() override { cl_.clReleaseContext(context_); }
  OpenClDriver(const OpenClDriver&) = delete;
  OpenClDriver& operator=(const OpenClDriver&) = delete;

  const DeviceInfo& info() const override { return device_.info; }
  Abilities abilities() const override { return {.float64 = device_.float64, .largest_allocation = device_.largest_allocation}; }
  std::string fingerprint() const override {
    const auto& versions = device_.info.versions;
    return cat("opencl\n", versions.at("platform"), "\n", device_.info.name, "\n", versions.at("opencl"), "\n", versions.at("driver"));
  }

  Memory allocate(size_t bytes) override {
    if (bytes > device_.largest_allocation) {
      fail(ErrorKind::OutOfMemory, device_.info.id, " cannot allocate ", bytes, " bytes at once; its limit is ",
           device_.largest_allocation);
    }
    cl_int code = CL_SUCCESS;
    const auto memory = cl_.clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &code);
    if (code != CL_SUCCESS) {
      fail(ErrorKind::OutOfMemory, device_.info.id, " cannot allocate ", bytes, " bytes: clCreateBuffer gives ", opencl_error(code));
    }
    return handle<Memory>(memory);
  }
  void release(Memory memory) noexcept override { cl_.clReleaseMemObject(of(memory)); }

  Queue make_queue() override {
    cl_int code = CL_SUCCESS;
    const auto queue = cl_.clCreateCommandQueue(context_, device_.id, CL_QUEUE_PROFILING_ENABLE, &code);
    check(code, "clCreateCommandQueue");
    return handle<Queue>(queue);
  }
  void release(Queue queue) noexcept override { cl_.clReleaseCommandQueue(of(queue)); }

  void write(Queue queue, Memory to, size_t offset, std::span<const std::byte> from) override {
    check(cl_.clEnqueueWriteBuffer(of(queue), of(to), CL_FALSE, offset, from.size(), from.data(), 0, nullptr, nullptr),
          "clEnqueueWriteBuffer");
  }
  void read(Queue queue, std::span<std::byte> to, Memory from, size_t offset) override {
    check(cl_.clEnqueueReadBuffer(of(queue), of(from), CL_FALSE, offset, to.size(), to.data(), 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
  }
  void copy(Queue queue, Memory to, size_t to_offset, Memory from, size_t from_offset, size_t bytes) override {
    check(cl_.clEnqueueCopyBuffer(of(queue), of(from), of(to), from_offset, to_offset, bytes, 0, nullptr, nullptr),
          "clEnqueueCopyBuffer");
  }
  void fill_zero(Queue queue, Memory to, size_t bytes) override {
    constexpr uint32_t zero = 0;
    check(cl_.clEnqueueFillBuffer(of(queue), of(to), &zero, sizeof zero, 0, bytes, 0, nullptr, nullptr), "clEnqueueFillBuffer");
  }
  void finish(Queue queue) override { check(cl_.clFinish(of(queue)), "clFinish"); }

  Mark record(Queue queue) override {
    cl_event event = nullptr;
    check(cl_.clEnqueueMarkerWithWaitList(of(queue), 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
    cl_.clFlush(of(queue));
    return handle<Mark>(event);
  }
  void release(Mark mark) noexcept override { cl_.clReleaseEvent(of(mark)); }
  void wait(Mark mark) override {
    const auto event = of(mark);
    check(cl_.clWaitForEvents(1, &event), "clWaitForEvents");
  }
  void wait(Queue queue, Mark mark) override {
    const auto event = of(mark);
    check(cl_.clEnqueueBarrierWithWaitList(of(queue), 1, &event, nullptr), "clEnqueueBarrierWithWaitList");
  }
  double milliseconds(Mark from, Mark to) override {
    return (static_cast<double>(end_of(to)) - static_cast<double>(end_of(from))) * 1e-6;
  }

  std::vector<std::byte> compile(std::span<const KernelSource> kernels) override;
  Module load(std::span<const std::byte> binary) override;
  void release(Module module) noexcept override { cl_.clReleaseProgram(of(module)); }
  Function function(Module module, const std::string& entry) override {
    cl_int code = CL_SUCCESS;
    const auto kernel = cl_.clCreateKernel(of(module), entry.c_str(), &code);
    check(code, "clCreateKernel");
    return handle<Function>(kernel);
  }
  void release(Function function) noexcept override { cl_.clReleaseKernel(of(function)); }
  void launch(Queue queue, Function function, std::array<uint32_t, 3> groups, std::span<const Argument> arguments) override;

 private:
  cl_ulong end_of(Mark mark) {
    cl_ulong time = 0;
    check(cl_.clGetEventProfilingInfo(of(mark), CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr), "clGetEventProfilingInfo");
    return time;
  }
  void build(cl_program program, const std::string& options);
  void launch_once(Module module, const std::string& entry, const std::string& signature);
  std::vector<std::byte> binary_of(cl_program program);

  const OpenCl& cl_ = opencl();
  OpenClDevice device_;
  cl_context context_ = nullptr;
};

void OpenClDriver::build(cl_program program, const std::string& options) {
  const cl_int code = cl_.clBuildProgram(program, 1, &device_.id, options.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return;
  size_t size = 0;
  cl_.clGetProgramBuildInfo(program, device_.id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size > 0) cl_.clGetProgramBuildInfo(program, device_.id, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  fail(ErrorKind::Device, "clBuildProgram gives ", opencl_error(code), ": ", log.c_str());
}

std::vector<std::byte> OpenClDriver::compile(std::span<const KernelSource> kernels) {
  const auto text = program_text(kernels);
  const char* data = text.data();
  const size_t size = text.size();
  cl_int code = CL_SUCCESS;
  const auto program = cl_.clCreateProgramWithSource(context_, 1, &data, &size, &code);
  check(code, "clCreateProgramWithSource");
  const std::shared_ptr<void> owner(nullptr, [&](void*) { cl_.clReleaseProgram(program); });
  build(program, "-cl-std=CL1.2");
  for (size_t i = 0; i < kernels.size(); ++i) launch_once(handle<Module>(program), entry_in_program(kernels, i), kernels[i].signature);
  return binary_of(program);
}

void OpenClDriver::launch_once(Module module, const std::string& entry, const std::string& signature) {
  const Memory scratch = allocate(size_t{64} * 1024);
  const Queue queue = make_queue();
  const Function kernel = function(module, entry);
  const std::shared_ptr<void> owner(nullptr, [&](void*) {
    release(kernel);
    release(queue);
    release(scratch);
  });
  std::vector<Argument> arguments;
  for (const char letter : signature) {
    Argument argument;
    argument.is_memory = letter == 'm';
    argument.memory = argument.is_memory ? scratch : Memory{};
    argument.size = letter == 'l' ? 8 : 4;
    arguments.push_back(argument);
  }
  launch(queue, kernel, {1, 1, 1}, arguments);
  finish(queue);
}

std::vector<std::byte> OpenClDriver::binary_of(cl_program program) {
  size_t size = 0;
  check(cl_.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr), "clGetProgramInfo");
  std::vector<std::byte> binary(size);
  auto* data = reinterpret_cast<unsigned char*>(binary.data());
  check(cl_.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, nullptr), "clGetProgramInfo");
  if (binary.empty()) fail(ErrorKind::Device, device_.info.name, " gives an empty program binary");
  return binary;
}

Module OpenClDriver::load(std::span<const std::byte> binary) {
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int status = CL_SUCCESS;
  cl_int code = CL_SUCCESS;
  const auto program = cl_.clCreateProgramWithBinary(context_, 1, &device_.id, &size, &data, &status, &code);
  check(code, "clCreateProgramWithBinary");
  try {
    check(status, "clCreateProgramWithBinary");
    build(program, "");
  } catch (...) {
    cl_.clReleaseProgram(program);
    throw;
  }
  return handle<Module>(program);
}

void OpenClDriver::launch(Queue queue, Function function, std::array<uint32_t, 3> groups, std::span<const Argument> arguments) {
  const auto kernel = of(function);
  for (cl_uint i = 0; i < arguments.size(); ++i) {
    const auto& argument = arguments[i];
    const auto memory = of(argument.memory);
    check(argument.is_memory ? cl_.clSetKernelArg(kernel, i, sizeof(cl_mem), memory == nullptr ? nullptr : &memory)
                             : cl_.clSetKernelArg(kernel, i, argument.size, argument.bytes.data()),
          "clSetKernelArg");
  }
  const std::array<size_t, 3> global{size_t{groups[0]} * group_size, groups[1], groups[2]};
  const std::array<size_t, 3> local{group_size, 1, 1};
  check(cl_.clEnqueueNDRangeKernel(of(queue), kernel, 3, nullptr, global.data(), local.data(), 0, nullptr, nullptr),
        "clEnqueueNDRangeKernel");
}

Availability probe() {
  const auto devices = find_opencl_devices();
  Availability result;
  if (opencl().library != nullptr) result.libraries.push_back(opencl().library->path());
  for (const auto& device : devices.found) result.devices.push_back(device.info);
  if (result.devices.empty()) result.reason = devices.reason;
  return result;
}

std::unique_ptr<Driver> open(size_t index) {
  auto devices = find_opencl_devices();
  if (index >= devices.found.size()) {
    if (devices.found.empty()) fail(ErrorKind::Device, "there is no OpenCL device: ", devices.reason);
    fail(ErrorKind::Device, "there is no opencl:", index, "; there are ", devices.found.size(), " OpenCL devices",
         devices.reason.empty() ? "" : ": ", devices.reason);
  }
  return std::make_unique<OpenClDriver>(std::move(devices.found[index]));
}

}  // namespace

const Vendor& opencl_vendor() {
  static const Vendor vendor{.name = "opencl", .probe = probe, .open = open};
  return vendor;
}

const Vendor* vendor_named(const std::string& name) { return name == "opencl" ? &opencl_vendor() : nullptr; }

}  // namespace unmoor::gpu
