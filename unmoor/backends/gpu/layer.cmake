file(GLOB_RECURSE unmoor_gpu_texts CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}" "unmoor/backends/gpu/kernels/*.inc"
     "unmoor/backends/gpu/dialect/*.h")
embed_files(unmoor_backend_gpu NAMESPACE unmoor_gpu_text FILES ${unmoor_gpu_texts})
target_link_libraries(unmoor_backend_gpu PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
