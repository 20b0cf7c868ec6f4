#include "unmoor/ops/families.h"

namespace unmoor {

void add_reshape_ops(OpSet&) {}

}  // namespace unmoor
