# Builds the unit tests with another compiler and runs them, each on its own.
# ROOT, SOURCES (joined by |), COMPILER, FLAGS, WORK, and if the programs do not run as they are RUNNER, SUFFIX

file(REMOVE_RECURSE "${WORK}/wine")
file(MAKE_DIRECTORY "${WORK}")
set(ENV{WINEPREFIX} "${WORK}/wine")
set(ENV{WINEDEBUG} "-all")
set(ENV{WINEDLLOVERRIDES} "mscoree=;mshtml=;winemenubuilder.exe=")

string(REPLACE "|" ";" SOURCES "${SOURCES}")
set(failed "")
foreach(source IN LISTS SOURCES)
  get_filename_component(name "${source}" NAME_WE)
  set(program "${WORK}/${name}${SUFFIX}")
  execute_process(COMMAND "${COMPILER}" -O1 ${FLAGS} "-I${ROOT}" "-I${ROOT}/tests"
                          "-I${ROOT}/examples" "${source}" -o "${program}"
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
