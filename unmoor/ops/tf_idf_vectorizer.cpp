#include <algorithm>
#include <map>

#include "unmoor/base/error.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/ops/text.h"

namespace unmoor {
namespace {

using Word = int64_t;  // A token as a number: its first place in the pool, or -1 for what the pool does not have.
using Gram = std::vector<Word>;

constexpr int64_t longest_output = int64_t{1} << 48;

int64_t limit_of(const OpCall& call, std::string_view key, int64_t least) {
  const int64_t value = call.integer(key, least - 1);
  if (value < least) fail(ErrorKind::InvalidModel, title(call), ": ", key, " is ", value, " or missing, not ", least, " or more");
  return value;
}

std::string mode_of(const OpCall& call) {
  std::string mode = call.text("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") {
    fail(ErrorKind::InvalidModel, title(call), ": mode is '", mode, "', not TF, IDF or TFIDF");
  }
  return mode;
}

// The elements of the output for one row: one more than the largest coordinate.
int64_t row_length(const OpCall& call) {
  const auto coordinates = call.integers("ngram_indexes");
  if (coordinates.empty()) fail(ErrorKind::InvalidModel, title(call), ": ngram_indexes is missing or empty");
  for (const int64_t at : coordinates) {
    if (at < 0 || at >= longest_output) fail(ErrorKind::InvalidModel, title(call), ": ngram_indexes has the value ", at);
  }
  return *std::ranges::max_element(coordinates) + 1;
}

// The pool's tokens as words, and how tokens of the input become such.
class Vocabulary {
 public:
  explicit Vocabulary(const OpCall& call) : texts_(call.texts("pool_strings")), numbers_(call.integers("pool_int64s")) {
    if (texts_.empty() == numbers_.empty()) {
      fail(ErrorKind::InvalidModel, title(call), ": it needs either pool_strings or pool_int64s");
    }
    const bool is_text = call.input(0).dtype == DType::String;
    if (is_text == texts_.empty()) {
      fail(ErrorKind::InvalidModel, title(call), ": the input is ", call.input(0).dtype, " and the pool is ",
           is_text ? "integers" : "strings");
    }
    for (const auto& text : texts_) pool_.push_back(by_text_.emplace(text, static_cast<Word>(pool_.size())).first->second);
    for (const int64_t number : numbers_)
      pool_.push_back(by_number_.emplace(number, static_cast<Word>(pool_.size())).first->second);
  }

  const std::vector<Word>& pool() const { return pool_; }

  std::vector<Word> words(const Tensor& tensor) const {
    std::vector<Word> words;
    const auto add = [&words](const auto& known, const auto& token) {
      const auto found = known.find(token);
      words.push_back(found == known.end() ? -1 : found->second);
    };
    if (texts_.empty()) {
      for (const int64_t number : integers(tensor)) add(by_number_, number);
    } else {
      for (const auto& text : tensor.strings()) add(by_text_, text);
    }
    return words;
  }

