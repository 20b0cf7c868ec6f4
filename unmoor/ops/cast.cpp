#include "unmoor/ops/families.h"

namespace unmoor {

void add_cast_ops(OpSet&) {}

}  // namespace unmoor
