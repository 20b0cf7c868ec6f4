#include "unmoor/ops/families.h"

namespace unmoor {

void add_resize_ops(OpSet&) {}

}  // namespace unmoor
