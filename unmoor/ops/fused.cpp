#include "unmoor/ops/families.h"

namespace unmoor {

void add_fused_ops(OpSet&) {}

}  // namespace unmoor
