#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "unmoor/base/error.h"
#include "unmoor/runtime/wire.h"
#include "unmoor/runtime/worker.h"

namespace unmoor {
namespace {

using nlohmann::json;

PlanOptions options_from(const json& from) {
  PlanOptions options;
  options.fallback = from.at("forbid").get<bool>() ? Fallback::Forbid : Fallback::Report;
  for (const auto& [name, dims] : from.at("shapes").items()) options.shapes[name] = Shape(dims.get<std::vector<int64_t>>());
  options.passes.fuse = from.at("fuse");
  options.passes.widen_to_float64 = from.at("widen");
  options.only_kernel = from.at("kernel");
  options.place_only = from.at("place_only");
  options.keep_float32 = from.at("keep_float32").get<NodeNames>();
  return options;
}

json infos_json(const std::vector<ValueInfo>& infos) {
  json list = json::array();
  for (const auto& info : infos) list.push_back(to_json(info));
  return list;
}

// The child's side of the conversation.
class Server {
 public:
  Server(int input, int output, const OpenRunner& open) : input_(input), output_(output), open_(open) {}

  int serve() {
    Message request;
    while (read(request)) {
      Message reply;
      try {
        reply = answer(request);
        reply.head["ok"] = true;
      } catch (const Error& error) {
        reply = {{{"ok", false}, {"kind", static_cast<int>(error.kind())}, {"text", error.what()}}, {}};
      } catch (const std::exception& error) {
        reply = {{{"ok", false}, {"kind", static_cast<int>(ErrorKind::Internal)}, {"text", error.what()}}, {}};
      }
      if (!write(reply)) return 1;
    }
    return 0;
  }

 private:
  // Passes what a run shows on to the parent.
  class Watcher : public Observer {
   public:
    Watcher(Server& server, bool steps) : server_(server), steps_(steps) {}
    bool wants(const ValueInfo& info) override {
      Message reply;
      if (!server_.write({{{"event", "wants"}, {"info", to_json(info)}}, {}}) || !server_.read(reply)) return false;
      return reply.head.value("wanted", false);
    }
    void on_value(const ValueInfo& info, const Data& data) override {
      Message message{{{"event", "value"}, {"info", to_json(info)}}, {}};
      message.head["data"] = pack(data, message.bytes);
      server_.write(message);
    }
    bool wants_steps() override { return steps_; }
    void on_step(const StepTrace& step) override {
      server_.write({{{"event", "step"}, {"step", step.step}, {"ms", step.milliseconds}, {"bytes", step.copied_bytes}, {"node", step.node},
                      {"op", step.op}, {"kernel", step.kernel}, {"device", step.device}},
                     {}});
    }

   private:
    Server& server_;
    bool steps_;
  };

  Message answer(const Message& request) {
    const std::string what = request.head.at("do");
    if (what == "open") return open(request.head);
    if (runner_ == nullptr) fail(ErrorKind::Internal, "the worker has no model open");
    if (what == "run") {
      Watcher watcher(*this, request.head.at("steps"));
      const auto inputs = unpack_named(request.head.at("inputs"), request.bytes);
      const auto outputs = runner_->run(inputs, request.head.at("watch").get<bool>() ? &watcher : nullptr);
      Message reply{json::object(), {}};
      reply.head["outputs"] = pack(outputs, reply.bytes);
      return reply;
    }
    if (what == "run_step") {
      const auto outputs = runner_->run_step(request.head.at("step"), unpack_named(request.head.at("inputs"), request.bytes));
      Message reply{{{"outputs", json::array()}}, {}};
      for (const Data& output : outputs) reply.head["outputs"].push_back(pack(output, reply.bytes));
      return reply;
    }
    if (what == "time") {
      const auto inputs = unpack_named(request.head.at("inputs"), request.bytes);
      return {{{"times", runner_->time_runs(inputs, request.head.at("count"), request.head.at("seconds"))}}, {}};
    }
    return answer_about(what);
  }

  Message answer_about(const std::string& what) {
    if (what == "values") return {{{"values", infos_json(runner_->values())}}, {}};
    if (what == "stats") return {{{"prepare_ms", runner_->prepare_ms()}, {"peak_bytes", runner_->peak_bytes()}}, {}};
    if (what == "plan") return {{{"plan", to_json(runner_->plan())}}, {}};
    if (what != "steps") fail(ErrorKind::Internal, "a worker was asked to '", what, "'");
    json steps = json::array();
    for (const StepInfo& step : runner_->steps()) {
      steps.push_back({{"node", step.node}, {"op", step.op}, {"kernel", step.kernel}, {"device", step.device}, {"inputs", step.inputs},
                       {"outputs", step.outputs}});
    }
    return {{{"steps", steps}}, {}};
  }

  Message open(const json& head) {
    WorkerRequest request;
    request.model = head.at("model");
    request.device = head.at("device");
    request.options = options_from(head.at("options"));
    for (const auto& [key, value] : head.at("settings").items()) request.settings[key] = value;
    runner_ = open_(request);
    return {{{"inputs", infos_json(runner_->inputs())}, {"outputs", infos_json(runner_->outputs())}, {"load_ms", runner_->load_ms()}}, {}};
  }

  bool read(Message& message) {
    return read_message(
        [this](std::span<std::byte> bytes) {
          while (!bytes.empty()) {
            const ssize_t got = ::read(input_, bytes.data(), bytes.size());
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return false;
            bytes = bytes.subspan(static_cast<size_t>(got));
          }
          return true;
        },
        message);
  }

  bool write(const Message& message) {
    return write_message(
        [this](std::span<const std::byte> bytes) {
          while (!bytes.empty()) {
            const ssize_t written = ::write(output_, bytes.data(), bytes.size());
            if (written < 0 && errno == EINTR) continue;
            if (written <= 0) return false;
            bytes = bytes.subspan(static_cast<size_t>(written));
          }
          return true;
        },
        message);
  }

  int input_;
  int output_;
  const OpenRunner& open_;
  std::unique_ptr<ModelRunner> runner_;
};

}  // namespace

int serve_worker(const OpenRunner& open) {
  ::signal(SIGPIPE, SIG_IGN);
  // Drivers print to standard output; the conversation gets a descriptor of its own.
  const int output = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  return Server(STDIN_FILENO, output, open).serve();
}

}  // namespace unmoor
