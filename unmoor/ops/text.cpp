#include "unmoor/ops/text.h"

#include <algorithm>

#include "unmoor/base/error.h"
#include "unmoor/ops/families.h"
#include "unmoor/ops/numeric.h"

namespace unmoor {
namespace {

void run_concat(const OpCall&, std::span<const Data> in, Outputs& out) {
  const Tensor& a = in[0].tensor();
  const Tensor& b = in[1].tensor();
  const Shape shape = broadcast(a.shape(), b.shape());
  auto& texts = out.allocate(0, {DType::String, shape}).writable_strings();
  walk<2>(shape, {broadcast_strides(a.shape(), shape), broadcast_strides(b.shape(), shape)},
          [&](size_t i, const std::array<int64_t, 2>& at) {
            texts[i] = a.strings()[static_cast<size_t>(at[0])];
            texts[i] += b.strings()[static_cast<size_t>(at[1])];
          });
}

// What Python's str.split() takes for white space, which ONNX's evaluator calls: Unicode's White_Space and four separators of
// ASCII.
bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

// At most `limit` splits; what follows the last one stays whole but for the white space at its end, which ONNX's text removes, and
// Python's str.split() does not.
std::vector<std::string> split_at_spaces(const std::string& text, size_t limit) {
  std::u32string points = code_points(text);
  points.erase(std::find_if_not(points.rbegin(), points.rend(), is_space).base(), points.end());
  std::vector<std::string> parts;
  auto at = points.begin();
  while (true) {
    at = std::find_if_not(at, points.end(), is_space);
    if (at == points.end()) return parts;
    const auto end = parts.size() == limit ? points.end() : std::find_if(at, points.end(), is_space);
    parts.push_back(utf8(std::u32string(at, end)));
    at = end;
  }
}

std::vector<std::string> split_at_delimiter(const std::string& text, const std::string& delimiter, size_t limit) {
  std::vector<std::string> parts;
  size_t from = 0;
  while (parts.size() < limit) {
    const size_t end = text.find(delimiter, from);
    if (end == std::string::npos) break;
    parts.push_back(text.substr(from, end - from));
    from = end + delimiter.size();
  }
  parts.push_back(text.substr(from));
  return parts;
}

std::vector<Type> infer_split(const OpCall& call) {
  const Shape& shape = call.input(0).shape;
  Shape parts = shape;
  if (shape.has_rank()) parts.push_back(Shape::unknown);
  return {TensorType{DType::String, std::move(parts)}, TensorType{DType::I64, shape}};
}

void run_split(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& x = in[0].tensor();
  const std::string delimiter = call.text("delimiter", "");
  const int64_t most = call.integer("maxsplit", -1);
  const size_t limit = most < 0 ? std::string::npos : static_cast<size_t>(most);  // Negative: no limit, as in Python.
  std::vector<std::vector<std::string>> all;
  std::vector<int64_t> counts;
  for (const std::string& text : x.strings()) {
    all.push_back(delimiter.empty() ? split_at_spaces(text, limit) : split_at_delimiter(text, delimiter, limit));
    counts.push_back(static_cast<int64_t>(all.back().size()));
  }
  const int64_t width = counts.empty() ? 0 : *std::ranges::max_element(counts);
  Shape shape = x.shape();
  shape.push_back(width);
  if (call.wants_output(0)) {
    auto& parts = out.allocate(0, {DType::String, shape}).writable_strings();
    for (size_t i = 0; i < all.size(); ++i) {
      std::ranges::move(all[i], parts.begin() + static_cast<std::ptrdiff_t>(i) * width);
    }
  }
  if (call.wants_output(1)) store(out.allocate(1, {DType::I64, x.shape()}), std::span<const int64_t>(counts));
}

Op text_op(std::string name, std::string summary) {
  Op op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = {required("X", {DType::String})};
  op.rounding = Rounding::MoveBits;
  op.category = Category::Text;
  return op;
}

}  // namespace

void add_text_ops(OpSet& ops) {
  Op concat = text_op("StringConcat", "Two texts one behind the other, element by element.");
  concat.inputs.push_back(required("Y", {DType::String}));
  concat.outputs = {required("Z", {DType::String})};
  concat.infer = like_first_broadcast;
  concat.reference = run_concat;
  concat.cases = {"string[2]{abc,def} string[2]{.com,.net}",
                  "string[3]{cat,dog,snake} string[1]{s}",
                  "string[]{a} string[]{b}",
                  "string[2]{abc,\"\"} string[2]{\"\",abc}",
                  "string[2,3] string[3]",
                  "string[2,1] string[1,4]",
                  "string[0] string[1]",
                  "string[2,3] string[]",
                  "string[1] string[2,0]",
                  "string[7] string[7]"};
  ops.add(std::move(concat));

  Op split = text_op("StringSplit",
                     "Each text cut at a delimiter or at white space, filled up with empty texts; and the numbers of parts.");
  split.outputs = {required("Y", {DType::String}), required("Z", {DType::I64})};
  split.attributes = {{"delimiter", std::string()}, {"maxsplit", int64_t{-1}}};
  split.infer = infer_split;
  split.reference = run_split;
  split.cases = {"string[2]{abc.com,def.net} delimiter=\".\" outputs=2",
                 "string[2,2]{\"hello world\",def.net,\"o n n x\",\"the quick brown fox\"} maxsplit=2,0,1 outputs=2",
                 "string[2]{o-n-n--x-,o-n----nx} delimiter=\"-\" outputs=2",
                 "string[3]{\"hello world !\",\"  hello   world !\",\" hello world   ! \"} outputs=2",
                 "string[2]{\"  a  b  \",\"   \"} maxsplit=0,1,5 outputs=2",
                 "string[3]{a::b::c,a:b,::} delimiter=\"::\" outputs=2",
                 "string[0] outputs=2",
                 "string[2,0] delimiter=x outputs=2",
                 "string[]{\"a b\"} outputs=2",
                 "string[2]{\"\",\"\"} outputs=2",
                 "string[2]{\"\",\"\"} delimiter=x outputs=2",
                 "string[1]{\"a\xe3\x80\x80"
                 "b\xc2\xa0"
                 "c\"} outputs=2"};
  ops.add(std::move(split));
  add_string_normalizer(ops);
  add_regex_full_match(ops);
  add_tf_idf_vectorizer(ops);
  add_contrib_tokenizer(ops);
}

}  // namespace unmoor
