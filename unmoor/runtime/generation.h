#pragma once

#include "unmoor/runtime/state.h"

namespace unmoor {

// BeamSearch, GreedySearch and Sampling of com.microsoft: a decoder graph run token by token.
bool is_generation(const Node& node);
// `inputs` by position, absent ones empty. Values of the decoder are shown as node/decoder/value#step.
std::vector<Data> run_generation(const Node& node, const std::vector<Data>& inputs, BodySessions& bodies, Observer* observer);

}  // namespace unmoor
