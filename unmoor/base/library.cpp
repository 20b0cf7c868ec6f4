#include "unmoor/base/library.h"

#include <dlfcn.h>
#include <link.h>

#include "unmoor/base/demangle.h"

namespace unmoor {

std::unique_ptr<Library> Library::open(std::span<const char* const> names, std::string& reason) {
  for (const char* const wanted : names) {
    if (void* const handle = ::dlopen(wanted, RTLD_NOW | RTLD_LOCAL)) return std::unique_ptr<Library>(new Library(handle));
    if (!reason.empty()) reason += "; ";
    const char* const words = ::dlerror();
    reason += words == nullptr ? std::string(wanted) : demangled(words);
  }
  return nullptr;
}

void* Library::symbol(const char* symbol_name) const { return ::dlsym(handle_, symbol_name); }

std::string Library::path() const {
  link_map* map = nullptr;
  if (::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return {};
  return map->l_name;
}

}  // namespace unmoor
