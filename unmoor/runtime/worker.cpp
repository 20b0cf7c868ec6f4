#include "unmoor/runtime/worker.h"

#include <array>

#include "unmoor/base/child.h"
#include "unmoor/base/error.h"
#include "unmoor/runtime/wire.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr double silence_limit_s = 900;  // A worker that says nothing for so long hangs.

json to_json(const PlanOptions& options) {
  json shapes = json::object();
  for (const auto& [name, shape] : options.shapes) shapes[name] = shape.dims();
  return {{"forbid", options.fallback == Fallback::Forbid}, {"shapes", shapes}, {"fuse", options.passes.fuse},
          {"widen", options.passes.widen_to_float64}, {"kernel", options.only_kernel}, {"place_only", options.place_only},
          {"keep_float32", options.keep_float32}};
}

// The parent's side: sends each call to the child and waits for its answer.
class WorkerRunner : public Runner {
 public:
  explicit WorkerRunner(WorkerRequest request) : request_(std::move(request)) { start(); }

  std::string name() const override { return request_.device; }
  std::vector<ValueInfo> inputs() const override { return infos(opened_.at("inputs")); }
  std::vector<ValueInfo> outputs() const override { return infos(opened_.at("outputs")); }
  std::vector<ValueInfo> values() const override { return infos(ask_for("values").head.at("values")); }
  double load_ms() const override { return opened_.at("load_ms"); }
  double prepare_ms() const override { return ask_for("stats").head.at("prepare_ms"); }
  size_t peak_bytes() const override { return ask_for("stats").head.at("peak_bytes"); }
  PlanInfo plan() override { return plan_info_from(ask_for("plan").head.at("plan")); }

  NamedData run(const NamedData& inputs, Observer* observer) override {
    Message request{{{"do", "run"}, {"watch", observer != nullptr}, {"steps", observer != nullptr && observer->wants_steps()}}, {}};
    request.head["inputs"] = pack(inputs, request.bytes);
    const Message reply = ask(request, observer);
    return unpack_named(reply.head.at("outputs"), reply.bytes);
  }

  std::vector<double> time_runs(const NamedData& inputs, size_t count, double seconds) override {
    Message request{{{"do", "time"}, {"count", count}, {"seconds", seconds}}, {}};
    request.head["inputs"] = pack(inputs, request.bytes);
    return ask(request, nullptr, seconds).head.at("times").get<std::vector<double>>();
  }

  std::vector<StepInfo> steps() const override {
    std::vector<StepInfo> result;
    const Message reply = ask_for("steps");
    for (const auto& step : reply.head.at("steps")) {
      result.push_back({step.at("node"), step.at("op"), step.at("kernel"), step.at("device"), step.at("inputs"), step.at("outputs")});
    }
    return result;
  }

  std::vector<Data> run_step(size_t step, const NamedData& inputs) override {
    Message request{{{"do", "run_step"}, {"step", step}}, {}};
    request.head["inputs"] = pack(inputs, request.bytes);
    const Message reply = ask(request);
    std::vector<Data> outputs;
    for (const auto& item : reply.head.at("outputs")) outputs.push_back(unpack(item, reply.bytes));
    return outputs;
  }

 private:
  static std::vector<ValueInfo> infos(const json& list) {
    std::vector<ValueInfo> result;
    for (const auto& item : list) result.push_back(value_info_from(item));
    return result;
  }

  void start() const {
    child_ = std::make_unique<Child>(std::vector<std::string>{own_program(), "--worker"});
    json settings = json::object();
    for (const auto& [key, value] : request_.settings) settings[key] = value;
    const Message request{{{"do", "open"}, {"model", request_.model}, {"device", request_.device}, {"options", to_json(request_.options)},
                           {"settings", settings}},
                          {}};
    try {
      opened_ = exchange(request, nullptr, 0).head;
    } catch (...) {
      child_.reset();  // It has no model.
      throw;
    }
  }

  Message ask_for(const char* what) const { return ask(Message{{{"do", what}}, {}}); }

  // `busy`: seconds for which the answer may take longer than a worker may be silent.
  Message ask(const Message& request, Observer* observer = nullptr, double busy = 0) const {
    if (child_ == nullptr) start();
    return exchange(request, observer, busy);
  }

  [[noreturn]] void report_end() const {
    const ChildEnd end = child_->finish(1);
    std::string words = child_->errors();
    child_.reset();
    if (words.size() > 2000) words.erase(0, words.size() - 2000);
    fail(ErrorKind::Device, "the process that runs ", request_.device, " ended: ", end.text(),
         words.empty() ? std::string() : cat("; it said: ", words));
  }

  // Sends a request, serves what the run shows, and takes the answer. Whatever interrupts this ends the child: nobody knows where the next
  // message would begin.
  Message exchange(const Message& request, Observer* observer, double busy) const {
    Message reply;
    try {
      converse(request, observer, child_patience(silence_limit_s) + busy, reply);
    } catch (const json::exception& error) {
      child_.reset();
      fail(ErrorKind::Device, "the process that runs ", request_.device, " cannot be understood: ", error.what());
    } catch (...) {
      child_.reset();
      throw;
    }
    if (!reply.head.value("ok", false)) {
      throw Error(static_cast<ErrorKind>(reply.head.value("kind", static_cast<int>(ErrorKind::Internal))), reply.head.value("text", ""));
    }
    return reply;
  }

  void converse(const Message& request, Observer* observer, double patience, Message& reply) const {
    const ReadBytes read = [&](std::span<std::byte> bytes) { return child_->read(bytes, patience); };
    const WriteBytes write = [&](std::span<const std::byte> bytes) { return child_->write(bytes, patience); };
    if (!write_message(write, request)) report_end();
    for (;;) {
      if (!receive(read, reply)) report_end();
      const std::string event = reply.head.value("event", "");
      if (event.empty()) return;
      if (event == "wants") {
        const bool wanted = observer != nullptr && observer->wants(value_info_from(reply.head.at("info")));
        if (!write_message(write, {{{"wanted", wanted}}, {}})) report_end();
      } else if (event == "value" && observer != nullptr) {
        observer->on_value(value_info_from(reply.head.at("info")), unpack(reply.head.at("data"), reply.bytes));
      } else if (event == "step" && observer != nullptr) {
        const json& step = reply.head;
        observer->on_step({step.at("step"), step.at("ms"), step.at("bytes"), step.at("node"), step.at("op"), step.at("kernel"), step.at("device")});
      }
    }
  }

  bool receive(const ReadBytes& read, Message& reply) const {
    try {
      return read_message(read, reply);
    } catch (const Error& error) {
      fail(ErrorKind::Device, "the process that runs ", request_.device, " cannot be understood: ", error.what());
    }
  }

  WorkerRequest request_;
  mutable std::unique_ptr<Child> child_;  // Started again by the first call after it ended.
  mutable json opened_;
};

}  // namespace

std::unique_ptr<Runner> make_worker_runner(const WorkerRequest& request) { return std::make_unique<WorkerRunner>(request); }

ToolOutput run_tool(const std::vector<std::string>& arguments, double seconds) {
  std::vector<std::string> command{own_program()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Child child(command);
  child.close_input();
  ToolOutput output;
  std::array<std::byte, 4096> part{};
  while (const size_t got = child.read_some(part, child_patience(seconds))) output.json.append(reinterpret_cast<const char*>(part.data()), got);
  const ChildEnd end = child.finish(1);
  output.status = end.status;
  output.errors = child.errors();
  if (end.running || end.signal != 0 || end.status < 0) output.ended = end.text();
  return output;
}

}  // namespace unmoor
