#include <algorithm>
#include <set>

#include "unmoor/base/demangle.h"
#include "unmoor/base/error.h"
#include "unmoor/engines/engine.h"
#include "unmoor/engines/failure.h"
#include "unmoor/engines/python_child.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr double silence_limit_s = 900;  // An engine that says nothing for so long hangs.

// The error that a reply stands for.
[[noreturn]] void fail_as_told(const std::string& who, const json& reply) {
  const std::string kind = reply.value("kind", "failure");
  const std::string text = reply.value("text", "");
  if (kind == "missing") fail(ErrorKind::Device, who, ": ", text);
  if (kind == "broken") fail(ErrorKind::Device, who, ": ", demangled(text));
  if (kind == "wrong") fail(ErrorKind::InvalidArgument, who, ": ", text);
  fail(kind == "memory" ? ErrorKind::OutOfMemory : ErrorKind::Device, who, ": ", explained_failure(demangled(text)));
}

class EngineRunner : public Runner {
 public:
  explicit EngineRunner(EngineRequest request) : request_(std::move(request)) {
    for (const ValueInfo& value : request_.values) infos_.emplace(value.name, value);
    for (const ValueInfo& value : request_.outputs) infos_.emplace(value.name, value);
    start();
  }

  std::string name() const override { return request_.name.text(); }
  std::vector<ValueInfo> inputs() const override { return request_.inputs; }
  std::vector<ValueInfo> outputs() const override { return request_.outputs; }
  std::vector<ValueInfo> values() const override { return shown_; }
  double load_ms() const override { return load_ms_; }
  size_t peak_bytes() const override { return ask({{{"do", "stats"}}, {}}).head.at("peak_bytes"); }

  PlanInfo plan() override {
    PlanInfo info;
    info.devices = {name()};
    info.versions = {versions_};
    info.notes = {notes_.begin(), notes_.end()};
    return info;
  }

  NamedData run(const NamedData& inputs, Observer* observer) override {
    check_inputs(inputs);
    if (child_ == nullptr) start();  // What it shows decides what is asked for.
    if (observer != nullptr) match(inputs);
    json wanted = json::array();
    for (const ValueInfo& value : shown_) {
      if (observer != nullptr && observer->wants(value)) wanted.push_back(value.name);
    }
    Message request{{{"do", "run"}, {"wanted", wanted}, {"watched", observer != nullptr}}, {}};
    request.head["inputs"] = pack(inputs, request.bytes);
    const Message reply = ask(request, observer);
    take_notes(reply.head);
    NamedData outputs = unpack_named(reply.head.at("outputs"), reply.bytes);
    check_outputs(outputs);
    return outputs;
  }

  std::vector<double> time_runs(const NamedData& inputs, size_t count, double seconds) override {
    check_inputs(inputs);
    Message request{{{"do", "time"}, {"count", count}, {"seconds", seconds}}, {}};
    request.head["inputs"] = pack(inputs, request.bytes);
    return ask(request, nullptr, seconds).head.at("times").get<std::vector<double>>();
  }

 private:
  // Shapes of the file's values where every dimension is known.
  json shapes() const {
    json result = json::object();
    for (const ValueInfo& value : request_.values) {
      const auto* const type = std::get_if<TensorType>(&value.type);
      if (type != nullptr && type->shape.has_rank() && type->shape.is_known()) result[value.name] = type->shape.dims();
    }
    return result;
  }

  static json names_of(const std::vector<ValueInfo>& infos) {
    json names = json::array();
    for (const ValueInfo& info : infos) names.push_back(info.name);
    return names;
  }

  void start() const {
    child_ = std::make_unique<PythonChild>(request_.python, name());
    const json head{{"do", "open"},
                    {"engine", request_.name.engine},
                    {"device", request_.name.device},
                    {"model", request_.model},
                    {"settings", request_.settings},
                    {"threads", request_.threads},
                    {"forbid", request_.forbid},
                    {"inputs", names_of(request_.inputs)},
                    {"outputs", names_of(request_.outputs)},
                    {"shown", names_of(request_.values)},
                    {"shapes", shapes()}};
    try {
      const Message opened = exchange({head, {}}, nullptr, 0);
      load_ms_ = opened.head.at("load_ms");
      versions_ = opened.head.at("versions").get<std::map<std::string, std::string>>();
      show(opened.head.at("values"));
      take_notes(opened.head);
      unmatched_ = opened.head.at("unmatched").get<std::vector<std::string>>();
      matched_ = false;
    } catch (const json::exception& error) {
      child_.reset();
      fail(ErrorKind::Device, name(), ": its answer cannot be understood: ", error.what());
    } catch (...) {
      child_.reset();  // It has no model.
      throw;
    }
  }

