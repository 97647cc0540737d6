# Builds the unit tests with another compiler and runs them. The implementation of the headers and the
# simulation are compiled once and linked with each test.
# ROOT, SOURCES and FLAGS (joined by |), COMPILER, WORK, and if the programs do not run as they are RUNNER and
# SUFFIX. LEVEL: the optimization of what the tests share (-O0; -O1 gains little under emulation). The tests
# themselves are compiled with -O0: an optimizer takes longer over them than they run. TIER: full (so without it)
# or exhaustive.

cmake_minimum_required(VERSION 3.20)
if(NOT LEVEL)
  set(LEVEL -O0)
endif()
# Under emulation these take most of the time and would find nothing that they do not find elsewhere: the
# checker of programs, and calls that fail one after the other. They run as C++, as 32-bit programs and on
# Windows. What reads bytes and pointers runs everywhere.
string(REPLACE "|" ";" FLAGS "${FLAGS}")
set(left_out "")
if(RUNNER MATCHES "qemu" AND NOT TIER STREQUAL "exhaustive")
  set(left_out test_check test_faults test_emm_faults)
endif()
file(MAKE_DIRECTORY "${WORK}")
set(ENV{CAI_WINEPREFIX} "${WORK}/wine") # see wine.sh.in
set(ENV{WINEDLLOVERRIDES} "mscoree=;mshtml=;winemenubuilder.exe=")
set(compile "${COMPILER}" ${FLAGS} "-I${ROOT}" "-I${ROOT}/ext" "-I${ROOT}/sim"
            "-I${ROOT}/tests/support")

# What the tests share: what a test leaves out by the macro is in the objects.
set(CAI_TESTS_LINKED tests/support/tested.c)
set(CAI_SIM_LINKED sim/cai_sim.c sim/cai_check.c sim/cai_timeline.c)
foreach(macro CAI_TESTS_LINKED CAI_SIM_LINKED)
  set(objects "")
  foreach(source IN LISTS ${macro})
    get_filename_component(name "${source}" NAME_WE)
    execute_process(COMMAND ${compile} ${LEVEL} -c "${ROOT}/${source}" -o "${WORK}/${name}.o"
                    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(status)
      message(FATAL_ERROR "${source}: ${output}")
    endif()
    list(APPEND objects "${WORK}/${name}.o")
  endforeach()
  set(${macro} ${objects})
endforeach()

string(REPLACE "|" ";" SOURCES "${SOURCES}")
set(failed "")
foreach(source IN LISTS SOURCES)
  get_filename_component(name "${source}" NAME_WE)
  if("${name}" IN_LIST left_out)
    message(STATUS "${name}: left to TIER=exhaustive")
    continue()
  endif()
  set(program "${WORK}/${name}${SUFFIX}")
  set(defined "")
  set(objects "")
  foreach(macro CAI_TESTS_LINKED CAI_SIM_LINKED)
    file(STRINGS "${source}" uses REGEX "defined\\(${macro}\\)")
    if(uses)
      list(APPEND defined "-D${macro}")
      list(APPEND objects ${${macro}})
    endif()
  endforeach()
  # "-x none": FLAGS may say "-x c++", which the objects are not
  execute_process(COMMAND ${compile} -O0 ${defined} "${source}" -x none ${objects} -o "${program}"
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status)
    execute_process(COMMAND ${RUNNER} "${program}" RESULT_VARIABLE status OUTPUT_VARIABLE output
                            ERROR_VARIABLE output)
  endif()
  string(STRIP "${output}" output)
  string(LENGTH "${output}" length)
  if(length GREATER 1000)
    math(EXPR start "${length} - 1000")
    string(SUBSTRING "${output}" ${start} -1 output)
  endif()
  message(STATUS "${name}: exit status ${status}: ${output}")
  if(status AND NOT status EQUAL 77)
    list(APPEND failed "${name}")
  endif()
endforeach()
if(failed)
  message(FATAL_ERROR "failed: ${failed}")
endif()
