#include "unmoor/formats/torch/pickle.h"

#include <gtest/gtest.h>

#include <string>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

using Kind = Pickle::Kind;

bool only_dicts(std::string_view module, std::string_view name) { return module == "collections" && name == "OrderedDict"; }

Pickle read(std::string_view bytes) { return Pickle::read(std::as_bytes(std::span(bytes)), only_dicts); }

std::string refusal(std::string_view bytes) {
  try {
    (void)read(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidModel);
    return error.what();
  }
  ADD_FAILURE() << "it was read";
  return "";
}

using namespace std::string_view_literals;

TEST(Pickle, plain_values_of_every_protocol) {
  EXPECT_EQ(read("\x80\x02K\x07."sv).root().number, 7);
  EXPECT_EQ(read("\x80\x02J\xff\xff\xff\xff."sv).root().number, -1);
  EXPECT_EQ(read("\x80\x02\x8a\x02\x00\xff."sv).root().number, -256);
  EXPECT_EQ(read("I42\n."sv).root().number, 42);
  EXPECT_EQ(read("L42L\n."sv).root().number, 42);
  EXPECT_EQ(read("I01\n."sv).root().kind, Kind::Bool);
  EXPECT_EQ(read("G?\xf0\x00\x00\x00\x00\x00\x00."sv).root().real, 1);
  EXPECT_EQ(read("F1.5\n."sv).root().real, 1.5);
  EXPECT_EQ(read("X\x02\x00\x00\x00hi."sv).root().text, "hi");
  EXPECT_EQ(read("S'hi'\n."sv).root().text, "hi");
  EXPECT_EQ(read("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."sv).root().kind, Kind::LongInt);
  EXPECT_EQ(read("N."sv).root().kind, Kind::None);
}

TEST(Pickle, containers_hold_what_was_put_into_them_and_shared_values_stay_shared) {
  const Pickle list = read("]q\x00(K\x01h\x00" "e."sv);  // A list that holds 1 and itself.
  ASSERT_EQ(list.root().items.size(), 2U);
  EXPECT_EQ(list.root().items[1], list.root_id());
  const Pickle dict = read("ccollections\nOrderedDict\n)R(K\x01K\x02u."sv);
  EXPECT_EQ(dict.root().kind, Kind::Dict);
  EXPECT_EQ(dict.root().items.size(), 2U);
  EXPECT_EQ(read("(K\x01K\x02t."sv).root().items.size(), 2U);
  EXPECT_EQ(read("K\x01K\x02\x86."sv).root().items.size(), 2U);
}

TEST(Pickle, a_name_that_is_not_allowed_is_told) {
  EXPECT_NE(refusal("cos\nsystem\n(X\x02\x00\x00\x00idtR."sv).find("os.system"), std::string::npos);
  EXPECT_NE(refusal("\x8c\x02os\x8c\x06system\x93."sv).find("os.system"), std::string::npos);
  EXPECT_NE(refusal("(ios\nsystem\n."sv).find("no plain data"), std::string::npos);
  EXPECT_NE(refusal("\x82\x01."sv).find("no plain data"), std::string::npos);  // An extension of the reader's own registry.
}

TEST(Pickle, what_is_broken_is_refused_where_it_breaks) {
  for (const std::string_view bytes : {""sv, "K"sv, "K\x01"sv, "."sv, "t."sv, "0."sv, "a."sv, "]a."sv, "K\x01K\x02s."sv, "h\x05."sv, "X\xff\xff\xff\xffx."sv,
                                       "\x8d\xff\xff\xff\xff\xff\xff\xff\xffx."sv, "Iabc\n."sv, "I99999999999999999999\n."sv, "K\x01)R."sv, "(K\x01" "d."sv, "("sv, "}K\x01(K\x01u."sv})
    EXPECT_FALSE(refusal(bytes).empty()) << bytes.size();
}

TEST(Pickle, more_values_than_anybody_stores_are_refused) {
  EXPECT_NE(refusal(std::string(Pickle::most_values + 10, ']')).find("values"), std::string::npos);
  EXPECT_NE(refusal(std::string(9 * Pickle::most_values, '(')).find("references"), std::string::npos);
  EXPECT_NE(refusal("N" + std::string(9 * Pickle::most_values, '2')).find("references"), std::string::npos);
}

}  // namespace
}  // namespace unmoor
