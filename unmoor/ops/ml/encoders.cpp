#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>

#include "unmoor/base/error.h"
#include "unmoor/ops/ml/ml.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/onnx_dtype.h"

namespace unmoor::ml {
namespace {

const std::vector<DType>& label_types() {
  static const std::vector<DType> list{DType::F32, DType::F64, DType::I64, DType::I32, DType::I16, DType::String};
  return list;
}

Tensor numbers_tensor(DType dtype, std::span<const double> values) {
  Tensor tensor(TensorType{dtype, Shape{static_cast<int64_t>(values.size())}});
  store(tensor, values);
  return tensor;
}

Tensor numbers_tensor(DType dtype, std::span<const int64_t> values) {
  Tensor tensor(TensorType{dtype, Shape{static_cast<int64_t>(values.size())}});
  store(tensor, values);
  return tensor;
}

// The list that one of four attributes gives: STEM_tensor, STEM_strings, STEM_int64s or STEM_floats, the last in `float_dtype`.
Tensor list_of(const OpCall& call, std::string_view stem, DType float_dtype) {
  const Tensor* given = call.tensor(cat(stem, "_tensor"));
  std::vector<std::string> texts = call.texts(cat(stem, "_strings"));
  const std::vector<int64_t> whole = call.integers(cat(stem, "_int64s"));
  const std::vector<double> reals = real_list(call, cat(stem, "_floats"));
  const auto count = static_cast<int>(given != nullptr) + static_cast<int>(!texts.empty()) + static_cast<int>(!whole.empty()) +
                     static_cast<int>(!reals.empty());
  if (count != 1) {
    fail(ErrorKind::InvalidModel, title(call), ": one of the attributes ", stem, "_tensor, ", stem, "_strings, ", stem,
         "_int64s and ", stem, "_floats must be set, not ", count);
  }
  if (given != nullptr) {
    if (given->shape().rank() != 1)
      fail(ErrorKind::InvalidModel, title(call), ": ", stem, "_tensor has shape ", given->shape(), ", not [n]");
    return *given;
  }
  const auto size = static_cast<int64_t>(texts.size());
  if (size > 0) return Tensor::of_strings(Shape{size}, std::move(texts));
  return whole.empty() ? numbers_tensor(float_dtype, reals) : numbers_tensor(DType::I64, whole);
}

// What an element becomes that is no key. An attribute of the values' type decides; without one "_Unused", -1 or -0.
Tensor default_of(const OpCall& call, DType dtype) {
  if (const Tensor* given = call.tensor("default_tensor")) {
    if (given->dtype() != dtype || given->shape().elements() != 1) {
      fail(ErrorKind::InvalidModel, title(call), ": default_tensor is ", given->type(), ", not one ", dtype);
    }
    return *given;
  }
  if (dtype == DType::String) return Tensor::of_strings(Shape{1}, {call.text("default_string", "_Unused")});
  if (is_float(dtype)) {
    const double value = call.real("default_float", -0.0);
    return numbers_tensor(dtype, std::span(&value, 1));
  }
  const int64_t value = dtype == DType::I64 ? call.integer("default_int64", -1) : -1;
  return numbers_tensor(dtype, std::span(&value, 1));
}

// Finds the place of an element among keys: floats by value, all NaNs being one; of equal keys the last.
class KeyTable {
 public:
  explicit KeyTable(const Tensor& keys) : dtype_(keys.dtype()) {
    const auto count = static_cast<int64_t>(keys.elements());
    if (dtype_ == DType::String) {
      for (int64_t i = 0; i < count; ++i) texts_.insert_or_assign(keys.strings()[static_cast<size_t>(i)], i);
    } else if (is_float(dtype_)) {
      const std::vector<double> values = doubles(keys);
      for (int64_t i = 0; i < count; ++i) {
        if (std::isnan(values[static_cast<size_t>(i)])) {
          nan_ = i;
        } else {
          reals_.insert_or_assign(values[static_cast<size_t>(i)], i);
        }
      }
    } else {
      const std::vector<int64_t> values = integers(keys);
      for (int64_t i = 0; i < count; ++i) whole_.insert_or_assign(values[static_cast<size_t>(i)], i);
    }
  }

  // By element of `data`; -1 where it is no key.
  std::vector<int64_t> places(const Tensor& data) const {
    std::vector<int64_t> result;
    result.reserve(data.elements());
    if (dtype_ == DType::String) {
      for (const std::string& text : data.strings()) result.push_back(found(texts_, text));
    } else if (is_float(dtype_)) {
      for (const double value : doubles(data)) result.push_back(std::isnan(value) ? nan_ : found(reals_, value));
    } else {
      for (const int64_t value : integers(data)) result.push_back(found(whole_, value));
    }
    return result;
  }

