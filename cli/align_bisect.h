#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/lab.h"

namespace unmoor::cli {

// Fails with InvalidArgument where --bisect was given and the target cannot run parts of a model, or with what asks for inner values.
void check_bisect(const Options& options);
// The same runner, which shows its outputs only.
std::unique_ptr<Runner> outputs_only(std::unique_ptr<Runner> runner);
// Where the target showed outputs only and one is off: finds the first wrong node by running parts of the model, and adds what was
// found to the result and the text; or, where the target runs no parts, why not.
void add_bisection(const Lab& lab, Runner& reference, const NamedData& inputs, AlignResult& found, nlohmann::json& result, std::string& text);

}  // namespace unmoor::cli
