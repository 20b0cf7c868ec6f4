#include "unmoor/workbench/junit.h"

#include <gtest/gtest.h>

namespace unmoor {
namespace {

TEST(JUnit, counts_and_escapes) {
  const std::string xml = junit_xml("a <model> & \"b\"", {{"values", "good"}, {"values", "bad'", "off by 3 < 4"}, {"values", "?", "", "hidden"}});
  EXPECT_NE(xml.find("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("a &lt;model&gt; &amp; &quot;b&quot;"), std::string::npos) << xml;
  EXPECT_NE(xml.find("<failure message=\"off by 3 &lt; 4\"/>"), std::string::npos) << xml;
}

TEST(JUnit, what_xml_cannot_hold_is_replaced) {
  const std::string xml = junit_xml("s", {{"g", std::string("a\x01") + "b\xFF" + "c\xEF\xBF\xBE"}});
  EXPECT_EQ(xml.find('\x01'), std::string::npos);
  EXPECT_EQ(xml.find('\xFF'), std::string::npos);
  EXPECT_EQ(xml.find("\xEF\xBF\xBE"), std::string::npos);
}

}  // namespace
}  // namespace unmoor
