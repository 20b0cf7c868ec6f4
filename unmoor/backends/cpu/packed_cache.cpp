#include "unmoor/backends/cpu/packed_cache.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <system_error>

#include "unmoor/backends/cpu/machine.h"
#include "unmoor/backends/cpu/packed_cache_folder.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"
#include "unmoor/base/file_lock.h"
#include "unmoor/base/file_pages.h"
#include "unmoor/base/memory.h"
#include "unmoor/base/stop.h"

namespace unmoor::cpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds(1);       // After a plan: the first run comes first.
constexpr auto last_patience = std::chrono::seconds(5);  // When the program ends.

// The build id of the program or library that this code is in, found by an address in it.
struct BuildId {
  uintptr_t address = 0;
  std::string id;
};

void read_notes(std::span<const std::byte> notes, std::string& id) {
  const auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes.data(), sizeof head);
    const size_t name = sizeof head;
    const size_t content = name + padded(head.n_namesz);
    if (content > notes.size() || head.n_descsz > notes.size() - content) return;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0) {
      id.assign(reinterpret_cast<const char*>(notes.data() + content), head.n_descsz);
      return;
    }
    notes = notes.subspan(std::min(notes.size(), content + padded(head.n_descsz)));
  }
}

int look_for_id(dl_phdr_info* object, size_t, void* data) {
  auto& wanted = *static_cast<BuildId*>(data);
  const std::span headers(object->dlpi_phdr, object->dlpi_phnum);
  const bool holds = std::ranges::any_of(headers, [&](const auto& header) {
    return header.p_type == PT_LOAD && wanted.address - (object->dlpi_addr + header.p_vaddr) < header.p_memsz;
  });
  if (!holds) return 0;
  for (const auto& header : headers) {
    if (header.p_type != PT_NOTE || !wanted.id.empty()) continue;
    read_notes({reinterpret_cast<const std::byte*>(object->dlpi_addr + header.p_vaddr), header.p_memsz}, wanted.id);
  }
  return 1;
}

// Stands for this very build: what another one packed may lie in another order. Empty if the linker was told to write no build
// id.
const std::string& build_id() {
  static const std::string id = [] {
    BuildId wanted{reinterpret_cast<uintptr_t>(&look_for_id), {}};
    ::dl_iterate_phdr(look_for_id, &wanted);
    return wanted.id;
  }();
  return id;
}

FastHash kind_of_files() { return fast_hash(build_id(), fast_hash("packed weights")); }

std::string hex(uint64_t number) {
  std::string text(16, '0');
  for (size_t i = 0; i < text.size(); ++i, number >>= 4) text[text.size() - 1 - i] = "0123456789abcdef"[number & 15];
  return text;
}

std::string start_of_names() { return cat(hex(kind_of_files().low), "-"); }

// Known to this machine alone, so that no model can be made to be taken for another one.
FastHash machine_seed() {
  static const FastHash seed = [] {
    try {
      return fast_hash(read_file("/etc/machine-id"));
    } catch (const Error&) {
      return FastHash{};
    }
  }();
  return seed;
}

// The first, the middle and the last bytes: if a file system's times are wrong, most changes are still seen.
FastHash hash_of_samples(std::span<const std::byte> bytes, FastHash seed) {
  constexpr size_t sample = 1024;
  if (bytes.size() <= 3 * sample) return fast_hash(bytes, seed);
  for (const size_t at : {size_t{0}, (bytes.size() - sample) / 2, bytes.size() - sample})
    seed = fast_hash(bytes.subspan(at, sample), seed);
  return seed;
}

// Weights in a mapped file.
class MappedWeights : public Buffer {
 public:
  MappedWeights(std::shared_ptr<const PackedFile> file, std::span<const std::byte> bytes)
      : file_(std::move(file)), bytes_(bytes) {}
  size_t bytes() const override { return bytes_.size(); }
  std::byte* host() override { return const_cast<std::byte*>(bytes_.data()); }

 private:
  std::shared_ptr<const PackedFile> file_;  // Shared with the cache and with other weights in it.
  std::span<const std::byte> bytes_;
};

std::string in_mib(size_t bytes) { return cat((bytes + (size_t{1} << 19)) >> 20, " MiB"); }

}  // namespace

std::optional<PackedCache::Settings> PackedCache::settings_of(const std::string& text) {
  if (text == "off") return std::nullopt;
  if (text == "on") return Settings{};
  try {
    return Settings{.most_bytes = parse_memory(text)};
  } catch (const Error&) {
    fail(ErrorKind::InvalidArgument, "weights_cache is '", text, "', not on, off or how much it may hold, such as 512M or 8G");
  }
}

PackedCache::PackedCache(Settings settings, std::shared_ptr<ThreadPool> pool)
    : settings_(std::move(settings)), pool_(std::move(pool)) {}

PackedCache::~PackedCache() {
  {
    const std::lock_guard lock(mutex_);
    deadline_ = Clock::now() + last_patience;
    ending_ = true;
  }
  wake_.notify_all();
  if (writer_.joinable()) writer_.join();
}

void PackedCache::complain(const std::string& what) {
  if (problem_.empty()) problem_ = what;
}

std::optional<FastHash> PackedCache::key_of(std::span<const std::byte> constant, const std::string& kind, size_t bytes) {
  const FastHash how = fast_hash(cat(kind, "; ", arch_name(), "; ", constant.size(), "; ", bytes), machine_seed());
  const auto place = place_in_file(constant);
  if (!place) {
    const FastHash content = hash_in_pieces(constant, pool_.get());
    return fast_hash(std::as_bytes(std::span(&content, 1)), how);
  }
  if (place->is_fresh) return std::nullopt;
  const FastHash file = fast_hash(std::as_bytes(std::span(&place->file, 1)), how);
  return hash_of_samples(constant, fast_hash(cat(place->offset), file));
}

