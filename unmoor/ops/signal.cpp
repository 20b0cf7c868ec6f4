#include "unmoor/ops/families.h"

namespace unmoor {

void add_signal_ops(OpSet&) {}

}  // namespace unmoor