  void show(const json& names) const {
    shown_.clear();
    for (const auto& each : names) {
      const auto known = infos_.find(each.get<std::string>());
      shown_.push_back(known != infos_.end() ? known->second
                                             : ValueInfo{each, TensorType{DType::F32, Shape::of_unknown_rank()}, "", ""});
    }
  }

  // Says each thing once.
  void take_notes(const json& reply) const {
    for (const auto& note : reply.at("notes")) {
      const std::string text = cat(name(), ": ", note.get<std::string>());
      if (notes_.insert(text).second && request_.note) request_.note(text);
    }
  }

  // Lets an engine whose values have other names compare what it has with what the ONNX model has, once.
  void match(const NamedData& inputs) {
    if (unmatched_.empty() || matched_ || !request_.known_values) return;
    matched_ = true;
    Message request{{{"do", "match"}}, {}};
    request.head["inputs"] = pack(inputs, request.bytes);
    request.head["known"] = pack(request_.known_values(inputs, unmatched_), request.bytes);
    const Message reply = ask(request);
    show(reply.head.at("values"));
    take_notes(reply.head);
  }

  // Fails with InvalidArgument on a missing, unknown or ill-typed input.
  void check_inputs(const NamedData& inputs) const {
    for (const ValueInfo& input : request_.inputs) {
      const auto found = inputs.find(input.name);
      if (found == inputs.end()) fail(ErrorKind::InvalidArgument, "input '", input.name, "' was not given");
      const auto* const declared = std::get_if<TensorType>(&input.type);
      if (declared == nullptr || !found->second.is_tensor() || found->second.tensor().dtype() == declared->dtype) continue;
      fail(ErrorKind::InvalidArgument, "input '", input.name, "' is ", found->second.tensor().dtype(), ", not ", declared->dtype);
    }
    for (const auto& [given, data] : inputs) {
      if (std::ranges::find(request_.inputs, given, &ValueInfo::name) == request_.inputs.end()) {
        fail(ErrorKind::InvalidArgument, "the model has no input '", given, "'");
      }
    }
  }

  void check_outputs(const NamedData& outputs) const {
    for (const ValueInfo& output : request_.outputs) {
      if (!outputs.contains(output.name)) fail(ErrorKind::Device, name(), ": it gave no output '", output.name, "'");
    }
  }

  // `busy`: seconds for which the answer may take longer than an engine may be silent.
  Message ask(const Message& request, Observer* observer = nullptr, double busy = 0) const {
    if (child_ == nullptr) start();
    return exchange(request, observer, busy);
  }

  // Sends a request, passes on what the run shows, and takes the answer. Whatever interrupts this ends the child: nobody knows
  // where the next message would begin.
  Message exchange(const Message& request, Observer* observer, double busy) const {
    Message reply;
    try {
      converse(request, observer, child_patience(silence_limit_s) + busy, reply);
    } catch (const json::exception& error) {
      child_.reset();
      fail(ErrorKind::Device, name(), ": its answer cannot be understood: ", error.what());
    } catch (...) {
      child_.reset();
      throw;
    }
    if (!reply.head.value("ok", false)) fail_as_told(name(), reply.head);
    return reply;
  }

  void converse(const Message& request, Observer* observer, double patience, Message& reply) const {
    if (!child_->send(request, patience)) child_->report_end();
    for (;;) {
      if (!child_->receive(reply, patience)) child_->report_end();
      if (reply.head.value("event", "") != "value") return;
      const std::string value = reply.head.at("name");
      const auto info = std::ranges::find(shown_, value, &ValueInfo::name);
      if (observer != nullptr && info != shown_.end()) observer->on_value(*info, unpack(reply.head.at("data"), reply.bytes));
    }
  }

  EngineRequest request_;
  std::map<std::string, ValueInfo> infos_;      // What the file says of its values.
  mutable std::unique_ptr<PythonChild> child_;  // Started again by the first call after it ended.
  mutable std::vector<ValueInfo> shown_;        // What it can show, in its order.
  mutable std::map<std::string, std::string> versions_;
  mutable std::set<std::string> notes_;
  mutable double load_ms_ = 0;
  mutable std::vector<std::string> unmatched_;  // Values of the ONNX model for which no name tells what they are there.
  mutable bool matched_ = false;                // Whether this child has compared them.
};

}  // namespace

std::unique_ptr<Runner> make_engine_runner(EngineRequest request) { return std::make_unique<EngineRunner>(std::move(request)); }

}  // namespace unmoor
