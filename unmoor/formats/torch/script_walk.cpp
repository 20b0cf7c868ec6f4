#include "unmoor/formats/torch/script_walk.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

using Token = ScriptToken::Kind;
using Words = std::vector<ScriptToken>;

constexpr int deepest = 100;                     // Calls in calls.
constexpr int deepest_brackets = 300;            // In brackets, those of the calls around included: each takes stack.
constexpr size_t most_words = size_t{1} << 24;   // That are followed in all.
constexpr size_t most_calls = size_t{1} << 20;

// What is known of a value before a run.
struct ScriptValue {
  enum class Kind : uint8_t { Host, Tensor, Object, Method, Path };
  Kind kind = Kind::Host;
  std::string text = {};      // Object: its class. Method: its path. Path: names joined by dots, not yet looked up.
  std::string instance = {};  // Object, Method: where it lies, "layers.0".
  std::vector<ScriptValue> elements = {};  // Of a tuple or list.
};
using Kind = ScriptValue::Kind;

// Functions of `torch` that answer with numbers, or that work on lists, dicts and texts of the host.
bool is_of_host(std::string_view name) {
  static const std::set<std::string_view> names{
      "dim",     "size",   "len",     "numel",  "stride",   "is_floating_point", "is_complex", "is_contiguous", "get_device",  "storage_offset",
      "format",  "warn",   "__is__",  "__isnot__", "__not__", "append",          "extend",     "insert",        "pop",         "keys",
      "values",  "items",  "get",     "setdefault", "update", "clear",           "remove",     "reverse",       "__contains__", "__getitem__",
      "_set_item", "list", "dict",    "copy",   "Int",      "Float",             "Bool",       "ord",           "chr",         "str",
      "device",  "split_with", "join", "hash",  "__range_length", "__derive_index", "list_with_default", "is_grad_enabled", "element_size"};
  return names.contains(name);
}

// Functions that make a tensor of numbers.
bool makes_tensor(std::string_view name) {
  static const std::set<std::string_view> names{"zeros", "ones", "empty", "full", "arange", "tensor", "rand",   "randn", "randint", "eye",
                                                "linspace", "logspace", "scalar_tensor", "as_tensor", "hann_window", "tril_indices", "triu_indices"};
  return names.contains(name);
}

// Functions on tensors that answer with numbers.
bool gives_number(std::string_view name) {
  return name == "item" || name == "equal" || name == "is_nonzero" || name == "allclose" || name == "tolist";
}

// "__torch__.torch.nn.modules.linear.___torch_mangle_3.Linear" without the number that tells its copies apart.
std::string plain_name(std::string name) {
  const size_t start = name.find("___torch_mangle_");
  const size_t end = start == std::string::npos ? start : name.find('.', start);
  if (end != std::string::npos) name.erase(start, end - start + 1);
  return name;
}

class Walk {
 public:
  Walk(const ScriptCode& code, TorchFile& file) : code_(code), file_(file) {}

  ScriptValue run(const ScriptFunction& function, const std::vector<ScriptValue>& arguments, const std::string& instance, int depth) {
    if (depth > deepest) fail(ErrorKind::InvalidModel, "the code calls more than ", deepest, " functions inside each other, at ", function.path);
    Frame outer = std::move(frame_);
    frame_ = {&function, instance, depth, {}};
    for (size_t i = 0; i < function.parameters.size(); ++i) {
      const auto& [name, type] = function.parameters[i];
      ScriptValue value = typed(type, i == 0 && type.starts_with("__torch__.") ? instance : name);
      if (i < arguments.size() && (value.kind == Kind::Host || arguments[i].kind == Kind::Object)) value = arguments[i];
      frame_.values[name] = std::move(value);
    }
    for (const Words& line : function.lines) statement(line);
    frame_ = std::move(outer);
    return typed(function.returns, instance);
  }