 private:
  template <class Key>
  static int64_t found(const std::unordered_map<Key, int64_t>& table, const Key& key) {
    const auto at = table.find(key);
    return at == table.end() ? -1 : at->second;
  }

  DType dtype_;
  std::unordered_map<std::string, int64_t> texts_;
  std::unordered_map<double, int64_t> reals_;
  std::unordered_map<int64_t, int64_t> whole_;
  int64_t nan_ = -1;
};

// Element by element: its key's value, or the default.
void encode(const Tensor& data, const Tensor& keys, const Tensor& values, const Tensor& otherwise, Tensor& result) {
  const std::vector<int64_t> places = KeyTable(keys).places(data);
  const ElementCopy from_values(values, result);
  const ElementCopy from_default(otherwise, result);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto to = static_cast<int64_t>(i);
    if (places[i] >= 0) {
      from_values(places[i], to);
    } else {
      from_default(0, to);
    }
  }
}

std::vector<Type> infer_label_encoder(const OpCall& call) {
  const TensorType& data = call.input(0);
  const Tensor keys = list_of(call, "keys", data.dtype == DType::F64 ? DType::F64 : DType::F32);
  const Tensor values = list_of(call, "values", float_output(call));
  if (keys.dtype() != data.dtype)
    fail(ErrorKind::InvalidModel, title(call), ": the keys are ", keys.dtype(), ", but the input is ", data.dtype);
  if (std::ranges::find(label_types(), values.dtype()) == label_types().end()) {
    fail(ErrorKind::InvalidModel, title(call), ": values cannot be ", values.dtype());
  }
  if (keys.elements() != values.elements()) {
    fail(ErrorKind::InvalidModel, title(call), ": there are ", keys.elements(), " keys for ", values.elements(), " values");
  }
  default_of(call, values.dtype());
  return {TensorType{values.dtype(), data.shape}};
}

void run_label_encoder(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const Tensor keys = list_of(call, "keys", data.dtype() == DType::F64 ? DType::F64 : DType::F32);
  const Tensor values = list_of(call, "values", float_output(call));
  encode(data, keys, values, default_of(call, values.dtype()), out.allocate(0, {values.dtype(), data.shape()}));
}

std::vector<Type> infer_category_mapper(const OpCall& call) {
  const TensorType& data = call.input(0);
  const size_t texts = call.texts("cats_strings").size();
  const size_t whole = call.integers("cats_int64s").size();
  if (texts == 0) fail(ErrorKind::InvalidModel, title(call), ": the attributes cats_strings and cats_int64s are missing");
  require_length(call, "cats_int64s", whole, texts);
  return {TensorType{data.dtype == DType::String ? DType::I64 : DType::String, data.shape}};
}

// The same with keys, values and a default.
Attributes as_label_encoder(const OpCall& call) {
  const bool from_texts = call.input(0).dtype == DType::String;
  Attributes attributes;
  attributes[from_texts ? "keys_strings" : "values_strings"] = call.texts("cats_strings");
  attributes[from_texts ? "values_int64s" : "keys_int64s"] = call.integers("cats_int64s");
  attributes["default_int64"] = call.integer("default_int64", -1);
  attributes["default_string"] = call.text("default_string", "_Unused");
  return attributes;
}

void run_category_mapper(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Node node = call.node;
  node.attributes = as_label_encoder(call);
  run_label_encoder(OpCall{node, call.inputs, call.outputs, call.constants}, in, out);
}

// The categories that the input's dtype is looked up in. Floats and int32 are converted to int64 first.
Labels categories_of(const OpCall& call) {
  Labels categories = labels_of(call, "cats_int64s", "cats_strings");
  if ((categories.dtype() == DType::String) != (call.input(0).dtype == DType::String)) {
    fail(ErrorKind::InvalidModel, title(call), ": the categories are ", categories.dtype(), ", but the input is ",
         call.input(0).dtype);
  }
  return categories;
}

std::vector<Type> infer_one_hot(const OpCall& call) {
  const auto size = static_cast<int64_t>(categories_of(call).size());
  Shape shape = call.input(0).shape;
  if (shape.has_rank()) shape.push_back(size);
  return {TensorType{float_output(call), std::move(shape)}};
}

// By element: its place among the categories, or -1. A float that no int64 can hold is in no category.
std::vector<int64_t> category_places(const OpCall& call, const Labels& categories, const Tensor& data) {
  if (!categories.texts.empty()) {
    return KeyTable(Tensor::of_strings(Shape{static_cast<int64_t>(categories.size())}, categories.texts)).places(data);
  }
  std::vector<int64_t> places = KeyTable(numbers_tensor(DType::I64, std::span<const int64_t>(categories.numbers)))
                                    .places(numbers_tensor(DType::I64, std::span<const int64_t>(integers(data))));
  if (!is_float(call.input(0).dtype)) return places;
  const std::vector<double> values = doubles(data);
  for (size_t i = 0; i < places.size(); ++i) {
    if (!(std::fabs(values[i]) < 0x1p63)) places[i] = -1;
  }
  return places;
}

void run_one_hot(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const Labels categories = categories_of(call);
  const std::vector<int64_t> places = category_places(call, categories, data);
  Shape shape = data.shape();
  shape.push_back(static_cast<int64_t>(categories.size()));
  Tensor& result = out.allocate(0, {float_output(call), std::move(shape)});
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0 && call.integer("zeros", 1) == 0) {
      fail(ErrorKind::InvalidArgument, title(call), ": element ", i, " is in no category, which the attribute zeros=0 forbids");
    }
    if (places[i] < 0) continue;
    const size_t at = i * categories.size() + static_cast<size_t>(places[i]);
    if (result.dtype() == DType::F32) {
      result.writable_span<float>()[at] = 1;
    } else {
      result.writable_span<double>()[at] = 1;
    }
  }
}

