#include "unmoor/base/error.h"
#include "unmoor/ops/conv_transpose.h"
#include "unmoor/ops/convolve.h"
#include "unmoor/ops/families.h"

namespace unmoor {

namespace {

void conv_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  Tensor& result = out.allocate(0, call.output(0));
  write_canonical(call, result, convolved(call, in));
}

Op conv() {
  Op op;
  op.name = "Conv";
  op.summary = "Convolution of X by W, with groups, strides, dilations and padding.";
  op.inputs = {required("X", float_types()), required("W", float_types()), optional("B", float_types())};
  op.outputs = {required("Y", float_types())};
  op.attributes = {
      {"auto_pad", std::string("NOTSET")},      {"dilations", std::vector<int64_t>()}, {"group", int64_t{1}},
      {"kernel_shape", std::vector<int64_t>()}, {"pads", std::vector<int64_t>()},      {"strides", std::vector<int64_t>()},
      {"layout", std::string("NCHW")}};
  op.infer = [](const OpCall& call) {
    const Shape& w = call.input(1).shape;
    require_bias(call, 2, w.has_rank() && w.rank() > 0 ? w[0] : Shape::unknown);
    return infer_convolution(call, call.input(0).shape, w, call.input(0).dtype);
  };
  op.reference = conv_reference;
  op.cost = [](const OpCall& call) { return convolution_cost(call); };
  op.rounding = Rounding::Sum;
  op.category = Category::Convolution;
  op.cases = {"T[1,3,8,8]~small T[4,3,3,3]~small! T[4]! pads=[1,1,1,1],[0,1,0,1],[0,0,0,0]",
              "T[2,4,7,9]~small T[6,2,3,3]~small! T[6]! group=2 pads=[1,1,1,1] strides=[1,1],[2,2],[2,1]",
              "T[1,8,9,9]~small T[8,1,3,3]~small! T[8]! group=8 pads=[1,1,1,1] strides=[1,1],[2,2]",
              "T[1,8,9,9]~small T[16,1,5,5]~small! - group=8 pads=[2,2,2,2]",
              "T[1,16,7,7]~small T[32,16,1,1]~small! T[32]! strides=[1,1],[2,2]",
              "T[1,3,13,11]~small T[5,3,3,3]~small! dilations=[2,2],[1,3] pads=[2,3,2,3]",
              "T[1,3,10,10]~small T[4,3,3,3]~small! auto_pad=SAME_UPPER,SAME_LOWER,VALID strides=[1,1],[2,2],[3,3]",
              "T[1,3,10,10]~small T[4,3,4,2]~small! auto_pad=SAME_UPPER,SAME_LOWER",
              "T[2,3,17]~small T[4,3,5]~small! T[4]! pads=[2,1] strides=[1],[3]",
              "T[1,2,5,6,7]~small T[3,2,3,3,3]~small! T[3]! pads=[1,1,1,1,1,1],[0,1,2,2,1,0]",
              "T[0,3,8,8] T[4,3,3,3]! T[4]!",
              "T[1,3,8,8]~small T[4,3,3,3]~small T[4]~small kernel_shape=[3,3]",
              "T[1,64,14,14]~small T[64,64,3,3]~small! T[64]! pads=[1,1,1,1]",
              "T[1,3,32,32]~small T[16,3,7,7]~small! T[16]! pads=[3,3,3,3] strides=[2,2]",
              "T[2,7,9,4]~small T[6,2,3,3]~small! T[6]! group=2 pads=[1,1,1,1] layout=NHWC",
              "T[1,8,8,3]~small T[5,3,3,3]~small! - pads=[0,1,0,1] strides=[2,2] layout=NHWC",
              "T[1,15,17,16]~small T[20,16,3,3]~small! T[20]! pads=[1,1,1,1] layout=NHWC",
              "T[2,9,16,21]~small T[21,1,3,3]~small! T[21]! group=21 pads=[1,1,1,1] strides=[1,1],[2,2] layout=NHWC",
              "T[1,9,9,20]~small T[20,1,5,5]~small! - group=20 pads=[2,2,2,2] layout=NHWC",
              "T[1,5,6,40]~small T[24,40,1,1]~small! T[24]! layout=NHWC",
              "T[2,19,6]~small T[8,6,3]~small! T[8]! pads=[1,1] layout=NHWC",
              "T[2,110,17]~small T[20,17,3]~small! T[20]! pads=[2,3] dilations=[1],[4] layout=NHWC",
              "T[1,9,31,16]~small T[16,16,1,3]~small! - pads=[1,1,0,1] layout=NHWC",
              "T[2,9,16,21]~small T[3,21,3,3]~small! T[3]! pads=[1,2,1,0] strides=[1,1],[2,3] layout=NHWC",
              "T[1,7,40,1]~small T[1,1,3,17]~small! T[1]! pads=[2,20,1,8] strides=[2,2] dilations=[2,1] layout=NHWC",
              "T[3,90,1]~small T[2,1,32]~small! - strides=[2] layout=NHWC", "T[1,3,2,8]~small T[4,8,5,5]~small! - pads=[4,4,4,4] layout=NHWC",
              "T[1,1,2]~small T[1,1,2]~small! pads=[0,1] dilations=[2]",
              "T[1,3,4,4]~small T[4,3,2,2]~small! strides=[] pads=[] dilations=[] kernel_shape=[]",
              "T[1,2,5,5]~small T[3,2,3,3]~small! strides=[1000000000,1000000000]",
              "T[2,4,5]~small T[4,1,3]~small! group=4 strides=[1000000000]",
              "T[1,2,3]~small T[5,2,2]~small! pads=[0,9] strides=[10]"};
  return op;
}

}  // namespace

void add_conv_ops(OpSet& ops) {
  ops.add(conv());
  add_conv_transpose(ops);
}

}  // namespace unmoor
