#include <algorithm>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/formats/torch/readers.h"
#include "unmoor/formats/torch/script_walk.h"

namespace unmoor {
namespace {

constexpr uint64_t most_code = uint64_t{256} << 20;  // Bytes of all files of code/.

// Classes of the file's own code are data here: nothing of it is run.
bool is_script_data(std::string_view module, std::string_view name) {
  static const std::set<std::string_view> lists{"build_intlist", "build_tensorlist", "build_doublelist", "build_boollist", "restore_type_tag"};
  return module == "__torch__" || module.starts_with("__torch__.") || (module == "torch.jit._pickle" && lists.contains(name)) ||
         is_plain_data(module, name);
}

// "code/__torch__/torch/nn/functional.py" as "__torch__.torch.nn.functional"; empty of other files.
std::string module_of(std::string_view entry, const std::string& root) {
  const std::string folder = cat(root, "code/");
  if (!entry.starts_with(folder) || !entry.ends_with(".py")) return "";
  std::string name(entry.substr(folder.size(), entry.size() - folder.size() - 3));
  std::ranges::replace(name, '/', '.');
  return name;
}

}  // namespace

TorchFile read_torchscript(ZipReader& archive, const std::string& root) {
  TorchFile file;
  file.kind = TorchFile::Kind::Script;
  file.described = "TorchScript";
  ScriptCode code;
  std::vector<std::shared_ptr<const ZipBytes>> texts;  // Words of the code point into them.
  uint64_t room = most_code;
  for (size_t i = 0; i < archive.entries().size(); ++i) {
    const std::string module = module_of(archive.entries()[i].name, root);
    if (module.empty()) continue;
    texts.push_back(archive.read(i, room));
    room -= texts.back()->size();
    read_script({reinterpret_cast<const char*>(texts.back()->data()), texts.back()->size()}, module, code);
  }
  const auto data = archive.read(*archive.find(cat(root, "data.pkl")), Pickle::most_bytes);
  const Pickle pickle = Pickle::read(*data, is_script_data);
  const Pickle::Value& module = pickle.root();
  if (module.kind != Pickle::Kind::Call || !pickle[module.items[0]].text.starts_with("__torch__"))
    fail(ErrorKind::InvalidModel, "the TorchScript's data.pkl holds no module");
  collect_tensors(pickle, ZipStorages(archive, cat(root, "data/")), file);
  const auto constants = archive.read(*archive.find(cat(root, "constants.pkl")), Pickle::most_bytes);
  const size_t own = file.tensors.size();
  collect_tensors(Pickle::read(*constants, is_script_data), ZipStorages(archive, cat(root, "constants/")), file);
  for (size_t i = own; i < file.tensors.size(); ++i) file.tensors[i].name.insert(0, "CONSTANTS.c");
  std::string name = pickle[module.items[0]].text;
  std::ranges::replace(name, ' ', '.');
  walk_script(code, name, file);
  return file;
}

}  // namespace unmoor