void PackedCache::look_into_folder() {
  if (looked_) return;
  looked_ = true;
  if (build_id().empty()) return complain("this build has no build id, which the files are named by");
  std::string problem;
  folder_ = weights_folder(settings_.folder.empty() ? cache_folder() : settings_.folder, problem);
  if (folder_.empty()) return complain(problem);
  for (const std::string& path : weights_files(folder_, start_of_names())) {
    if (!files_.insert(path).second) continue;
    const auto file = PackedFile::open(path, kind_of_files(), problem);
    if (file == nullptr) {
      complain(cat(path, " ", problem));
      continue;
    }
    for (const auto& weights : file->table()) known_.try_emplace(weights.key, Place{file, weights});
  }
}

// The time of the last change is that of the last use: for those who look for what to remove.
void PackedCache::mark_used(const std::string& path) {
  if (used_.insert(path).second) (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

PackedCache::Answer PackedCache::find(std::span<const std::byte> constant, const std::string& kind, size_t bytes) {
  if (bytes < least_weights) return {};
  const std::lock_guard lock(mutex_);
  look_into_folder();
  packed_bytes_ += bytes;
  if (folder_.empty()) return {};
  Answer answer{nullptr, key_of(constant, kind, bytes)};
  const auto found = answer.key ? known_.find(*answer.key) : known_.end();
  if (found == known_.end()) return answer;
  const auto& [file, weights] = found->second;
  const auto held = weights.bytes == bytes ? file->read(weights, *pool_) : std::span<const std::byte>();
  if (held.empty()) {
    complain(cat(file->path(), " is damaged"));
    ::unlink(file->path().c_str());
    files_.erase(file->path());
    known_.erase(found);
    return answer;
  }
  mark_used(file->path());
  packed_bytes_ -= bytes;
  found_bytes_ += bytes;
  answer.packed = std::make_shared<MappedWeights>(file, held);
  return answer;
}

void PackedCache::keep(std::vector<Item> items) {
  const std::lock_guard lock(mutex_);
  looked_ = false;
  size_t bytes = 0;
  for (const Item& item : items) bytes += item.packed->bytes();
  if (bytes < least_file || folder_.empty()) return;
  std::ranges::move(items, std::back_inserter(waiting_));
  if (writer_.joinable()) return wake_.notify_all();
  try {
    writer_ = std::thread([this] { write_waiting(); });
  } catch (const std::system_error& problem) {
    waiting_.clear();
    complain(cat("no thread to write with: ", problem.code().message()));
  }
}

bool PackedCache::goes_on() const { return requested_stop() == 0 && (!ending_ || Clock::now() < deadline_); }

void PackedCache::write_waiting() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    wake_.wait_for(lock, patience, [&] { return ending_.load(); });
    const Items items = std::exchange(waiting_, {});
    const std::string folder = folder_;
    lock.unlock();
    std::string problem;
    try {
      problem = write(items, folder);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    lock.lock();
    if (!problem.empty()) complain(cat("nothing could be written to ", folder, ": ", problem));
  }
}

namespace {

std::optional<FileLock> lock_patiently(const std::string& path, const std::function<bool()>& goes_on) {
  while (true) {
    auto lock = FileLock::try_lock(path);
    if (lock || !goes_on()) return lock;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

std::string PackedCache::write(const Items& items, const std::string& folder) const {
  std::vector<WeightsToWrite> weights;
  for (const Item& item : items) weights.push_back({item.key, {item.packed->host(), item.packed->bytes()}});
  std::ranges::sort(weights, {}, &WeightsToWrite::key);
  const auto same = [](const WeightsToWrite& a, const WeightsToWrite& b) { return a.key == b.key; };
  weights.erase(std::unique(weights.begin(), weights.end(), same), weights.end());
  FastHash content;
  for (const auto& each : weights) content = fast_hash(std::as_bytes(std::span(&each.key, 1)), content);
  const std::string path = cat(folder, "/", start_of_names(), hex(content.low), weights_ending);
  const uint64_t bytes = packed_file_bytes(weights);
  if (bytes > settings_.most_bytes)
    return cat(in_mib(bytes), " are more than the ", in_mib(settings_.most_bytes), " it may hold");
  const auto may_go_on = [this] { return goes_on(); };
  const auto lock = lock_patiently(cat(folder, "/lock"), may_go_on);
  if (!lock) return "its lock is held by others";
  std::string problem;
  if (PackedFile::open(path, kind_of_files(), problem) != nullptr) return {};  // Another process was faster.
  shrink_weights_folder(folder, settings_.most_bytes - bytes);
  const std::string unfinished = cat(path, unfinished_ending);
  problem = write_packed_file(unfinished, kind_of_files(), weights, may_go_on);
  if (problem.empty() && ::rename(unfinished.c_str(), path.c_str()) != 0) {
    problem = std::generic_category().message(errno);
    ::unlink(unfinished.c_str());
  }
  return problem;
}

std::string PackedCache::note() const {
  const std::lock_guard lock(mutex_);
  if (found_bytes_ + packed_bytes_ == 0) return problem_;
  std::string text = cat("packed weights: ", in_mib(found_bytes_), " from the cache, ", in_mib(packed_bytes_), " packed anew");
  if (!folder_.empty()) text += cat("; ", folder_);
  return problem_.empty() ? text : cat(text, "; ", problem_);
}

}  // namespace unmoor::cpu
