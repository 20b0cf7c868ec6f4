#include "unmoor/engines/sample_script.h"

#include "unmoor/base/error.h"
#include "unmoor/engines/python_child.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr double silence_limit_s = 900;  // A script that says nothing for so long hangs.

}  // namespace

struct SampleScript::Connection {
  Connection(const std::string& python, std::string name) : child(python, name), who(std::move(name)) {}

  Message ask(json head) {
    const double patience = child_patience(silence_limit_s);
    Message reply;
    if (!child.send({std::move(head), {}}, patience) || !child.receive(reply, patience)) child.report_end();
    if (reply.head.value("ok", false)) return reply;
    const std::string kind = reply.head.value("kind", "failure");
    fail(kind == "wrong" ? ErrorKind::InvalidArgument : kind == "memory" ? ErrorKind::OutOfMemory : ErrorKind::Device, who, ": ",
         reply.head.value("text", ""));
  }

  PythonChild child;
  std::string who;
};

SampleScript::SampleScript(std::string file, const std::string& python)
    : file_(std::move(file)), connection_(std::make_unique<Connection>(python, cat("--data ", file_))) {
  (void)connection_->ask({{"do", "open_samples"}, {"file", file_}});
}

SampleScript::~SampleScript() = default;

std::optional<NamedData> SampleScript::next() {
  const Message reply = connection_->ask({{"do", "next_sample"}});
  if (!reply.head.contains("sample")) return std::nullopt;
  try {
    return unpack_named(reply.head.at("sample"), reply.bytes);
  } catch (const json::exception& error) {
    fail(ErrorKind::Device, "--data ", file_, ": its sample cannot be understood: ", error.what());
  }
}

}  // namespace unmoor
