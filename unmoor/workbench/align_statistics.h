#pragma once

#include "unmoor/workbench/align.h"
#include "unmoor/workbench/statistics_dump.h"

namespace unmoor {

// Judges a run of which only statistics are known, on one side or both, each value by its entire error: how large that is comes
// from sketches (statistics.h), what rounding explains from noise runs of the model in `options`. Outputs that are there in full
// on both sides are judged as always. Numbers that statistics do not tell are NaN.
AlignResult align_statistics(const StatisticsSide& reference, const StatisticsSide& target, const NamedData& inputs, const AlignOptions& options);

// What such a judgement cannot show, a sentence each; and the values that are furthest off, for people.
std::vector<std::string> statistics_limits();
std::string statistics_text(const AlignResult& result);

}  // namespace unmoor
