#include "unmoor/hal/kernel.h"

namespace unmoor {

std::span<const Kernel> KernelTable::find(std::string_view op) const {
  const auto found = kernels_.find(op);
  return found == kernels_.end() ? std::span<const Kernel>() : std::span<const Kernel>(found->second);
}

bool is_on(const std::string& key, const std::string& value) {
  if (value != "on" && value != "off") fail(ErrorKind::InvalidArgument, key, " is '", value, "', not on or off");
  return value == "on";
}

void Device::set_option(const std::string& key, const std::string& value) {
  if (key == "exact") return (void)is_on(key, value);
  fail(ErrorKind::InvalidArgument, "device ", info().id, " has no option '", key, "' (set to '", value, "')");
}

}  // namespace unmoor
