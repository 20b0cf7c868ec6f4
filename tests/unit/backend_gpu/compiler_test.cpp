#include "unmoor/backends/gpu/compiler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "tests/unit/backend_gpu/support.h"
#include "unmoor/backends/gpu/cache.h"
#include "unmoor/backends/gpu/launch.h"
#include "unmoor/base/error.h"
#include "unmoor/base/file.h"

namespace unmoor::gpu {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> some_bytes(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 31);
  return bytes;
}

std::string only_file(const std::string& folder) {
  std::string path;
  for (const auto& entry : fs::directory_iterator(folder)) path = entry.path().string();
  return path;
}

std::string largest_file(const std::string& folder) {
  fs::directory_entry largest;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (largest.path().empty() || entry.file_size() > largest.file_size()) largest = entry;
  }
  return largest.path().string();
}

TEST(BinaryCache, gives_back_what_was_stored) {
  const TemporaryFolder folder;
  const BinaryCache cache(folder.path() + "/gpu");
  EXPECT_FALSE(cache.find("key"));
  cache.store("key", some_bytes(1000));
  EXPECT_EQ(cache.find("key"), some_bytes(1000));
  EXPECT_FALSE(cache.find("another key"));
}

TEST(BinaryCache, never_gives_a_damaged_file) {
  const TemporaryFolder folder;
  const BinaryCache cache(folder.path());
  cache.store("key", some_bytes(100));
  const auto path = only_file(folder.path());
  const auto whole = read_file(path);
  for (size_t i = 0; i < whole.size(); ++i) {
    auto flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    write_file(path, flipped);
    EXPECT_FALSE(cache.find("key")) << "byte " << i << " flipped";
    write_file(path, std::string_view(whole).substr(0, i));
    EXPECT_FALSE(cache.find("key")) << "cut after " << i;
  }
  write_file(path, whole + "x");
  EXPECT_FALSE(cache.find("key"));
  write_file(path, whole);
  EXPECT_TRUE(cache.find("key"));
}

TEST(BinaryCache, drops_what_was_unused_for_longest) {
  const TemporaryFolder folder;
  const BinaryCache cache(folder.path(), 5000);
  cache.store("old", some_bytes(2000));
  const auto old = only_file(folder.path());
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(1));
  cache.store("new", some_bytes(2000));
  cache.store("newer", some_bytes(2000));
  cache.trim();
  EXPECT_FALSE(cache.find("old"));
  EXPECT_TRUE(cache.find("new"));
  EXPECT_TRUE(cache.find("newer"));
}

TEST(BinaryCache, without_a_folder_keeps_nothing) {
  const BinaryCache cache("");
  cache.store("key", some_bytes(10));
  cache.trim();
  EXPECT_FALSE(cache.find("key"));
}

// What went wrong, in words.
std::string words_of_failure(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Setting() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

KernelSource source(const std::string& entry, const std::string& body) {
  return {.entry = entry, .text = "__kernel void " + entry + "(__global int* x) { " + body + " }", .signature = "m"};
}

TEST(Compiler, a_broken_kernel_is_named_with_the_compilers_words_and_harms_no_other) {
  UNMOOR_NEED_DEVICE();
  auto& compiler = gpu_device(*device).compiler();
  compiler.kernel(source("broken", "x[0] = no_such_name;"));
  const auto words = words_of_failure([&] { compiler.compile_missing(); });
  EXPECT_NE(words.find("cannot compile broken"), std::string::npos) << words;
  EXPECT_NE(words.find("no_such_name"), std::string::npos) << words;
  const auto fine = compiler.kernel(source("fine", "x[0] = 1;"));
  compiler.compile_missing();
  EXPECT_TRUE(fine->is_loaded());
}

TEST(Compiler, a_child_that_dies_is_an_error_with_its_end) {
  UNMOOR_NEED_DEVICE();
  auto& compiler = gpu_device(*device).compiler();
  const Setting worker("UNMOOR_WORKER", "/bin/false");
  compiler.kernel(source("unlucky", "x[0] = 2;"));
  const auto words = words_of_failure([&] { compiler.compile_missing(); });
  EXPECT_NE(words.find("unlucky"), std::string::npos) << words;
  EXPECT_NE(words.find("exit status 1"), std::string::npos) << words;
}

TEST(Compiler, a_broken_kernel_leaves_those_beside_it_to_be_compiled) {
  UNMOOR_NEED_DEVICE();
  auto& compiler = gpu_device(*device).compiler();
  // So few share a program, and then a child: each is compiled again alone, in the order of their names.
  compiler.kernel(source("m_broken", "x[0] = no_such_name;"));
  const auto before = compiler.kernel(source("a_fine", "x[0] = 1;"));
  const auto behind = compiler.kernel(source("z_fine", "x[0] = 2;"));
  EXPECT_THROW(compiler.compile_missing(), Error);
  compiler.compile_missing();
  EXPECT_TRUE(before->is_loaded());
  EXPECT_TRUE(behind->is_loaded());
}

// Two kernels that define the same names, each its own way, in one program.
TEST(Compiler, kernels_of_one_program_do_not_see_each_others_names) {
  UNMOOR_NEED_DEVICE();
  const TemporaryFolder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path());
  const auto own = make_opencl_backend()->open(0);
  auto& compiler = gpu_device(*own).compiler();
  std::vector<std::shared_ptr<CompiledKernel>> kernels;
  for (const int value : {5, 7}) {
    kernels.push_back(compiler.kernel({.entry = "same",
                                       .text = cat("#define VALUE ", value, "\n#define HELPER static\nHELPER int value_of(void) { return VALUE; }\n",
                                                   "__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void same(__global int* x) ",
                                                   "{ if (get_global_id(0) == 0) x[0] = value_of(); }\n"),
                                       .signature = "m"}));
  }
  compiler.compile_missing();
  // One program, and what says for each kernel where it is.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path() + "/unmoor/gpu"), fs::directory_iterator()), 3);
  const auto stream = own->make_stream();
  const auto buffer = own->allocate(4);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    auto& ours = gpu_stream(*stream);
    const Argument argument{.is_memory = true, .memory = ours.memory_of(*buffer)};
    ours.launch(*kernels[i], {1, 1, 1}, std::span(&argument, 1));
    int found = 0;
    stream->download(std::as_writable_bytes(std::span(&found, 1)), *buffer, 0);
    stream->synchronize();
    EXPECT_EQ(found, i == 0 ? 5 : 7);
  }
}

