#pragma once

#include "unmoor/ops/op.h"

namespace unmoor {

// Parts of the vision family, one operator each.
void add_center_crop_pad(OpSet& ops);
void add_col2im(OpSet& ops);
void add_deform_conv(OpSet& ops);
void add_image_decoder(OpSet& ops);
void add_max_roi_pool(OpSet& ops);
void add_max_unpool(OpSet& ops);

}  // namespace unmoor
