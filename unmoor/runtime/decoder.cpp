#include "unmoor/runtime/decoder.h"

#include <algorithm>
#include <cstring>

#include "unmoor/base/error.h"
#include "unmoor/runtime/body.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {

size_t BodyCalls::inputs(std::string_view key) const {
  const size_t all = body_of(node_, key).inputs().size();
  if (all < captured_.size())
    fail(ErrorKind::InvalidModel, "its '", key, "' has ", all, " inputs, but captures ", captured_.size());
  return all - captured_.size();
}

size_t BodyCalls::outputs(std::string_view key) const { return body_of(node_, key).outputs().size(); }

TensorType BodyCalls::input_type(std::string_view key, size_t i) const {
  const Graph& body = body_of(node_, key);
  const auto* type = std::get_if<TensorType>(&body.value(body.inputs().at(i)).type);
  if (type == nullptr) fail(ErrorKind::InvalidModel, "input ", i, " of its '", key, "' is no tensor");
  return *type;
}

const std::string& BodyCalls::input_name(std::string_view key, size_t i) const {
  const Graph& body = body_of(node_, key);
  return body.value(body.inputs().at(i)).name;
}

std::vector<Data> BodyCalls::run(std::string_view key, std::vector<Data> inputs, const std::vector<int>& open) {
  const Graph& body = body_of(node_, key);
  const size_t own = inputs.size();
  inputs.insert(inputs.end(), captured_.begin(), captured_.end());
  if (body.inputs().size() != inputs.size()) {
    fail(ErrorKind::InvalidModel, "its '", key, "' has ", body.inputs().size() - captured_.size(), " inputs, not ", own);
  }
  std::vector<Type> types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Type type = type_of(inputs[i]);
    if (i < open.size() && open[i] >= 0) std::get<TensorType>(type).shape.set(static_cast<size_t>(open[i]), Shape::unknown);
    types.push_back(std::move(type));
  }
  BodyObserver shown(observer_, cat(node_label(node_), "/", key, "/"), cat("#", steps_++));
  return bodies_.get(body, types).run_in_order(std::move(inputs), observer_ == nullptr ? nullptr : &shown);
}

Tensor picked(const Tensor& tensor, size_t axis, std::span<const size_t> rows) {
  std::vector<int64_t> dims = tensor.shape().dims();
  const auto old = static_cast<size_t>(dims.at(axis));
  dims[axis] = static_cast<int64_t>(rows.size());
  Tensor result(TensorType{tensor.dtype(), Shape(std::move(dims))});
  const auto outer = static_cast<size_t>(tensor.shape().elements(0, axis));
  const size_t block = bytes_of(tensor.dtype(), static_cast<size_t>(tensor.shape().elements(axis + 1, tensor.shape().rank())));
  if (block == 0) return result;
  for (size_t i = 0; i < outer; ++i) {
    for (size_t row = 0; row < rows.size(); ++row) {
      std::memcpy(result.writable_bytes().data() + (i * rows.size() + row) * block,
                  tensor.bytes().data() + (i * old + rows[row]) * block, block);
    }
  }
  return result;
}

Tensor whole_tensor(DType dtype, Shape shape, std::span<const int64_t> values) {
  if (dtype != DType::I32 && dtype != DType::I64)
    fail(ErrorKind::InvalidModel, "its graph takes tokens as ", dtype, ", not int32 or int64");
  Tensor tensor(TensorType{dtype, std::move(shape)});
  store(tensor, values);
  return tensor;
}

namespace {

// A decoder alone, as of GPT-2. Inputs: tokens, positions, attention mask, then the past of each layer; outputs: logits, then the
// present of each layer, [2, rows, heads, tokens, head size].
class PlainDecoder : public Decoder {
 public:
  PlainDecoder(const Search& search, const std::vector<Data>& inputs, BodyCalls calls)
      : search_(search), calls_(std::move(calls)), prompt_(integers(inputs[0].tensor())) {
    const size_t own = calls_.inputs("decoder");
    const size_t made = calls_.outputs("decoder");
    if (made < 2 || own != made + 2) {
      fail(ErrorKind::InvalidModel, "its decoder has ", own, " inputs and ", made,
           " outputs; three inputs and the past of each layer, and logits and the present of each layer were expected");
    }
    const Data& mask = input_at(inputs, attention_mask_place(search));
    for (const int64_t token : prompt_) mask_.push_back(token == search.pad_token ? 0 : 1);
    positions_.resize(search.batch);
    for (size_t i = 0; i < prompt_.size(); ++i) {
      int64_t& count = positions_[i / search.start];
      prompt_positions_.push_back(mask_[i] == 0 ? 0 : count++);
    }
    if (mask) mask_ = integers(mask.tensor());
  }

