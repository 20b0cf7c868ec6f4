#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/engines/engine.h"

namespace unmoor {
namespace {

// A program that stands in for Python and speaks the engines' protocol: it shows the value 'a' by name and 'b' only once it has
// compared, writes down what it is asked, and ends at its first run.
constexpr const char* stand_in = R"py(#!/usr/bin/env python3
import json, os, struct, sys
folder = os.path.dirname(os.path.abspath(__file__))
frame = struct.Struct("<IIQ")
source = sys.stdin.buffer

def write_down(what):
    with open(os.path.join(folder, "asked"), "a") as log:
        log.write(what + "\n")

def receive():
    seen = b""
    while not seen.endswith(b"UNME"):  # After the first message, which the program for Python goes before, at once.
        seen += source.read(1)
    head, payload = struct.unpack("<IQ", source.read(12))
    message = json.loads(source.read(head))
    source.read(payload)
    return message

def send(**head):
    text = json.dumps({"ok": True, "notes": [], **head}).encode()
    sys.stdout.buffer.write(frame.pack(0x454D4E55, len(text), 0) + text)
    sys.stdout.buffer.flush()

sys.stdout.buffer.write(b"UNMOOR-PYTHON-READY\n")
sys.stdout.buffer.flush()
receive()
while True:
    asked = receive()
    write_down(asked["do"] + "".join(" " + name for name in asked.get("wanted", ())))
    if asked["do"] == "open":
        send(load_ms=1, versions={}, values=["a"], unmatched=["b"])
    elif asked["do"] == "match":
        send(values=["a", "b"])
    else:
        marker = os.path.join(folder, "ran")
        if not os.path.exists(marker):
            open(marker, "w").close()
            os._exit(9)
        send(outputs={"names": [], "values": []})
)py";

class Watcher : public Observer {
 public:
  bool wants(const ValueInfo&) override { return true; }
};

TEST(EngineRunner, a_child_that_was_started_again_compares_again_before_it_is_asked_for_values) {
  const TemporaryFolder folder;
  const std::string program = folder.path() + "/python";
  write_file(program, stand_in);
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  EngineRequest request;
  request.name = *parse_engine("torch:cpu");
  request.python = program;
  request.values = {{"a", TensorType{DType::F32, {1}}, "", ""}, {"b", TensorType{DType::F32, {1}}, "", ""}};
  request.known_values = [](const NamedData&, const std::vector<std::string>&) { return NamedData(); };
  const auto runner = make_engine_runner(std::move(request));
  Watcher watcher;
  EXPECT_THROW((void)runner->run({}, &watcher), Error);
  (void)runner->run({}, &watcher);
  EXPECT_EQ(read_file(folder.path() + "/asked"), "open\nmatch\nrun a b\nopen\nmatch\nrun a b\n");
}

}  // namespace
}  // namespace unmoor
