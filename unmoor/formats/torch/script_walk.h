#pragma once

#include "unmoor/formats/torch/script_text.h"
#include "unmoor/formats/torch/torch_file.h"

namespace unmoor {

// Follows the code of a TorchScript from the forward of a class, or from all its methods if it has none, and adds the calls on tensors
// that it meets: each place of the text once for every module that it is run for, both sides of a condition, and loops once. Nothing is
// computed. Which values are tensors, annotations and PyTorch's own functions tell. Fails with InvalidModel on code that calls itself
// or is too much to follow.
void walk_script(const ScriptCode& code, const std::string& main_class, TorchFile& into);

}  // namespace unmoor
