#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "unmoor/catalog/versions.h"
#include "unmoor/engines/engine.h"
#include "unmoor/hal/device.h"
#include "unmoor/workbench/machine_faults.h"
#include "unmoor/workbench/result.h"

namespace unmoor {

// Opens every device of a backend, runs an operator on it, waits for it and checks the result against the reference: the keys `devices`, `libraries` and `mapped`.
// Meant for a child process, since drivers crash. `host` is opened for what a device refuses.
nlohmann::json probe_backend(Backend& backend, const std::function<std::shared_ptr<Device>()>& host);

// A platform to look for.
struct PlatformToProbe {
  std::string name;
  std::string absent;  // Why it cannot be here; empty: ask `probe`.
};
// Text of a child that ran probe_backend, or how it ended.
struct ProbeAnswer {
  std::string json;
  std::string ended;
};
using ProbeInChild = std::function<ProbeAnswer(const std::string& platform)>;

struct DoctorResult {
  struct Found {
    std::string name;      // "opencl:0"; the backend alone if nothing is there.
    std::string backend;
    std::string state;     // ready, absent, broken
    std::string reason;
    std::string hardware;  // "AMD EPYC 7B13"
    double check_ms = 0;   // The checked run, when warm.
    std::map<std::string, std::string> versions = {};
    std::map<std::string, std::vector<std::string>> kernels = {};  // By operator, in the order in which they are asked; "*": for any operator.
  };
  struct Library {
    std::string name;
    std::vector<std::string> paths;  // Every copy on the loader's path.
    std::string used;                // The one that was opened, or that would be.
  };
  struct Collected {
    std::string created;  // ISO 8601, UTC; empty of this machine.
    std::string system;   // "Linux 6.1.0 x86_64, Debian GNU/Linux 12 (bookworm)"
  };
  std::vector<Found> devices;
  std::vector<Library> libraries;
  std::vector<std::string> mapped = {};    // Files of all shared libraries that were mapped while devices ran; for the lock.
  std::vector<FoundEngine> engines = {};  // Filled by who knows the user's Python: find_engines.
  std::vector<VersionPair> pairs = {};    // Those that do not fit first.
  std::vector<MachineFault> faults = {};  // The worst first.
  PythonFacts python = {};
  std::map<std::string, std::string> variables = {};  // Of the environment, those that decide which devices and libraries are used.
  Collected collected = {};

  // Adds what a machine's files say: libraries, Python, variables, pairs, and the faults of all of it, engines included.
  void judge(const Machine& machine);

  nlohmann::json to_json() const;
  std::string text() const;
  std::string kernels_text() const;  // Of every device that is ready.
};

// When and where a machine was collected.
DoctorResult::Collected collected_from(const Machine& machine);

DoctorResult doctor(const std::vector<PlatformToProbe>& platforms, const ProbeInChild& probe);

}  // namespace unmoor
