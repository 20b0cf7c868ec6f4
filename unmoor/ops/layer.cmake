# Regular expressions of RegexFullMatch.
find_path(UNMOOR_RE2_INCLUDE re2/re2.h REQUIRED)
find_library(UNMOOR_RE2_LIBRARY re2 REQUIRED)
target_include_directories(unmoor_ops SYSTEM PRIVATE "${UNMOOR_RE2_INCLUDE}")
set_property(GLOBAL APPEND PROPERTY UNMOOR_LINK "${UNMOOR_RE2_LIBRARY}")
