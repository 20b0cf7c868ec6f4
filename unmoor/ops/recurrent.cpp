#include "unmoor/ops/families.h"

namespace unmoor {

void add_recurrent_ops(OpSet&) {}

}  // namespace unmoor
