#include "unmoor/ops/families.h"

namespace unmoor {

void add_elementwise_ops(OpSet&) {}

}  // namespace unmoor
