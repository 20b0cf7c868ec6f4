#include "unmoor/workbench/source_scan.h"

namespace unmoor {

const std::vector<SourceRule>& source_rules() {
  static const std::vector<SourceRule> rules{
      {"cuda-call", "P0", "only NVIDIA and ROCm builds of PyTorch have .cuda()", "x.to(DEVICE), DEVICE read once from the environment or an argument"},
      {"hard-device", "P0", "the text names NVIDIA's device; others are called npu, mlu, musa, xpu or cpu", "DEVICE in its place, read once"},
      {"torch-cuda", "P0", "torch.cuda is NVIDIA's module; others have torch.npu, torch.mlu, torch.musa, torch.xpu with the common functions",
       "getattr(torch, DEVICE).NAME for what all have; torch.accelerator from PyTorch 2.6 on; drop what only CUDA has (graphs, nvtx)"},
      {"device-test", "P1", "the test is false on every other accelerator, so the code takes the CPU's way", "device.type != \"cpu\""},
      {"nccl", "P0", "NCCL is NVIDIA's library for collectives; others have hccl, cncl, mccl, xccl or gloo", "choose the backend by DEVICE"},
      {"cuda-extension", "P0", "a kernel in CUDA's language compiles for NVIDIA alone, and for ROCm after hipify",
       "write it with PyTorch's calls, or a kernel for each platform behind one function"},
      {"cuda-package", "P0", "the package is made for CUDA, and often cannot even be imported elsewhere",
       "import it where it is used, in try, with PyTorch's own form as the other way (scaled_dot_product_attention for flash_attn)"},
      {"cuda-tensor", "P0", "the class exists for CUDA alone", "torch.zeros(..., device=DEVICE)"},
      {"autocast", "P1", "torch.cuda.amp speaks to CUDA alone, and other devices may want bfloat16 and no scaler",
       "torch.autocast(DEVICE, dtype=...) and torch.amp.GradScaler(DEVICE)"},
      {"float64", "P1", "many accelerators lack float64: the call fails there or runs on the host", "float32, or float64 on the CPU for what needs it"},
      {"whole-module", "P1", "a pickled module needs the same classes, versions and often the same device, and loading it runs its code",
       "save model.state_dict(); torch.load(path, map_location=\"cpu\", weights_only=True)"},
      {"environment", "P1", "the variable is read by CUDA's libraries alone; others have ASCEND_RT_VISIBLE_DEVICES, MLU_VISIBLE_DEVICES, "
                            "MUSA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES, ZE_AFFINITY_MASK, PYTORCH_NPU_ALLOC_CONF",
       "set it outside of the code, in a script for each platform"},
      {"cudnn", "P2", "the setting has no effect without cuDNN, so speed and repeatability differ", "torch.use_deterministic_algorithms; keep it where cuDNN is"},
      {"nvidia-tool", "P1", "nvidia-smi is not there; others have npu-smi, cnmon, mthreads-gmi, rocm-smi, xpu-smi", "getattr(torch, DEVICE) for memory and names"},
      {"no-seed", "P2", "runs on two machines cannot be compared without the same start", "torch.manual_seed(N), which seeds every device"},
      {"unpinned", "P2", "another version may come on the other machine", "NAME==VERSION, as the versions that fit the platform have it (unmoor doctor)"}};
  return rules;
}

}  // namespace unmoor
