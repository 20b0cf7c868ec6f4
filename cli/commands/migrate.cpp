#include "cli/command.h"
#include "unmoor/base/error.h"
namespace unmoor::cli {
Outcome migrate_command(const Options&, nlohmann::json&) { fail(ErrorKind::Unsupported, "being written"); }
}  // namespace unmoor::cli
