#include "unmoor/ops/families.h"

namespace unmoor {

void add_quantize_ops(OpSet&) {}

}  // namespace unmoor
