#include "unmoor/base/demangle.h"
#include "unmoor/base/error.h"
#include "unmoor/engines/engine.h"
#include "unmoor/engines/python_child.h"

namespace embedded {
extern const std::string_view unmoor_engines_python_probe_py;
}  // namespace embedded

namespace unmoor {
namespace {

constexpr double patience_s = 300;  // Importing PyTorch from a cold disk is slow.

FoundEngine look_for(const std::string& engine, const std::string& python) {
  FoundEngine found{engine, "broken", "", "", find_python(python), {}, {}};
  try {
    PythonChild child(python, engine);
    const double patience = child_patience(patience_s);
    Message reply;
    if (!child.send({{{"do", "probe"}, {"engine", engine}}, {}}, patience) || !child.receive(reply, patience)) child.report_end();
    if (!reply.head.value("ok", false)) {
      found.state = reply.head.value("kind", "") == "missing" ? "absent" : "broken";
      found.reason = demangled(reply.head.value("text", ""));
      return found;
    }
    found.version = reply.head.at("version");
    found.runners = reply.head.at("runners").get<std::vector<std::string>>();
    found.versions = reply.head.at("versions").get<std::map<std::string, std::string>>();
    found.state = "ready";
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Stopped) throw;
    found.reason = demangled(error.what());
    if (found.reason.find("could not be started") != std::string::npos) found.state = "absent";
  } catch (const nlohmann::json::exception& error) {
    found.reason = cat("its answer cannot be understood: ", error.what());
  }
  return found;
}

}  // namespace

std::string_view engine_probe_program() { return embedded::unmoor_engines_python_probe_py; }

std::vector<FoundEngine> find_engines(const std::string& python) { return {look_for("ort", python), look_for("torch", python)}; }

}  // namespace unmoor
