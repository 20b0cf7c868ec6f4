# Kernels are written with Google Highway and chosen at run time, so no target flag is set here.
find_path(UNMOOR_HWY_INCLUDE hwy/highway.h REQUIRED)
find_library(UNMOOR_HWY_LIBRARY hwy REQUIRED)
target_include_directories(unmoor_backend_cpu SYSTEM PRIVATE "${UNMOOR_HWY_INCLUDE}")
# Calls between code for different targets pass no vectors, which is all that -Wpsabi warns of; -O3 is what the unrolled tiles need.
target_compile_options(unmoor_backend_cpu PRIVATE -Wno-psabi $<$<CONFIG:Debug>:-O1>)
set_property(GLOBAL APPEND PROPERTY UNMOOR_LINK "${UNMOOR_HWY_LIBRARY}")

# AMX's instructions, where the processor may have them and the compiler knows them. These flags let the compiler make nothing else of other code.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS "-mamx-tile -mamx-bf16")
check_cxx_source_compiles("#include <immintrin.h>
int main() { _tile_dpbf16ps(0, 1, 2); _tile_release(); }" UNMOOR_HAS_AMX)
unset(CMAKE_REQUIRED_FLAGS)
set(amx_folder "${CMAKE_SOURCE_DIR}/unmoor/backends/cpu/amx")
if(UNMOOR_HAS_AMX)
  set_source_files_properties("${amx_folder}/tiles_amx.cpp" PROPERTIES COMPILE_OPTIONS "-mamx-tile;-mamx-bf16")
  set_source_files_properties("${amx_folder}/tiles_none.cpp" PROPERTIES HEADER_FILE_ONLY ON)
else()
  set_source_files_properties("${amx_folder}/tiles_amx.cpp" PROPERTIES HEADER_FILE_ONLY ON)
endif()
