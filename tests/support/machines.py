"""Made-up machines, as doctor's collector writes them down: one of each vendor without a fault, and what is changed in it for each fault."""
import json


def python(version="3.11.2", extensions=(), **packages):
    return {"outputs/interpreter": "python3\n", "outputs/python": json.dumps({
        "python": version, "path": "/usr/bin/python3",
        "packages": [{"name": name.replace("_", "-"), "version": each, "path": "/p", "sha256": ""} for name, each in packages.items()],
        "extensions": [{"name": name, "version": each, "abi": abi} for name, each, abi in extensions]})}


def machine(*parts, **outputs):
    files = {"outputs/collected": "unmoor-machine 1 2026-01-02T03:04:05Z\n", "outputs/uname": "Linux 6.1.0 x86_64\n",
             "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'}
    for part in parts:
        files.update(part)
    files.update({f"outputs/{name}": text for name, text in outputs.items()})
    return files


def kernel(driver):
    return {"proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Wed Oct 25\nGCC version: gcc version 12.2.0\n"}


def libraries(*lines):
    return "".join("\t".join(line) + "\n" for line in lines)


LIB = "/usr/lib/x86_64-linux-gnu"
CUDA = ("cache", f"{LIB}/libcuda.so.1", f"{LIB}/libcuda.so.535.104.05")


def nvidia(*changes, **outputs):
    return machine(kernel("535.104.05"), python(torch="2.6.0+cu126"), *changes, **{
        "modules": "nvidia_uvm\nnvidia\next4\n", "pci": "0000:01:00.0 0x10de 0x2684 0x030000 nvidia\n", "nvidia-smi": "8.9\n",
        "nodes": "/dev/nvidia0 rw crw-rw-rw- root root\n/dev/nvidiactl rw crw-rw-rw- root root\n", "libraries": libraries(CUDA), **outputs})


def amd(*changes, **outputs):
    return machine({"opt/rocm/.info/version": "6.4.0-47\n", "sys/class/kfd/kfd/topology/nodes/1/properties": "simd_count 240\ngfx_target_version 90010\n"},
                   python(torch="2.6.0+rocm6.2.4"), *changes, **{
        "modules": "amdgpu\n", "pci": "0000:c3:00.0 0x1002 0x740c 0x038000 amdgpu\n",
        "nodes": "/dev/kfd rw crw-rw---- root render\n/dev/dri/renderD128 rw crw-rw---- root render\n",
        "libraries": libraries(("cache", "/opt/rocm/lib/libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so.6.4.60400")), **outputs})


def hygon(*changes, **outputs):
    return machine(*changes, **{"modules": "hycu\n", "pci": "0000:33:00.0 0x1d94 0x6210 0x0b4000 hycu\n",
                                "nodes": "/dev/kfd rw crw-rw---- root video\n/dev/mkfd rw crw-rw---- root video\n",
                                "libraries": libraries(("path", "/opt/dtk/lib/libamdhip64.so.5", "/opt/dtk/lib/libamdhip64.so.5.2.24")), **outputs})


TOOLKIT = "/usr/local/Ascend/ascend-toolkit/latest/lib64/libascendcl.so"


def ascend(*changes, cann="8.2.RC1", driver="25.2.0", firmware="7.7.0.6.236", **outputs):
    return machine({"usr/local/Ascend/driver/version.info": f"Version={driver}\nascendhal_version=7.35.23\ncompatible_version_fw=[7.0.0,7.7.99]\n",
                    "usr/local/Ascend/firmware/version.info": f"Version={firmware}\nfirmware_version=1.0\n",
                    "usr/local/Ascend/ascend-toolkit/latest/x86_64-linux/ascend_toolkit_install.info":
                        f"package_name=Ascend-cann-toolkit\nversion={cann}\narch=x86_64\n"},
                   python(torch="2.6.0", torch_npu="2.6.0"), *changes, **{
        "modules": "drv_davinci_intf\ndrv_pcie_host\n", "pci": "0000:81:00.0 0x19e5 0xd802 0x120000 devdrv_device_driver\n",
        "nodes": "/dev/davinci0 rw crw-rw---- HwHiAiUser HwHiAiUser\n/dev/davinci_manager rw crw-rw---- HwHiAiUser HwHiAiUser\n",
        "libraries": libraries(("path", TOOLKIT, TOOLKIT)), **outputs})


def cambricon(*changes, **outputs):
    return machine(python(version="3.10.2", torch="2.4.0", torch_mlu="1.22.0"), *changes, **{
        "modules": "cambricon_drv\n", "pci": "0000:4f:00.0 0xcabc 0x0370 0x120000 cambricon-pci-drv\n",
        "nodes": "/dev/cambricon_dev0 rw crw-rw-rw- root root\n/dev/cambricon_ctl rw crw-rw-rw- root root\n",
        "libraries": libraries(("path", "/usr/local/neuware/lib64/libcnrt.so", "/usr/local/neuware/lib64/libcnrt.so.6.8.0")), **outputs})


def moore_threads(*changes, **outputs):
    return machine(python(version="3.10.2", torch="2.7.1", torch_musa="2.7.1"), *changes, **{
        "modules": "mtgpu\n", "pci": "0000:01:00.0 0x1ed5 0x0323 0x030000 mtgpu\n", "nodes": "/dev/mtgpu.0 rw crw-rw-rw- root root\n",
        "libraries": libraries(("path", "/usr/local/musa/lib/libmusa.so.4", "/usr/local/musa/lib/libmusa.so.4.2.0")), **outputs})


def intel(*changes, **outputs):
    return machine(*changes, **{"modules": "xe\n", "pci": "0000:03:00.0 0x8086 0x56a0 0x030000 xe\n",
                                "nodes": "/dev/dri/renderD128 rw crw-rw---- root render\n",
                                "libraries": libraries(("cache", f"{LIB}/libze_loader.so.1", f"{LIB}/libze_loader.so.1.21.1")), **outputs})


SOUND = {"nvidia": nvidia(), "amd": amd(), "hygon": hygon(), "ascend": ascend(), "cambricon": cambricon(), "moore threads": moore_threads(), "intel": intel(),
         "none": machine()}

CUDNN = ("cache", f"{LIB}/libcudnn.so.9", f"{LIB}/libcudnn.so.9.5.1")
OLD_CUDA = ("path", "/opt/old/libcuda.so.1", "/opt/old/libcuda.so.470.82.01")
STUB = "/usr/local/cuda/lib64/stubs/libcuda.so"

# Name: the machine, what is said first, and what would help.
FAULTS = {
    "a driver too old for the runtime": (
        nvidia(kernel("470.82.01"), libraries=libraries(("cache", f"{LIB}/libcuda.so.1", f"{LIB}/libcuda.so.470.82.01"))),
        "cuda runtime 12.6 does not fit nvidia driver 470.82.01", ("525.60.13 or newer", "nvidia-smi shows")),
    "a GPU newer than the wheel": (nvidia(python(torch="2.7.0+cu126"), **{"nvidia-smi": "12.0\n"}), "torch 2.7.0+cu126 does not fit nvidia gpu 12.0", ("9.0",)),
    "cuDNN of another major": (
        nvidia(python(onnxruntime_gpu="1.20.1", nvidia_cudnn_cu12="8.9.7.29", nvidia_cuda_runtime_cu12="12.6.77")),
        "onnxruntime-gpu 1.20.1 does not fit cudnn 8.9.7.29", ("cudnn 9",)),
    "the module is not loaded": (
        nvidia({"proc/driver/nvidia/version": ""}, modules="ext4\n", pci="0000:01:00.0 0x10de 0x2684 0x030000 \n", nodes="", **{"nvidia-smi": ""}),
        "the NVIDIA device 0x2684 at 0000:01:00.0 has no driver: the kernel module nvidia is not loaded", ("sudo modprobe nvidia",)),
    "another module holds the device": (
        nvidia({"proc/driver/nvidia/version": ""}, modules="nouveau\n", pci="0000:01:00.0 0x10de 0x2684 0x030000 nouveau\n", nodes="", **{"nvidia-smi": ""}),
        "the NVIDIA device 0x2684 at 0000:01:00.0 is held by the kernel module nouveau, not by nvidia", ("blacklist nouveau",)),
    "a container without the device": (
        nvidia(nodes="", **{"nvidia-smi": ""}), "the NVIDIA device 0x2684 at 0000:01:00.0 has a driver, and there is no /dev/nvidiaN to open it by", ("--gpus all",)),
    "no permission on NVIDIA's node": (
        nvidia(nodes="/dev/nvidia0 - crw-rw---- root video\n"), "this user may not open /dev/nvidia0 (crw-rw----, of root and the group video)",
        ("sudo usermod -aG video",)),
    "a library of another driver than the module's": (
        nvidia(libraries=libraries(OLD_CUDA, CUDA)), "the libcuda.so.1 that wins, /opt/old/libcuda.so.1, is of driver 470.82.01; the kernel module is of 535.104.05",
        ("take the folder of /opt/old/libcuda.so.1 out of LD_LIBRARY_PATH",)),
    "a stub that wins": (
        nvidia(libraries=libraries(("path", f"{STUB}.1", STUB), CUDA)), f"the libcuda.so.1 that wins is {STUB}.1, a stub for linking", ("LD_LIBRARY_PATH",)),
    "no library of the driver": (nvidia(libraries=""), "the loader finds no libcuda.so.1", ("libcuda1",)),
    "a tool that fails": (
        nvidia(**{"nvidia-smi.failed": "exit status 15\nUnable to determine the device handle for GPU0000:01:00.0: GPU is lost.  Reboot the system\n"}),
        "nvidia-smi fails: Unable to determine the device handle", ("start the machine anew",)),
    "two copies of a library": (
        nvidia(libraries=libraries(("path", "/opt/a/libcudnn.so.9", "/opt/a/libcudnn.so.9.1.0"), CUDA, CUDNN)),
        f"there are 2 copies of libcudnn.so.9 of different versions, and the first wins: /opt/a/libcudnn.so.9 (9.1.0), {LIB}/libcudnn.so.9 (9.5.1)",
        ("take the folders of the others out of LD_LIBRARY_PATH",)),
    "a missing symbol": (
        nvidia(libraries=libraries(CUDA, CUDNN), missing=f"{LIB}/libcudnn.so.9\tundefined symbol: _ZN5cudnn7backend6EngineC1ERKSs, version x\t({LIB}/libcudnn.so.9)\n"),
        f"{LIB}/libcudnn.so.9 needs the symbol cudnn::backend::Engine::Engine(std::string const&)", ("from one release",)),
    "an extension of another C++ ABI": (
        nvidia(python(torch="2.6.0+cu126", extensions=[("flash-attn", "2.7.4", "0"), ("torch", "2.6.0+cu126", "1")])),
        "flash-attn 2.7.4 was built with another C++ ABI than torch 2.6.0+cu126", ("cxx11abiTRUE", "-D_GLIBCXX_USE_CXX11_ABI=1")),
    "a variable that hides the devices": (nvidia(variables="CUDA_VISIBLE_DEVICES=-1\n"), "CUDA_VISIBLE_DEVICES is '-1', which hides every device",
                                          ("unset CUDA_VISIBLE_DEVICES",)),
    "a Python that torch has no wheel for": (machine(python(torch="2.4.0", version="3.14.1")), "torch 2.4.0 does not fit python 3.14.1", ("3.8 to 3.12",)),
    "no permission on AMD's node": (
        amd(nodes="/dev/kfd - crw-rw---- root render\n"), "this user may not open /dev/kfd (crw-rw----, of root and the group render)", ("sudo usermod -aG render",)),
    "a GPU that ROCm leaves out": (
        amd({"sys/class/kfd/kfd/topology/nodes/1/properties": "gfx_target_version 90006\n"}), "rocm 6.4.0 does not fit amd gpu gfx906", ("gfx90a",)),
    "no firmware": (
        amd(nodes="", firmware="[    4.1] amdgpu 0000:c3:00.0: Direct firmware load for amdgpu/aldebaran_sdma.bin failed with error -2\n"),
        "the AMD device 0x740c at 0000:c3:00.0 did not start: the kernel found no firmware amdgpu/aldebaran_sdma.bin", ("firmware-amd-graphics",)),
    "a container without Hygon's device": (
        hygon(nodes=""), "the Hygon device 0x6210 at 0000:33:00.0 has a driver, and there is no /dev/kfd to open it by", ("--device /dev/mkfd",)),
    "firmware that the driver does not take": (
        ascend(firmware="6.4.12.1.241"), "ascend firmware 6.4.12.1.241 does not fit ascend driver 25.2.0, which takes [7.0.0,7.7.99]", ("firmware of the driver's release",)),
    "an environment that was not set": (
        ascend(libraries=libraries(("home", TOOLKIT, TOOLKIT))), f"the loader finds no libascendcl.so; there is {TOOLKIT}, where it does not look", ("set_env.sh",)),
    "no device on the bus": (ascend(pci="", nodes=""), "the kernel module drv_davinci_intf is loaded, and there is no Ascend device on the PCI bus", ("pass it through",)),
    "a plug-in of another torch": (ascend(python(torch="2.6.0", torch_npu="2.5.1"), cann="8.1.RC1", driver="25.0.rc1"),
                                   "torch-npu 2.5.1 does not fit torch 2.6.0", ("torch 2.5.1", "torch-npu 2.6.0")),
    "a plug-in of another CANN": (ascend(python(torch="2.9.0", torch_npu="2.9.0"), cann="8.0.RC3", driver="25.5.0"), "torch-npu 2.9.0 does not fit cann 8.0.RC3", ("8.5.0",)),
    "a driver that CANN refuses": (ascend(python(torch="2.12.0", torch_npu="2.12.0"), cann="9.1.0", driver="25.0.2"),
                                   "cann 9.1.0 does not fit ascend driver 25.0.2", ("26.0.RC1",)),
    "a plug-in that does not load": (
        ascend(**{"import-torch-npu.failed": "exit status 1\nTraceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n"
                                             "ImportError: /p/torch_npu/lib/libtorch_npu.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs\n"}),
        "the plug-in torch-npu does not load: ImportError: /p/torch_npu/lib/libtorch_npu.so: undefined symbol: c10::Error::Error(c10::SourceLocation, std::string)",
        ("the pair that its maker names",)),
    "no permission on Cambricon's node": (
        cambricon(nodes="/dev/cambricon_dev0 - crw------- root root\n"), "this user may not open /dev/cambricon_dev0 (crw-------, of root and the group root)",
        ("udev rule",)),
    "a library that lacks another": (
        cambricon(missing="/usr/local/neuware/lib64/libcnrt.so\tlibcndrv.so => not found\n"),
        "/usr/local/neuware/lib64/libcnrt.so needs libcndrv.so, which the loader does not find", ("install what brings libcndrv.so",)),
    "Cambricon's plug-in of another torch": (cambricon(python(torch="2.6.0", torch_mlu="1.22.0")), "torch-mlu 1.22.0 does not fit torch 2.6.0", ("2.4.0",)),
    "Moore Threads' module is not loaded": (
        moore_threads(modules="", pci="0000:01:00.0 0x1ed5 0x0323 0x030000\n", nodes=""), "the Moore Threads device 0x0323 at 0000:01:00.0 has no driver",
        ("sudo modprobe mtgpu",)),
    "Moore Threads' plug-in of another torch": (
        moore_threads(python(version="3.10.2", torch="2.5.0", torch_musa="2.7.1")), "torch-musa 2.7.1 does not fit torch 2.5.0", ("2.7.1",)),
    "no loader for Intel": (intel(python(torch="2.7.0+xpu"), libraries=""), "the loader finds no libze_loader.so.1", ("libze1",)),
    "an engine that does not load": (
        machine(python(onnxruntime="1.20.1"), **{"engine-ort": '\nunmoor-engine {"state": "broken", "reason": "the Python package onnxruntime does not load: '
                                                               'libcudart.so.12: cannot open shared object file"}\n', "engine-torch": '\nunmoor-engine {"state": "absent"}\n'}),
        "the engine ort does not load: the Python package onnxruntime does not load: libcudart.so.12", ("a vendor's library is missing",)),
}
MEDIUM = {"two copies of a library", "a variable that hides the devices"}
