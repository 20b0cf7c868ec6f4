#include "unmoor/engines/python_script.h"

#include <fmt/format.h>

#include <span>

#include "unmoor/base/child.h"
#include "unmoor/base/error.h"
#include "unmoor/engines/python_child.h"

namespace unmoor {
namespace {

constexpr double patience_s = 300;  // Of silence: the answer comes at the end.
constexpr double end_s = 10;

// Reads modules, "NAME BYTES" and a source each, behind their count; what is left of the input is theirs.
constexpr std::string_view loader =
    "import sys,types\n"
    "read=sys.stdin.buffer\n"
    "for _ in range(int(read.readline())):\n"
    " name,size=read.readline().decode().split()\n"
    " module=sys.modules[name]=types.ModuleType(name)\n"
    " exec(compile(read.read(int(size)),name+'.py','exec'),module.__dict__)\n";

Child started(const std::string& python, const std::string& who) {
  try {
    return Child({python, "-I", "-c", std::string(loader)});
  } catch (const Error& error) {
    fail(ErrorKind::Device, who, " needs Python, and '", python, "' could not be started (", error.what(),
         "); install Python 3.8 or later, or name one with --python or UNMOOR_PYTHON");
  }
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1).substr(0, 500);
}

}  // namespace

std::string run_python(const std::string& python, const std::string& who, const std::vector<PythonModule>& modules, const std::string& request,
                       size_t most) {
  const std::string program = find_python(python);
  const double patience = child_patience(patience_s);
  Child child = started(program, who);
  std::string input = fmt::format("{}\n", modules.size());
  for (const PythonModule& module : modules) input += fmt::format("{} {}\n{}", module.name, module.source.size(), module.source);
  input += request;
  const bool sent = child.write(std::as_bytes(std::span(input)), patience);
  child.close_input();
  std::string answer;
  std::vector<char> part(size_t{1} << 16);
  for (size_t count = 1; sent && count > 0;) {
    count = child.read_some(std::as_writable_bytes(std::span(part)), patience);
    answer.append(part.data(), count);
    if (answer.size() > most) fail(ErrorKind::Unsupported, who, ": the answer has more than ", most, " bytes; ask about less at a time");
  }
  const ChildEnd end = child.finish(end_s);
  if (end.running || end.status != 0 || end.signal != 0 || answer.empty()) {
    const std::string words = last_line(child.errors());
    fail(ErrorKind::Device, who, ": '", program, "' ended: ", end.text(), words.empty() ? "" : "; it said last: ", words);
  }
  return answer;
}

}  // namespace unmoor
