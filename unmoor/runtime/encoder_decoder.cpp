#include <algorithm>
#include <numeric>

#include "unmoor/base/error.h"
#include "unmoor/runtime/decoder.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

// An encoder and a decoder, as of T5. The encoder takes tokens and their mask and gives keys and values of each layer for cross
// attention. In its older form it also takes the start tokens, and gives logits, its hidden states, and keys and values for self
// attention before them. The decoder takes tokens, the mask, the hidden states in some models, the past for self attention, then
// for cross attention, all [rows, heads, tokens, head size]; it gives logits and the present for self attention.
class EncoderDecoder : public Decoder {
 public:
  EncoderDecoder(const Search& search, const std::vector<Data>& inputs, BodyCalls calls)
      : search_(search), calls_(std::move(calls)), shape_(inputs[0].tensor().shape()), tokens_(integers(inputs[0].tensor())) {
    has_hidden_ = calls_.inputs("decoder") > 2 && calls_.input_name("decoder", 2) == "encoder_hidden_states";
    layers_ = calls_.outputs("decoder") < 3 ? 0 : (calls_.outputs("decoder") - 1) / 2;
    starts_in_encoder_ = calls_.inputs("encoder") == 3;
    const size_t wanted = (has_hidden_ ? size_t{3} : size_t{2}) + 4 * layers_;
    if (layers_ == 0 || calls_.inputs("decoder") != wanted) {
      fail(ErrorKind::InvalidModel, "its decoder has ", calls_.inputs("decoder"), " inputs and ", calls_.outputs("decoder"),
           " outputs, not ", wanted, " inputs and two outputs a layer after the logits");
    }
    const size_t made = starts_in_encoder_ ? 2 + 4 * layers_ : 2 * layers_;
    if ((!starts_in_encoder_ && calls_.inputs("encoder") != 2) || calls_.outputs("encoder") != made ||
        (has_hidden_ && !starts_in_encoder_)) {
      fail(ErrorKind::InvalidModel, "its encoder has ", calls_.inputs("encoder"), " inputs and ", calls_.outputs("encoder"),
           " outputs, not ", made, " outputs for a decoder of ", layers_, " layers");
    }
    const Shape declared = calls_.input_type("decoder", 0).shape;
    takes_newest_ = declared.rank() == 2 && declared[1] == 1;
    set_mask(input_at(inputs, attention_mask_place(search)));
  }

  Tensor first() override {
    std::vector<Data> inputs{numbers("encoder", 0, shape_, tokens_), numbers("encoder", 1, shape_, mask_)};
    const std::vector<int64_t> starts(search_.batch, search_.start_token);
    const Shape start_shape{static_cast<int64_t>(search_.batch), 1};
    if (starts_in_encoder_) inputs.emplace_back(numbers("encoder", 2, start_shape, starts));
    std::vector<Data> made = calls_.run("encoder", std::move(inputs));
    const auto cross = made.end() - static_cast<std::ptrdiff_t>(2 * layers_);
    cross_.assign(cross, made.end());
    if (starts_in_encoder_) {
      hidden_ = made[1];
      self_.assign(made.begin() + 2, cross);
      return made[0].tensor();
    }
    for (size_t i = 0; i < 2 * layers_; ++i) self_.emplace_back(empty_past(2 + i));
    std::vector<size_t> items(search_.batch);
    std::iota(items.begin(), items.end(), size_t{0});
    return decode(numbers("decoder", 0, start_shape, starts), items, items);
  }

  Tensor next(const Sequences& sequences, std::span<const size_t> origins) override {
    std::vector<int64_t> tokens;
    std::vector<size_t> items, from;
    for (size_t row = 0; row < search_.rows(); ++row) {
      const auto& sequence = sequences[row];
      tokens.insert(tokens.end(), takes_newest_ ? sequence.end() - 1 : sequence.begin(), sequence.end());
      items.push_back(row / search_.beams);
      from.push_back(steps_ == 0 ? origins[row] / search_.beams : origins[row]);  // The first call had one row an item.
    }
    ++steps_;
    const Shape shape{static_cast<int64_t>(search_.rows()), static_cast<int64_t>(tokens.size() / search_.rows())};
    return decode(numbers("decoder", 0, shape, tokens), items, from);
  }

 private:
  // `items`: of the batch, by row; `from`: the row of the call before that each goes on from.
  Tensor decode(Tensor tokens, std::span<const size_t> items, std::span<const size_t> from) {
    const Tensor mask = picked(numbers("decoder", 1, shape_, mask_), 0, items);
    std::vector<Data> inputs{std::move(tokens), mask};
    std::vector<int> open{takes_newest_ ? -1 : 1, -1};
    if (has_hidden_) {
      inputs.emplace_back(picked(hidden_.tensor(), 0, items));
      open.push_back(-1);
    }
    for (const Data& past : self_) {
      inputs.emplace_back(picked(past.tensor(), 0, from));
      open.push_back(2);
    }
    for (const Data& past : cross_) inputs.emplace_back(picked(past.tensor(), 0, items));
    self_.clear();
    const std::vector<Data> made = calls_.run("decoder", std::move(inputs), open);
    self_.assign(made.begin() + 1, made.end());
    for (const Data& past : self_) {
      const Shape& shape = past.tensor().shape();
      if (shape.rank() == 4 && shape[0] == static_cast<int64_t>(items.size())) continue;
      fail(ErrorKind::InvalidModel, "its decoder gives a present of shape ", shape, ", not [", items.size(),
           ",heads,tokens,size]");
    }
    return made[0].tensor();
  }

  Tensor numbers(std::string_view key, size_t i, const Shape& shape, std::span<const int64_t> values) const {
    return whole_tensor(calls_.input_type(key, i).dtype, shape, values);
  }

  Tensor empty_past(size_t i) const {
    const TensorType type = calls_.input_type("decoder", i);
    const Shape& shape = type.shape;
    if (!shape.has_rank() || shape.rank() != 4 || shape[1] < 1 || shape[3] < 1) {
      fail(ErrorKind::InvalidModel, "its decoder declares input ", i, " as ", type,
           ", not as [batch,heads,past,size] with known heads and size");
    }
    return Tensor(TensorType{type.dtype, Shape{static_cast<int64_t>(search_.batch), shape[1], 0, shape[3]}});
  }

  // Without a mask, padding on the left is masked; later, the pad token may end a sequence.
  void set_mask(const Data& given) {
    if (given) {
      mask_ = integers(given.tensor());
      return;
    }
    const auto length = static_cast<size_t>(shape_[1]);
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const bool starts = i % length == 0 || mask_.back() == 0;
      mask_.push_back(starts && tokens_[i] == search_.pad_token ? 0 : 1);
    }
  }

  const Search& search_;
  BodyCalls calls_;
  Shape shape_;
  std::vector<int64_t> tokens_, mask_;
  bool has_hidden_ = false, starts_in_encoder_ = false, takes_newest_ = false;
  size_t layers_ = 0, steps_ = 0;
  Data hidden_;
  std::vector<Data> self_, cross_;
};

}  // namespace

std::unique_ptr<Decoder> make_encoder_decoder(const Search& search, const std::vector<Data>& inputs, BodyCalls calls) {
  return std::make_unique<EncoderDecoder>(search, inputs, std::move(calls));
}

}  // namespace unmoor
