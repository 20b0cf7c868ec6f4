#pragma once

#include <functional>
#include <string>

#include "unmoor/tensor/tensor.h"

namespace unmoor {

// What `make` turns the constant into, made once for all plans of a model: a plan is made for each set of input shapes, and
// weights must not be there once for each. `kind` says what is made, with everything that decides it. The result views memory
// that lives as long as something holds it, and keeps `source` alive. What `make` throws passes through. Any thread: one makes,
// the others wait.
Tensor derived(const Tensor& source, const std::string& kind, const std::function<Tensor()>& make);

}  // namespace unmoor
