#include "unmoor/backends/gpu/compile_child.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "unmoor/base/child.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"

namespace unmoor::gpu {
namespace {

using nlohmann::json;

// A compiler that says nothing for so long hangs.
constexpr double patience_seconds = 300;
constexpr uint64_t most_message_bytes = uint64_t{1} << 30;

std::span<const std::byte> bytes_of(const std::vector<uint8_t>& bytes) { return std::as_bytes(std::span(bytes)); }

bool write_all(int to, const std::vector<uint8_t>& message) {
  const uint64_t size = message.size();
  std::vector<uint8_t> framed(sizeof size);
  std::memcpy(framed.data(), &size, sizeof size);
  framed.insert(framed.end(), message.begin(), message.end());
  for (size_t done = 0; done < framed.size();) {
    const ssize_t written = ::write(to, framed.data() + done, framed.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += static_cast<size_t>(written);
  }
  return true;
}

// A framed message, or nothing if the child ended or hangs.
json read_answer(Child& child) {
  const double patience = child_patience(patience_seconds);
  uint64_t size = 0;
  if (!child.read(std::as_writable_bytes(std::span(&size, 1)), patience) || size > most_message_bytes) return json::value_t::discarded;
  std::vector<uint8_t> message(size);
  if (!child.read(std::as_writable_bytes(std::span(message)), patience)) return json::value_t::discarded;
  return json::from_cbor(message, true, false);
}

// How a child that gave no answer ended, in words.
std::string words_of(Child& child, const std::string& entry, const std::string& device) {
  child.close_input();
  for (int i = 0; i < 200 && child.end().running; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const bool hangs = child.end().running;
  const auto end = child.finish(0);
  auto words = child.errors();
  while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) words.pop_back();
  return cat("the compiler of ", device, hangs ? " hung" : " ended", " while it compiled ", entry, " (", end.text(), ")", words.empty() ? "" : ": ",
             words);
}

json request_for(const CompileTarget& target, std::span<const KernelGroup> groups) {
  json request{{"vendor", target.vendor}, {"device", target.device_index}, {"fingerprint", target.fingerprint}, {"groups", json::array()}};
  for (const auto& group : groups) {
    json kernels = json::array();
    for (const auto& kernel : group) kernels.push_back({{"entry", kernel.entry}, {"text", kernel.text}, {"signature", kernel.signature}});
    request["groups"].push_back(std::move(kernels));
  }
  return request;
}

// One answer: a program, or what is wrong with the only kernel.
void take_answer(const CompileTarget& target, const KernelGroup& group, const json& answer, const TakeProgram& take,
                 std::vector<CompileFailure>& failures) {
  const auto binary = answer.find("binary");
  if (binary == answer.end() || !binary->is_binary()) {
    const auto words = answer.value("error", std::string("its answer makes no sense"));
    for (const auto& kernel : group) failures.push_back({kernel, cat(target.device_name, " cannot compile ", kernel.entry, ": ", words)});
    return;
  }
  try {
    take(group, bytes_of(binary->get_binary()));
  } catch (const Error& error) {
    for (const auto& kernel : group) failures.push_back({kernel, cat(target.device_name, " does not load ", kernel.entry, ": ", error.what())});
  }
}

std::vector<KernelGroup> alone(const KernelGroup& group) {
  std::vector<KernelGroup> result;
  for (const auto& kernel : group) result.push_back({kernel});
  return result;
}

}  // namespace

std::vector<CompileFailure> compile_in_child(const CompileTarget& target, std::vector<KernelGroup> groups, const TakeProgram& take) {
  std::vector<CompileFailure> failures;
  while (!groups.empty()) {
    const TemporaryFolder folder;  // The driver's own cache and temporary files.
    Child child({own_program(), "--worker-compile"}, {cat("POCL_CACHE_DIR=", folder.path())});
    (void)child.write(bytes_of(json::to_cbor(request_for(target, groups))), patience_seconds);  // If it is gone, it gives no answer.
    child.close_input();
    size_t done = 0;
    std::vector<KernelGroup> again;
    for (; done < groups.size(); ++done) {
      const auto answer = read_answer(child);
      if (!answer.is_object()) break;
      if (answer.contains("error") && groups[done].size() > 1) {
        for (auto& one : alone(groups[done])) again.push_back(std::move(one));
      } else {
        take_answer(target, groups[done], answer, take, failures);
      }
    }
    if (done < groups.size()) {
      if (groups[done].size() == 1) {
        failures.push_back({groups[done][0], words_of(child, groups[done][0].entry, target.device_name)});
        return failures;
      }
      for (auto& one : alone(groups[done])) again.push_back(std::move(one));
      again.insert(again.end(), groups.begin() + static_cast<std::ptrdiff_t>(done) + 1, groups.end());
    }
    groups = std::move(again);
  }
  return failures;
}

namespace {

json compile_group(Driver& driver, const json& kernels) {
  KernelGroup group;
  for (const auto& kernel : kernels) {
    group.push_back({.entry = kernel.at("entry").get<std::string>(),
                     .text = kernel.at("text").get<std::string>(),
                     .signature = kernel.at("signature").get<std::string>()});
  }
  try {
    const auto binary = driver.compile(group);
    std::vector<uint8_t> bytes(binary.size());
    std::memcpy(bytes.data(), binary.data(), binary.size());
    return {{"binary", json::binary(std::move(bytes))}};
  } catch (const Error& error) {
    return {{"error", error.what()}};
  }
}

// An answer for each group of the request.
bool serve(const std::vector<uint8_t>& message, int answers) {
  const auto request = json::from_cbor(message);
  const auto vendor_name = request.at("vendor").get<std::string>();
  const auto* const vendor = vendor_named(vendor_name);
  std::unique_ptr<Driver> driver;
  std::string problem;
  try {
    if (vendor == nullptr) fail(ErrorKind::Unsupported, "no driver is named '", vendor_name, "'");
    driver = vendor->open(request.at("device").get<size_t>());
    const auto wanted = request.at("fingerprint").get<std::string>();
    if (driver->fingerprint() != wanted) fail(ErrorKind::Device, "the worker sees another device: ", driver->fingerprint(), ", not ", wanted);
  } catch (const Error& error) {
    problem = error.what();
  }
  for (const auto& group : request.at("groups")) {
    const auto answer = problem.empty() ? compile_group(*driver, group) : json{{"error", problem}};
    if (!write_all(answers, json::to_cbor(answer))) return false;
  }
  return true;
}

}  // namespace

int compile_worker() {
  const int answers = ::dup(STDOUT_FILENO);  // Whatever a driver prints must not mix with the answers.
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  std::vector<uint8_t> message;
  std::array<uint8_t, 65536> part{};
  ssize_t got = 0;
  while ((got = ::read(STDIN_FILENO, part.data(), part.size())) > 0) message.insert(message.end(), part.begin(), part.begin() + got);
  try {
    return serve(message, answers) ? 0 : 1;
  } catch (const std::exception& error) {
    const auto words = cat("compile worker: ", error.what(), "\n");
    return ::write(STDERR_FILENO, words.data(), words.size()) < 0 ? 3 : 2;
  }
}

}  // namespace unmoor::gpu
