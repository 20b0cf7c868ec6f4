#include <algorithm>
#include <cmath>

#include "unmoor/base/error.h"
#include "unmoor/ops/normalize.h"
#include "unmoor/ops/window.h"

namespace unmoor {

namespace {

// Channels of [N, C, …]; a vector has one.
int64_t channels_of(const Shape& first) { return !first.has_rank() ? Shape::unknown : first.rank() < 2 ? 1 : first[1]; }

void require_channels(const OpCall& call, size_t from, size_t to) {
  const int64_t channels = channels_of(canonical(call, call.input(0).shape));
  for (size_t i = from; i < to; ++i) {
    require_rank(call, i, 1);
    if (call.input(i).shape.has_rank()) same_dim(call, call.input(i).shape[0], channels, "the number of channels");
  }
}

// Elements of one channel of one batch item, and the sizes around.
struct Planes {
  size_t batch = 1, channels = 1, plane = 1;
};
Planes planes_of(const Shape& first) {
  if (first.rank() < 2) return {static_cast<size_t>(first.elements()), 1, 1};
  return {static_cast<size_t>(first[0]), static_cast<size_t>(first[1]), static_cast<size_t>(first.elements(2, first.rank()))};
}

std::vector<double> read_planes(const OpCall& call, const Tensor& x) {
  return x.shape().rank() < 2 ? doubles(x) : read_canonical<double>(call, x);
}

void write_planes(const OpCall& call, Outputs& out, const std::vector<double>& y) {
  Tensor& result = out.allocate(0, call.output(0));
  if (result.shape().rank() < 2) {
    write_as<double>(result, y);
  } else {
    write_canonical(call, result, y);
  }
}

// Mean and variance of every channel over batch and plane.
void channel_moments(const std::vector<double>& x, const Planes& at, std::vector<double>& mean, std::vector<double>& variance) {
  std::vector<double> channel(at.batch * at.plane);
  for (size_t c = 0; c < at.channels; ++c) {
    for (size_t n = 0; n < at.batch; ++n)
      std::copy_n(x.data() + (n * at.channels + c) * at.plane, at.plane, channel.data() + n * at.plane);
    const Moments moments = moments_of(channel);
    mean[c] = moments.mean;
    variance[c] = moments.variance;
  }
}

bool trains(const OpCall& call) { return call.integer("training_mode", 0) != 0; }
double momentum_of(const OpCall& call) { return call.real("momentum", static_cast<double>(0.9F)); }

void batch_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Planes at = planes_of(canonical(call, in[0].tensor().shape()));
  std::vector<double> x = read_planes(call, in[0].tensor());
  const std::vector<double> scale = doubles(in[1].tensor());
  const std::vector<double> shift = doubles(in[2].tensor());
  std::vector<double> mean = doubles(in[3].tensor());
  std::vector<double> variance = doubles(in[4].tensor());
  if (trains(call)) {
    std::vector<double> running_mean = mean;
    std::vector<double> running_variance = variance;
    channel_moments(x, at, mean, variance);
    const double momentum = momentum_of(call);
    for (size_t c = 0; c < at.channels; ++c) {
      running_mean[c] = running_mean[c] * momentum + mean[c] * (1 - momentum);
      running_variance[c] = running_variance[c] * momentum + variance[c] * (1 - momentum);
    }
    if (call.wants_output(1)) put(call, out, 1, std::span<const double>(running_mean));
    if (call.wants_output(2)) put(call, out, 2, std::span<const double>(running_variance));
  }
  const double epsilon = epsilon_of(call);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i / at.plane % at.channels;
    x[i] = (x[i] - mean[c]) / std::sqrt(variance[c] + epsilon) * scale[c] + shift[c];
  }
  write_planes(call, out, x);
}

// Axes of batch and plane.
std::vector<int64_t> all_but_channels(size_t rank, bool last) {
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (axis != (last ? rank - 1 : 1)) axes.push_back(static_cast<int64_t>(axis));
  }
  return axes;
}

