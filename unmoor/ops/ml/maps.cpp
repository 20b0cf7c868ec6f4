#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "unmoor/base/error.h"
#include "unmoor/ops/ml/ml.h"
#include "unmoor/ops/moving.h"
#include "unmoor/ops/onnx_dtype.h"
#include "unmoor/ops/type_union.h"

namespace unmoor::ml {
namespace {

const MapType& map_type(const OpCall& call) {
  const auto* map = call.has(0) ? std::get_if<MapType>(&*call.inputs[0]) : nullptr;
  if (map != nullptr) return *map;
  fail(ErrorKind::InvalidModel, title(call), ": the input is ", call.has(0) ? to_text(*call.inputs[0]) : std::string("absent"),
       ", not a map");
}

// The dtype of a map's values, or empty if nothing tells. Fails with InvalidModel unless they are tensors.
std::optional<DType> value_dtype(const OpCall& call, const MapType& map) {
  if (!map.value) return std::nullopt;
  if (const auto* value = std::get_if<TensorType>(map.value.get())) return value->dtype;
  fail(ErrorKind::InvalidModel, title(call), ": the input is ", to_text(Type(map)), ", not a map of single values");
}

// The map that was given. Fails with InvalidArgument unless it has a value for each key.
const Map& given_map(const OpCall& call, std::span<const Data> in) {
  const Map& map = in[0].map();
  if (map.keys.elements() == map.values.size()) return map;
  fail(ErrorKind::InvalidArgument, title(call), ": the map has ", map.keys.elements(), " keys for ", map.values.size(),
       " values");
}

// The values of a map, in its order, as one tensor of `dtype`. Fails with InvalidArgument unless each is one element of it.
Tensor values_of(const OpCall& call, const Map& map, DType dtype) {
  Tensor all(TensorType{dtype, Shape{static_cast<int64_t>(map.values.size())}});
  for (size_t i = 0; i < map.values.size(); ++i) {
    const Tensor& value = map.values[i].tensor();
    if (value.dtype() != dtype || value.shape().elements() != 1) {
      fail(ErrorKind::InvalidArgument, title(call), ": value ", i, " of the map is ", value.type(), ", not one ", dtype);
    }
    ElementCopy(value, all)(0, static_cast<int64_t>(i));
  }
  return all;
}

// The places of a map's values in the order of its keys. Fails with InvalidArgument on a key that is there twice.
std::vector<size_t> sorted_places(const OpCall& call, std::span<const int64_t> keys) {
  std::vector<size_t> places(keys.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::ranges::sort(places, {}, [&](size_t i) { return keys[i]; });
  for (size_t i = 1; i < places.size(); ++i) {
    if (keys[places[i - 1]] == keys[places[i]])
      fail(ErrorKind::InvalidArgument, title(call), ": the map has key ", keys[places[i]], " twice");
  }
  return places;
}

bool is_sparse(const OpCall& call) {
  const std::string form = call.text("map_form", "DENSE");
  if (form != "DENSE" && form != "SPARSE")
    fail(ErrorKind::InvalidModel, title(call), ": map_form is '", form, "', not DENSE or SPARSE");
  return form == "SPARSE";
}

DType cast_target(const OpCall& call) {
  const std::string to = call.text("cast_to", "TO_FLOAT");
  if (to == "TO_FLOAT") return float_output(call);
  if (to == "TO_INT64") return DType::I64;
  if (to == "TO_STRING") return DType::String;
  fail(ErrorKind::InvalidModel, title(call), ": cast_to is '", to, "', not TO_FLOAT, TO_INT64 or TO_STRING");
}

std::vector<Type> infer_cast_map(const OpCall& call) {
  const MapType& map = map_type(call);
  const auto value = value_dtype(call, map);
  if (map.key != DType::I64 || (value && *value != DType::F32 && *value != DType::F64 && *value != DType::String)) {
    fail(ErrorKind::InvalidModel, title(call), ": the input is ", to_text(Type(map)),
         ", not a map from int64 to strings or floats");
  }
  int64_t length = Shape::unknown;
  if (is_sparse(call)) {
    length = call.integer("max_map", 1);
    if (length < 0) fail(ErrorKind::InvalidModel, title(call), ": max_map is ", length);
  }
  return {TensorType{cast_target(call), Shape{length}}};
}

// Elements converted as Cast does: the text says no more than "cast".
Tensor cast_to(const OpCall& call, const Tensor& values, DType dtype) {
  if (values.dtype() == dtype) return values;
  Node node;
  node.op = "Cast";
  node.name = call.node.name;
  node.attributes["to"] = onnx_number(dtype);
  node.outputs = {ValueId{0}};
  const OpCall cast{node, {Type(values.type())}, {Type(TensorType{dtype, values.shape()})}, {&values}};
  Outputs out(1);
  const Data in(values);
  run_reference(cast, std::span(&in, 1), out);
  return out.all()[0].tensor();
}

// One dimension, as the text says of the output; ONNX Runtime gives [1,C]. What no key fills of a sparse output is 0 or "".
void run_cast_map(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Map& map = given_map(call, in);
  if (map.keys.dtype() != DType::I64)
    fail(ErrorKind::InvalidArgument, title(call), ": the map's keys are ", map.keys.dtype(), ", not int64");
  const std::vector<int64_t> keys = integers(map.keys);
  const DType from = map.values.empty() ? DType::F32 : map.values[0].tensor().dtype();
  const Tensor values = cast_to(call, values_of(call, map, from), cast_target(call));
  const bool sparse = is_sparse(call);
  const int64_t length = sparse ? call.integer("max_map", 1) : static_cast<int64_t>(keys.size());
  Tensor& result = out.allocate(0, {values.dtype(), Shape{length}});
  const ElementCopy copy(values, result);
  int64_t next = 0;
  for (const size_t i : sorted_places(call, keys)) {
    if (sparse && (keys[i] < 0 || keys[i] >= length)) {
      fail(ErrorKind::InvalidArgument, title(call), ": key ", keys[i], " of the map is outside of [0,", length, ")");
    }
    copy(static_cast<int64_t>(i), sparse ? keys[i] : next++);
  }
}

std::vector<Type> infer_dict_vectorizer(const OpCall& call) {
  const MapType& map = map_type(call);
  const Labels vocabulary = labels_of(call, "int64_vocabulary", "string_vocabulary");
  if (map.key != vocabulary.dtype()) {
    fail(ErrorKind::InvalidModel, title(call), ": the vocabulary is ", vocabulary.dtype(), ", but the input is ",
         to_text(Type(map)));
  }
  const DType dtype = value_dtype(call, map).value_or(DType::F32);
  return {TensorType{dtype, Shape{1, static_cast<int64_t>(vocabulary.size())}}};
}

template <class Key>
void vectorize(const OpCall& call, const std::vector<Key>& vocabulary, const std::vector<Key>& keys, const Tensor& values,
               Tensor& result) {
  std::unordered_map<Key, size_t> places;
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    if (!places.emplace(vocabulary[i], i).second)
      fail(ErrorKind::InvalidModel, title(call), ": the vocabulary has '", vocabulary[i], "' twice");
  }
  const ElementCopy copy(values, result);
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto found = places.find(keys[i]);
    if (found == places.end())
      fail(ErrorKind::InvalidArgument, title(call), ": key '", keys[i], "' of the map is not in the vocabulary");
    copy(static_cast<int64_t>(i), static_cast<int64_t>(found->second));
  }
}

// [1,C], as the type constraint says. The text wants every key in the vocabulary; ONNX Runtime leaves out those that are not.
void run_dict_vectorizer(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Map& map = given_map(call, in);
  const Labels vocabulary = labels_of(call, "int64_vocabulary", "string_vocabulary");
  if (map.keys.dtype() != vocabulary.dtype()) {
    fail(ErrorKind::InvalidArgument, title(call), ": the map's keys are ", map.keys.dtype(), ", but the vocabulary is ",
         vocabulary.dtype());
  }
  const DType dtype = map.values.empty() ? call.output(0).dtype : map.values[0].tensor().dtype();
  const Tensor values = values_of(call, map, dtype);
  Tensor& result = out.allocate(0, {dtype, Shape{1, static_cast<int64_t>(vocabulary.size())}});
  if (vocabulary.texts.empty()) {
    vectorize(call, vocabulary.numbers, integers(map.keys), values, result);
  } else {
    vectorize(call, vocabulary.texts, map.keys.strings(), values, result);
  }
}

std::vector<Type> infer_zip_map(const OpCall& call) {
  const TensorType& data = call.input(0);
  const Labels labels = labels_of(call, "classlabels_int64s", "classlabels_strings");
  const std::set<std::string> texts(labels.texts.begin(), labels.texts.end());
  const std::set<int64_t> numbers(labels.numbers.begin(), labels.numbers.end());
  if (texts.size() + numbers.size() != labels.size()) fail(ErrorKind::InvalidModel, title(call), ": a label is given twice");
  same_dim(call, rows_of(call, data.shape).width, static_cast<int64_t>(labels.size()), "the number of labels");
  MapType map{labels.dtype(), std::make_shared<const Type>(TensorType{data.dtype, Shape()})};
  return {sequence_of(std::move(map))};
}

// A map a row, in the order of the labels. All share their keys.
void run_zip_map(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Tensor& data = in[0].tensor();
  const OpCall known = with_data(call, in);
  infer_zip_map(known);
  const Labels labels = labels_of(call, "classlabels_int64s", "classlabels_strings");
  const Rows rows = rows_of(known, data.shape());
  const Shape shape{static_cast<int64_t>(labels.size())};
  const Tensor keys =
      labels.texts.empty() ? Tensor::from<int64_t>(shape, labels.numbers) : Tensor::of_strings(shape, labels.texts);
  Sequence sequence;
  int64_t from = 0;
  for (int64_t row = 0; row < rows.count; ++row) {
    Map map{keys, {}};
    for (size_t k = 0; k < labels.size(); ++k) {
      Tensor value(TensorType{data.dtype(), Shape()});
      ElementCopy(data, value)(from++, 0);
      map.values.emplace_back(std::move(value));
    }
    sequence.items.emplace_back(std::move(map));
  }
  out.set(0, std::move(sequence));
}

Op cast_map() {
  Op op = ml_op("CastMap", "A map's values as a tensor, in the order of their keys or at the places that their keys name.");
  op.inputs = {required("X", {})};
  op.outputs = {required("Y", {DType::F32, DType::I64, DType::String})};
  op.attributes = {{"cast_to", std::string("TO_FLOAT")}, {"map_form", std::string("DENSE")}, {"max_map", int64_t{1}}};
  op.infer = infer_cast_map;
  op.reference = run_cast_map;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Sequence;
  op.cases = {"i64->f32{3:1.5,-1:2,7:-0.25} cast_to=TO_FLOAT,TO_INT64,TO_STRING",
              "i64->f32{3:1.5,0:2} cast_to=TO_FLOAT,TO_INT64,TO_STRING map_form=SPARSE max_map=5",
              "i64->string{2:a,1:\"b c\"} cast_to=TO_STRING",
              "i64->string{2:1.5,0:-3} map_form=SPARSE,DENSE max_map=3",
              "i64->string{2:15,0:-3} cast_to=TO_INT64",
              "i64->string{1:x} cast_to=TO_STRING map_form=SPARSE max_map=3",
              "i64->f32{}",
              "i64->f32{} map_form=SPARSE max_map=3",
              "i64->f64{1:0.1,0:2} cast_to=TO_FLOAT",
              "i64->f32{0:nan,1:inf,2:-0} map_form=SPARSE max_map=3"};
  return op;
}

Op dict_vectorizer() {
  Op op = ml_op("DictVectorizer", "A map's values at the places of their keys in a vocabulary; others are 0 or \"\".");
  op.inputs = {required("X", {})};
  op.outputs = {required("Y", {DType::I64, DType::F32, DType::F64, DType::String})};
  op.attributes = {{"string_vocabulary", std::vector<std::string>()}, {"int64_vocabulary", std::vector<int64_t>()}};
  op.infer = infer_dict_vectorizer;
  op.reference = run_dict_vectorizer;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Sequence;
  op.cases = {"string->f32{a:4,c:8} string_vocabulary=[a,c,b,z]",
              "string->f64{b:0.1} string_vocabulary=[a,c,b,z]",
              "string->i64{z:7,a:-1} string_vocabulary=[a,c,b,z]",
              "i64->f32{10:1.5,-3:2.5} int64_vocabulary=[-3,10,4]",
              "i64->f64{4:0.1} int64_vocabulary=[-3,10,4]",
              "i64->string{4:x,-3:\"y z\"} int64_vocabulary=[-3,10,4]",
              "string->f32{} string_vocabulary=[a,b]",
              "i64->string{} int64_vocabulary=[1]",
              "string->f32{\"\":1,\"a b\":2} string_vocabulary=[\"a b\",\"\"]",
              "i64->f32{1:nan,2:inf} int64_vocabulary=[2,1]"};
  return op;
}

Op zip_map() {
  Op op = ml_op("ZipMap", "A map from labels to scores for each row.");
  op.inputs = {required("X", {DType::F32})};
  op.outputs = {required("Z", {})};
  op.attributes = {{"classlabels_strings", std::vector<std::string>()}, {"classlabels_int64s", std::vector<int64_t>()}};
  op.infer = infer_zip_map;
  op.reference = run_zip_map;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Sequence;
  op.cases = {"T[3,2] classlabels_int64s=[5,-6]",
              "T[3,2] classlabels_strings=[a,\"b c\"]",
              "T[2] classlabels_int64s=[0,1]",
              "T[1,3] classlabels_strings=[x,y,z]",
              "T[0,2] classlabels_int64s=[0,1]",
              "f64[2,2] classlabels_int64s=[1,0]",
              "f32[2,1]{nan,inf} classlabels_strings=[a]",
              "f32[1,2]{0,-0} classlabels_int64s=[9223372036854775807,-9223372036854775808]",
              "T[7,5]~unit classlabels_int64s=[4,3,2,1,0]",
              "f32[3]~unit classlabels_strings=[\"\",b,c]"};
  return op;
}

}  // namespace

void add_map_ops(OpSet& ops) {
  ops.add(cast_map());
  ops.add(dict_vectorizer());
  ops.add(zip_map());
}

}  // namespace unmoor::ml
