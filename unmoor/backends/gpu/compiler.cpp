#include "unmoor/backends/gpu/compiler.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <iterator>
#include <string_view>
#include <utility>

#include "unmoor/backends/gpu/program.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/sha256.h"

namespace unmoor::gpu {
namespace {

// Fewer kernels than this are not worth a second child.
constexpr size_t worth_two_children = 8;
// In one program: more save little, and make a cached program larger than those that use it need.
constexpr size_t most_together = 16;

constexpr size_t digest_letters = 64;

std::string cache_path() {
  const auto folder = cache_folder();
  return folder.empty() ? folder : cat(folder, "/gpu");
}

std::string program_key(std::string_view digest) { return cat("program ", digest); }

// Groups of about equal size.
std::vector<KernelGroup> grouped(std::span<const KernelSource> kernels) {
  const size_t count = (kernels.size() + most_together - 1) / most_together;
  std::vector<KernelGroup> groups;
  for (size_t i = 0; i < count; ++i) {
    const auto part = kernels.subspan(kernels.size() * i / count, kernels.size() * (i + 1) / count - kernels.size() * i / count);
    groups.emplace_back(part.begin(), part.end());
  }
  return groups;
}

}  // namespace

CompiledKernel::~CompiledKernel() {
  if (function_ != Function{}) driver_->release(function_);
}

bool CompiledKernel::is_loaded() {
  const std::lock_guard lock(mutex_);
  return function_ != Function{};
}

void CompiledKernel::load(std::shared_ptr<LoadedProgram> program, const std::string& entry) {
  const std::lock_guard lock(mutex_);
  if (function_ != Function{}) return;
  function_ = driver_->function(program->module(), entry);
  program_ = std::move(program);
}

void CompiledKernel::launch(Queue queue, std::array<uint32_t, 3> groups, std::span<const Argument> arguments) {
  const std::lock_guard lock(mutex_);
  if (function_ == Function{}) fail(ErrorKind::Internal, "kernel ", source_.entry, " was not compiled");
  driver_->launch(queue, function_, groups, arguments);
}

Compiler::Compiler(std::shared_ptr<Driver> driver, std::string vendor, size_t device_index)
    : driver_(std::move(driver)),
      target_{std::move(vendor), device_index, driver_->fingerprint(), driver_->info().name},
      cache_(cache_path()) {}

std::shared_ptr<CompiledKernel> Compiler::kernel(const KernelSource& source) {
  const std::lock_guard lock(mutex_);
  auto& known = kernels_[key_of(source)];
  if (known == nullptr) known = std::make_shared<CompiledKernel>(driver_, source);
  return known;
}

std::string Compiler::key_of(const KernelSource& source) const {
  return cat(target_.fingerprint, "\n", source.entry, "\n", source.signature, "\n", source.text, "\n");
}

std::shared_ptr<LoadedProgram> Compiler::cached_program(const std::string& digest) {
  auto& known = programs_[digest];
  auto program = known.lock();
  if (program != nullptr) return program;
  const auto binary = cache_.find(program_key(digest));
  if (!binary) return nullptr;
  program = std::make_shared<LoadedProgram>(driver_, *binary);
  known = program;
  return program;
}

// A kernel's own file names the program that it is in: its digest, then its entry.
bool Compiler::load_from_cache(CompiledKernel& kernel) {
  const auto found = cache_.find(key_of(kernel.source()));
  if (!found || found->size() <= digest_letters) return false;
  const std::string text(reinterpret_cast<const char*>(found->data()), found->size());
  try {
    const auto program = cached_program(text.substr(0, digest_letters));
    if (program != nullptr) kernel.load(program, text.substr(digest_letters));
    return program != nullptr;
  } catch (const Error&) {
    return false;  // The driver does not take it any more: compile it again.
  }
}

// Loads and stores a program. Reads the map of kernels, which its caller's caller holds the lock for.
void Compiler::take(const KernelGroup& group, std::span<const std::byte> binary) const {
  const auto program = std::make_shared<LoadedProgram>(driver_, binary);
  Sha256 hash;
  for (const auto& kernel : group) hash.add(key_of(kernel));
  const auto digest = hash.finish();
  for (size_t i = 0; i < group.size(); ++i) kernels_.at(key_of(group[i]))->load(program, entry_in_program(group, i));
  cache_.store(program_key(digest), binary);
  for (size_t i = 0; i < group.size(); ++i) {
    const auto place = cat(digest, entry_in_program(group, i));
    cache_.store(key_of(group[i]), std::as_bytes(std::span(place)));
  }
}

std::vector<CompileFailure> Compiler::compile(const std::vector<KernelSource>& missing) const {
  const auto compile_part = [this](std::span<const KernelSource> part) {
    return compile_in_child(target_, grouped(part), [this](const KernelGroup& group, std::span<const std::byte> binary) { take(group, binary); });
  };
  const auto all = std::span(missing);
  if (missing.size() < worth_two_children) return compile_part(all);
  auto other = std::async(std::launch::async, [&] { return compile_part(all.subspan(all.size() / 2)); });
  auto failures = compile_part(all.first(all.size() / 2));
  std::ranges::move(other.get(), std::back_inserter(failures));
  return failures;
}

void Compiler::compile_missing() {
  const std::lock_guard lock(mutex_);
  std::vector<KernelSource> missing;
  for (const auto& [key, kernel] : kernels_) {
    if (!kernel->is_loaded() && !load_from_cache(*kernel)) missing.push_back(kernel->source());
  }
  if (missing.empty()) return;
  const auto failures = compile(missing);
  // A kernel that cannot be compiled must not fail every later plan.
  for (const auto& failure : failures) kernels_.erase(key_of(failure.kernel));
  cache_.trim();
  if (!failures.empty()) fail(ErrorKind::Device, failures[0].words);
}

std::vector<KernelSource> Compiler::sources() {
  const std::lock_guard lock(mutex_);
  std::vector<KernelSource> result;
  for (const auto& [key, kernel] : kernels_) result.push_back(kernel->source());
  return result;
}

}  // namespace unmoor::gpu
