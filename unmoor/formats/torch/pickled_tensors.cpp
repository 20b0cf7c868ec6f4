#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/formats/torch/readers.h"

namespace unmoor {
namespace {

using Kind = Pickle::Kind;
using Id = Pickle::Id;

struct DtypeName {
  std::string_view torch;  // In lower case, without "Storage" and "torch.".
  std::string_view ours;
  size_t bits;
};
// torch/storage.py and torch/csrc/utils/tensor_dtypes.cpp of PyTorch; the safetensors format's own names.
constexpr std::array<DtypeName, 47> dtype_names{{{"float", "float32", 32},
                                                 {"float32", "float32", 32},
                                                 {"f32", "float32", 32},
                                                 {"double", "float64", 64},
                                                 {"float64", "float64", 64},
                                                 {"f64", "float64", 64},
                                                 {"half", "float16", 16},
                                                 {"float16", "float16", 16},
                                                 {"f16", "float16", 16},
                                                 {"bfloat16", "bfloat16", 16},
                                                 {"bf16", "bfloat16", 16},
                                                 {"long", "int64", 64},
                                                 {"int64", "int64", 64},
                                                 {"i64", "int64", 64},
                                                 {"int", "int32", 32},
                                                 {"int32", "int32", 32},
                                                 {"i32", "int32", 32},
                                                 {"short", "int16", 16},
                                                 {"int16", "int16", 16},
                                                 {"i16", "int16", 16},
                                                 {"char", "int8", 8},
                                                 {"int8", "int8", 8},
                                                 {"i8", "int8", 8},
                                                 {"byte", "uint8", 8},
                                                 {"uint8", "uint8", 8},
                                                 {"u8", "uint8", 8},
                                                 {"uint16", "uint16", 16},
                                                 {"u16", "uint16", 16},
                                                 {"uint32", "uint32", 32},
                                                 {"u32", "uint32", 32},
                                                 {"uint64", "uint64", 64},
                                                 {"u64", "uint64", 64},
                                                 {"bool", "bool", 8},
                                                 {"complexhalf", "complex32", 32},
                                                 {"complexfloat", "complex64", 64},
                                                 {"complex64", "complex64", 64},
                                                 {"c64", "complex64", 64},
                                                 {"complexdouble", "complex128", 128},
                                                 {"complex128", "complex128", 128},
                                                 {"float8_e4m3fn", "float8e4m3fn", 8},
                                                 {"f8_e4m3", "float8e4m3fn", 8},
                                                 {"float8_e5m2", "float8e5m2", 8},
                                                 {"f8_e5m2", "float8e5m2", 8},
                                                 {"float8_e4m3fnuz", "float8e4m3fnuz", 8},
                                                 {"float8_e5m2fnuz", "float8e5m2fnuz", 8},
                                                 {"float8_e8m0fnu", "float8e8m0", 8},
                                                 {"f8_e8m0", "float8e8m0", 8}}};

// Walks a pickle; each list, dict and object once, by its first path.
class Collector {
 public:
  Collector(const Pickle& pickle, const StorageBytes& bytes_of_storage, TorchFile& into)
      : pickle_(pickle), bytes_of_storage_(bytes_of_storage), into_(into) {}

  void run() {
    std::vector<std::pair<Id, std::string>> open{{pickle_.root_id(), ""}};
    while (!open.empty()) {  // A stack of our own: pickles nest as deep as they like.
      auto [id, path] = std::move(open.back());
      open.pop_back();
      const Pickle::Value& value = pickle_[id];
      const size_t known = open.size();
      if (value.kind == Kind::Call) {
        if (add_tensor(value, path)) continue;
        if (seen_.insert(id).second && value.items.size() == 3) open.emplace_back(value.items[2], path);
      } else if (value.kind == Kind::Dict && seen_.insert(id).second) {
        for (size_t i = 0; i + 1 < value.items.size(); i += 2) open.emplace_back(value.items[i + 1], below(path, key_text(value.items[i])));
      } else if ((value.kind == Kind::List || value.kind == Kind::Tuple) && seen_.insert(id).second) {
        for (size_t i = 0; i < value.items.size(); ++i) open.emplace_back(value.items[i], below(path, std::to_string(i)));
      }
      std::reverse(open.begin() + static_cast<std::ptrdiff_t>(known), open.end());  // What comes first is walked first.
    }
  }