 private:
  struct Frame {
    const ScriptFunction* function = nullptr;
    std::string instance;
    int depth = 0;
    std::map<std::string, ScriptValue, std::less<>> values;
  };
  // A part of a line that is being read.
  struct Reading {
    const Words& words;
    size_t at = 0;
    std::string_view text() const { return at < words.size() ? words[at].text : std::string_view(); }
    bool is(std::string_view sign) const { return at < words.size() && words[at].kind == Token::Sign && words[at].text == sign; }
  };

  // A value of a type as it is written.
  static ScriptValue typed(const std::string& type, const std::string& instance) {
    if (type.starts_with("__torch__.")) return {Kind::Object, type, instance};
    if (type.starts_with("Tuple[") && type.ends_with(']')) {
      ScriptValue tuple;
      size_t start = 6;
      int open = 0;
      for (size_t i = start; i < type.size(); ++i) {
        if (open == 0 && (type[i] == ',' || i + 1 == type.size())) {
          tuple.elements.push_back({type.substr(start, i - start).find("Tensor") != std::string::npos ? Kind::Tensor : Kind::Host});
          start = i + 1;
        }
        open += type[i] == '[' ? 1 : type[i] == ']' ? -1 : 0;
      }
      if (std::ranges::any_of(tuple.elements, is_tensor)) tuple.kind = Kind::Tensor;
      return tuple;
    }
    return {type.find("Tensor") != std::string::npos ? Kind::Tensor : Kind::Host};
  }

  static bool is_tensor(const ScriptValue& value) { return value.kind == Kind::Tensor; }

  void statement(const Words& line) {
    words_ += line.size();
    if (words_ > most_words) fail(ErrorKind::InvalidModel, "the code is too much to follow: more than ", most_words, " words of calls inside each other");
    Reading reading{line};
    const std::string_view first = line[0].text;
    if (first == "return" || first == "if" || first == "while" || first == "elif" || first == "with" || first == "assert") {
      ++reading.at;
      (void)list(reading, "");
      return;
    }
    if (first == "for") {
      const auto in = std::ranges::find_if(line, [](const ScriptToken& word) { return word.kind == Token::Name && word.text == "in"; });
      reading.at = static_cast<size_t>(in - line.begin()) + 1;
      ScriptValue over = list(reading, "");
      if (line.size() > 1) frame_.values[std::string(line[1].text)] = over.kind == Kind::Object ? ScriptValue() : ScriptValue{over.kind};
      return;
    }
    assignment(line, reading);
  }

  void assignment(const Words& line, Reading& reading) {
    size_t equals = 0;
    int open = 0;
    while (equals < line.size() && !(open == 0 && line[equals].kind == Token::Sign && line[equals].text == "=")) {
      const std::string_view word = line[equals].kind == Token::Sign ? line[equals].text : "";
      open += word == "(" || word == "[" ? 1 : word == ")" || word == "]" ? -1 : 0;
      ++equals;
    }
    reading.at = equals < line.size() ? equals + 1 : 0;
    const ScriptValue value = list(reading, "");
    if (equals == line.size()) return;
    const bool single = equals == 1;
    size_t place = 0;
    for (size_t i = 0; i < equals; ++i) {
      const bool is_target = line[i].kind == Token::Name && (i + 1 >= equals || line[i + 1].text == "," || line[i + 1].text == ")");
      if (!is_target || (i > 0 && line[i - 1].text == ".")) continue;
      const bool has_part = !single && place < value.elements.size();
      frame_.values[std::string(line[i].text)] = single ? value : has_part ? value.elements[place] : ScriptValue{value.kind == Kind::Tensor ? Kind::Tensor : Kind::Host};
      ++place;
    }
  }

