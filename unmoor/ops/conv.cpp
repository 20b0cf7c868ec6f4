#include "unmoor/ops/families.h"

namespace unmoor {

void add_conv_ops(OpSet&) {}

}  // namespace unmoor
