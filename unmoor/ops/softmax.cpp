#include "unmoor/ops/families.h"

namespace unmoor {

void add_softmax_ops(OpSet&) {}

}  // namespace unmoor
