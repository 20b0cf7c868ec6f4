#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unmoor/tensor/tensor.h"

namespace unmoor {

// |actual - expected| <= absolute * scale + relative * |expected|, where scale is the root mean square of what is expected (a
// mask left out) for the built-in table and 1 for what the user gave: docs/decisions/align-tolerance.md.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
  bool scaled = true;
};
Tolerance default_tolerance(DType stored);

// How far two tensors are apart, for a actual, e expected. Elements that are not finite in either are left out of the numbers and
// counted as class mismatches where they are not the same. What needs a spread s (the noise floor) is absent where there is none;
// z = (a-e)/s.
struct Metrics {
  double max_abs = 0;
  double mean_abs = 0;
  double max_rel = 0;  // |a-e| / |e| over e that are not 0.
  double mean_rel = 0;
  double cosine = 1;
  double rel_l2 = 0;  // sqrt(sum (a-e)^2 / sum e^2)
  double rmse = 0;
  double nmse = 0;     // rel_l2 squared
  double sqnr_db = 0;  // -20 log10(rel_l2); infinite if equal
  double kl = 0;       // Mean over rows (the last axis) of sum p ln(p/q), p = softmax(e), q = softmax(a); 0 for a scalar.
  double ulp_max = 0;  // In units of the last place of the expected value, in the stored dtype.
  double ulp_mean = 0;
  double frac_over = 0;      // Share of elements over the tolerance.
  double frac_over_1e3 = 0;  // Share of elements with |a-e| > 1e-3 |e|; in JSON frac_over_1e-3.
  double bias = 0;           // mean(a-e)
  double over = 0;           // Worst |a-e| over its tolerance.
  size_t worst = 0;          // Its index.
  size_t elements = 0;
  size_t class_mismatch = 0;                      // NaN against a number, infinities of other signs.
  std::vector<bool> mismatched = {};              // Where, by element; empty if nowhere, or if it is not known.
  std::optional<double> excess_e = std::nullopt;  // E and P of noise/excess.h.
  std::optional<double> excess_p = std::nullopt;
  std::optional<double> shrink =
      std::nullopt;  // mean(z sign e) / rms z: below 0 if results are too small, as when they are truncated.
  std::optional<double> smooth = std::nullopt;  // The largest correlation of z with its neighbour along an axis of 8 or more.
  std::optional<double> edge =
      std::nullopt;          // log10 of mean z^2 within 2 of the border over that inside, of the last two axes of 6 or more.
  std::string problem = {};  // Set if shapes or kinds differ: then nothing was compared.

  bool fine() const { return problem.empty() && class_mismatch == 0 && over <= 1; }
};

// `stored` is the dtype that the actual values were computed in; expected may be wider. Integers, bools and strings are compared
// exactly.
Metrics compare(const Data& expected, const Data& actual, DType stored, const std::optional<Tolerance>& tolerance);

// Whether no element lies further from what is expected than so many numbers of the stored dtype.
bool within_steps(const Metrics& metrics, double steps);

// Whether integers agree that a rounding step made (QuantizeLinear and its kind): most are equal, and the others fell to the next
// one.
bool agrees_as_quantised(const Metrics& metrics);

nlohmann::json metrics_json(const Metrics& metrics);
bool all_finite(const Data& data);
bool has_nan(const Data& data);

}  // namespace unmoor