 private:
  std::vector<std::string> texts_;
  std::vector<int64_t> numbers_;
  std::map<std::string, Word> by_text_;
  std::map<int64_t, Word> by_number_;
  std::vector<Word> pool_;
};

// The n-grams of the pool by their words. Of equal ones each keeps its place.
struct Grams {
  std::vector<std::multimap<Gram, size_t>> by_size;  // [n - 1]: place in ngram_indexes.
  size_t count = 0;
};

Grams grams_of(const OpCall& call, const std::vector<Word>& pool) {
  auto starts = call.integers("ngram_counts");
  if (starts.empty()) fail(ErrorKind::InvalidModel, title(call), ": ngram_counts is missing or empty");
  starts.push_back(static_cast<int64_t>(pool.size()));
  for (const int64_t start : starts) {
    if (start < 0 || start > starts.back()) fail(ErrorKind::InvalidModel, title(call), ": ngram_counts has the value ", start);
  }
  Grams grams;
  for (size_t n = 1; n < starts.size(); ++n) {
    const int64_t length = starts[n] - starts[n - 1];
    if (length < 0 || length % static_cast<int64_t>(n) != 0) {
      fail(ErrorKind::InvalidModel, title(call), ": ngram_counts puts ", n, "-grams from ", starts[n - 1], " to ", starts[n],
           " of a pool of ", pool.size());
    }
    auto& known = grams.by_size.emplace_back();
    for (auto at = pool.begin() + starts[n - 1]; at != pool.begin() + starts[n]; at += static_cast<int64_t>(n)) {
      known.emplace(Gram(at, at + static_cast<int64_t>(n)), grams.count++);
    }
  }
  if (call.integers("ngram_indexes").size() != grams.count) {
    fail(ErrorKind::InvalidModel, title(call), ": ngram_indexes has ", call.integers("ngram_indexes").size(), " numbers for ",
         grams.count, " n-grams");
  }
  return grams;
}

std::vector<double> weights_of(const OpCall& call, size_t count) {
  const auto given = call.reals("weights");
  if (given.empty()) return std::vector<double>(count, 1);
  if (given.size() != count)
    fail(ErrorKind::InvalidModel, title(call), ": ", given.size(), " weights were given for ", count, " n-grams");
  return {given.begin(), given.end()};
}

// float32; where a whole model runs in float64, passes ask for that by an attribute that ONNX does not have.
DType output_dtype(const OpCall& call) {
  const auto dtype = dtype_numbered(call.integer("dtype", onnx_number(DType::F32)));
  if (!dtype || !is_float(*dtype))
    fail(ErrorKind::InvalidModel, title(call), ": dtype ", call.integer("dtype", 1), " is no floating type");
  return *dtype;
}

std::vector<Type> infer_tf_idf(const OpCall& call) {
  mode_of(call);
  const int64_t shortest = limit_of(call, "min_gram_length", 1);
  limit_of(call, "max_gram_length", shortest);
  limit_of(call, "max_skip_count", 0);
  weights_of(call, grams_of(call, Vocabulary(call).pool()).count);
  const int64_t length = row_length(call);
  const Shape& shape = call.input(0).shape;
  if (!shape.has_rank()) return {TensorType{output_dtype(call), Shape::of_unknown_rank()}};
  if (shape.rank() < 1 || shape.rank() > 2)
    fail(ErrorKind::InvalidModel, title(call), ": the input has shape ", shape, ", not [C] or [N,C]");
  Shape result;
  if (shape.rank() == 2) result.push_back(shape, 0);
  result.push_back(length);
  return {TensorType{output_dtype(call), std::move(result)}};
}

// How often each n-gram of the pool stands in a row, its words `step` apart for every step that the skips allow.
class Counter {
 public:
  Counter(const OpCall& call, const Grams& grams)
      : grams_(grams),
        shortest_(static_cast<size_t>(limit_of(call, "min_gram_length", 1))),
        longest_(std::min(static_cast<size_t>(limit_of(call, "max_gram_length", 1)), grams.by_size.size())),
        skips_(static_cast<size_t>(limit_of(call, "max_skip_count", 0))) {}

  std::vector<int64_t> counts(std::span<const Word> row) const {
    std::vector<int64_t> counts(grams_.count);
    for (size_t n = shortest_; n <= longest_; ++n) {
      if (grams_.by_size[n - 1].empty()) continue;
      const size_t steps = n == 1 ? 1 : skips_ + 1;  // A single word has nothing to skip.
      for (size_t step = 1; step <= steps && (n - 1) <= (row.size() - 1) / step; ++step) count(row, n, step, counts);
    }
    return counts;
  }

 private:
  void count(std::span<const Word> row, size_t n, size_t step, std::vector<int64_t>& counts) const {
    Gram gram(n);
    for (size_t start = 0; start + (n - 1) * step < row.size(); ++start) {
      for (size_t i = 0; i < n; ++i) gram[i] = row[start + i * step];
      const auto found = grams_.by_size[n - 1].equal_range(gram);
      for (auto at = found.first; at != found.second; ++at) ++counts[at->second];
    }
  }

