#include "unmoor/ops/families.h"

namespace unmoor {

void add_sort_ops(OpSet&) {}

}  // namespace unmoor
