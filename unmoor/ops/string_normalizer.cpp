#include <algorithm>
#include <set>

#include "unmoor/base/error.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/text.h"

namespace unmoor {
namespace {

std::string case_action(const OpCall& call) {
  std::string action = call.text("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER") {
    fail(ErrorKind::InvalidModel, title(call), ": case_change_action is '", action, "', not LOWER, UPPER or NONE");
  }
  return action;
}

// [C] or [1, C], of as many words as are kept, or one empty text.
Shape normalized_shape(const OpCall& call, const Shape& shape, int64_t kept) {
  if (shape.rank() == 1) return Shape{kept};
  if (shape.rank() != 2 || (shape[0] >= 0 && shape[0] != 1)) {
    fail(ErrorKind::InvalidModel, title(call), ": the input has shape ", shape, ", not [C] or [1,C]");
  }
  return Shape{1, kept};
}

std::vector<Type> infer_normalizer(const OpCall& call) {
  case_action(call);
  const Shape& shape = call.input(0).shape;
  if (!shape.has_rank()) return {TensorType{DType::String, Shape::of_unknown_rank()}};
  const bool keeps_all = call.texts("stopwords").empty() && shape.rank() > 0 && shape[shape.rank() - 1] > 0;
  return {TensorType{DType::String, normalized_shape(call, shape, keeps_all ? shape[shape.rank() - 1] : Shape::unknown)}};
}

void run_normalizer(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& x = in[0].tensor();
  const std::string action = case_action(call);
  const std::string locale = call.text("locale", "");
  const bool exact = call.integer("is_case_sensitive", 0) != 0;
  // Words compare in lower case where case does not matter, whatever becomes of them afterwards.
  const auto compared = [&](const std::string& text) { return exact ? text : with_case(text, LetterCase::Lower, locale); };
  std::set<std::string> stopwords;
  for (const std::string& word : call.texts("stopwords")) stopwords.insert(compared(word));
  std::vector<std::string> kept;
  for (const std::string& word : x.strings()) {
    if (stopwords.empty() || !stopwords.contains(compared(word))) kept.push_back(word);
  }
  for (std::string& word : kept) {
    if (action != "NONE") word = with_case(word, action == "LOWER" ? LetterCase::Lower : LetterCase::Upper, locale);
  }
  if (kept.empty()) kept.emplace_back();
  const Shape shape = normalized_shape(call, x.shape(), static_cast<int64_t>(kept.size()));
  out.allocate(0, {DType::String, shape}).writable_strings() = std::move(kept);
}

}  // namespace

void add_string_normalizer(OpSet& ops) {
  Op op;
  op.name = "StringNormalizer";
  op.summary = "Words without those on a list, in lower or upper case.";
  op.inputs = {required("X", {DType::String})};
  op.outputs = {required("Y", {DType::String})};
  op.attributes = {{"case_change_action", std::string("NONE")},
                   {"is_case_sensitive", int64_t{0}},
                   {"locale", std::string()},
                   {"stopwords", std::vector<std::string>()}};
  op.infer = infer_normalizer;
  op.reference = run_normalizer;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Text;
  op.cases = {
      "string[4]{monday,tuesday,Monday,thursday} stopwords=[monday] is_case_sensitive=0,1 case_change_action=NONE,LOWER,UPPER",
      "string[1,4]{monday,tuesday,Monday,thursday} stopwords=[monday] is_case_sensitive=0,1",
      "string[2]{monday,MONDAY} stopwords=[Monday]",
      "string[1,2]{monday,monday} stopwords=[monday] case_change_action=UPPER",
      "string[5] case_change_action=NONE,LOWER,UPPER",
      "string[3]{\"\xc3\xa9t\xc3\xa9\",\"stra\xc3\x9f"
      "e\",\"\xd0\xb4\xd0\xb0\"} case_change_action=UPPER",
      "string[2]{istanbul,ISPARTA} case_change_action=UPPER,LOWER locale=tr_TR,en_US,C",
      "string[0]",
      "string[1,0] stopwords=[a]",
      "string[3]{\"\",a,\"\"} stopwords=[a]",
      "string[3]{\"\",a,\"\"} stopwords=[\"\"]"};
  ops.add(std::move(op));
}

}  // namespace unmoor