  Tensor first() override {
    const std::string_view key = calls_.has("init_decoder") ? "init_decoder" : "decoder";
    const Shape shape{static_cast<int64_t>(search_.batch), static_cast<int64_t>(search_.start)};
    std::vector<Data> inputs{numbers(key, 0, shape, prompt_), numbers(key, 1, shape, prompt_positions_),
                             numbers(key, 2, shape, mask_)};
    for (size_t i = 3; i < calls_.inputs(key); ++i) inputs.emplace_back(empty_past(key, i));
    keep(calls_.run(key, std::move(inputs)));
    return logits_;
  }

  Tensor next(const Sequences& sequences, std::span<const size_t> origins) override {
    const Shape shape{static_cast<int64_t>(search_.rows()), 1};
    const size_t length = sequences[0].size();
    std::vector<int64_t> tokens, positions, mask;
    std::vector<size_t> from;
    for (size_t row = 0; row < search_.rows(); ++row) {
      const size_t item = row / search_.beams;
      tokens.push_back(sequences[row].back());
      positions.push_back(positions_[item]);
      const auto old = mask_.begin() + static_cast<std::ptrdiff_t>(item * search_.start);
      mask.insert(mask.end(), old, old + static_cast<std::ptrdiff_t>(search_.start));
      mask.insert(mask.end(), length - search_.start, 1);
      from.push_back(steps_ == 0 ? origins[row] / search_.beams : origins[row]);  // The first call had one row an item.
    }
    for (int64_t& position : positions_) ++position;
    ++steps_;
    const Shape mask_shape{shape[0], static_cast<int64_t>(length)};
    std::vector<Data> inputs{numbers("decoder", 0, shape, tokens), numbers("decoder", 1, shape, positions),
                             numbers("decoder", 2, mask_shape, mask)};
    std::vector<int> open{-1, -1, 1};
    for (const Data& past : past_) {
      inputs.emplace_back(picked(past.tensor(), 1, from));
      open.push_back(3);
    }
    past_.clear();
    keep(calls_.run("decoder", std::move(inputs), open));
    return logits_;
  }

 private:
  Tensor numbers(std::string_view key, size_t i, const Shape& shape, std::span<const int64_t> values) const {
    return whole_tensor(calls_.input_type(key, i).dtype, shape, values);
  }

  Tensor empty_past(std::string_view key, size_t i) const {
    const TensorType type = calls_.input_type(key, i);
    const Shape& shape = type.shape;
    if (!shape.has_rank() || shape.rank() != 5 || shape[2] < 1 || shape[4] < 1) {
      fail(ErrorKind::InvalidModel, "its ", key, " declares input ", i, " as ", type,
           ", not as [2,batch,heads,past,size] with known heads and size");
    }
    return Tensor(TensorType{type.dtype, Shape{2, static_cast<int64_t>(search_.batch), shape[2], 0, shape[4]}});
  }

  void keep(std::vector<Data> results) {
    logits_ = results.at(0).tensor();
    past_.assign(results.begin() + 1, results.end());
    for (const Data& past : past_) {
      const Shape& shape = past.tensor().shape();
      if (shape.rank() != 5 || shape[1] != logits_.shape()[0]) {
        fail(ErrorKind::InvalidModel, "its decoder gives a present of shape ", shape, ", not [2,", logits_.shape()[0],
             ",heads,tokens,size]");
      }
    }
  }

  const Search& search_;
  BodyCalls calls_;
  std::vector<int64_t> prompt_, mask_;
  std::vector<int64_t> prompt_positions_;  // Pad tokens have 0, the others are counted, whatever the mask says.
  std::vector<int64_t> positions_;         // Of the next token, by item.
  Tensor logits_;
  std::vector<Data> past_;
  size_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(const Node& node, const Search& search, const std::vector<Data>& inputs,
                                      std::vector<Data> captured, BodySessions& bodies, Observer* observer) {
  BodyCalls calls(node, std::move(captured), bodies, observer);
  if (search.has_encoder) return make_encoder_decoder(search, inputs, std::move(calls));
  return std::make_unique<PlainDecoder>(search, inputs, std::move(calls));
}

}  // namespace unmoor
