#include "unmoor/base/error.h"
#include "unmoor/ops/image/image.h"
#include "unmoor/ops/numeric.h"
#include "unmoor/ops/vision.h"

namespace unmoor {
namespace {

std::string pixel_format(const OpCall& call) {
  std::string format = call.text("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale") {
    fail(ErrorKind::InvalidModel, title(call), ": pixel_format is '", format, "', not RGB, BGR or Grayscale");
  }
  return format;
}

int64_t channels_of(const OpCall& call) { return pixel_format(call) == "Grayscale" ? 1 : 3; }

std::vector<Type> infer_decoder(const OpCall& call) {
  require_rank(call, 0, 1);
  return {TensorType{DType::U8, Shape{Shape::unknown, Shape::unknown, channels_of(call)}}};
}

// Luma of ITU-R BT.601 in units of 2^-16, rounded: of gray pixels, their gray.
uint8_t luma(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

void run_decoder(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const int64_t channels = channels_of(call);
  const Image image =
      decode_image(in[0].tensor().bytes()).value_or(Image{});  // What cannot be decoded gives a tensor of no elements.
  Tensor& result = out.allocate(0, {DType::U8, Shape{image.height, image.width, channels}});
  const auto to = result.writable_span<uint8_t>();
  const bool reversed = pixel_format(call) == "BGR";
  for (size_t i = 0; i + 3 <= image.rgb.size(); i += 3) {
    const uint8_t* const pixel = &image.rgb[i];
    if (channels == 1) {
      to[i / 3] = luma(pixel[0], pixel[1], pixel[2]);
    } else {
      for (size_t c : {0, 1, 2}) to[i + c] = pixel[reversed ? 2 - c : c];
    }
  }
}

}  // namespace

void add_image_decoder(OpSet& ops) {
  Op op;
  op.name = "ImageDecoder";
  op.summary = "An image file as pixels [height, width, channels]; nothing if it cannot be decoded.";
  op.inputs = {required("encoded_stream", {DType::U8})};
  op.outputs = {required("image", {DType::U8})};
  op.attributes = {{"pixel_format", std::string("RGB")}};
  op.infer = infer_decoder;
  op.reference = run_decoder;
  op.rounding = Rounding::MoveBits;
  op.category = Category::Other;
  op.cases = {
      "u8[17]{80,54,32,50,32,49,32,50,53,53,10,255,0,0,0,128,255} pixel_format=RGB,BGR,Grayscale",
      "u8[14]{80,53,10,51,32,49,10,49,48,48,10,0,50,100}",
      "u8[12]{80,52,10,53,32,50,10,168,88,0,0,0}",
      "u8[13]{80,49,32,51,32,49,10,49,48,49,10,10,10}",
      "u8[62]{66,77,62,0,0,0,0,0,0,0,54,0,0,0,40,0,0,0,1,0,0,0,2,0,0,0,1,0,24,0,0,0,0,0,8,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
      "1,2,3,0,4,5,6,0} pixel_format=RGB,BGR,Grayscale",
      "u8[69]{137,80,78,71,13,10,26,10,0,0,0,13,73,72,68,82,0,0,0,1,0,0,0,1,8,2,0,0,0,144,119,83,222,0,0,0,12,73,68,65,84,120,156,99,"
      "248,207,208,0,0,3,129,1,128,162,173,150,129,0,0,0,0,73,69,78,68,174,66,96,130}",
      "u8[0]",
      "u8[4]{1,2,3,4}",
      "u8[8]{137,80,78,71,13,10,26,10}",
      "u8[11]{80,54,32,50,32,49,32,50,53,53,10} pixel_format=RGB,Grayscale"};
  ops.add(std::move(op));
}

}  // namespace unmoor
