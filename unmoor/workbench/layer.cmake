# The report's front end: built from report/ with npm in the build folder, then compiled in.
find_program(UNMOOR_NPM npm REQUIRED)
set(report_input "${CMAKE_SOURCE_DIR}/report")
set(report_build "${CMAKE_BINARY_DIR}/report")
set(report_packages package.json package-lock.json .npmrc)
file(GLOB_RECURSE report_sources CONFIGURE_DEPENDS "${report_input}/src/*")
list(APPEND report_sources "${report_input}/words.json" "${report_input}/palette.json" "${report_input}/palette.mjs"
     "${report_input}/vite.config.mjs")
list(TRANSFORM report_packages PREPEND "${report_input}/" OUTPUT_VARIABLE report_package_files)

add_custom_command(
  OUTPUT "${report_build}/installed"
  COMMAND "${CMAKE_COMMAND}" -E copy ${report_package_files} "${report_build}/"
  COMMAND "${UNMOOR_NPM}" ci --ignore-scripts --omit=dev --loglevel=error
  COMMAND "${CMAKE_COMMAND}" -E touch "${report_build}/installed"
  DEPENDS ${report_package_files}
  WORKING_DIRECTORY "${report_build}"
  COMMENT "Installing the report's build tools"
  VERBATIM)
add_custom_command(
  OUTPUT "${report_build}/dist/report.js" "${report_build}/dist/report.css" "${report_build}/dist/report.csp"
  COMMAND "${CMAKE_COMMAND}" -E rm -rf "${report_build}/src"
  COMMAND "${CMAKE_COMMAND}" -E copy_directory "${report_input}/src" "${report_build}/src"
  COMMAND "${CMAKE_COMMAND}" -E copy "${report_input}/words.json" "${report_input}/palette.json" "${report_input}/palette.mjs"
          "${report_input}/vite.config.mjs" "${report_build}/"
  COMMAND "${UNMOOR_NPM}" run build --silent
  DEPENDS "${report_build}/installed" ${report_sources}
  WORKING_DIRECTORY "${report_build}"
  COMMENT "Building the report's front end"
  VERBATIM)
file(MAKE_DIRECTORY "${report_build}")

embed_files(unmoor_workbench NAMESPACE embedded FILES report/template.html report/list.html report/words.json report/words.zh.json "${report_build}/dist/report.js"
            "${report_build}/dist/report.css" "${report_build}/dist/report.csp")
# What the lock asks the user's Python.
embed_files(unmoor_workbench NAMESPACE embedded FILES unmoor/workbench/machine_facts.py unmoor/workbench/collect.sh)
# Archives that a machine was collected into.
set_property(GLOBAL APPEND PROPERTY UNMOOR_LINK z)
target_link_libraries(unmoor_workbench PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
