#include "unmoor/ops/image/codec.h"

#include "unmoor/base/error.h"

namespace unmoor {

Codec::Codec(std::string_view format, std::span<const char* const> names) : format_(format) {
  std::string reason;
  library_ = Library::open(names, reason);
  if (library_ == nullptr) {
    fail(ErrorKind::Unsupported, format, " images are decoded by the library ", names.front(), ", which does not open: ", reason);
  }
}

void* Codec::address(const char* name) const {
  if (void* const found = library_->symbol(name)) return found;
  fail(ErrorKind::Unsupported, format_, " images need the function ", name, ", which ", library_->path(), " does not have");
}

}  // namespace unmoor