 private:
  static std::string below(const std::string& path, const std::string& name) {
    constexpr size_t longest = 1000;  // Of a path: names of deeper values are cut.
    return (path.empty() ? name : cat(path, ".", name)).substr(0, longest);
  }

  std::string key_text(Id id) const {
    const Pickle::Value& key = pickle_[id];
    return key.kind == Kind::Text ? key.text : key.kind == Kind::Int ? std::to_string(key.number) : "?";
  }

  // An argument of a call; fails if there are fewer.
  const Pickle::Value& argument(const Pickle::Value& call, size_t i, const std::string& path) const {
    const auto& given = pickle_[call.items[1]].items;
    if (i >= given.size()) fail(ErrorKind::InvalidModel, "tensor '", path, "' of the pickle lacks a part");
    return pickle_[given[i]];
  }

  // False if the call makes no tensor.
  bool add_tensor(const Pickle::Value& call, const std::string& path) {
    const std::string& what = pickle_[call.items[0]].text;
    if (what == "torch._utils _rebuild_parameter" || what == "torch._utils _rebuild_parameter_with_state") {
      const Pickle::Value& data = argument(call, 0, path);
      return data.kind == Kind::Call && add_tensor(data, path);
    }
    if (what != "torch._utils _rebuild_tensor_v2" && what != "torch._utils _rebuild_tensor" && what != "torch._utils _rebuild_tensor_v3") return false;
    TorchTensor tensor{path, "", sizes(argument(call, 2, path), path), "", 0};
    const Pickle::Value& storage = argument(call, 0, path);
    if (storage.kind != Kind::Persistent) fail(ErrorKind::InvalidModel, "tensor '", path, "' of the pickle has no storage");
    const bool own_dtype = what == "torch._utils _rebuild_tensor_v3";
    const TorchDtype dtype = own_dtype ? named_dtype(argument(call, 6, path), path) : TorchDtype();
    read_storage(storage, tensor, dtype, argument(call, 1, path), argument(call, 3, path));
    into_.tensors.push_back(std::move(tensor));
    return true;
  }

  TorchDtype named_dtype(const Pickle::Value& value, const std::string& path) const {
    const size_t space = value.text.find(' ');
    const TorchDtype dtype = value.kind == Kind::Global && space != std::string::npos ? torch_dtype(value.text.substr(space + 1)) : TorchDtype();
    if (dtype.name.empty()) fail(ErrorKind::InvalidModel, "tensor '", path, "' of the pickle has the element type '", value.text, "', which is none");
    return dtype;
  }

  std::vector<int64_t> sizes(const Pickle::Value& value, const std::string& path) const {
    std::vector<int64_t> dims;
    for (const Id id : value.items) {
      if (pickle_[id].kind != Kind::Int || pickle_[id].number < 0) fail(ErrorKind::InvalidModel, "tensor '", path, "' of the pickle has a size that is no number");
      dims.push_back(pickle_[id].number);
    }
    constexpr size_t most = 64;  // Dimensions that PyTorch itself allows.
    if (value.kind != Kind::Tuple || dims.size() > most) fail(ErrorKind::InvalidModel, "tensor '", path, "' of the pickle has no shape");
    return dims;
  }

