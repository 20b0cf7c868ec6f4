#include "unmoor/ops/families.h"

namespace unmoor {

void add_concat_ops(OpSet&) {}

}  // namespace unmoor