TEST(Compiler, a_child_that_hangs_is_ended_with_an_error) {
  UNMOOR_NEED_DEVICE();
  const TemporaryFolder folder;
  const auto script = folder.path() + "/hangs";
  write_file(script, "#!/bin/sh\ncat > /dev/null\nexec sleep 600\n");
  fs::permissions(script, fs::perms::owner_all);
  const Setting worker("UNMOOR_WORKER", script);
  const Setting patience("UNMOOR_PATIENCE", "0.5");
  auto& compiler = gpu_device(*device).compiler();
  compiler.kernel(source("endless", "x[0] = 5;"));
  const auto words = words_of_failure([&] { compiler.compile_missing(); });
  EXPECT_NE(words.find("hung while it compiled endless"), std::string::npos) << words;
}

TEST(Compiler, a_cached_kernel_needs_no_child) {
  UNMOOR_NEED_DEVICE();
  const TemporaryFolder folder;
  const Setting cache("XDG_CACHE_HOME", folder.path());
  const auto text = source("cached", "x[0] = 3;");
  const auto first = make_opencl_backend()->open(0);
  gpu_device(*first).compiler().kernel(text);
  first->finish_preparation();
  const auto kept = largest_file(folder.path() + "/unmoor/gpu");  // The program; beside it lies what says where in it the kernel is.
  ASSERT_FALSE(kept.empty());
  const Setting worker("UNMOOR_WORKER", "/bin/false");
  const auto second = make_opencl_backend()->open(0);
  const auto kernel = gpu_device(*second).compiler().kernel(text);
  second->finish_preparation();
  EXPECT_TRUE(kernel->is_loaded());
  // A file that was cut is not loaded: then the child, which fails here, is needed again.
  write_file(kept, read_file(kept).substr(0, 1000));
  const auto third = make_opencl_backend()->open(0);
  gpu_device(*third).compiler().kernel(text);
  EXPECT_FALSE(words_of_failure([&] { third->finish_preparation(); }).empty());
}

TEST(Gather, an_index_outside_of_the_axis_is_an_error_and_reads_nothing) {
  UNMOOR_NEED_DEVICE();
  const Node node{.name = "g", .op = "Gather", .inputs = {ValueId{0}, ValueId{1}}, .outputs = {ValueId{2}}, .attributes = {}, .origin = {}};
  const TensorType data{DType::F32, Shape{3, 2}};
  const TensorType result{DType::F32, Shape{2, 2}};
  const OpCall call{.node = node, .inputs = {data, TensorType{DType::I64, Shape{2}}}, .outputs = {result}, .constants = {nullptr, nullptr}};
  const auto& kernel = device->kernels().find("Gather")[0];
  const auto x = Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto words = words_of_failure([&] { run_on_device(*device, kernel, call, {x, Tensor::from<int64_t>({2}, {0, 1000000000})}); });
  EXPECT_NE(words.find("index"), std::string::npos) << words;
  const auto good = run_on_device(*device, kernel, call, {x, Tensor::from<int64_t>({2}, {-1, 0})});
  EXPECT_EQ(good[0].span<float>()[0], 5.0F);
}

}  // namespace
}  // namespace unmoor::gpu
