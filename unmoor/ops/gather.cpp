#include "unmoor/ops/families.h"

namespace unmoor {

void add_gather_ops(OpSet&) {}

}  // namespace unmoor
