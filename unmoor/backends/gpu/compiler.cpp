#include "unmoor/backends/gpu/compiler.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "unmoor/base/child.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"

namespace unmoor::gpu {
namespace {

using nlohmann::json;

// A compiler that says nothing for so long hangs.
constexpr double patience_seconds = 300;
constexpr uint64_t most_message_bytes = uint64_t{1} << 30;
// Fewer kernels than this are not worth a second child.
constexpr size_t worth_two_children = 4;

std::string cache_path() {
  const auto folder = cache_folder();
  return folder.empty() ? folder : cat(folder, "/gpu");
}

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
std::vector<uint8_t> read_message(Child& child) {
  uint64_t size = 0;
  if (!child.read(std::as_writable_bytes(std::span(&size, 1)), patience_seconds) || size > most_message_bytes) return {};
  std::vector<uint8_t> message(size);
  return child.read(std::as_writable_bytes(std::span(message)), patience_seconds) ? message : std::vector<uint8_t>{};
}

[[noreturn]] void fail_on_child(Child& child, const std::string& entry, const std::string& device) {
  child.close_input();
  const auto end = child.finish(5);
  auto words = child.errors();
  while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) words.pop_back();
  fail(ErrorKind::Device, "the compiler of ", device, " ended while it compiled ", entry, " (", end.text(), ")",
       words.empty() ? "" : ": ", words);
}

}  // namespace

CompiledKernel::~CompiledKernel() {
  if (function_ != Function{}) driver_->release(function_);
  if (module_ != Module{}) driver_->release(module_);
}

bool CompiledKernel::is_loaded() {
  const std::lock_guard lock(mutex_);
  return function_ != Function{};
}

void CompiledKernel::load(std::span<const std::byte> binary) {
  const std::lock_guard lock(mutex_);
  if (function_ != Function{}) return;
  if (module_ == Module{}) module_ = driver_->load(binary);
  function_ = driver_->function(module_, source_.entry);
}

void CompiledKernel::launch(Queue queue, std::array<uint32_t, 3> groups, std::span<const Argument> arguments) {
  const std::lock_guard lock(mutex_);
  if (function_ == Function{}) fail(ErrorKind::Internal, "kernel ", source_.entry, " was not compiled");
  driver_->launch(queue, function_, groups, arguments);
}

Compiler::Compiler(std::shared_ptr<Driver> driver, std::string vendor, size_t device_index)
    : driver_(std::move(driver)), vendor_(std::move(vendor)), device_index_(device_index), cache_(cache_path()) {}

std::shared_ptr<CompiledKernel> Compiler::kernel(const KernelSource& source) {
  const std::lock_guard lock(mutex_);
  auto& known = kernels_[key_of(source)];
  if (known == nullptr) known = std::make_shared<CompiledKernel>(driver_, source);
  return known;
}

std::string Compiler::key_of(const KernelSource& source) const {
  return cat(driver_->fingerprint(), "\n", source.entry, "\n", source.signature, "\n", source.options, "\n", source.text, "\n");
}

bool Compiler::load_from_cache(CompiledKernel& kernel) const {
  const auto binary = cache_.find(key_of(kernel.source()));
  if (!binary) return false;
  try {
    kernel.load(*binary);
  } catch (const Error&) {
    return false;  // The driver does not take it any more: compile it again.
  }
  return true;
}

void Compiler::compile(const std::vector<std::shared_ptr<CompiledKernel>>& missing) const {
  if (missing.size() < worth_two_children) {
    compile_in_child(missing, 0, 1);
    return;
  }
  auto other = std::async(std::launch::async, [&] { compile_in_child(missing, 1, 2); });
  compile_in_child(missing, 0, 2);
  other.get();
}

void Compiler::compile_missing() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<CompiledKernel>> missing;
  for (const auto& [key, kernel] : kernels_) {
    if (!kernel->is_loaded() && !load_from_cache(*kernel)) missing.push_back(kernel);
  }
  if (missing.empty()) return;
  try {
    compile(missing);
  } catch (...) {
    // A kernel that cannot be compiled must not fail every later plan.
    std::erase_if(kernels_, [](const auto& item) { return !item.second->is_loaded(); });
    throw;
  }
  cache_.trim();
}

std::vector<KernelSource> Compiler::sources() {
  const std::lock_guard lock(mutex_);
  std::vector<KernelSource> result;
  for (const auto& [key, kernel] : kernels_) result.push_back(kernel->source());
  return result;
}

void Compiler::compile_in_child(const std::vector<std::shared_ptr<CompiledKernel>>& kernels, size_t first, size_t step) const {
  json request{{"vendor", vendor_}, {"device", device_index_}, {"fingerprint", driver_->fingerprint()}, {"kernels", json::array()}};
  for (size_t i = first; i < kernels.size(); i += step) {
    const auto& source = kernels[i]->source();
    request["kernels"].push_back(
        {{"entry", source.entry}, {"text", source.text}, {"options", source.options}, {"signature", source.signature}});
  }
  const TemporaryFolder folder;  // The driver's own cache and temporary files.
  Child child({own_program(), "--worker-compile"}, {cat("POCL_CACHE_DIR=", folder.path())});
  const auto message = json::to_cbor(request);
  const auto& first_entry = kernels[first]->source().entry;
  if (!child.write(bytes_of(message), patience_seconds)) fail_on_child(child, first_entry, driver_->info().name);
  child.close_input();
  for (size_t i = first; i < kernels.size(); i += step) {
    const auto& source = kernels[i]->source();
    const auto answer = json::from_cbor(read_message(child), true, false);
    if (answer.is_discarded() || !answer.is_object()) fail_on_child(child, source.entry, driver_->info().name);
    if (answer.contains("error")) {
      fail(ErrorKind::Device, driver_->info().name, " cannot compile ", source.entry, ": ", answer.value("error", std::string()));
    }
    const auto& binary = answer.at("binary").get_binary();
    cache_.store(key_of(source), bytes_of(binary));
    kernels[i]->load(bytes_of(binary));
  }
}

namespace {

json compile_one(Driver& driver, const json& kernel) {
  try {
    const auto binary = driver.compile({.entry = kernel.at("entry").get<std::string>(),
                                        .text = kernel.at("text").get<std::string>(),
                                        .options = kernel.at("options").get<std::string>(),
                                        .signature = kernel.at("signature").get<std::string>()});
    std::vector<uint8_t> bytes(binary.size());
    std::memcpy(bytes.data(), binary.data(), binary.size());
    return {{"binary", json::binary(std::move(bytes))}};
  } catch (const Error& error) {
    return {{"error", error.what()}};
  }
}

// An answer for each kernel of the request.
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
  for (const auto& kernel : request.at("kernels")) {
    const auto answer = problem.empty() ? compile_one(*driver, kernel) : json{{"error", problem}};
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
