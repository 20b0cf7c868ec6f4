#pragma once

#include <string>
#include <vector>

#include "unmoor/catalog/versions.h"
#include "unmoor/engines/engine.h"
#include "unmoor/workbench/machine.h"
#include "unmoor/workbench/machine_facts.h"

namespace unmoor {

// Something that keeps a machine from working, or makes it work by luck.
struct MachineFault {
  std::string text;      // What is wrong, with what was found and what was wanted.
  std::string remedy;    // What would help.
  std::string severity;  // high: something does not work; medium: it may.
  std::string source;    // Who says so; empty where the machine itself shows it.
};

// What a machine's parts say of each other, from the bus up: device, kernel module, device node, permission, driver's library and
// what that lacks, firmware, the vendor's own tool; then versions, Python packages and engines. The first fault of a vendor hides
// those that follow from it. A vendor whose software is not here has none: absence is no fault. The worst come first.
std::vector<MachineFault> machine_faults(const Machine& machine, const std::vector<VersionPair>& pairs,
                                         const std::vector<LibraryCopies>& libraries, const PythonFacts& python,
                                         const std::vector<FoundEngine>& engines);

// The parts of it, each in a file of its own.
std::vector<MachineFault> vendor_faults(const Machine& machine, const std::vector<LibraryCopies>& libraries, const PythonFacts& python);
std::vector<MachineFault> library_faults(const Machine& machine, const std::vector<LibraryCopies>& libraries);
std::vector<MachineFault> python_faults(const Machine& machine, const PythonFacts& python, const std::vector<FoundEngine>& engines);

}  // namespace unmoor
