#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace unmoor {

// One word of TorchScript's code, which is Python's syntax: a name, a number, a text, a sign, or the end of a line.
struct ScriptToken {
  enum class Kind : uint8_t { Name, Number, Text, Sign, EndOfLine };
  Kind kind = Kind::EndOfLine;
  std::string_view text = {};
};

// A function or method as it is written.
struct ScriptFunction {
  struct Parameter {
    std::string name;
    std::string type;  // "Tensor", "Optional[int]", "__torch__.torch.nn.modules.conv.Conv2d"
  };
  std::string path;  // "__torch__.torch.nn.functional.softmax", "__torch__.M.forward"
  std::vector<Parameter> parameters = {};
  std::string returns = {};
  std::vector<std::vector<ScriptToken>> lines = {};  // Of its body, those in brackets joined; indentation left out.
};

struct ScriptClass {
  std::string name;                                             // "__torch__.M"
  std::map<std::string, std::string, std::less<>> attributes = {};  // Types by name.
};

// What the files of code/ hold. Words point into the texts, which must outlive it.
struct ScriptCode {
  std::map<std::string, ScriptFunction, std::less<>> functions = {};  // By path.
  std::map<std::string, ScriptClass, std::less<>> classes = {};       // By name.
};

// Adds a file: `module` is its name, "__torch__.torch.nn.functional". Fails with InvalidModel on what is no such code.
void read_script(std::string_view text, const std::string& module, ScriptCode& into);

}  // namespace unmoor
