#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"
#include "unmoor/backends/cpu/kernels/product.h"
#include "unmoor/ops/convolve.h"

namespace unmoor::cpu {

namespace {

constexpr size_t most_axes = 3;

// The elements around a point of a plane and their weights in linear interpolation; what lies outside counts as zero.
struct Corners {
  std::array<uint32_t, size_t{1} << most_axes> from;
  std::array<float, size_t{1} << most_axes> weight;
  size_t count;
};

// A call of DeformConv, read.
struct Deform {
  Convolution convolution;
  size_t channels, taps, positions, plane, groups;         // groups: of offsets.
  std::vector<std::vector<int64_t>> tap_index, out_index;  // By tap and by position: the place along each axis.
};

Deform deform_of(const OpCall& call) {
  Deform d{convolution_of(call, call.input(0).shape, call.input(1).shape), 0, 0, 0, 0, 0, {}, {}};
  const auto& window = d.convolution.window;
  d.channels = static_cast<size_t>(d.convolution.channels);
  d.taps = static_cast<size_t>(Shape(window.kernel).elements());
  d.positions = static_cast<size_t>(Shape(window.output).elements());
  d.plane = static_cast<size_t>(Shape(window.input).elements());
  d.groups = static_cast<size_t>(call.integer("offset_group", 1));
  std::vector<int64_t> index(window.rank());
  for (size_t tap = 0; tap < d.taps; ++tap, advance(index, window.kernel)) d.tap_index.push_back(index);
  index.assign(window.rank(), 0);
  for (size_t at = 0; at < d.positions; ++at, advance(index, window.output)) d.out_index.push_back(index);
  return d;
}

Corners around(const std::array<double, most_axes>& point, const std::vector<int64_t>& plane) {
  Corners corners{};
  corners.count = 1;
  corners.weight[0] = 1;
  for (size_t axis = 0; axis < plane.size(); ++axis) {
    if (!(std::fabs(point[axis]) < 0x1p52)) return Corners{};
    const double floor = std::floor(point[axis]);
    const double ratio = point[axis] - floor;
    Corners next{};
    for (size_t i = 0; i < corners.count; ++i) {
      for (const int64_t side : {0, 1}) {
        const int64_t at = static_cast<int64_t>(floor) + side;
        const double weight = side == 0 ? 1 - ratio : ratio;
        if (at < 0 || at >= plane[axis] || !(weight > 0)) continue;
        next.from[next.count] = static_cast<uint32_t>(static_cast<int64_t>(corners.from[i]) * plane[axis] + at);
        next.weight[next.count++] = corners.weight[i] * static_cast<float>(weight);
      }
    }
    corners = next;
  }
  return corners;
}

struct Item {
  const float* x;
  const float* offset;
  const float* mask;  // Null: 1 everywhere.
  float* columns;     // [channels, taps, positions].
};

// What one tap of one offset group sees at positions [begin, end), for all channels of the group.
void sample(const Deform& d, const Item& item, size_t at, size_t begin, size_t end) {
  constexpr size_t block = 32;
  const auto& window = d.convolution.window;
  const size_t group = at / d.taps;
  const size_t tap = at % d.taps;
  const size_t rank = window.rank();
  const size_t channels = d.channels / d.groups;
  std::array<Corners, block> corners;
  for (size_t first = begin; first < end; first += block) {
    const size_t count = std::min(block, end - first);
    for (size_t i = 0; i < count; ++i) {
      const size_t position = first + i;
      std::array<double, most_axes> point{};
      for (size_t axis = 0; axis < rank; ++axis) {
        const int64_t regular = d.out_index[position][axis] * window.strides[axis] - window.begin[axis] +
                                d.tap_index[tap][axis] * window.dilations[axis];
        point[axis] =
            static_cast<double>(regular) + static_cast<double>(item.offset[(at * rank + axis) * d.positions + position]);
      }
      corners[i] = around(point, window.input);
      const float factor = item.mask == nullptr ? 1.0F : item.mask[at * d.positions + position];
      for (size_t k = 0; item.mask != nullptr && k < corners[i].count; ++k) corners[i].weight[k] *= factor;
    }
    for (size_t c = group * channels; c < (group + 1) * channels; ++c) {
      const float* const plane = item.x + c * d.plane;
      float* const to = item.columns + (c * d.taps + tap) * d.positions + first;
      for (size_t i = 0; i < count; ++i) {
        float sum = 0;
        for (size_t k = 0; k < corners[i].count; ++k) sum += corners[i].weight[k] * plane[corners[i].from[k]];
        to[i] = sum;
      }
    }
  }
}

Support supports_deform(const OpCall& call) {
  if (Support types = inputs_are(call, {DType::F32}); !types) return types;
  const Shape& x = call.input(0).shape;
  if (x.rank() > most_axes + 2) return no(Reason::Rank, x.rank() - 2, " spatial axes");
  for (size_t i = 0; i < call.input_count(); ++i) {
    if (call.has(i) && call.input(i).shape.elements() == 0) return no(Reason::Size, "an empty input ", i);
  }
  if (call.output(0).shape.elements() == 0) return no(Reason::Size, "an empty result");
  return x.elements(2, x.rank()) < int64_t{1} << 32 ? yes() : no(Reason::Size, "planes of 2^32 elements or more");
}

Prepared prepare_deform(const OpCall& call, Device& device) {
  const auto deform =
      std::make_shared<const Deform>(deform_of(call));  // Shared by the copies of the function below, as are the products.
  const auto group = static_cast<size_t>(deform->convolution.group);
  Products products;
  products.m = static_cast<size_t>(deform->convolution.outputs) / group;
  products.n = deform->positions;
  products.k = deform->channels / group * deform->taps;
  products.a_offsets.clear();
  products.b_offsets.clear();
  for (size_t g = 0; g < group; ++g) {
    products.a_offsets.push_back(g * products.m * products.k);
    products.b_offsets.push_back(g * products.k * products.n);
    products.bias_offsets.push_back(g * products.m);
  }
  const auto product =
      std::make_shared<const PreparedProducts>(machine_of(device), products, nullptr, call.has(3) ? Bias::Row : Bias::None);
  const size_t columns = (deform->channels * deform->taps * deform->positions + 15) / 16 * 16;
  return {.run =
              [&machine = machine_of(device), deform, product, columns](Stream&, const KernelArgs& args) {
                const Deform& d = *deform;
                const size_t rows = d.groups * d.taps;
                auto* const workspace = reinterpret_cast<float*>(args.workspace.host());
                const float* const mask = input_as(args, 4);
                for (size_t n = 0; n < static_cast<size_t>(d.convolution.batch); ++n) {
                  const Item item{input_as(args, 0) + n * d.channels * d.plane,
                                  input_as(args, 2) + n * rows * d.convolution.window.rank() * d.positions,
                                  mask == nullptr ? nullptr : mask + n * rows * d.positions, workspace};
                  constexpr size_t piece = 1024;
                  const size_t pieces = (d.positions + piece - 1) / piece;
                  machine.pool().each(rows * pieces, [&](size_t i) {
                    sample(d, item, i / pieces, i % pieces * piece, std::min((i % pieces + 1) * piece, d.positions));
                  });
                  product->run({input_as(args, 1), workspace, input_as(args, 3), nullptr,
                                output_as(args, 0) + n * static_cast<size_t>(d.convolution.outputs) * d.positions,
                                workspace + columns});
                }
              },
          .workspace_bytes = columns * sizeof(float) + product->workspace_bytes()};
}

}  // namespace

void add_deform_conv_kernels(KernelTable& table) {
  table.add("DeformConv", {.name = "cpu.deformconv.columns", .supports = supports_deform, .prepare = prepare_deform});
}

}  // namespace unmoor::cpu
