#pragma once

#include <set>
#include <span>

#include "unmoor/workbench/align.h"

namespace unmoor {

// What the platform that a model comes from makes of it: the errors that it has anyway, by value. What a target has off is held
// against them, and is no fault of the target's if they are about as large (docs/precision.md, "A baseline"). Immutable: any
// thread.
class Baseline {
 public:
  Baseline(const Baseline&) = delete;
  Baseline& operator=(const Baseline&) = delete;

  // Runs `runner` against the reference, and judges every value of it that is in `shown`, what the target shows: from its own
  // nearest values above, as a dump is judged, since its kernels need not be the target's; and by its own run. Of the options,
  // nodes, operators, causes and reproductions do not count. Fails as align does, where the two show nothing under one name too.
  Baseline(Runner& reference, Runner& runner, const std::set<std::string>& shown, const NamedData& inputs, AlignOptions options);
  // Of an alignment of the baseline that was made already, such as one of statistics; `inputs` are the model's.
  Baseline(AlignResult aligned, const NamedData& inputs);

  // Where a value is off and the baseline is about as far off, it is AsBaseline from now on. A note says what the baseline has, or
  // why the value is judged without it. `reads` are the values that the kernel was given; `stored` is the target's dtype.
  void weigh_kernel(std::span<const std::string> reads, const std::string& value, DType stored, Judgement& judged) const;
  // The same of a value at the end of a run.
  void weigh_run(const std::string& value, DType stored, Judgement& judged) const;
  // Its name and its errors, into a finished alignment of the target.
  void attach(AlignResult& result) const;

 private:
  AlignResult aligned_;
  // Into aligned_. An output is known better than the value of its name where only statistics of that are.
  std::map<std::string, const AlignedValue*, std::less<>> single_, entire_;
  std::set<std::string, std::less<>> known_;                        // What the baseline shows, and the model's inputs.
};

// A target is clearly worse than the baseline from this many times its error on.
constexpr double baseline_factor = 2;

}  // namespace unmoor