  // ('storage', torch.FloatStorage, '0', 'cpu', 864): the key names the bytes, the last is how many elements there are.
  void read_storage(const Pickle::Value& storage, TorchTensor& tensor, const TorchDtype& own, const Pickle::Value& offset, const Pickle::Value& strides) {
    const auto broken = [&](const auto&... what) { fail(ErrorKind::InvalidModel, "tensor '", tensor.name, "' of the pickle ", what...); };
    const auto& parts = pickle_[storage.items[0]].items;
    if (parts.size() < 5 || pickle_[parts[1]].kind != Kind::Global) broken("has a storage of another form");
    const TorchDtype stored = named_dtype(pickle_[parts[1]], tensor.name);
    const TorchDtype dtype = own.name.empty() ? stored : own;
    if (dtype.bits == 0) broken("does not say its element type");
    tensor.dtype = dtype.name;
    tensor.storage = key_text(parts[2]);
    const int64_t count = pickle_[parts[4]].number;
    const size_t unit = stored.bits == 0 ? 8 : stored.bits;  // An untyped storage counts bytes.
    if (pickle_[parts[4]].kind != Kind::Int || count < 0 || count > INT64_MAX / 16) broken("has a storage without a length");
    const uint64_t held = static_cast<uint64_t>(count) * unit / 8;
    const auto [place, fresh] = storages_.emplace(tensor.storage, held);
    if (fresh) {
      const uint64_t there = bytes_of_storage_(tensor.storage, held);
      if (there < held) broken("needs ", held, " bytes; the file has ", there, " for it");
      into_.stored_bytes += static_cast<double>(held);
    }
    double elements = 1;
    double last = 0;  // Of the elements in the storage, the one that lies furthest behind.
    const auto steps = strides.items;
    if (strides.kind != Kind::Tuple || steps.size() != tensor.shape.size() || offset.kind != Kind::Int || offset.number < 0) broken("has no strides");
    for (size_t i = 0; i < steps.size(); ++i) {
      elements *= static_cast<double>(tensor.shape[i]);
      last += static_cast<double>(std::max<int64_t>(tensor.shape[i] - 1, 0)) * static_cast<double>(std::max<int64_t>(pickle_[steps[i]].number, 0));
    }
    tensor.bytes = elements * static_cast<double>(dtype.bits) / 8;
    const double reach = elements == 0 ? 0 : (static_cast<double>(offset.number) + last + 1) * static_cast<double>(dtype.bits) / 8;
    if (reach > static_cast<double>(place->second)) broken("reaches over the end of its storage of ", place->second, " bytes");
  }

  const Pickle& pickle_;
  const StorageBytes& bytes_of_storage_;
  TorchFile& into_;
  std::set<Id> seen_;
  std::map<std::string, uint64_t> storages_;  // Bytes by key.
};

}  // namespace

TorchDtype torch_dtype(std::string_view name) {
  std::string text(name);
  if (text.ends_with("Storage")) text.resize(text.size() - 7);
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (text == "untyped") return {"uint8", 0};
  const auto* const found = std::ranges::find(dtype_names, text, &DtypeName::torch);
  return found == dtype_names.end() ? TorchDtype() : TorchDtype{std::string(found->ours), found->bits};
}

bool is_plain_data(std::string_view module, std::string_view name) {
  if (module == "torch") return name == "Size" || name == "device" || !torch_dtype(name).name.empty();
  if (module == "torch.storage") return name == "UntypedStorage" || name == "TypedStorage";
  if (module == "torch._utils") {
    static constexpr std::array<std::string_view, 5> makers{"_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter",
                                                            "_rebuild_parameter_with_state"};
    return std::ranges::find(makers, name) != makers.end();
  }
  if (module == "collections") return name == "OrderedDict" || name == "defaultdict" || name == "Counter";
  if (module == "builtins" || module == "__builtin__") {
    static constexpr std::array<std::string_view, 9> plain{"set", "frozenset", "dict", "list", "tuple", "int", "float", "complex", "bytearray"};
    return std::ranges::find(plain, name) != plain.end();
  }
  if (module == "numpy" || module == "numpy.dtypes") return name == "dtype" || name == "ndarray" || name.ends_with("DType");
  if (module == "_codecs") return name == "encode";
  return (module == "numpy.core.multiarray" || module == "numpy._core.multiarray") && (name == "scalar" || name == "_reconstruct");
}

uint64_t ZipStorages::operator()(const std::string& key, uint64_t) const {
  const size_t* const place = archive_.find(cat(folder_, key));
  if (place == nullptr) fail(ErrorKind::InvalidModel, "the file has no entry '", folder_, key, "', in which a tensor lies");
  return archive_.entries()[*place].bytes;
}

void collect_tensors(const Pickle& pickle, const StorageBytes& bytes_of_storage, TorchFile& into) { Collector(pickle, bytes_of_storage, into).run(); }

}  // namespace unmoor
