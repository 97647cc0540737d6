# One way to get cai, from scratch in an empty folder.
# CASE, ROOT (of cai), BUILD (a build folder of cai), WORK, COMPILER, LANGUAGE, GENERATOR, CONFIG,
# OTHERS (folders of Python.h and mpi.h, joined by |)

string(REPLACE "|" ";" OTHERS "${OTHERS}")
list(JOIN OTHERS "\\;" OTHERS)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(status)
    message(FATAL_ERROR "${ARGN}\nended with ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(run_consumer program pattern)
  run("${program}")
  message(STATUS "the consumer says: ${output}")
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "that is not what it should say")
  endif()
endfunction()

set(core_says "^cai [0-9]+: float32")
set(stream_says "^cai_stream [0-9]+: (no CUDA here: .|CUDA [0-9]+ loaded)")
set(sim_says "^cai_sim [0-9]+: 2 devices")
set(table_says "^cai_emm [0-9]+: 6 elements of the host")
set(emm_says "^cai_manager [0-9]+: 2 allocated, 0 live")

# configure_consumer(way variables...): the consumer project.
function(configure_consumer way)
  run("${CMAKE_COMMAND}" -S "${ROOT}/tests/build/packaging/consumer" -B "${WORK}/build"
      -G "${GENERATOR}" -DWAY=${way} -DLANGUAGE=${LANGUAGE}
      "-DCMAKE_${LANGUAGE}_COMPILER=${COMPILER}" -DCMAKE_BUILD_TYPE=${CONFIG}
      "-DDOCUMENTS=${ROOT}" "-DOTHERS=${OTHERS}" ${ARGN})
endfunction()

# build_consumer(way variables...): configures the consumer project, builds its programs and runs them.
function(build_consumer way)
  configure_consumer(${way} ${ARGN})
  run("${CMAKE_COMMAND}" --build "${WORK}/build" --config "${CONFIG}")
  foreach(program consumer stream_consumer emm_consumer)
    find_program(${program} ${program} PATHS "${WORK}/build" "${WORK}/build/${CONFIG}"
                 NO_DEFAULT_PATH REQUIRED)
  endforeach()
  run_consumer("${consumer}" "${core_says}")
  run_consumer("${stream_consumer}" "${stream_says}")
  run_consumer("${emm_consumer}" "${emm_says}")
  if(LANGUAGE STREQUAL "C" AND NOT way STREQUAL "fetch_content")
    find_program(sim_consumer sim_consumer PATHS "${WORK}/build" "${WORK}/build/${CONFIG}"
                 NO_DEFAULT_PATH REQUIRED)
    run_consumer("${sim_consumer}" "${sim_says}")
  endif()
endfunction()

# compile(source program FOLDER folder [FLAGS flags...] [LIBRARIES libraries...]): by hand, there.
function(compile source program)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "FOLDER" "FLAGS;LIBRARIES")
  run("${CMAKE_COMMAND}" -E chdir "${arg_FOLDER}" "${COMPILER}" ${arg_FLAGS} "${source}"
      -o "${program}" ${arg_LIBRARIES})
endfunction()

# What stream.c needs besides the C library, as it says: with a recent one the test links nothing.
function(find_stream_libraries)
  file(WRITE "${WORK}/libc.c" "#include <stdlib.h>\n#if defined(__GLIBC__)\n"
             "#if !__GLIBC_PREREQ(2, 34)\nold glibc\n#endif\n#endif\n")
  run("${COMPILER}" -E "${WORK}/libc.c")
  set(stream_libraries "" PARENT_SCOPE)
  if(output MATCHES "old glibc")
    set(stream_libraries -ldl -pthread PARENT_SCOPE)
  endif()
endfunction()

function(install_cai)
  run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix" --config "${CONFIG}")
endfunction()

set(consumers "${ROOT}/tests/build/packaging/consumer")

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
    configure_consumer(${way} "-DCAI_ROOT=${ROOT}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix")
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
  run("${PKG_CONFIG}" --cflags "cai = ${version}" "cai-ext = ${version}")
  separate_arguments(flags UNIX_COMMAND "${output}")
  find_stream_libraries()
  compile("${consumers}/main.c" consumer FOLDER "${WORK}" FLAGS ${flags})
  compile("${consumers}/stream.c" stream_consumer FOLDER "${WORK}" FLAGS ${flags}
          LIBRARIES ${stream_libraries})
  compile("${consumers}/emm.c" emm_consumer FOLDER "${WORK}" FLAGS ${flags})
  run_consumer("${WORK}/consumer" "${core_says}")
  run_consumer("${WORK}/stream_consumer" "${stream_says}")
  run_consumer("${WORK}/emm_consumer" "${emm_says}")
elseif(CASE STREQUAL "one_file")
  file(COPY "${ROOT}/cai.h" "${consumers}/main.c" DESTINATION "${WORK}/copy")
  compile(main.c consumer FOLDER "${WORK}/copy")
  run_consumer("${WORK}/copy/consumer" "${core_says}")
elseif(CASE STREQUAL "two_files")
  file(COPY "${ROOT}/cai.h" "${ROOT}/cai_stream.h" "${consumers}/stream.c"
       DESTINATION "${WORK}/copy")
  find_stream_libraries()
  compile(stream.c consumer FOLDER "${WORK}/copy" LIBRARIES ${stream_libraries})
  run_consumer("${WORK}/copy/consumer" "${stream_says}")
elseif(CASE STREQUAL "three_files")
  file(COPY "${ROOT}/cai.h" "${ROOT}/cai_stream.h" "${ROOT}/cai_emm.h" "${consumers}/table.c"
       DESTINATION "${WORK}/copy")
  compile(table.c consumer FOLDER "${WORK}/copy")
  run_consumer("${WORK}/copy/consumer" "${table_says}")
elseif(CASE STREQUAL "four_files")
  file(COPY "${ROOT}/cai.h" "${ROOT}/cai_stream.h" "${ROOT}/cai_emm.h" "${ROOT}/ext/cai_manager.h"
       "${consumers}/emm.c" DESTINATION "${WORK}/copy")
  compile(emm.c consumer FOLDER "${WORK}/copy")
  run_consumer("${WORK}/copy/consumer" "${emm_says}")
else()
  message(FATAL_ERROR "CASE ${CASE}")
endif()
