#include <string_view>

#include "unmoor/base/error.h"
#include "unmoor/engines/engine.h"
#include "unmoor/engines/python_child.h"

namespace embedded {
extern const std::string_view unmoor_engines_python_dump_script_py;
}  // namespace embedded

namespace unmoor {

std::string make_dump_script(const std::string& model, const std::string& python) {
  constexpr double patience_s = 120;
  constexpr std::string_view hole = "@NAMES@";
  PythonChild child(python, "--write-dump-script");
  Message reply;
  const double patience = child_patience(patience_s);
  if (!child.send({{{"do", "script_names"}, {"model", model}}, {}}, patience) || !child.receive(reply, patience))
    child.report_end();
  if (!reply.head.value("ok", false)) fail(ErrorKind::Device, "--write-dump-script: ", reply.head.value("text", ""));
  // As a raw Python text in three quotes: what could end it is written as JSON's escape.
  std::string names = reply.head.at("names").dump(-1, ' ', true);
  for (size_t at = names.find('\''); at != std::string::npos; at = names.find('\'', at)) names.replace(at, 1, "\\u0027");
  std::string script(embedded::unmoor_engines_python_dump_script_py);
  return script.replace(script.find(hole), hole.size(), names);
}

}  // namespace unmoor