size_t known_rank(const OpCall& call) {
  const Shape& shape = call.input(0).shape;
  if (!shape.has_rank() || shape.rank() < 2) {
    fail(ErrorKind::Unsupported, title(call), " can only be expanded if the input's rank is known and at least 2; it is ", shape);
  }
  return shape.rank();
}

void expand_batch(GraphBuilder& builder) {
  Formula f(builder);
  const size_t rank = known_rank(f.call());
  const bool last = channels_last(f.call());
  const ValueId x = f.input(0);
  ValueId mean = f.input(3);
  ValueId variance = f.input(4);
  if (trains(f.call())) {
    const std::vector<int64_t> axes = all_but_channels(rank, last);
    const ValueId current = f.reduce("ReduceMean", x, axes);
    const ValueId spread = f.reduce("ReduceMean", f.square(f.difference(x, current)), axes);
    const ValueId keep = f.number(momentum_of(f.call()));
    const ValueId take = f.number(1 - momentum_of(f.call()));
    const ValueId flat_mean = f.reshaped(current, {-1});
    const ValueId flat_spread = f.reshaped(spread, {-1});
    if (f.call().wants_output(1)) f.output(1, f.sum(f.product(mean, keep), f.product(flat_mean, take)));
    if (f.call().wants_output(2)) f.output(2, f.sum(f.product(variance, keep), f.product(flat_spread, take)));
    mean = flat_mean;
    variance = flat_spread;
  }
  const ValueId deviation = f.add("Sqrt", {f.sum(variance, f.number(epsilon_of(f.call())))});
  const ValueId factor = f.quotient(f.input(1), deviation);
  const ValueId shift = f.difference(f.input(2), f.product(mean, factor));
  f.output(0, f.sum(f.product(x, per_channel(f, factor, rank, last)), per_channel(f, shift, rank, last)));
}

std::vector<Type> infer_batch(const OpCall& call) {
  require_channels(call, 1, 5);
  if (!trains(call)) return like_first(call);
  const TensorType statistics{call.input(3).dtype, Shape{channels_of(canonical(call, call.input(0).shape))}};
  return {call.input(0), statistics, statistics};
}

Op batch_norm() {
  Op op = normalization("BatchNormalization", "(x - mean) / √(variance + epsilon)·scale + B with one value of each a channel.",
                        {required("X", float_types()), required("scale", float_types()), required("B", float_types()),
                         required("input_mean", float_types()), required("input_var", float_types())},
                        2);
  op.outputs = {required("Y", float_types()), optional("running_mean", float_types()), optional("running_var", float_types())};
  op.attributes = {
      {"epsilon", usual_epsilon}, {"momentum", 0.9F}, {"training_mode", int64_t{0}}, {"layout", std::string("NCHW")}};
  op.infer = infer_batch;
  op.reference = batch_reference;
  op.expand = expand_batch;
  const std::string weights = " T[3]~small! T[3]~small! T[3]~small! T[3]~positive!";
  op.cases = {cat("T[2,3,4,5]~small", weights),
              cat("T[2,3,7]~small", weights, " epsilon=0.01"),
              cat("T[4,3]~small", weights),
              cat("T[1,3,2,3,4]~small", weights),
              cat("T[0,3,4,4]", weights),
              cat("T[2,4,5,3]~small", weights, " layout=NHWC"),
              cat("T[2,3,4,5]~small", weights, " training_mode=1 outputs=3"),
              cat("T[2,3,0]", weights),
              cat("T[3,3,1]~small", weights, " training_mode=1 momentum=0.25 epsilon=0.1 outputs=3"),
              "T[2,3,4,4]~small T[3]~small T[3]~small T[3]~small T[3]~positive"};
  return op;
}

