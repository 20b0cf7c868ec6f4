#include "unmoor/ops/vision.h"

#include "unmoor/ops/families.h"

namespace unmoor {

void add_vision_ops(OpSet& ops) {
  add_center_crop_pad(ops);
  add_col2im(ops);
  add_deform_conv(ops);
  add_image_decoder(ops);
  add_max_roi_pool(ops);
  add_max_unpool(ops);
}

}  // namespace unmoor
