#include "unmoor/ops/families.h"

namespace unmoor {

void add_activation_ops(OpSet&) {}

}  // namespace unmoor
