#include "unmoor/ops/families.h"

namespace unmoor {

void add_normalize_ops(OpSet&) {}

}  // namespace unmoor
