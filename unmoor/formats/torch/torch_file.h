#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace unmoor {

// A value of a program: what is known of it before a run.
struct TorchValue {
  std::string dtype = {};  // "float32", as the catalogue spells it; empty if it is not known.
  int rank = -1;           // -1 if it is not known.
  bool fixed = true;       // Every dimension is a number, or the name of a size of an input.
  bool of_data = false;    // A dimension depends on data.
  bool constant = false;   // A parameter, a buffer or a constant of the file.
};

// One call of a program, in the order of the file.
struct TorchCall {
  std::string name;    // Unlike every other: "conv2d", "cond/true_graph/relu", "layers.0.fc/linear".
  std::string op;      // "aten::conv2d", "aten::add.Tensor", "vision::nms". Without its overload in TorchScript, which has none.
  std::string module;  // The class that it is written in, in TorchScript; else empty.
  std::vector<std::string> inputs = {};  // Names of its tensors, those in lists behind each other; empty in TorchScript.
  std::vector<std::string> outputs = {};
  size_t tensors = 0;  // How many of its arguments are tensors, as far as that is known.
};

// A tensor of the file: its bytes are not read.
struct TorchTensor {
  std::string name;   // "layers.0.weight"
  std::string dtype;  // "float32"
  std::vector<int64_t> shape;
  std::string storage;  // Tensors with the same one share their bytes.
  double bytes = 0;     // Of the tensor's own elements.
};

// What a file of PyTorch says without PyTorch and without running any of its code.
struct TorchFile {
  enum class Kind : uint8_t { Program, Script, Checkpoint, Safetensors };
  Kind kind = Kind::Checkpoint;
  std::string described;  // "program of torch.export, written by torch 2.13.0"
  std::vector<TorchTensor> tensors = {};
  double stored_bytes = 0;  // Of all storages, shared ones once.
  // Of programs and scripts.
  std::vector<TorchCall> calls = {};
  std::map<std::string, TorchValue, std::less<>> values = {};
  std::vector<std::string> dynamic_inputs = {};  // "x[0] s77, 2 to 64"
  size_t host_calls = 0;                         // Of sizes and other numbers: no device is asked for them.

  bool has_graph() const { return kind == Kind::Program || kind == Kind::Script; }
};

// Whether the file's first bytes are those of a file of PyTorch: a zip or tar file, a pickle, or safetensors. False on what is not a
// readable file.
bool is_torch_file(const std::string& path);

// Reads a program of torch.export (.pt2), a TorchScript (.pt), a checkpoint of torch.save (.pth, .pt; zip files and the pickles of
// torch before 1.6), or safetensors; which of them, the content tells. Weights are not read. Fails with Io, with InvalidModel on what
// is damaged or would run code, with Unsupported on other kinds of files. Any thread.
TorchFile read_torch_file(const std::string& path);

// "float32" and its bits, of PyTorch's own names: "FloatStorage", "float32", "F32" (safetensors); an empty name if nobody knows it.
struct TorchDtype {
  std::string name;
  size_t bits = 0;
};
TorchDtype torch_dtype(std::string_view name);

}  // namespace unmoor