  const Grams& grams_;
  size_t shortest_, longest_, skips_;
};

void run_tf_idf(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& x = in[0].tensor();
  const Vocabulary vocabulary(call);
  const Grams grams = grams_of(call, vocabulary.pool());
  const auto weights = weights_of(call, grams.count);
  const auto coordinates = call.integers("ngram_indexes");
  const std::string mode = mode_of(call);
  Tensor& result = allocate_inferred(call, in, out, infer_tf_idf);
  std::vector<double> y(result.elements());
  const Counter counter(call, grams);
  const auto words = vocabulary.words(x);
  const auto length = static_cast<size_t>(x.shape()[x.shape().rank() - 1]);
  const auto row_size = static_cast<size_t>(row_length(call));
  for (size_t row = 0; length > 0 && row < words.size() / length; ++row) {
    const auto counts = counter.counts(std::span(words).subspan(row * length, length));
    for (size_t i = 0; i < counts.size(); ++i) {
      const auto count = static_cast<double>(mode == "IDF" ? std::min<int64_t>(counts[i], 1) : counts[i]);
      y[row * row_size + static_cast<size_t>(coordinates[i])] += mode == "TF" ? count : count * weights[i];
    }
  }
  store(result, std::span<const double>(y));
}

}  // namespace

void add_tf_idf_vectorizer(OpSet& ops) {
  Op op;
  op.name = "TfIdfVectorizer";
  op.summary = "How often each n-gram of a pool stands in a row of tokens, with tokens skipped between its words, and weighted.";
  op.inputs = {required("X", {DType::String, DType::I32, DType::I64})};
  op.outputs = {required("Y", {DType::F32})};
  op.attributes = {{"dtype", onnx_number(DType::F32)},           {"ngram_counts", std::vector<int64_t>()},
                   {"ngram_indexes", std::vector<int64_t>()},    {"pool_int64s", std::vector<int64_t>()},
                   {"pool_strings", std::vector<std::string>()}, {"weights", std::vector<float>()}};
  op.infer = infer_tf_idf;
  op.reference = run_tf_idf;
  op.category = Category::Text;
  const std::string numbers = " ngram_counts=[0,4] ngram_indexes=[0,1,2,3,4,5,6] pool_int64s=[2,3,5,4,5,6,7,8,6,7]";
  const std::string texts = " ngram_counts=[0,2] ngram_indexes=[1,0,4,2] pool_strings=[a,b,a,b,\"\",c]";
  op.cases = {
      cat("T[12]{1,1,3,3,3,7,8,6,7,5,6,8} mode=TF min_gram_length=1,2 max_gram_length=2 max_skip_count=0,1,5", numbers),
      cat("T[2,6]{1,1,3,3,3,7,8,6,7,5,6,8} mode=TF min_gram_length=2 max_gram_length=2 max_skip_count=0,5", numbers),
      cat("i64[2,6]~index:9 mode=TF,IDF,TFIDF min_gram_length=1 max_gram_length=2 max_skip_count=1 weights=[1,2,3,4,5,6,0.5]",
          numbers),
      cat("i64[6]~index:9 mode=IDF,TFIDF min_gram_length=1 max_gram_length=1,9 max_skip_count=0", numbers),
      cat("string[5]{a,b,a,\"\",c} mode=TF,IDF min_gram_length=1 max_gram_length=2 max_skip_count=0,1", texts),
      cat("string[2,2]{a,b,\"\",c} mode=TFIDF min_gram_length=1 max_gram_length=2 max_skip_count=0 weights=[0.5,2,3,1]", texts),
      cat("i64[0] mode=TF min_gram_length=1 max_gram_length=2 max_skip_count=3", numbers),
      cat("i64[3,0] mode=TF min_gram_length=1 max_gram_length=2 max_skip_count=3", numbers),
      cat("i64[0,3] mode=TF min_gram_length=1 max_gram_length=2 max_skip_count=3", numbers),
      "i64[4]{1,2,1,2} mode=TF min_gram_length=3 max_gram_length=3 max_skip_count=0 ngram_counts=[0,0,0] ngram_indexes=[3] "
      "pool_int64s=[2,1,2]",
      "i64[3]{1,2,1} mode=TFIDF min_gram_length=1 max_gram_length=1 max_skip_count=0 ngram_counts=[0] ngram_indexes=[0,0,2] "
      "pool_int64s=[1,2,1] weights=[1,10,100]"};
  ops.add(std::move(op));
}

}  // namespace unmoor
