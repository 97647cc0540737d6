# Runs the port of vcpkg by functions of the names that it calls, without vcpkg. PORT_FOLDER, PREFIX, WORK
# vcpkg_cmake_config_fixup moves the package for CMake and repairs its prefix, as vcpkg's own does.

set(PORT cai)
set(CURRENT_PACKAGES_DIR "${PREFIX}")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status OR output MATCHES "Manually-specified variables were not used")
    message(FATAL_ERROR "${ARGN}\nended with ${status}\n${output}")
  endif()
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${WORK}/build"
      "-DCMAKE_INSTALL_PREFIX=${PREFIX}" ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  run("${CMAKE_COMMAND}" --build "${WORK}/build" --target install)
endfunction()

function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
  file(GLOB files "${PREFIX}/${arg_CONFIG_PATH}/*.cmake")
  file(COPY ${files} DESTINATION "${PREFIX}/share/${PORT}")
  file(REMOVE_RECURSE "${PREFIX}/share/cmake")
  foreach(name caiConfig caiTargets)
    file(READ "${PREFIX}/share/${PORT}/${name}.cmake" text)
    string(REPLACE "{CMAKE_CURRENT_LIST_DIR}/../../../\" ABSOLUTE"
                   "{CMAKE_CURRENT_LIST_DIR}/../../\" ABSOLUTE" text "${text}")
    string(REGEX REPLACE "(get_filename_component\\(_IMPORT_PREFIX \"\\\${_IMPORT_PREFIX}\" PATH\\)\n)+"
                         "\\1\\1" text "${text}")
    file(WRITE "${PREFIX}/share/${PORT}/${name}.cmake" "${text}")
  endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(COPY ${arg_FILE_LIST} DESTINATION "${PREFIX}/share/${PORT}")
endfunction()

include("${PORT_FOLDER}/portfile.cmake")
