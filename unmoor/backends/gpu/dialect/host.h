#pragma once

// What prelude.h needs to make kernels plain C++, with UNMOOR_HOST defined. Whoever runs them defines these functions.

#include <cmath>

using namespace std;  // Kernels call exp and the like without a namespace, for any REAL.

namespace unmoor_host {
void barrier();
int work_item();
int group(int axis);
int groups(int axis);
}  // namespace unmoor_host
