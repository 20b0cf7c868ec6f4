#include "unmoor/workbench/machine_faults.h"

#include <algorithm>

#include "unmoor/base/demangle.h"
#include "unmoor/base/error.h"
#include "unmoor/engines/failure.h"

namespace unmoor {
namespace {

void append(std::vector<MachineFault>& list, const std::vector<MachineFault>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

std::vector<MachineFault> pair_faults(const std::vector<VersionPair>& pairs) {
  std::vector<MachineFault> found;
  for (const VersionPair& pair : pairs) {
    if (pair.verdict == "does not") found.push_back({cat(pair.a, " does not fit ", pair.b), pair.would, "high", pair.source});
  }
  return found;
}

// Variables that hide every device of a vendor from programs.
std::vector<MachineFault> variable_faults(const Machine& machine) {
  std::vector<MachineFault> found;
  for (const char* const name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES",
                                 "MLU_VISIBLE_DEVICES", "MUSA_VISIBLE_DEVICES"}) {
    const std::string value = machine.variable(name);
    if (!machine.has_variable(name) || (!value.empty() && !value.starts_with("-"))) continue;
    found.push_back({cat(name, " is '", value, "', which hides every device from programs"), cat("unset ", name), "medium", ""});
  }
  return found;
}

const char* abi_words(bool is_new) { return is_new ? "the new one (_GLIBCXX_USE_CXX11_ABI=1)" : "the old one (_GLIBCXX_USE_CXX11_ABI=0)"; }

const PythonFacts::Extension* extension_named(const PythonFacts& python, std::string_view name) {
  const auto found = std::ranges::find(python.extensions, name, &PythonFacts::Extension::name);
  return found == python.extensions.end() ? nullptr : &*found;
}

// The last line that a failed import printed: "ImportError: libx.so.1: cannot open shared object file".
std::string last_line(const std::string& said) {
  std::string last;
  for (size_t at = 0; at < said.size();) {
    const size_t end = std::min(said.find('\n', at), said.size());
    if (said.find_first_not_of(" \t\r", at) < end) last = said.substr(at, end - at);
    at = end + 1;
  }
  return last;
}

MachineFault load_fault(const std::string& what, const std::string& why) {
  const std::string remedy = read_failure(why).remedy;
  const bool symbol = why.find("undefined symbol") != std::string::npos;
  return {cat(what, " does not load: ", why),
          !remedy.empty() ? remedy
          : symbol        ? "it was built for another version of the library that should have the symbol: install the pair that its maker names"
                          : "install it anew, of the version that fits the rest",
          "high", ""};
}

}  // namespace

std::vector<MachineFault> python_faults(const Machine& machine, const PythonFacts& python, const std::vector<FoundEngine>& engines) {
  std::vector<MachineFault> found;
  const PythonFacts::Extension* const torch = extension_named(python, "torch");
  for (const PythonFacts::Extension& each : python.extensions) {
    if (torch == nullptr || each.new_abi == torch->new_abi) continue;
    found.push_back({cat(each.name, " ", each.version, " was built with another C++ ABI than torch ", torch->version, ": it with ",
                         abi_words(each.new_abi), ", torch with ", abi_words(torch->new_abi), ", so symbols with std::string do not meet"),
                     cat("install the build of ", each.name, " for torch ", torch->version, " with cxx11abi", torch->new_abi ? "TRUE" : "FALSE",
                         ", or build it from source with -D_GLIBCXX_USE_CXX11_ABI=", torch->new_abi ? "1" : "0"),
                     "high", ""});
  }
  for (const char* const name : {"torch-npu", "torch-mlu", "torch-musa", "intel-extension-for-pytorch"}) {
    const std::string& said = machine.failure(cat("import-", name));
    const PythonFacts::Extension* const built = extension_named(python, name);
    const bool told = torch != nullptr && built != nullptr && built->new_abi != torch->new_abi;
    if (!said.empty() && !told) found.push_back(load_fault(cat("the plug-in ", name), demangled(last_line(said))));
  }
  for (const FoundEngine& engine : engines) {
    const bool told = engine.name == "torch" && !found.empty();  // It loads its plug-ins by itself.
    if (engine.state == "broken" && !told) found.push_back(load_fault(cat("the engine ", engine.name), engine.reason));
  }
  return found;
}

std::vector<MachineFault> machine_faults(const Machine& machine, const std::vector<VersionPair>& pairs,
                                         const std::vector<LibraryCopies>& libraries, const PythonFacts& python,
                                         const std::vector<FoundEngine>& engines) {
  std::vector<MachineFault> found = vendor_faults(machine, libraries, python);
  append(found, pair_faults(pairs));
  append(found, library_faults(machine, libraries));
  append(found, python_faults(machine, python, engines));
  append(found, variable_faults(machine));
  std::ranges::stable_partition(found, [](const MachineFault& fault) { return fault.severity == "high"; });
  return found;
}

}  // namespace unmoor