  // Values up to a closing sign; a tuple if there is more than one. Words that join values are passed over.
  ScriptValue list(Reading& reading, std::string_view close) {
    if (++brackets_ > deepest_brackets)
      fail(ErrorKind::InvalidModel, "the code nests more than ", deepest_brackets, " brackets, in ", frame_.function->path);
    ScriptValue result;
    while (reading.at < reading.words.size() && (close.empty() || !reading.is(close))) {
      const size_t before = reading.at;
      if (reading.words[reading.at].kind == Token::Sign && !reading.is("(") && !reading.is("[") && !reading.is("{")) {
        ++reading.at;
        continue;
      }
      result.elements.push_back(value(reading));
      if (reading.at == before) ++reading.at;
    }
    if (!close.empty() && reading.is(close)) ++reading.at;
    --brackets_;
    if (result.elements.size() == 1 && close != "]") {
      ScriptValue only = std::move(result.elements[0]);
      return only;
    }
    if (std::ranges::any_of(result.elements, is_tensor)) result.kind = Kind::Tensor;
    return result;
  }

  ScriptValue value(Reading& reading) {
    ScriptValue result = primary(reading);
    while (reading.at < reading.words.size()) {
      if (reading.is(".") && reading.at + 1 < reading.words.size()) {
        result = member(result, reading.words[reading.at + 1].text);
        reading.at += 2;
      } else if (reading.is("(")) {
        result = call(result, reading);
      } else if (reading.is("[")) {
        ++reading.at;
        const size_t index = reading.at;
        (void)list(reading, "]");
        result = part(result, reading.words[std::min(index, reading.words.size() - 1)].text);
      } else {
        break;
      }
    }
    const bool is_function = result.kind == Kind::Path && result.text.starts_with("__torch__.");  // Kept under a name, to be called.
    if (result.kind == Kind::Path && !is_function) return {result.text.starts_with("CONSTANTS.") ? Kind::Tensor : Kind::Host};
    return result;
  }

  ScriptValue primary(Reading& reading) {
    const ScriptToken word = reading.words[reading.at++];
    if (word.kind == Token::Sign) {
      if (word.text == "(") {
        ScriptValue inside = list(reading, ")");
        return inside;
      }
      return list(reading, word.text == "[" ? "]" : "}");
    }
    if (word.kind != Token::Name) return {};
    const auto known = frame_.values.find(word.text);
    if (known != frame_.values.end()) return known->second;
    return {Kind::Path, std::string(word.text)};
  }

  static ScriptValue part(const ScriptValue& whole, std::string_view index) {
    size_t place = 0;
    const auto [end, problem] = std::from_chars(index.data(), index.data() + index.size(), place);
    if (problem == std::errc() && place < whole.elements.size()) return whole.elements[place];
    return {whole.kind == Kind::Tensor ? Kind::Tensor : Kind::Host};
  }

  ScriptValue member(const ScriptValue& owner, std::string_view name) const {
    if (owner.kind == Kind::Path) return {Kind::Path, cat(owner.text, ".", name)};
    if (owner.kind != Kind::Object) return {};
    const std::string place = owner.instance.empty() ? std::string(name) : cat(owner.instance, ".", name);
    const auto kind = code_.classes.find(owner.text);
    if (kind != code_.classes.end()) {
      const auto attribute = kind->second.attributes.find(name);
      if (attribute != kind->second.attributes.end()) return typed(attribute->second, place);
    }
    return {Kind::Method, cat(owner.text, ".", name), owner.instance};
  }

