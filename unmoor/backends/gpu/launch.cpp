#include "unmoor/backends/gpu/launch.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "unmoor/backends/gpu/texts.h"
#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

size_t element_bytes_of(const TensorType& type) { return bytes_of(type.dtype, 1); }

int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

}  // namespace

GpuDevice& gpu_device(Device& device) {
  auto* const mine = dynamic_cast<GpuDevice*>(&device);
  if (mine == nullptr) fail(ErrorKind::Internal, "a GPU kernel was prepared for ", device.info().id);
  return *mine;
}

GpuStream& gpu_stream(Stream& stream) {
  auto* const mine = dynamic_cast<GpuStream*>(&stream);
  if (mine == nullptr) fail(ErrorKind::Internal, "a GPU kernel was run in another device's stream");
  return *mine;
}

Launch::Launch(std::string entry, std::string_view text, const std::vector<std::string>& defines) {
  source_.entry = std::move(entry);
  for (const auto& define : defines) source_.text += cat("#define ", define, "\n");
  source_.text += prelude();
  source_.text += text;
}

Launch& Launch::operand(Source source, size_t index, size_t element_bytes, int64_t first) {
  slots_.push_back({.source = source, .index = index, .element_bytes = element_bytes, .first = first});
  source_.signature += "ml";
  return *this;
}

Launch& Launch::input(const OpCall& call, size_t index) {
  return call.has(index) ? input_bytes(index, element_bytes_of(call.input(index))) : nothing();
}
Launch& Launch::output(const OpCall& call, size_t index) {
  return call.wants_output(index) ? output_bytes(index, element_bytes_of(call.output(index))) : nothing();
}
Launch& Launch::input_bytes(size_t index, size_t element_bytes) { return operand(Source::Input, index, element_bytes); }
Launch& Launch::output_bytes(size_t index, size_t element_bytes) { return operand(Source::Output, index, element_bytes); }
Launch& Launch::workspace(size_t element_bytes, size_t element_offset) {
  return operand(Source::Workspace, 0, element_bytes, static_cast<int64_t>(element_offset));
}
Launch& Launch::nothing() { return operand(Source::Nothing, 0, 1); }

Launch& Launch::constant(std::shared_ptr<Buffer> buffer) {
  constants_.push_back(std::move(buffer));
  return operand(Source::Constant, constants_.size() - 1, 1);
}

Launch& Launch::faults() {
  slots_.push_back({.source = Source::Faults});
  source_.signature += 'm';
  return *this;
}

template <class T>
Launch& Launch::number(char letter, T value) {
  Slot slot;
  slot.number.size = sizeof value;
  std::memcpy(slot.number.bytes.data(), &value, sizeof value);
  slots_.push_back(slot);
  source_.signature += letter;
  return *this;
}

Launch& Launch::integer(int64_t value) {
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    fail(ErrorKind::Internal, "argument ", value, " of kernel ", source_.entry, " does not fit into 32 bits");
  }
  return number('i', static_cast<int32_t>(value));
}

Launch& Launch::integers(const std::vector<int64_t>& values) {
  for (const auto value : values) integer(value);
  return *this;
}

Launch& Launch::real(double value) { return number('f', static_cast<float>(value)); }

Launch& Launch::groups(int64_t x, int64_t y, int64_t z) {
  for (const auto count : {x, y, z}) {
    if (count < 0 || count > most_groups) fail(ErrorKind::Internal, "kernel ", source_.entry, " wants ", count, " work-groups along an axis");
  }
  groups_ = {static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(z)};
  return *this;
}

Launch& Launch::rows(int64_t count) {
  const auto x = std::min<int64_t>(count, most_groups);
  return groups(x, x == 0 ? 0 : divided_up(count, x));
}

Launch& Launch::elements(int64_t count) { return rows(divided_up(count, group_size)); }

Launch& Launch::ready(GpuDevice& device) {
  if (!is_empty()) kernel_ = device.compiler().kernel(source_);
  return *this;
}

void Launch::bind(const Slot& slot, GpuStream& stream, const KernelArgs& arguments, std::vector<Argument>& bound) const {
  if (slot.source == Source::Number) {
    bound.push_back(slot.number);
    return;
  }
  Argument memory{.is_memory = true};
  Operand place;
  switch (slot.source) {
    case Source::Input: place = arguments.inputs[slot.index]; break;
    case Source::Output: place = arguments.outputs[slot.index]; break;
    case Source::Workspace: place = arguments.workspace; break;
    case Source::Constant: place.buffer = constants_[slot.index].get(); break;
    case Source::Faults: memory.memory = stream.fault_memory(); break;
    case Source::Number:
    case Source::Nothing: break;
  }
  if (place.buffer != nullptr) memory.memory = stream.memory_of(*place.buffer);
  bound.push_back(memory);
  if (slot.source == Source::Faults) return;
  const int64_t at = static_cast<int64_t>(place.offset / slot.element_bytes) + slot.first;
  Argument offset{.size = sizeof at};
  std::memcpy(offset.bytes.data(), &at, sizeof at);
  bound.push_back(offset);
}

void Launch::run(GpuStream& stream, const KernelArgs& arguments) const {
  if (is_empty()) return;
  std::vector<Argument> bound;
  bound.reserve(slots_.size() * 2);
  for (const auto& slot : slots_) bind(slot, stream, arguments, bound);
  stream.launch(*kernel_, groups_, bound);
}

bool Launch::uses_input(size_t index) const {
  return std::ranges::any_of(slots_, [index](const Slot& slot) { return slot.source == Source::Input && slot.index == index; });
}

Support rows_fit(int64_t count) {
  constexpr int64_t most = int64_t{most_groups} * most_groups;
  return count <= most ? yes() : no(Reason::Size, count, " rows, more than ", most);
}

Prepared run_in_order(const OpCall& call, GpuDevice& device, std::vector<Launch> launches, size_t workspace_bytes) {
  std::erase_if(launches, [](const Launch& launch) { return launch.is_empty(); });
  for (auto& launch : launches) launch.ready(device);
  Prepared prepared;
  prepared.workspace_bytes = workspace_bytes;
  for (size_t i = 0; i < call.input_count(); ++i) {
    prepared.unused_inputs.push_back(std::ranges::none_of(launches, [i](const Launch& launch) { return launch.uses_input(i); }));
  }
  prepared.run = [&device, launches = std::move(launches)](Stream& stream, const KernelArgs& arguments) {
    for (const auto& launch : launches) {
      if (!launch.kernel().is_loaded()) device.compiler().compile_missing();
      launch.run(gpu_stream(stream), arguments);
    }
  };
  return prepared;
}

}  // namespace unmoor::gpu
