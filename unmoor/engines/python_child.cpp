#include "unmoor/engines/python_child.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "unmoor/base/error.h"
#include "unmoor/base/json.h"

namespace embedded {
extern const std::string_view unmoor_engines_python_start_py;
extern const std::string_view unmoor_engines_python_probe_py;
extern const std::string_view unmoor_engines_python_serve_py;
extern const std::string_view unmoor_engines_python_onnx_file_py;
extern const std::string_view unmoor_engines_python_onnxruntime_engine_py;
extern const std::string_view unmoor_engines_python_torch_engine_py;
extern const std::string_view unmoor_engines_python_torch_program_py;
extern const std::string_view unmoor_engines_python_file_engine_py;
extern const std::string_view unmoor_engines_python_samples_py;
}  // namespace embedded

namespace unmoor {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr uint32_t magic = 0x454D4E55;  // "UNME"
constexpr uint32_t head_limit = uint32_t{1} << 28;
constexpr uint64_t payload_limit = uint64_t{1} << 40;
constexpr std::string_view hello = "UNMOOR-PYTHON-READY\n";  // start.py writes it first.
constexpr size_t skipped_limit = 64 * 1024;                  // What a wrapper or a site module may print before.
constexpr double start_patience_s = 120;                     // Cold starts from network disks are slow.
constexpr size_t shown_lines = 12;
constexpr size_t shown_bytes = 2000;

struct Frame {
  uint32_t magic;
  uint32_t head_bytes;
  uint64_t payload_bytes;
};

// Reads start.py from its input and runs it; the rest crosses as messages. Files of the working folder are not packages.
std::string loader() {
  return fmt::format(
      "import os,sys\nif sys.path[:1]==['']: del sys.path[0]\nb=b''\nwhile len(b)<{0}:\n p=os.read(0,{0}-len(b))\n if not p: "
      "sys.exit('nobody asked anything')\n b+=p\n"
      "exec(compile(b,'unmoor/start.py','exec'))\n",
      embedded::unmoor_engines_python_start_py.size());
}

// Names and sources, each after what it imports.
json modules() {
  const auto entry = [](const char* name, std::string_view source) { return json::array({name, source}); };
  return json::array({entry("probe", embedded::unmoor_engines_python_probe_py),
                      entry("serve", embedded::unmoor_engines_python_serve_py),
                      entry("onnx_file", embedded::unmoor_engines_python_onnx_file_py),
                      entry("onnxruntime_engine", embedded::unmoor_engines_python_onnxruntime_engine_py),
                      entry("torch_program", embedded::unmoor_engines_python_torch_program_py),
                      entry("torch_engine", embedded::unmoor_engines_python_torch_engine_py),
                      entry("file_engine", embedded::unmoor_engines_python_file_engine_py),
                      entry("samples", embedded::unmoor_engines_python_samples_py)});
}

Child spawn(const std::string& python, const std::string& who) {
  try {
    return Child({python, "-c", loader()});
  } catch (const Error& error) {
    fail(ErrorKind::Device, who, " needs Python, and '", python, "' could not be started (", error.what(),
         "); install Python 3.9 or later, or name one with --python or UNMOOR_PYTHON");
  }
}

}  // namespace

std::string find_python(const std::string& given) {
  if (!given.empty()) return given;
  if (const char* const named = std::getenv("UNMOOR_PYTHON"); named != nullptr && *named != '\0') return named;
  for (const char* const variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* const folder = std::getenv(variable);
    if (folder == nullptr || *folder == '\0') continue;
    const fs::path python = fs::path(folder) / "bin" / "python3";
    if (::access(python.c_str(), X_OK) == 0) return python.string();
  }
  return "python3";
}

PythonChild::PythonChild(const std::string& python, std::string who)
    : who_(std::move(who)), python_(find_python(python)), child_(spawn(python_, who_)) {
  start();
}

void PythonChild::start() {
  const double patience = child_patience(start_patience_s);
  const bool sent = child_.write(std::as_bytes(std::span(embedded::unmoor_engines_python_start_py)), patience);
  std::string seen;
  std::array<std::byte, 1> next{};  // Not one byte more than the greeting may be taken.
  while (sent && !seen.ends_with(hello) && seen.size() < skipped_limit && child_.read(next, patience))
    seen += static_cast<char>(next[0]);
  if (!seen.ends_with(hello)) fail_at_start();
  if (!send({{{"parent", ::getpid()}, {"modules", modules()}}, {}}, patience)) fail_at_start();
}

void PythonChild::fail_at_start() {
  const ChildEnd end = child_.finish(0.2);
  const std::string words = last_words();
  fail(ErrorKind::Device, who_, ": '", python_, "' does not work as Python: ", end.text(),
       words.empty() ? "" : "; it said: ", words, "; name another with --python or UNMOOR_PYTHON");
}

std::string PythonChild::last_words() {
  std::string words = child_.errors();
  while (!words.empty() && words.back() == '\n') words.pop_back();
  size_t at = words.size();
  for (size_t lines = 0; lines < shown_lines && at != std::string::npos && at > 0; ++lines) at = words.rfind('\n', at - 1);
  if (at != std::string::npos && at > 0) words.erase(0, at + 1);
  if (words.size() > shown_bytes) words.erase(0, words.size() - shown_bytes);
  return words;
}

void PythonChild::report_end() {
  const ChildEnd end = child_.finish(1);
  const std::string words = last_words();
  fail(ErrorKind::Device, "the process that runs ", who_, " ended: ", end.text(), words.empty() ? "" : "; it said last: ", words);
}

bool PythonChild::send(const Message& message, double patience_s) {
  const std::string head = message.head.dump(-1, ' ', false, json::error_handler_t::replace);
  if (head.size() > head_limit) fail(ErrorKind::Device, "a message of ", head.size(), " bytes without its values is too long");
  const Frame frame{magic, static_cast<uint32_t>(head.size()), message.bytes.size()};
  return child_.write(std::as_bytes(std::span(&frame, 1)), patience_s) &&
         child_.write(std::as_bytes(std::span(head)), patience_s) && child_.write(message.bytes, patience_s);
}

bool PythonChild::receive(Message& message, double patience_s) {
  Frame frame{};
  if (!child_.read(std::as_writable_bytes(std::span(&frame, 1)), patience_s)) return false;
  if (frame.magic != magic || frame.head_bytes > head_limit || frame.payload_bytes > payload_limit) {
    fail(ErrorKind::Device, "the process that runs ", who_, " cannot be understood: something else writes to its pipe");
  }
  std::string head(frame.head_bytes, '\0');
  if (!child_.read(std::as_writable_bytes(std::span(head)), patience_s)) return false;
  message.bytes.resize(frame.payload_bytes);
  if (!child_.read(message.bytes, patience_s)) return false;
  message.head = read_json(head);
  if (!message.head.is_object())
    fail(ErrorKind::Device, "the process that runs ", who_, " cannot be understood: its message is no JSON object");
  return true;
}

}  // namespace unmoor