void expand_one_hot(GraphBuilder& b) {
  const OpCall& call = b.call();
  const Labels categories = categories_of(call);
  const std::set<int64_t> distinct(categories.numbers.begin(), categories.numbers.end());
  const bool is_plain = is_integer(call.input(0).dtype) && distinct.size() == categories.size() && call.integer("zeros", 1) != 0;
  if (!is_plain) fail(ErrorKind::Unsupported, title(call), " is expanded only for integers, different categories and zeros=1");
  const ValueId whole = b.add("Cast", {b.input(0)}, {{"to", onnx_number(DType::I64)}});
  const ValueId equal = b.add("Equal", {b.add("Unsqueeze", {whole, b.ints({-1})}), b.ints(categories.numbers)});
  b.output(0, b.add("Cast", {equal}, {{"to", onnx_number(float_output(call))}}));
}

Op label_encoder() {
  Op op = ml_op("LabelEncoder", "Each element replaced by the value that stands beside it among the keys.");
  op.inputs = {required("X", label_types())};
  op.outputs = {required("Y", label_types())};
  op.attributes = {{"keys_strings", std::vector<std::string>()},
                   {"keys_int64s", std::vector<int64_t>()},
                   {"keys_floats", std::vector<float>()},
                   {"values_strings", std::vector<std::string>()},
                   {"values_int64s", std::vector<int64_t>()},
                   {"values_floats", std::vector<float>()},
                   {"default_string", std::string("_Unused")},
                   {"default_int64", int64_t{-1}},
                   {"default_float", -0.0F}};
  op.infer = infer_label_encoder;
  op.reference = run_label_encoder;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Text;
  op.cases = {"string[5]{a,b,d,c,g} keys_strings=[a,b,c] values_int64s=[0,1,2] default_int64=42",
              "string[2,2]{a,b,\"\",c} keys_strings=[a,\"\",c] values_strings=[x,\"y z\",w]",
              "string[3]{a,b,c} keys_strings=[a,b] values_floats=[0.5,-1]",
              "i64[4]{3,1,2,7} keys_int64s=[1,2,3] values_strings=[one,two,three] default_string=none",
              "i64[4]{3,1,2,7} keys_int64s=[1,2,3] values_int64s=[10,20,30]",
              "i64[4]{3,1,2,7} keys_int64s=[1,2,3] values_floats=[1.5,2.5,3.5] default_float=9",
              "f32[5]{1,nan,0,-0,2} keys_floats=[nan,0] values_int64s=[7,8]",
              "f32[5]{1,nan,0,-0,2} keys_floats=[1,2] values_floats=[nan,inf]",
              "f32[3]{1,2,3} keys_floats=[1,2] values_strings=[a,b]",
              "f64[3]{0.1,nan,2} keys_tensor=f64[2]{0.1,nan} values_tensor=i32[2]{-5,6} default_tensor=i32[1]{3}",
              "i32[3]{1,2,3} keys_tensor=i32[2]{1,2} values_tensor=i16[2]{8,9} default_tensor=i16[1]{-7}",
              "i16[3]{1,2,3} keys_tensor=i16[2]{1,2} values_tensor=f64[2]{0.1,0.2}",
              "string[3]{a,b,z} keys_strings=[a,b] values_tensor=i16[2]{1,2} default_tensor=i16[1]{42}",
              "string[3]{a,b,z} keys_tensor=string[2]{a,b} values_tensor=string[2]{c,d}",
              "i64[3]{1,2,1} keys_int64s=[1,1] values_int64s=[5,6]",
              "i64[0] keys_int64s=[1] values_strings=[a]",
              "i64[]{1} keys_int64s=[1] values_strings=[a]",
              "i64[2,3,2]~index:5 keys_int64s=[0,1,2,3] values_int64s=[3,2,1,0]"};
  return op;
}

