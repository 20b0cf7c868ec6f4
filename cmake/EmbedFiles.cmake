# embed_files(TARGET NAMESPACE n FILES a/b.inc …): compiles files into TARGET, each as `extern const std::string_view n::a_b_inc`,
# named by its path below the source folder; absolute paths are named by their last part.
function(embed_files target)
  cmake_parse_arguments(arg "" "NAMESPACE" "FILES" ${ARGN})
  foreach(file IN LISTS arg_FILES)
    if(IS_ABSOLUTE "${file}")
      set(input "${file}")
      get_filename_component(label "${file}" NAME)
    else()
      set(input "${CMAKE_SOURCE_DIR}/${file}")
      set(label "${file}")
    endif()
    string(MAKE_C_IDENTIFIER "${label}" name)
    set(output "${CMAKE_BINARY_DIR}/embedded/${arg_NAMESPACE}_${name}.cpp")
    add_custom_command(
      OUTPUT "${output}"
      COMMAND "${CMAKE_COMMAND}" "-DIN=${input}" "-DOUT=${output}" "-DNAME=${name}" "-DNAMESPACE=${arg_NAMESPACE}" -P
              "${CMAKE_SOURCE_DIR}/cmake/embed_file.cmake"
      DEPENDS "${input}" "${CMAKE_SOURCE_DIR}/cmake/embed_file.cmake"
      VERBATIM)
    target_sources(${target} PRIVATE "${output}")
  endforeach()
endfunction()
