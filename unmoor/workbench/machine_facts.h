#pragma once

#include <map>
#include <string>
#include <vector>

#include "unmoor/workbench/doctor.h"
#include "unmoor/workbench/lock.h"

namespace unmoor {

// The files of shared libraries that this process has mapped, `lib*.so*` alone: what a driver compiled for itself is no library.
// Sorted. Empty where the system does not tell.
std::vector<std::string> mapped_libraries();

// This machine as a lock: Unmoor, system, kernel, processor and its instruction sets, the devices that doctor found ready with
// their drivers, the libraries that were mapped when they ran, the engines that are ready, their Python and its packages.
// `version` is Unmoor's. Hashes every file: seconds where drivers are large. Fails with Device if an engine is ready but its
// Python does not list its packages.
Lock lock_of_machine(const DoctorResult& found, const std::string& version);

// The versions of drivers, runtimes, compilers, processors and Python packages of this machine that the catalogue has rules for.
// What is not here, or cannot be read, gives none. Runs the vendors' tools where their drivers are, and `python`. Tests set
// UNMOOR_MACHINE to a folder that is read in place of /, where outputs/TOOL holds what a tool would print and outputs/python what
// machine_facts.py would; nothing runs then.
std::vector<VersionFact> version_facts(const std::string& python);

// What a command prints, at most 16 MiB. `end` says how it failed, and is empty if it did not; a command that cannot be started
// fails so too. Given up after `patience_s` seconds of silence.
std::string output_of(const std::vector<std::string>& command, const std::vector<std::string>& environment, double patience_s,
                      std::string& end);
// {"python", "path", "packages"[] {"name", "version", "path", "sha256"}} of an interpreter. Fails with Device.
nlohmann::json python_facts(const std::string& python);

// By component of a lock: why doctor did not find it ready here.
std::map<std::string, std::string> absent_reasons(const DoctorResult& found, const Lock& locked);

}  // namespace unmoor
