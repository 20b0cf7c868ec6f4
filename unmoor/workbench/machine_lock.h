#pragma once

#include <map>
#include <string>

#include "unmoor/workbench/doctor.h"
#include "unmoor/workbench/lock.h"

namespace unmoor {

// This machine as a lock: Unmoor, system, kernel, processor and its instruction sets, the devices that doctor found ready with
// their drivers, the libraries that were mapped when they ran, the engines that are ready, their Python and its packages.
// `version` is Unmoor's. Hashes every file: seconds where drivers are large. Fails with Device if an engine is ready but its
// Python does not list its packages.
Lock lock_of_machine(const DoctorResult& found, const std::string& version);

// By component of a lock: why doctor did not find it ready here.
std::map<std::string, std::string> absent_reasons(const DoctorResult& found, const Lock& locked);

}  // namespace unmoor
