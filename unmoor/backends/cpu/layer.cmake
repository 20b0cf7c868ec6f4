# Kernels are written with Google Highway and chosen at run time, so no target flag is set here.
find_path(UNMOOR_HWY_INCLUDE hwy/highway.h REQUIRED)
find_library(UNMOOR_HWY_LIBRARY hwy REQUIRED)
target_include_directories(unmoor_backend_cpu SYSTEM PRIVATE "${UNMOOR_HWY_INCLUDE}")
# Calls between code for different targets pass no vectors, which is all that -Wpsabi warns of; -O3 is what the unrolled tiles need.
target_compile_options(unmoor_backend_cpu PRIVATE -Wno-psabi $<$<CONFIG:Debug>:-O1>)
set_property(GLOBAL APPEND PROPERTY UNMOOR_LINK "${UNMOOR_HWY_LIBRARY}")
