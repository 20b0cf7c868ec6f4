#include <gtest/gtest.h>

#include <random>

#include "tests/unit/formats/model_text.h"

// Damaged files: each must give an Error or load; under the sanitizers none may do anything else.
namespace unmoor {
namespace {

using namespace model_text;
using Ints = std::vector<int64_t>;

// Small models that use every message there is.
std::vector<std::string> seeds() {
  const std::string branch = node("Add", {"x", "w"}, {"t"}) + output("t");
  const std::string bodies = graph_attribute("then_branch", branch) + graph_attribute("else_branch", branch);
  const std::string constants =
      initializer(tensor("w", 1, {2, 3}, floats({1, 2, 3, 4, 5, 6}))) +
      initializer(tensor("h", 10, {2}, number(5, 1) + number(5, 2))) +
      initializer(tensor("s", 8, {2}, bytes(6, "a") + bytes(6, "b"))) +
      bytes(15, bytes(1, tensor("p", 1, {1}, floats({1}))) + bytes(2, tensor("", 7, {1}, integers({1}))) + number(3, 4));
  const std::string control = input("x") + input("c", {}, 9) + constants + node("If", {"c"}, {"y"}, bodies, "branches") +
                              value(13, "y", type(1, {2, 3})) + output("y");
  const std::string old = input("x") + node("Softmax", {"x"}, {"a"}, attribute("axis", int64_t{0})) +
                          node("Slice", {"a"}, {"b"}, attribute("starts", Ints{0}) + attribute("ends", Ints{1})) +
                          node("Clip", {"b"}, {"d"}, attribute("min", 0.0F)) +
                          node("Constant", {}, {"k"}, tensor_attribute("value", tensor("", 7, {1}, integers({2})))) +
                          node("Upsample", {"d", "w"}, {"y"}, attribute("mode", std::string_view("nearest"))) +
                          initializer(tensor("w", 1, {2}, floats({1, 2}))) + output("y");
  const std::string local =
      bytes(25, bytes(1, "F") + bytes(10, "local") + bytes(4, "p") + bytes(5, "q") + opset(11, "", 9) + bytes(6, "slope") +
                    node("LeakyRelu", {"p"}, {"q"}, referring_attribute("alpha", "slope", 1), "", 7));
  const std::string calls = input("x") + node("F", {"x"}, {"y"}, bytes(7, "local") + attribute("slope", 0.1F)) +
                            value(11, "q", bytes(4, bytes(1, type(1, {-1})))) + output("y");
  const std::string outside =
      initializer(tensor("w", 1, {2}, bytes(13, bytes(1, "location") + bytes(2, "w.bin")) + number(14, 1)));
  return {model(control, 21), model(old, 9), model(calls, 21, local + opset(1, "local")), model(outside, 21)};
}

// What came of a file: whether it loaded.
bool loads(std::string_view text) {
  try {
    const ModelFile file(text);
    write_file(file.path("w.bin"), "12345678");
    const Graph graph = file.read().graph;
    // Whoever holds the graph may look at everything in it.
    for (const auto& value : graph.values()) {
      if (value.constant && value.constant->is_tensor()) {
        for (const std::byte byte : value.constant->tensor().bytes()) EXPECT_LE(std::to_integer<int>(byte), 255);
      }
    }
    return true;
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::Internal) << error.what();
    EXPECT_GT(std::string_view(error.what()).size(), 10U);
    return false;
  }
}

TEST(OnnxDamage, the_seeds_are_sound) {
  for (const auto& seed : seeds()) EXPECT_TRUE(loads(seed)) << error_of(seed);
}

TEST(OnnxDamage, files_cut_off_anywhere_give_errors_or_load) {
  size_t refused = 0;
  for (const auto& seed : seeds()) {
    for (size_t size = 0; size < seed.size(); size += std::max<size_t>(seed.size() / 40, 1))
      refused += loads(seed.substr(0, size)) ? 0 : 1;
  }
  EXPECT_GT(refused, 100U);
}

TEST(OnnxDamage, flipped_bits_give_errors_or_load) {
  std::mt19937 random(7);
  size_t refused = 0;
  for (const auto& seed : seeds()) {
    for (int i = 0; i < 100; ++i) {
      std::string damaged = seed;
      for (int flips = 0; flips < 1 + i % 3; ++flips) damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
      refused += loads(damaged) ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 100U);
}

TEST(OnnxDamage, bytes_cut_out_or_put_in_give_errors_or_load) {
  std::mt19937 random(11);
  for (const auto& seed : seeds()) {
    for (int i = 0; i < 50; ++i) {
      std::string damaged = seed;
      const size_t at = random() % damaged.size();
      if (i % 2 == 0) {
        damaged.erase(at, 1 + random() % 8);
      } else {
        damaged.insert(at, std::string(1 + random() % 12, static_cast<char>(random() % 2 == 0 ? 0xff : random() % 256)));
      }
      loads(damaged);
    }
  }
}

TEST(OnnxDamage, absurd_lengths_and_sizes_are_errors) {
  const std::string huge_length =
      "\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
      "rest";  // The graph, longer than 2^62.
  EXPECT_FALSE(loads(huge_length));
  EXPECT_FALSE(loads(std::string("\x3a\x84\x80\x80\x80\x10", 6) + "rest"));  // 2^32 + 4: four bytes if cut to 32 bits.
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{int64_t{1} << 62},
                                           {int64_t{1} << 40, int64_t{1} << 40},
                                           {-1},
                                           {0, int64_t{1} << 62, int64_t{1} << 62}}) {
    EXPECT_FALSE(loads(model(initializer(tensor("w", 1, dims, floats({1}))))));
    EXPECT_FALSE(loads(model(initializer(tensor("w", 8, dims, bytes(6, "a"))))));
    EXPECT_FALSE(loads(model(initializer(tensor("w", 22, dims, number(5, 1))))));
  }
  EXPECT_FALSE(loads(model(initializer(tensor("w", 1, std::vector<int64_t>(65, 1), floats({1}))))));
  EXPECT_FALSE(loads(model(initializer(tensor("w", 99, {1}, floats({1}))))));
  EXPECT_FALSE(loads(model(initializer(tensor("w", 1, {1}, bytes(9, "abc"))))));
}

