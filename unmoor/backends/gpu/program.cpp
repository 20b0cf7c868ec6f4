#include "unmoor/backends/gpu/program.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

// Prelude.h defines the names of types once in a program.
constexpr std::string_view kept_macro = "UNMOOR_TYPES";

struct Names {
  std::set<std::string> macros;
  std::set<std::string> functions;
};

// What "#define NAME" and "HELPER type NAME(" at the beginning of lines define.
Names names_of(const KernelSource& kernel) {
  Names names;
  names.functions.insert(kernel.entry);
  const std::string_view text = kernel.text;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("#define ")) {
      names.macros.emplace(line.substr(8, line.find_first_of(" (", 8) - 8));
    } else if (line.starts_with("HELPER ")) {
      const std::string_view before = line.substr(0, line.find('('));
      names.functions.emplace(before.substr(before.rfind(' ') + 1));
    }
  }
  names.macros.erase(std::string(kept_macro));
  return names;
}

std::string numbered(const std::string& label, size_t index) { return cat(label, "_in_", index); }

}  // namespace

std::string entry_in_program(std::span<const KernelSource> kernels, size_t index) {
  return kernels.size() == 1 ? kernels[0].entry : numbered(kernels[index].entry, index);
}

std::string program_text(std::span<const KernelSource> kernels) {
  if (kernels.size() == 1) return kernels[0].text;
  std::string text;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const Names names = names_of(kernels[i]);
    for (const auto& function : names.functions) text += cat("#define ", function, " ", numbered(function, i), "\n");
    text += cat(kernels[i].text, "\n");
    for (const auto* set : {&names.functions, &names.macros}) {
      for (const auto& name : *set) text += cat("#undef ", name, "\n");
    }
  }
  return text;
}

}  // namespace unmoor::gpu
