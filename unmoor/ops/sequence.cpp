#include "unmoor/ops/families.h"

namespace unmoor {

void add_sequence_ops(OpSet&) {}

}  // namespace unmoor
