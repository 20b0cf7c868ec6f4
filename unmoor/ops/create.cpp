#include "unmoor/ops/families.h"

namespace unmoor {

void add_create_ops(OpSet&) {}

}  // namespace unmoor
