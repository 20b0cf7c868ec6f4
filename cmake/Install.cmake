# What `cmake --install` puts under the prefix: the command (cli/CMakeLists.txt), the static library, its headers, and the files by which
# find_package(unmoor) finds them.
include(CMakePackageConfigHelpers)

set(config_folder "${CMAKE_INSTALL_LIBDIR}/cmake/unmoor")
install(TARGETS unmoor EXPORT unmoorTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY unmoor/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/unmoor" FILES_MATCHING PATTERN "*.h")
# Packages that layers asked for.
get_property(packages GLOBAL PROPERTY UNMOOR_PACKAGES)
list(REMOVE_DUPLICATES packages)
list(TRANSFORM packages REPLACE "(.+)" "find_dependency(\\1)")
list(JOIN packages "\n" UNMOOR_DEPENDENCIES)
install(EXPORT unmoorTargets NAMESPACE unmoor:: DESTINATION "${config_folder}")
configure_package_config_file(cmake/unmoorConfig.cmake.in "${CMAKE_BINARY_DIR}/unmoorConfig.cmake" INSTALL_DESTINATION "${config_folder}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/unmoorConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/unmoorConfig.cmake" "${CMAKE_BINARY_DIR}/unmoorConfigVersion.cmake" DESTINATION "${config_folder}")