Op category_mapper() {
  Op op = ml_op("CategoryMapper", "Texts become the numbers beside them, and numbers the texts.");
  op.inputs = {required("X", {DType::String, DType::I64})};
  op.outputs = {required("Y", {DType::I64, DType::String})};
  op.attributes = {{"cats_strings", std::vector<std::string>()},
                   {"cats_int64s", std::vector<int64_t>()},
                   {"default_string", std::string("_Unused")},
                   {"default_int64", int64_t{-1}}};
  op.infer = infer_category_mapper;
  op.reference = run_category_mapper;
  op.expand = [](GraphBuilder& b) { b.output(0, b.add("ai.onnx.ml:LabelEncoder", {b.input(0)}, as_label_encoder(b.call()))); };
  op.rounding = Rounding::MoveBits;
  op.category = Category::Text;
  op.cases = {"string[4]{a,c,b,a} cats_strings=[a,b] cats_int64s=[5,-6] default_int64=0,-1",
              "i64[4]{5,-6,7,5} cats_strings=[a,b] cats_int64s=[5,-6] default_string=none",
              "string[2,2]{a,b,x,\"\"} cats_strings=[a,b,\"\"] cats_int64s=[1,2,3]",
              "i64[2,3]~index:4 cats_strings=[zero,one,two] cats_int64s=[0,1,2]",
              "i64[0,2] cats_strings=[a] cats_int64s=[1]",
              "string[0] cats_strings=[a] cats_int64s=[1]",
              "string[]{a} cats_strings=[a] cats_int64s=[9]",
              "string[3]{a,b,a} cats_strings=[a,a] cats_int64s=[1,2]",
              "i64[2]{1,2} cats_strings=[a,b] cats_int64s=[1,1]",
              "i64[2]{9223372036854775807,0} cats_strings=[most,none] cats_int64s=[9223372036854775807,0]"};
  return op;
}

Op one_hot_encoder() {
  Op op = ml_op("OneHotEncoder", "A row of zeros for each element, with a one at its category.");
  std::vector<DType> types = feature_types();
  types.push_back(DType::String);
  op.inputs = {required("X", types)};
  op.outputs = {required("Y", {DType::F32})};
  op.attributes = {{"cats_int64s", std::vector<int64_t>()}, {"cats_strings", std::vector<std::string>()}, {"zeros", int64_t{1}}};
  op.infer = infer_one_hot;
  op.reference = run_one_hot;
  op.expand = expand_one_hot;
  op.rounding = Rounding::Quantise;
  op.category = Category::Layout;
  op.cases = {"T[3]{2,0,7} cats_int64s=[0,1,2]",
              "T[2,2]{2,0,1,1} cats_int64s=[2,1,0] zeros=0,1",
              "T[2,1,3]~index:5 cats_int64s=[0,1,2,3]",
              "T[0,2] cats_int64s=[0,1]",
              "T[]{4} cats_int64s=[0,1,2,3,4,5,6,7]",
              "f32[4]{1.9,-0.5,nan,inf} cats_int64s=[0,1]",
              "f64[2]{1e300,-1.5} cats_int64s=[-1,0]",
              "string[4]{a,c,b,\"\"} cats_strings=[a,b]",
              "string[2,2]{a,b,b,a} cats_strings=[b,a] zeros=0,1",
              "i64[3]{1,2,1} cats_int64s=[1,1,2]",
              "i64[2]{-1,9223372036854775807} cats_int64s=[9223372036854775807,-1]"};
  return op;
}

}  // namespace

void add_encoder_ops(OpSet& ops) {
  ops.add(label_encoder());
  ops.add(category_mapper());
  ops.add(one_hot_encoder());
}

}  // namespace unmoor::ml