// Normalizes runs of `length` elements, then scales and shifts by channel.
void grouped_reference(const OpCall& call, std::span<const Data> in, Outputs& out, size_t groups) {
  const Planes at = planes_of(canonical(call, in[0].tensor().shape()));
  std::vector<double> x = read_planes(call, in[0].tensor());
  const std::vector<double> scale = doubles(in[1].tensor());
  const std::vector<double> shift = doubles(in[2].tensor());
  const size_t length = groups == 0 ? 0 : at.channels / groups * at.plane;
  const double epsilon = epsilon_of(call);
  for (size_t run = 0; length > 0 && run < x.size(); run += length) {
    const Moments moments = moments_of(std::span<const double>(x).subspan(run, length));
    const double inverse = 1 / std::sqrt(moments.variance + epsilon);
    for (size_t i = run; i < run + length; ++i) {
      const size_t c = i / at.plane % at.channels;
      x[i] = (x[i] - moments.mean) * inverse * scale[c] + shift[c];
    }
  }
  write_planes(call, out, x);
}

Op instance_norm() {
  Op op = normalization("InstanceNormalization",
                        "Each channel of each item normalized by its own mean and variance, scaled and shifted.",
                        {required("input", float_types()), required("scale", float_types()), required("B", float_types())}, 8);
  op.attributes = {{"epsilon", usual_epsilon}, {"layout", std::string("NCHW")}};
  op.infer = [](const OpCall& call) {
    require_channels(call, 1, 3);
    return like_first(call);
  };
  op.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    grouped_reference(call, in, out, static_cast<size_t>(channels_of(canonical(call, in[0].tensor().shape()))));
  };
  op.expand = [](GraphBuilder& builder) {
    Formula f(builder);
    const size_t rank = known_rank(f.call());
    const bool last = channels_last(f.call());
    std::vector<int64_t> axes = all_but_channels(rank, last);
    axes.erase(axes.begin());
    if (axes.empty()) fail(ErrorKind::Unsupported, title(f.call()), ": an input of rank 2 has no plane to normalize over");
    const Centred part = centred(f, f.input(0), axes, epsilon_of(f.call()));
    const ValueId normal = f.product(part.difference, part.inverse);
    f.output(0, f.sum(f.product(normal, per_channel(f, f.input(1), rank, last)), per_channel(f, f.input(2), rank, last)));
  };
  op.cases = {"T[2,3,4,5]~small T[3]~small! T[3]~small!", "T[2,3,17]~small T[3]~small! T[3]~small! epsilon=0.01",
              "T[0,3,4,4] T[3]! T[3]!", "T[1,3,2,3,4]~small T[3]~small! T[3]~small!",
              "T[2,4,5,3]~small T[3]~small! T[3]~small! layout=NHWC"};
  return op;
}

int64_t groups_of(const OpCall& call) {
  const int64_t groups = call.integer("num_groups", 0);
  const int64_t channels = channels_of(canonical(call, call.input(0).shape));
  if (groups < 1 || (channels >= 0 && channels % groups != 0)) {
    fail(ErrorKind::InvalidModel, title(call), ": num_groups is ", groups, ", not a divisor of ", channels, " channels");
  }
  return groups;
}

void expand_group(GraphBuilder& builder) {
  Formula f(builder);
  const OpCall& call = f.call();
  const size_t rank = known_rank(call);
  const int64_t groups = groups_of(call);
  if (channels_last(call)) fail(ErrorKind::Unsupported, title(call), " in layout NHWC cannot be expanded");
  const ValueId x = f.input(0);
  const Shape& shape = call.input(0).shape;
  const ValueId back = shape.is_known() ? f.ints(shape.dims()) : f.add("Shape", {x});
  const int64_t length = shape.is_known() ? shape.elements(1, rank) / groups : -1;
  const Centred part = centred(f, f.reshaped(x, {0, groups, length}), {2}, epsilon_of(call));
  const ValueId normal = f.add("Reshape", {f.product(part.difference, part.inverse), back});
  f.output(0, f.sum(f.product(normal, per_channel(f, f.input(1), rank, false)), per_channel(f, f.input(2), rank, false)));
}

