# One way to get cai, from scratch in an empty folder.
# CASE, ROOT (of cai), BUILD (a build folder of cai), WORK, COMPILER, LANGUAGE, GENERATOR, CONFIG

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(status)
    message(FATAL_ERROR "${ARGN}\nended with ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(run_consumer program)
  run("${program}")
  message(STATUS "the consumer says: ${output}")
  if(NOT output MATCHES "^cai [0-9]+: float32")
    message(FATAL_ERROR "that is not what it should say")
  endif()
endfunction()

# build_consumer(way variables...): configures and builds the consumer project.
function(build_consumer way)
  run("${CMAKE_COMMAND}" -S "${ROOT}/tests/packaging/consumer" -B "${WORK}/build"
      -G "${GENERATOR}" -DWAY=${way} -DLANGUAGE=${LANGUAGE}
      "-DCMAKE_${LANGUAGE}_COMPILER=${COMPILER}" -DCMAKE_BUILD_TYPE=${CONFIG} ${ARGN})
  run("${CMAKE_COMMAND}" --build "${WORK}/build" --config "${CONFIG}")
  find_program(consumer consumer PATHS "${WORK}/build" "${WORK}/build/${CONFIG}"
               NO_DEFAULT_PATH REQUIRED)
  run_consumer("${consumer}")
endfunction()

function(install_cai)
  run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix" --config "${CONFIG}")
endfunction()

# The version as cai.h has it, not as CMakeLists.txt read it.
file(READ "${ROOT}/cai.h" header)
string(REGEX MATCH "v([0-9]+)\\.([0-9]+)\\.([0-9]+)" version "${header}")
string(SUBSTRING "${version}" 1 -1 version)

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}/copy")

if(CASE STREQUAL "find_package")
  install_cai()
  build_consumer(find_package "-DCMAKE_PREFIX_PATH=${WORK}/prefix"
                 "-DEXPECTED_VERSION=${version}")
elseif(CASE STREQUAL "add_subdirectory" OR CASE STREQUAL "fetch_content")
  build_consumer(${CASE} "-DCAI_ROOT=${ROOT}")
elseif(CASE STREQUAL "nothing_inherited")
  install_cai()
  foreach(way find_package add_subdirectory)
    file(REMOVE_RECURSE "${WORK}/build")
    build_consumer(${way} "-DCAI_ROOT=${ROOT}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix")
    file(STRINGS "${WORK}/build/inherited.txt" inherited)
    foreach(line IN LISTS inherited)
      message(STATUS "${way}: ${line}")
      if(NOT line MATCHES "^(SOURCES|INCLUDE_DIRECTORIES)=|=$")
        message(FATAL_ERROR "the consumer inherited ${line}")
      endif()
    endforeach()
  endforeach()
elseif(CASE STREQUAL "pkg_config")
  install_cai()
  set(ENV{PKG_CONFIG_PATH} "${WORK}/prefix/share/pkgconfig")
  run("${PKG_CONFIG}" --cflags "cai = ${version}")
  separate_arguments(flags UNIX_COMMAND "${output}")
  run("${COMPILER}" ${flags} "${ROOT}/tests/packaging/consumer/main.c" -o "${WORK}/consumer")
  run_consumer("${WORK}/consumer")
elseif(CASE STREQUAL "one_file")
  file(COPY "${ROOT}/cai.h" "${ROOT}/tests/packaging/consumer/main.c" DESTINATION "${WORK}/copy")
  run("${CMAKE_COMMAND}" -E chdir "${WORK}/copy" "${COMPILER}" main.c -o consumer)
  run_consumer("${WORK}/copy/consumer")
else()
  message(FATAL_ERROR "CASE ${CASE}")
endif()
