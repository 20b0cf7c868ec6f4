#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace unmoor {

// One thing that decided what ran on a machine, and with which numbers. Its name is the same on every machine.
struct LockComponent {
  std::string name;     // "unmoor", "kernel", "device opencl:0", "library libOpenCL.so", "engine ort", "package numpy"
  std::string version;  // As its maker writes it; empty if it has none.
  std::string path;     // The file or, of a Python package, the folder that holds it; empty if it is neither. Not compared: machines
                        // may keep files where they like.
  std::string sha256;   // Of the file, or of a Python package's list of files with their hashes; empty if there is none.
  std::string package;  // Debian's package and version that bring the file, "libpocl2=3.1-3"; empty if there is none.
};

// What a machine was made of when something ran there. A value; any thread.
struct Lock {
  std::string created;  // ISO 8601, UTC.
  std::vector<LockComponent> components;
};

// {"lock": 1, "created", "components"[]}.
nlohmann::json lock_json(const Lock& lock);
// The lock's Python packages, each to the patch version, for `pip install -r`.
std::string requirements_text(const Lock& lock);
// The file beside a lock that holds them.
std::string requirements_path(const std::string& lock_path);
// Writes both files, each as a whole or not at all. Fails with Io, and with InvalidArgument where a requirements.txt lies beside
// the lock that no lock wrote: somebody's own file is not written over.
void write_lock(const std::string& path, const Lock& lock);
// Fails as write_lock would at once, before a lock is made, which takes seconds.
void check_lock_path(const std::string& path);
// Fails with Io on a file that cannot be read, with InvalidModel on what is no lock, saying where.
Lock read_lock(const std::string& path);

// One component that is not here as it was there.
struct LockDifference {
  std::string name;
  std::string severity;  // high: other results, or nothing runs; medium: results may differ; low: for the record.
  std::string locked;    // Version in the lock; empty if the lock has no such component.
  std::string here;      // Version here; empty if it is not here.
  std::string detail;    // What that means; empty if the versions say all.
  std::string command;   // What would mend it, safe to copy into a shell; empty if no command can.
};
// What differs, the worst first. `absent`: by component, why it is not here, where that is known.
std::vector<LockDifference> compare_locks(const Lock& locked, const Lock& here, const std::map<std::string, std::string>& absent);

nlohmann::json differences_json(const std::vector<LockDifference>& differences);
std::string differences_text(const std::vector<LockDifference>& differences);

}  // namespace unmoor
