#include <re2/re2.h>

#include "unmoor/base/error.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/text.h"

namespace unmoor {
namespace {

std::string pattern_of(const OpCall& call) {
  if (!call.has_attribute("pattern")) fail(ErrorKind::InvalidModel, title(call), ": attribute 'pattern' is missing");
  return call.text("pattern", "");
}

// RE2 matches in time linear in the text, and refuses patterns that would need more than its 8 MiB.
void check_pattern(const OpCall& call, const RE2& expression) {
  if (!expression.ok())
    fail(ErrorKind::InvalidModel, title(call), ": the pattern '", expression.pattern(), "': ", expression.error());
}

std::vector<Type> infer_match(const OpCall& call) {
  check_pattern(call, RE2(pattern_of(call), RE2::Quiet));
  return {TensorType{DType::Bool, call.input(0).shape}};
}

void run_match(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const RE2 expression(pattern_of(call), RE2::Quiet);
  check_pattern(call, expression);
  const Tensor& x = in[0].tensor();
  std::vector<int64_t> matches;
  for (const std::string& text : x.strings()) matches.push_back(RE2::FullMatch(text, expression) ? 1 : 0);
  store(out.allocate(0, {DType::Bool, x.shape()}), std::span<const int64_t>(matches));
}

}  // namespace

void add_regex_full_match(OpSet& ops) {
  Op op;
  op.name = "RegexFullMatch";
  op.summary = "Whether the whole of each text matches a regular expression in the syntax of RE2.";
  op.inputs = {required("X", {DType::String})};
  op.outputs = {required("Y", {DType::Bool})};
  op.attributes = {{"pattern", std::string()}};
  op.infer = infer_match;
  op.reference = run_match;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Text;
  op.cases = {"string[3]{www.google.com,www.facebook.com,www.bbc.co.uk} pattern=\"www\\.[\\w.-]+\\.\\bcom\\b\"",
              "string[2,2]{account@gmail.com,account@hotmail.com,\"not email\",account2@yahoo.com} "
              "pattern=\"(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)\"",
              "string[7] pattern=\"[a-z]+\"",
              "string[7] pattern=\"(?i)beta\"",
              "string[7] pattern=\"\"",
              "string[3]{\"\",a,aa} pattern=\"a?\"",
              "string[2]{ab,abc} pattern=\"ab|abc\"",
              "string[2]{\"\xc3\xa9t\xc3\xa9\",ete} pattern=\".t.\"",
              "string[2]{\"\xd0\xb4\xd0\xb0\",da} pattern=\"\\p{Cyrillic}+\"",
              "string[0] pattern=x",
              "string[] pattern=\".*\""};
  ops.add(std::move(op));
}

}  // namespace unmoor
