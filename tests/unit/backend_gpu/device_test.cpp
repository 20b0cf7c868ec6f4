#include <gtest/gtest.h>

#include "tests/unit/backend_gpu/support.h"
#include "unmoor/base/error.h"

namespace unmoor::gpu {
namespace {

std::vector<std::byte> numbered(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

TEST(Device, tells_what_it_is) {
  UNMOOR_NEED_DEVICE();
  EXPECT_EQ(device->info().id, "opencl:0");
  EXPECT_FALSE(device->info().name.empty());
  EXPECT_FALSE(device->info().versions.at("driver").empty());
  EXPECT_GT(device->info().memory_bytes, size_t{1} << 20);
  EXPECT_FALSE(device->info().host);
  EXPECT_TRUE(device->info().separate_process);
}

TEST(Device, an_index_that_is_not_there_is_named) {
  UNMOOR_NEED_DEVICE();
  try {
    make_opencl_backend()->open(1000);
    FAIL() << "opencl:1000 was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Device);
    EXPECT_NE(std::string(error.what()).find("opencl:1000"), std::string::npos) << error.what();
  }
}

TEST(Device, refuses_what_it_cannot_allocate) {
  UNMOOR_NEED_DEVICE();
  try {
    device->allocate(size_t{1} << 60);
    FAIL() << "an exbibyte was allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory) << error.what();
  }
}

TEST(Stream, moves_bytes_with_offsets) {
  UNMOOR_NEED_DEVICE();
  const auto a = device->allocate(1000);
  const auto b = device->allocate(1000);
  const auto stream = device->make_stream();
  const auto bytes = numbered(300);
  std::vector<std::byte> back(100);
  stream->upload(*a, 64, bytes);
  stream->copy(*b, 128, *a, 64 + 100, 100);
  stream->download(back, *b, 128);
  stream->synchronize();
  EXPECT_TRUE(std::equal(back.begin(), back.end(), bytes.begin() + 100));
}

TEST(Stream, keeps_its_first_error_until_it_is_synchronised) {
  UNMOOR_NEED_DEVICE();
  const auto buffer = device->allocate(64);
  const auto stream = device->make_stream();
  const auto bytes = numbered(128);
  stream->upload(*buffer, 0, bytes);  // Too much; nothing is thrown yet.
  const auto event = stream->record();
  EXPECT_THROW(event->wait(), Error);
  stream->upload(*buffer, 0, std::span(bytes).first(1));  // Not done: the stream has failed.
  EXPECT_THROW(stream->synchronize(), Error);
  std::vector<std::byte> back(64);
  stream->upload(*buffer, 0, std::span(bytes).first(64));
  stream->download(back, *buffer, 0);
  stream->synchronize();
  EXPECT_TRUE(std::equal(back.begin(), back.end(), bytes.begin()));
}

TEST(Event, measures_device_time_and_orders_streams) {
  UNMOOR_NEED_DEVICE();
  const auto buffer = device->allocate(1 << 20);
  const auto first = device->make_stream();
  const auto second = device->make_stream();
  const auto bytes = numbered(1 << 20);
  std::vector<std::byte> back(1 << 20);
  const auto start = first->record();
  first->upload(*buffer, 0, bytes);
  const auto end = first->record();
  second->wait(*end);
  second->download(back, *buffer, 0);
  second->synchronize();
  end->wait();
  EXPECT_EQ(back, bytes);
  const double time = end->milliseconds_since(*start);
  EXPECT_GT(time, 0);
  EXPECT_LT(time, 10'000);
}

TEST(Kernel, an_elementwise_expression_runs) {
  UNMOOR_NEED_DEVICE();
  const Node node{.name = "r", .op = "Relu", .inputs = {ValueId{0}}, .outputs = {ValueId{1}}, .attributes = {}, .origin = {}};
  const TensorType type{DType::F32, Shape{3, 50}};
  OpCall call{.node = node, .inputs = {type}, .outputs = {type}, .constants = {nullptr}};
  Tensor x(type);
  for (size_t i = 0; i < 150; ++i) x.writable_span<float>()[i] = static_cast<float>(i) - 75.5F;
  const auto kernels = device->kernels().find("Relu");
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].name, "opencl.relu");
  const auto result = run_on_device(*device, kernels[0], call, {x});
  for (size_t i = 0; i < 150; ++i) EXPECT_EQ(result[0].span<float>()[i], std::max(0.0F, static_cast<float>(i) - 75.5F));
}

}  // namespace
}  // namespace unmoor::gpu
