#include "unmoor/workbench/self_test_plants.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"

namespace unmoor {
namespace {

using Change = std::function<Data(const Data&, const NamedData&)>;
using Numbers = std::vector<double>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Data with_numbers(const Data& data, const Numbers& numbers) {
  Tensor result(data.tensor().type());
  store(result, std::span<const double>(numbers));
  return result;
}

// Changes the elements; `change` gets them all.
Change numbers(std::function<void(Numbers&)> change) {
  return [change](const Data& data, const NamedData&) {
    Numbers values = doubles(data.tensor());
    change(values);
    return with_numbers(data, values);
  };
}

Change each(std::function<double(double)> change) {
  return numbers([change](Numbers& values) { std::ranges::transform(values, values.begin(), change); });
}

// The first element for which it holds is changed. Fails with Internal if there is none: the plant would be empty.
Change first(std::function<bool(double)> holds, std::function<double(double)> change) {
  return numbers([holds, change](Numbers& values) {
    const auto found = std::ranges::find_if(values, holds);
    if (found == values.end()) fail(ErrorKind::Internal, "a plant found no element to change");
    *found = change(*found);
  });
}

Change of_shape(std::vector<int64_t> dims) {
  return [dims](const Data& data, const NamedData&) { return Data(data.tensor().clone().reshaped(Shape(dims))); };
}

Change of_dtype(DType dtype) {
  return [dtype](const Data& data, const NamedData&) {
    Tensor result(TensorType{dtype, data.tensor().shape()});
    store(result, std::span<const double>(doubles(data.tensor())));
    return Data(result);
  };
}

// Element (i, j, k, l) of [2,8,12,12] comes from where `from` says.
struct Place {
  size_t n, c, y, x;
};
Change taken_from(std::function<Place(Place)> from) {
  return [from](const Data& data, const NamedData&) {
    const Numbers values = doubles(data.tensor());
    Numbers result(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const Place place = from({i / 1152, i / 144 % 8, i / 12 % 12, i % 12});
      result[i] = values[place.n * 1152 + place.c * 144 + place.y * 12 + place.x];
    }
    return with_numbers(data, result);
  };
}

bool is_finite_and_not_zero(double x) { return std::isfinite(x) && x != 0; }
double rounded_to(double x, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

// Of ArgMax along the last axis, 12 long, of 'whole': the last place of the largest value, not the first.
Data last_of_equal(const Data& data, const NamedData& values) {
  const Numbers of = doubles(values.at("whole").tensor());
  Tensor result = data.tensor().clone();
  const auto places = result.writable_span<int64_t>();
  for (size_t row = 0; row < places.size(); ++row) {
    for (size_t i = 0; i < 12; ++i) {
      if (of[row * 12 + i] == of[row * 12 + static_cast<size_t>(places[row])]) places[row] = static_cast<int64_t>(i);
    }
  }
  return result;
}

void add_form_defects(std::vector<Plant>& list) {
  list.push_back({"wrong shape, as many elements", "conv", true, of_shape({2, 8, 144})});
  list.push_back({"axes of the shape in another order", "turned", true, of_shape({2, 8, 12, 12})});
  list.push_back({"an element too few", "share", true, [](const Data& data, const NamedData&) {
                    const Tensor& from = data.tensor();
                    return Data(Tensor::from<float>({static_cast<int64_t>(from.elements()) - 1}, from.span<float>().first(from.elements() - 1)));
                  }});
  list.push_back({"wrong dtype: int32 for float32", "relu", true, of_dtype(DType::I32)});
  list.push_back({"wrong dtype: int32 for int64", "best", true, of_dtype(DType::I32)});
  list.push_back({"wrong dtype: uint8 for bool", "above", true, of_dtype(DType::U8)});
  list.push_back({"an output is missing", "conv", true, [](const Data&, const NamedData&) { return Data(); }, as_output});
}

void add_class_defects(std::vector<Plant>& list) {
  list.push_back({"NaN for a number", "conv", true, first(is_finite_and_not_zero, [](double) { return nan; })});
  list.push_back({"a number for NaN", "root", true, first([](double x) { return std::isnan(x); }, [](double) { return 0.0; })});
  list.push_back({"an infinity for a number", "share", true, first(is_finite_and_not_zero, [](double) { return infinity; })});
  list.push_back({"an infinity of the other sign", "quotient", true, first([](double x) { return std::isinf(x); }, [](double x) { return -x; })});
  list.push_back({"the largest float32 for an infinity", "quotient", true,
                  first([](double x) { return x == infinity; }, [](double) { return static_cast<double>(std::numeric_limits<float>::max()); })});
  list.push_back({"NaN for an infinity", "quotient", true, first([](double x) { return std::isinf(x); }, [](double) { return nan; })});
  list.push_back({"the sign of a zero", "turned", true, first([](double x) { return x == 0 && !std::signbit(x); }, [](double) { return -0.0; }), as_kernel | as_dump});
}

void add_place_defects(std::vector<Plant>& list) {
  list.push_back({"channels in another order", "conv", true, taken_from([](Place p) { return Place{p.n, (p.c + 1) % 8, p.y, p.x}; })});
  list.push_back({"two channels swapped", "relu", true, taken_from([](Place p) { return Place{p.n, p.c < 2 ? 1 - p.c : p.c, p.y, p.x}; })});
  list.push_back({"the items of the batch swapped", "conv", true, taken_from([](Place p) { return Place{1 - p.n, p.c, p.y, p.x}; })});
  list.push_back({"the last two axes swapped", "share", true, taken_from([](Place p) { return Place{p.n, p.c, p.x, p.y}; })});
  list.push_back({"shifted by one place", "conv", true, taken_from([](Place p) { return Place{p.n, p.c, p.y, (p.x + 1) % 12}; })});
  list.push_back({"upside down", "relu", true, taken_from([](Place p) { return Place{p.n, p.c, 11 - p.y, p.x}; })});
  list.push_back({"two of the largest out of order", "top", true, numbers([](Numbers& values) {
                    for (size_t row = 0; row + 5 <= values.size(); row += 5) {
                      if (values[row] == values[row + 4]) continue;
                      std::swap(values[row], values[row + 4]);
                      return;
                    }
                  })});
  list.push_back({"an index of a smaller value", "best", true, first([](double) { return true; }, [](double x) { return x == 0 ? 1.0 : x - 1; })});
}

void add_number_defects(std::vector<Plant>& list) {
  list.push_back({"one element of a million off by 1e-4 of it", "million", true, numbers([](Numbers& values) { values[777777] *= 1.0001; }),
                  as_kernel | as_dump | as_output, PlantModel::Million});
  list.push_back({"the last column off by 1e-5 of it", "million", true, numbers([](Numbers& values) {
                    for (size_t i = 999; i < values.size(); i += 1000) values[i] *= 1.00001;
                  }), as_kernel | as_dump | as_output, PlantModel::Million});
  list.push_back({"an element zero", "conv", true, first(is_finite_and_not_zero, [](double) { return 0.0; })});
  list.push_back({"a channel zero", "conv", true, numbers([](Numbers& values) { std::fill_n(values.begin() + 3 * 144, 144, 0.0); })});
  list.push_back({"an edge of the image off by a thousandth", "conv", true, numbers([](Numbers& values) {
                    for (size_t i = 11; i < values.size(); i += 12) values[i] *= 1.001;
                  })});
  list.push_back({"everything a thousandth too large", "share", true, each([](double x) { return 1.001 * x; })});
  list.push_back({"everything 1e-4 too large", "relu", true, each([](double x) { return x + 1e-4; })});
  list.push_back({"rounded to bfloat16", "conv", true, each([](double x) { return rounded_to(x, 8); })});
  list.push_back({"rounded to tf32", "conv", true, each([](double x) { return rounded_to(x, 11); })});
  list.push_back({"denormal numbers flushed to zero", "tiny", true, each([](double) { return 0.0; }), as_kernel | as_dump});
  list.push_back({"a truth turned", "above", true, first([](double) { return true; }, [](double x) { return 1 - x; })});
  list.push_back({"a quantised number three steps off", "steps", true, first([](double x) { return x < 200; }, [](double x) { return x + 3; })});
  list.push_back({"all quantised numbers a step off", "steps", true, each([](double x) { return x < 255 ? x + 1 : x; })});
}

void add_legitimate(std::vector<Plant>& list) {
  list.push_back({"nothing changed", "conv", false, [](const Data& data, const NamedData&) { return data; }});
  list.push_back({"the last bit of every element", "conv", false, each([](double x) {
                    return static_cast<double>(std::nextafter(static_cast<float>(x), std::numeric_limits<float>::infinity()));
                  }), as_kernel | as_output});
  list.push_back({"the last bit of a million elements", "million", false, each([](double x) {
                    return static_cast<double>(std::nextafter(static_cast<float>(x), 0.0F));
                  }), as_kernel | as_dump | as_output, PlantModel::Million});
  list.push_back({"the sign of a zero that was computed", "rest", false, numbers([](Numbers& values) {
                    for (double& x : values) x = x == 0 ? -x : x;
                  })});
  list.push_back({"another index of an equal value", "places", false, last_of_equal});
  list.push_back({"one of a hundred quantised numbers a step off", "steps", false, numbers([](Numbers& values) {
                    for (size_t i = 0; i < values.size(); i += 100) values[i] += values[i] < 255 ? 1 : 0;
                  })});
}

}  // namespace

const std::vector<Plant>& plants() {
  static const std::vector<Plant> list = [] {
    std::vector<Plant> made;
    add_form_defects(made);
    add_class_defects(made);
    add_place_defects(made);
    add_number_defects(made);
    add_legitimate(made);
    return made;
  }();
  return list;
}

}  // namespace unmoor