TEST(OnnxDamage, wrong_wire_types_are_errors) {
  for (const uint32_t field : {1U, 2U, 3U, 7U, 8U, 14U, 25U}) {
    std::string text;
    protozero::pbf_writer(text).add_fixed64(field, 7);
    EXPECT_FALSE(loads(text + model(input("x")))) << field;
    text.clear();
    protozero::pbf_writer(text).add_fixed32(field, 7);
    EXPECT_FALSE(loads(text + model(input("x")))) << field;
  }
  EXPECT_FALSE(loads(model(number(1, 5) + input("x"))));                // A node as a number.
  EXPECT_FALSE(loads(model(node("Abs", {"x"}, {"y"}, number(5, 1)))));  // An attribute as a number.
  EXPECT_FALSE(loads("\x0b\x0c"));                                      // A group.
  EXPECT_FALSE(loads("\x0f"));                                          // No wire type at all.
}

TEST(OnnxDamage, deep_nesting_is_an_error) {
  std::string graph = input("x");
  for (int i = 0; i < 1000; ++i) graph = node("If", {"x"}, {"y"}, graph_attribute("then_branch", graph));
  EXPECT_FALSE(loads(model(graph)));
  std::string deep_type = type(1, {1});
  for (int i = 0; i < 1000; ++i) deep_type = bytes(4, bytes(1, deep_type));
  EXPECT_FALSE(loads(model(value(11, "x", deep_type))));
}

}  // namespace
}  // namespace unmoor
