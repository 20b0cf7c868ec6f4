#include <algorithm>
#include <array>
#include <sstream>

#include "unmoor/base/error.h"
#include "unmoor/workbench/machine_faults.h"

namespace unmoor {
namespace {

using Words = std::vector<std::string>;

// What a vendor's devices need on a machine. Names of kernel modules, nodes and files are those of the vendors' own installers and
// manuals; vendor identifiers are those of the PCI ID registry.
struct Vendor {
  std::string maker;
  std::string pci;
  Words modules;         // Kernel modules; an asterisk stands for anything.
  std::string module;    // The one to load.
  std::string node;      // What a program opens, up to the number: "/dev/nvidia".
  Words signs;           // Libraries and Python packages that mean somebody wants to use the devices.
  std::string library;   // The driver's library that programs open; empty if they bring it along.
  std::string library_remedy;
  std::string tool;
  std::string driver;    // How the driver is installed.
  std::string container; // How a container is given the devices.
  bool module_is_sign;   // Nobody has the module but for computing.
};

const std::vector<Vendor>& vendors() {
  static const std::vector<Vendor> all{
      {"NVIDIA", "0x10de", {"nvidia"}, "nvidia", "/dev/nvidia", {"libcuda.so.1", "libnvidia-ml.so.1", "nvidia-*", "torch+cu"}, "libcuda.so.1",
       "install the driver's user libraries (Debian: libcuda1), or give the container the driver with --gpus all", "nvidia-smi",
       "install NVIDIA's driver for this kernel", "run the container with --gpus all (NVIDIA Container Toolkit)", true},
      {"AMD", "0x1002", {"amdgpu"}, "amdgpu", "/dev/kfd", {"libamdhip64.so*", "libhsa-runtime64.so.1", "torch+rocm"}, "", "", "rocm-smi",
       "install the amdgpu driver (amdgpu-dkms of ROCm, or a newer kernel)",
       "run the container with --device /dev/kfd --device /dev/dri --group-add video --group-add render", false},
      {"Hygon", "0x1d94", {"hycu", "hydcu"}, "hycu", "/dev/kfd", {"libamdhip64.so*", "libhsa-runtime64.so.1"}, "", "", "hy-smi",
       "install the DCU driver (rock-*.run)", "run the container with --device /dev/kfd --device /dev/mkfd --device /dev/dri -v /opt/hyhal:/opt/hyhal",
       true},
      {"Ascend", "0x19e5", {"drv_*", "ascend*"}, "drv_davinci_intf", "/dev/davinci", {"libascendcl.so", "torch-npu"}, "libascendcl.so",
       "run: source /usr/local/Ascend/ascend-toolkit/set_env.sh", "npu-smi", "install the NPU driver and firmware (Ascend-hdk-*-npu-driver_*.run)",
       "run the container with --device /dev/davinci0 --device /dev/davinci_manager --device /dev/devmm_svm --device /dev/hisi_hdc "
       "-v /usr/local/Ascend/driver:/usr/local/Ascend/driver", true},
      {"Cambricon", "0xcabc", {"cambricon*"}, "cambricon-drv", "/dev/cambricon_dev", {"libcnrt.so*", "libcndrv.so*", "torch-mlu"}, "libcnrt.so*",
       "install CNToolkit and run: export LD_LIBRARY_PATH=/usr/local/neuware/lib64:$LD_LIBRARY_PATH", "cnmon", "install the MLU driver",
       "run the container with --device /dev/cambricon_dev0 --device /dev/cambricon_ctl -v /usr/bin/cnmon:/usr/bin/cnmon", true},
      {"Moore Threads", "0x1ed5", {"mtgpu"}, "mtgpu", "/dev/mtgpu.", {"libmusa.so*", "libmusart.so*", "torch-musa"}, "libmusa.so*",
       "install the MUSA driver and run: export LD_LIBRARY_PATH=/usr/local/musa/lib:$LD_LIBRARY_PATH", "mthreads-gmi",
       "install the MUSA driver (musa_*.deb)", "run the container with --runtime mthreads --env MTHREADS_VISIBLE_DEVICES=all", true},
      {"Intel", "0x8086", {"i915", "xe"}, "i915", "/dev/dri/renderD", {"libze_loader.so.1", "libsycl.so*", "torch+xpu"}, "libze_loader.so.1",
       "install the Level Zero loader (Debian: libze1) and intel-level-zero-gpu", "xpu-smi", "boot a kernel whose i915 or xe module knows this GPU",
       "run the container with --device /dev/dri --group-add render", false},
  };
  return all;
}

// "libcnrt.so*" matches libcnrt.so.5.
bool matches(std::string_view pattern, std::string_view text) {
  return pattern.ends_with('*') ? text.starts_with(pattern.substr(0, pattern.size() - 1)) : text == pattern;
}

Words words_of(const std::string& line) {
  std::istringstream text(line);
  Words words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

struct PciDevice {
  std::string address;
  std::string vendor;
  std::string chip;
  std::string driver;  // Empty if none holds it.
};

struct Node {
  std::string path;
  std::string access;  // r, w, rw or -
  std::string mode;
  std::string owner;
  std::string group;
  bool opens() const { return access == "rw"; }
};

std::vector<PciDevice> devices_of(const Machine& machine, const Vendor& vendor) {
  std::vector<PciDevice> found;
  for (const std::string& line : machine.lines("/outputs/pci")) {
    const Words words = words_of(line);
    if (words.size() >= 4 && words[1] == vendor.pci) found.push_back({words[0], words[1], words[2], words.size() > 4 ? words[4] : ""});
  }
  return found;
}

// Those of programs: the vendor's prefix and a number behind it, or the name as it is.
std::vector<Node> nodes_of(const Machine& machine, const Vendor& vendor) {
  std::vector<Node> found;
  for (const std::string& line : machine.lines("/outputs/nodes")) {
    const Words words = words_of(line);
    if (words.size() < 5 || !words[0].starts_with(vendor.node)) continue;
    const std::string number = words[0].substr(vendor.node.size());
    if (number.find_first_not_of("0123456789") == std::string::npos && number.empty() == (vendor.node == "/dev/kfd"))
      found.push_back({words[0], words[1], words[2], words[3], words[4]});
  }
  return found;
}

// What stands behind KEY= in a file of such lines.
std::string value_of(const Machine& machine, std::string_view file, std::string_view key) {
  for (const std::string& line : machine.lines(file)) {
    if (line.starts_with(key)) return line.substr(key.size(), line.find_last_not_of(" \r\t") + 1 - key.size());
  }
  return {};
}

// "[7.0.0,7.2.99],[8.0.0,8.9.9]" as ranges.
std::vector<VersionRange> ranges_of(const std::string& text) {
  std::vector<VersionRange> ranges;
  for (size_t at = text.find('['); at != std::string::npos; at = text.find('[', at + 1)) {
    const size_t comma = text.find(',', at);
    const size_t end = text.find(']', at);
    if (comma == std::string::npos || end == std::string::npos || comma > end) continue;
    ranges.emplace_back(text.substr(at + 1, comma - at - 1), text.substr(comma + 1, end - comma - 1));
  }
  return ranges;
}

// The first line of a tool's words that says something, behind that of how it ended.
std::string first_words(const std::string& said) {
  std::istringstream text(said);
  std::string end;
  std::getline(text, end);
  for (std::string line; std::getline(text, line);) {
    const size_t from = line.find_first_not_of(" \t\r-+=|*");
    if (from != std::string::npos) return line.substr(from);
  }
  return end;
}

class VendorCheck {
 public:
  VendorCheck(const Machine& machine, const std::vector<LibraryCopies>& libraries, const PythonFacts& python, const Vendor& vendor)
      : machine_(machine), libraries_(libraries), python_(python), vendor_(vendor), devices_(devices_of(machine, vendor)),
        nodes_(nodes_of(machine, vendor)) {}

  // The first that is wrong, from the bus up; none if nothing is, or if nobody wants to use the vendor's devices.
  std::vector<MachineFault> faults() const {
    if (!is_wanted()) return {};
    for (const auto check : {&VendorCheck::module_fault, &VendorCheck::device_fault, &VendorCheck::node_fault, &VendorCheck::permission_fault,
                             &VendorCheck::library_fault, &VendorCheck::cuda_fault, &VendorCheck::firmware_fault, &VendorCheck::tool_fault}) {
      const MachineFault fault = (this->*check)();
      if (!fault.text.empty()) return {fault};
    }
    return {};
  }

 private:
  static MachineFault fault(std::string text, std::string remedy) { return {std::move(text), std::move(remedy), "high", ""}; }

  bool has_package(const std::string& sign) const {
    const size_t plus = sign.find('+');
    return std::ranges::any_of(python_.packages, [&](const PythonFacts::Package& each) {
      if (plus == std::string::npos) return matches(sign, each.name);
      return each.name == sign.substr(0, plus) && each.version.find(sign.substr(plus)) != std::string::npos;
    });
  }

  const LibraryCopies* copies(const std::string& pattern) const {
    const auto found = std::ranges::find_if(libraries_, [&](const LibraryCopies& each) { return matches(pattern, each.name); });
    return found == libraries_.end() ? nullptr : &*found;
  }

  // Vendors share libraries and nodes (Hygon's devices have AMD's names): a device or a module says whose they are.
  bool is_wanted() const {
    const bool sign = std::ranges::any_of(vendor_.signs, [&](const std::string& each) { return copies(each) != nullptr || has_package(each); });
    return (sign && !devices_.empty()) || (is_loaded() && (sign || vendor_.module_is_sign));
  }

  bool is_loaded() const {
    const auto ours = [&](const std::string& name) {
      return std::ranges::any_of(vendor_.modules, [&](const std::string& module) { return matches(module, name); });
    };
    return std::ranges::any_of(machine_.lines("/outputs/modules"), ours) || std::ranges::any_of(devices_, ours, &PciDevice::driver) ||
           (vendor_.pci == "0x10de" && !machine_.text("/proc/driver/nvidia/version").empty());
  }

  std::string hardware() const {
    return devices_.empty() ? cat("the ", vendor_.maker, " device") : cat("the ", vendor_.maker, " device ", devices_[0].chip, " at ", devices_[0].address);
  }

  MachineFault module_fault() const {
    if (is_loaded() || devices_.empty() || !nodes_.empty()) return {};
    const std::string& holder = devices_[0].driver;
    if (holder.empty()) {
      return fault(cat(hardware(), " has no driver: the kernel module ", vendor_.module, " is not loaded"),
                   cat("sudo modprobe ", vendor_.module, "; if there is none, ", vendor_.driver));
    }
    return fault(cat(hardware(), " is held by the kernel module ", holder, ", not by ", vendor_.module),
                 cat(vendor_.driver, ", keep ", holder, " from it (echo 'blacklist ", holder, "' in a file of /etc/modprobe.d) and start anew"));
  }

  MachineFault device_fault() const {
    if (!devices_.empty() || !nodes_.empty()) return {};
    return fault(cat("the kernel module ", vendor_.module, " is loaded, and there is no ", vendor_.maker, " device on the PCI bus"),
                 cat("seat the card and power it; in a virtual machine, pass it through; in a container, ", vendor_.container));
  }

  // The file that the kernel looked for in vain, for this vendor's module.
  std::string missing_firmware() const {
    for (const std::string& line : machine_.lines("/outputs/firmware")) {
      constexpr std::string_view mark = "Direct firmware load for ";
      const size_t at = line.find(mark);
      if (at == std::string::npos) continue;
      const std::string file = line.substr(at + mark.size(), line.find(' ', at + mark.size()) - at - mark.size());
      const std::string folder = file.substr(0, file.find('/'));
      if (std::ranges::any_of(vendor_.modules, [&](const std::string& module) { return matches(module, folder); })) return file;
    }
    return {};
  }

  MachineFault node_fault() const {
    if (!nodes_.empty()) return {};
    if (const std::string file = missing_firmware(); !file.empty()) {
      return fault(cat(hardware(), " did not start: the kernel found no firmware ", file),
                   cat("install the firmware (Debian: firmware-", vendor_.maker == "AMD" ? "amd-graphics" : "misc-nonfree",
                       "; others: linux-firmware), run sudo update-initramfs -u and start anew"));
    }
    return fault(cat(hardware(), " has a driver, and there is no ", vendor_.node, vendor_.node == "/dev/kfd" ? "" : "N", " to open it by"),
                 cat(vendor_.container, "; outside of one, ", vendor_.driver));
  }

  MachineFault permission_fault() const {
    if (std::ranges::any_of(nodes_, &Node::opens)) return {};
    const Node& node = nodes_[0];
    const bool by_group = node.mode.size() > 5 && node.mode.substr(4, 2) == "rw" && node.group != "root";
    return fault(cat("this user may not open ", node.path, " (", node.mode, ", of ", node.owner, " and the group ", node.group, ")"),
                 by_group ? cat("sudo usermod -aG ", node.group, " \"$USER\", and log in anew; in a container, --group-add ", node.group)
                          : cat("let a udev rule give ", node.path, " to a group with mode 0660 and join it; for a try, sudo chmod 0666 ", node.path));
  }

  MachineFault library_fault() const {
    if (vendor_.library.empty()) return {};
    const LibraryCopies* const found = copies(vendor_.library);
    if (found != nullptr && !found->used.empty()) return {};
    const std::string where = found == nullptr ? "" : cat("; there is ", found->elsewhere.front(), ", where it does not look");
    return fault(cat("the loader finds no ", vendor_.library, where), vendor_.library_remedy);
  }

  // CUDA's driver comes in two parts, a module and a library, of one version.
  MachineFault cuda_fault() const {
    const LibraryCopies* const found = copies("libcuda.so.1");
    if (vendor_.pci != "0x10de" || found == nullptr || found->used.empty()) return {};
    if (found->used.find("/stubs/") != std::string::npos) {
      return fault(cat("the libcuda.so.1 that wins is ", found->used, ", a stub for linking that cannot run anything"),
                   "take that folder out of LD_LIBRARY_PATH (and out of /etc/ld.so.conf.d)");
    }
    const std::string module = version_after(machine_.text("/proc/driver/nvidia/version"), "Kernel Module");
    const std::string library = version_in_name(found->real_used());
    if (module.empty() || library.find('.') == std::string::npos || module == library) return {};
    const bool other = std::ranges::any_of(found->real, [&](const std::string& real) { return version_in_name(real) == module; });
    return fault(cat("the libcuda.so.1 that wins, ", found->used, ", is of driver ", library, "; the kernel module is of ", module),
                 other ? cat("another copy is of ", module, ": take the folder of ", found->used, " out of LD_LIBRARY_PATH")
                       : cat("start the machine anew, which loads the module of ", library, ", or install the libraries of ", module));
  }

  // The driver's own file lists the firmware that it takes.
  MachineFault firmware_fault() const {
    if (vendor_.pci != "0x19e5") return {};
    const std::string firmware = value_of(machine_, "/usr/local/Ascend/firmware/version.info", "Version=");
    const std::string driver = value_of(machine_, "/usr/local/Ascend/driver/version.info", "Version=");
    const std::string taken = value_of(machine_, "/usr/local/Ascend/driver/version.info", "compatible_version_fw=");
    const std::vector<VersionRange> ranges = ranges_of(taken);
    if (firmware.empty() || ranges.empty()) return {};
    if (std::ranges::any_of(ranges, [&](const VersionRange& range) { return in_range(firmware, range); })) return {};
    return {cat("ascend firmware ", firmware, " does not fit ascend driver ", driver, ", which takes ", taken),
            "install the firmware of the driver's release (Ascend-hdk-*-npu-firmware_*.run --full), the driver first, and start anew", "high",
            "/usr/local/Ascend/driver/version.info"};
  }

  MachineFault tool_fault() const {
    const std::string& said = machine_.failure(vendor_.tool);
    if (said.empty()) return {};
    return fault(cat(vendor_.tool, " fails: ", first_words(said)),
                 cat("start the machine anew, which loads the installed driver; if it stays so, ", vendor_.driver));
  }

  const Machine& machine_;
  const std::vector<LibraryCopies>& libraries_;
  const PythonFacts& python_;
  const Vendor& vendor_;
  std::vector<PciDevice> devices_;
  std::vector<Node> nodes_;
};

}  // namespace

std::vector<MachineFault> vendor_faults(const Machine& machine, const std::vector<LibraryCopies>& libraries, const PythonFacts& python) {
  std::vector<MachineFault> found;
  if (machine.text("/outputs/nodes").find("/dev/dxg ") != std::string::npos) return found;  // Windows' subsystem: its kernel has no such parts.
  for (const Vendor& vendor : vendors()) std::ranges::copy(VendorCheck(machine, libraries, python, vendor).faults(), std::back_inserter(found));
  return found;
}

}  // namespace unmoor
