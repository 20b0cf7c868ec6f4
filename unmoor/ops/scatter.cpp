#include "unmoor/ops/families.h"

namespace unmoor {

void add_scatter_ops(OpSet&) {}

}  // namespace unmoor
