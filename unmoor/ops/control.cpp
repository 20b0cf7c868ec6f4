#include "unmoor/ops/families.h"

namespace unmoor {

void add_control_ops(OpSet&) {}

}  // namespace unmoor
