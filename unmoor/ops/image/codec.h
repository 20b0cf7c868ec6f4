#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "unmoor/base/library.h"

namespace unmoor {

// A library that decodes an image format, opened at run time, so that nothing but this format needs it. Any thread may use it.
class Codec {
 public:
  // `names` of its shared library, the one wanted first. Fails with Unsupported, with the loader's words, if none opens.
  Codec(std::string_view format, std::span<const char* const> names);

  // The function of this name. Fails with Unsupported if the library has none.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(address(name));
  }

 private:
  void* address(const char* name) const;

  std::string format_;
  std::unique_ptr<Library> library_;
};

}  // namespace unmoor
