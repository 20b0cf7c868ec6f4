#pragma once

#include <string>
#include <vector>

#include "unmoor/ops/op.h"

namespace unmoor {

// Operators whose meaning is that of another one on changed inputs. `call` names the node in errors.

// The first output's type of `op` on inputs of these types, an empty one being absent, then these constants.
TensorType type_by(const OpCall& call, const std::string& op, std::vector<std::optional<Type>> inputs,
                   const Attributes& attributes = {}, const std::vector<Tensor>& constants = {});
// The first outputs of `op`'s reference; an empty tensor is an absent input.
std::vector<Tensor> results_by(const OpCall& call, const std::string& op, const std::vector<Tensor>& inputs,
                               const Attributes& attributes, size_t count);
Tensor result_by(const OpCall& call, const std::string& op, const std::vector<Tensor>& inputs, const Attributes& attributes = {});
// The same numbers in float64.
Tensor as_float64(const Tensor& tensor);

}  // namespace unmoor