  ScriptValue call(const ScriptValue& callee, Reading& reading) {
    ++reading.at;
    const std::string what = callee.text;
    const bool of_type = callee.kind == Kind::Path && (what == "annotate" || what == "unchecked_cast" || what == "uninitialized");
    std::string type;
    for (size_t i = reading.at, open = 0; of_type && i < reading.words.size(); ++i) {
      const std::string_view word = reading.words[i].text;
      if (open == 0 && (word == "," || word == ")")) break;
      open += word == "[" ? 1 : 0;
      open -= word == "]" && open > 0 ? 1 : 0;
      type += word;
    }
    const size_t start = reading.at;
    ScriptValue given = list(reading, ")");
    std::vector<ScriptValue> arguments;
    if (given.elements.empty()) arguments.push_back(std::move(given));
    else arguments = std::move(given.elements);
    if (of_type) return typed(type, "");
    if (callee.kind == Kind::Path && what == "getattr" && arguments[0].kind == Kind::Object) {  // getattr(layers, "0")
      for (size_t i = start; i < reading.at; ++i) {
        const std::string_view quoted = reading.words[i].text;
        if (reading.words[i].kind == Token::Text && quoted.size() > 2) return member(arguments[0], quoted.substr(1, quoted.size() - 2));
      }
    }
    if (callee.kind == Kind::Method) {
      const auto method = code_.functions.find(what);
      if (method == code_.functions.end()) return {};  // Of a class that PyTorch itself has.
      arguments.insert(arguments.begin(), {Kind::Object, what.substr(0, what.rfind('.')), callee.instance});
      return run(method->second, arguments, callee.instance, frame_.depth + 1);
    }
    if (callee.kind != Kind::Path) return {};
    if (what.starts_with("torch.")) return builtin("aten", what.substr(6), arguments);
    if (what.starts_with("ops.")) {
      const size_t dot = what.find('.', 4);
      if (dot != std::string::npos) return builtin(what.substr(4, dot - 4), what.substr(dot + 1), arguments);
    }
    if (const auto function = code_.functions.find(what); function != code_.functions.end())
      return run(function->second, arguments, frame_.instance, frame_.depth + 1);
    if (code_.classes.contains(what)) return {Kind::Object, what, frame_.instance};
    return {};
  }

  ScriptValue builtin(const std::string& domain, std::string name, const std::vector<ScriptValue>& arguments) {
    const auto tensors = static_cast<size_t>(std::ranges::count_if(arguments, is_tensor));
    if (domain == "prim") return {name == "NumToTensor" || (name == "data" && tensors > 0) || name == "unchecked_unwrap_optional" ? Kind::Tensor : Kind::Host};
    const bool on_host = domain == "aten" && (is_of_host(name) || (tensors == 0 && !makes_tensor(name)));
    if (on_host) {
      ++file_.host_calls;
      // Lists and dicts hand out what they hold.
      const bool hands_out = tensors > 0 && (name == "__getitem__" || name == "pop" || name == "get" || name == "values" || name == "list" || name == "copy");
      return {hands_out ? Kind::Tensor : Kind::Host};
    }
    if (name.ends_with('_') && !name.ends_with("__")) name.pop_back();  // In place or not, it is the same kernel.
    if (file_.calls.size() >= most_calls) fail(ErrorKind::InvalidModel, "the code holds more than ", most_calls, " calls");
    const std::string place = frame_.instance.empty() ? name : cat(frame_.instance, "/", name);
    const size_t times = ++names_[place];
    const std::string& path = frame_.function->path;
    file_.calls.push_back({times == 1 ? place : cat(place, "#", times), cat(domain, "::", name), plain_name(path.substr(0, path.rfind('.'))), {}, {}, tensors});
    return {gives_number(name) ? Kind::Host : Kind::Tensor};
  }

  const ScriptCode& code_;
  TorchFile& file_;
  Frame frame_;
  std::map<std::string, size_t> names_;
  size_t words_ = 0;
  int brackets_ = 0;
};

}  // namespace

void walk_script(const ScriptCode& code, const std::string& main_class, TorchFile& into) {
  Walk walk(code, into);
  const auto forward = code.functions.find(cat(main_class, ".forward"));
  if (forward != code.functions.end()) {
    (void)walk.run(forward->second, {}, "", 0);
    return;
  }
  bool any = false;
  const std::string start = cat(main_class, ".");
  for (const auto& [path, function] : code.functions) {
    if (!path.starts_with(start) || path.find('.', start.size()) != std::string::npos) continue;
    any = true;
    (void)walk.run(function, {}, "", 0);
  }
  if (!any) fail(ErrorKind::InvalidModel, "the TorchScript has no code of its class ", main_class);
}

}  // namespace unmoor
