#include "unmoor/ops/families.h"

namespace unmoor {

void add_matmul_ops(OpSet&) {}

}  // namespace unmoor
