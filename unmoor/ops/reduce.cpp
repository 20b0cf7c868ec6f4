#include "unmoor/ops/families.h"

namespace unmoor {

void add_reduce_ops(OpSet&) {}

}  // namespace unmoor
