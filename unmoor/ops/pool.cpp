#include "unmoor/ops/families.h"

namespace unmoor {

void add_pool_ops(OpSet&) {}

}  // namespace unmoor