Op group_norm() {
  Op op = normalization("GroupNormalization",
                        "Groups of channels of each item normalized by their mean and variance, scaled and shifted by channel.",
                        {required("X", float_types()), required("scale", float_types()), required("bias", float_types())}, 8);
  op.attributes = {{"epsilon", usual_epsilon}, {"stash_type", int64_t{1}}, {"layout", std::string("NCHW")}};
  op.infer = [](const OpCall& call) {
    groups_of(call);
    require_channels(call, 1, 3);
    return like_first(call);
  };
  op.reference = [](const OpCall& call, std::span<const Data> in, Outputs& out) {
    grouped_reference(call, in, out, static_cast<size_t>(groups_of(call)));
  };
  op.expand = expand_group;
  op.cases = {"T[2,6,4,5]~small T[6]~small! T[6]~small! num_groups=1,2,6",
              "T[2,4,17]~small T[4]~small! T[4]~small! num_groups=2 epsilon=0.01", "T[0,4,3,3] T[4]! T[4]! num_groups=2",
              "T[3,8]~small T[8]~small! T[8]~small! num_groups=4"};
  return op;
}

void response_reference(const OpCall& call, std::span<const Data> in, Outputs& out) {
  const Planes at = planes_of(canonical(call, in[0].tensor().shape()));
  const std::vector<double> x = read_planes(call, in[0].tensor());
  const auto size = static_cast<size_t>(call.integer("size", 1));
  const size_t before = (size - 1) / 2;
  const size_t after = size - 1 - before;
  const double alpha = call.real("alpha", static_cast<double>(0.0001F)) / static_cast<double>(size);
  const double beta = call.real("beta", 0.75);
  const double bias = call.real("bias", 1);
  std::vector<double> y(x.size());
  for (size_t n = 0; n < at.batch; ++n) {
    for (size_t c = 0; c < at.channels; ++c) {
      const size_t first = c < before ? 0 : c - before;
      const size_t last = std::min(at.channels - 1, c + after);
      for (size_t i = 0; i < at.plane; ++i) {
        double squares = 0;
        for (size_t k = first; k <= last; ++k) {
          const double value = x[(n * at.channels + k) * at.plane + i];
          squares += value * value;
        }
        const size_t here = (n * at.channels + c) * at.plane + i;
        y[here] = x[here] / std::pow(bias + alpha * squares, beta);
      }
    }
  }
  write_planes(call, out, y);
}

Op local_response() {
  Op op = normalization("LRN", "x / (bias + alpha/size·(sum of squares over neighbouring channels))^beta.",
                        {required("X", float_types())}, 16);
  op.attributes = {{"alpha", 0.0001F}, {"beta", 0.75F}, {"bias", 1.0F}, {"layout", std::string("NCHW")}};
  op.infer = [](const OpCall& call) {
    const int64_t size = call.integer("size", 0);
    if (size < 1 || size > (int64_t{1} << 31)) fail(ErrorKind::InvalidModel, title(call), ": size is ", size, ", not 1 or more");
    channels_last(call);
    return like_first(call);
  };
  op.reference = response_reference;
  op.rounding = Rounding::Function;
  op.cases = {"T[2,7,3,4]~small size=1,3,4,5", "T[1,5,6,6]~small size=3 alpha=0.5 beta=0.5 bias=2.0", "T[0,3,4,4] size=3",
              "T[2,3,4,7]~small size=5 alpha=0.1 layout=NHWC"};
  return op;
}

}  // namespace

void add_channel_norms(OpSet& ops) {
  ops.add(batch_norm());
  ops.add(instance_norm());
  ops.add(group_norm());
  ops.add(local_response());
}

}  // namespace unmoor
