#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "unmoor/catalog/versions.h"
#include "unmoor/engines/engine.h"
#include "unmoor/hal/device.h"
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
    std::vector<std::string> paths;
    std::string used;
  };
  std::vector<Found> devices;
  std::vector<Library> libraries;
  std::vector<std::string> mapped = {};    // Files of all shared libraries that were mapped while devices ran; for the lock.
  std::vector<VersionPair> pairs = {};     // Filled by who knows the user's Python, too: judge_versions, those that do not fit first.
  std::vector<FoundEngine> engines = {};  // Filled by who knows the user's Python: find_engines.

  nlohmann::json to_json() const;
  std::string text() const;
  std::string kernels_text() const;  // Of every device that is ready.
};

DoctorResult doctor(const std::vector<PlatformToProbe>& platforms, const ProbeInChild& probe);

}  // namespace unmoor
