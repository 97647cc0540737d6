# The functions that make the list of tests: in which tier a test stands, which parts it needs, what it costs.
#
# CAI_TESTS is quick, full or exhaustive. A test above it does not stand in the list, and what only such tests
# need is not built. CAI_FULL and CAI_EXHAUSTIVE say whether that tier is reached.

set(CAI_TEST_SLOWNESS 1 CACHE STRING "Time limits of the tests times this, for a slow or busy machine")
set(cai_tiers quick full exhaustive)
list(FIND cai_tiers "${CAI_TESTS}" cai_tier)
set_property(GLOBAL PROPERTY cai_tenths "")  # of each test in the list, tenths of a second on one idle core
set_property(GLOBAL PROPERTY cai_lacking "") # parts for want of which a test is skipped
set_property(GLOBAL PROPERTY cai_unit_sources "") # what cai_unit_test was called with

# cai_by_tier(variable value...): of one, two or three values, each of which may be a list, the one for the
# tier, or the last.
function(cai_by_tier variable)
  math(EXPR index "${cai_tier} + 1")
  if(index GREATER_EQUAL ARGC)
    math(EXPR index "${ARGC} - 1")
  endif()
  set(${variable} "${ARGV${index}}" PARENT_SCOPE)
endfunction()

# cai_take_part_in(variable [tier]): whether the list has the tests of this tier (quick).
function(cai_take_part_in variable)
  list(FIND cai_tiers "${ARGN}" needed)
  set(${variable} TRUE PARENT_SCOPE)
  if(needed GREATER cai_tier)
    set(${variable} FALSE PARENT_SCOPE)
  endif()
endfunction()
cai_take_part_in(CAI_FULL full)
cai_take_part_in(CAI_EXHAUSTIVE exhaustive)

# cai_skipped_test(name part...): a test that says why it is not run.
function(cai_skipped_test name)
  list(JOIN ARGN ", " lacking)
  add_test(NAME "${name} (no ${lacking})" COMMAND ${CMAKE_COMMAND} -E echo "skipped: no ${lacking}")
  set_tests_properties("${name} (no ${lacking})" PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()

# cai_test(name [TIER tier] [SECONDS seconds...] [JOBS] [ALONE] [CAI_SIM] [ADVERSARIAL]
#          [ADVERSARIAL_TIER tier] [NEEDS PART...] COMMAND ...)
# SECONDS: on an idle machine of two cores, by tier where it differs (1). The long tests start first, and the
# limit is twenty times that, ten minutes at least. JOBS: it starts two processes itself. ALONE: it measures.
# CAI_SIM: it uses the installed package cai_sim, and driver.package says first that this is of the tree.
# ADVERSARIAL: it stands in the list a second time, as adversarial.<name>, on a simulation of the least that
# CUDA promises; ADVERSARIAL_TIER puts that into another tier. A program may still find a part missing, and
# says so by exit status 77. What needs a GPU has the label gpu: `ctest -L gpu`.
function(cai_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "JOBS;ALONE;CAI_SIM;ADVERSARIAL" "TIER;ADVERSARIAL_TIER"
                        "SECONDS;NEEDS;COMMAND")
  cai_take_part_in(chosen ${arg_TIER})
  if(NOT chosen)
    return()
  endif()
  set(lacking "")
  foreach(part IN LISTS arg_NEEDS)
    if(NOT CAI_HAVE_${part})
      list(APPEND lacking "${CAI_PART_${part}}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES lacking)
  set(labels "")
  if("GPU" IN_LIST arg_NEEDS)
    set(labels gpu)
  endif()
  if(lacking)
    cai_skipped_test(${name} ${lacking})
    list(JOIN lacking ", " lacking_text)
    set_tests_properties("${name} (no ${lacking_text})" PROPERTIES LABELS "${labels}")
    set_property(GLOBAL APPEND PROPERTY cai_lacking ${lacking})
    return()
  endif()
  set(tenths 3) # of what nothing is said of
  set(seconds 1)
  set(processors 1)
  if(arg_JOBS)
    set(processors 2)
  endif()
  if(arg_SECONDS)
    cai_by_tier(seconds ${arg_SECONDS})
    math(EXPR tenths "10 * ${seconds} * ${processors}")
  endif()
  math(EXPR limit "20 * ${seconds} * ${CAI_TEST_SLOWNESS}")
  math(EXPR least "600 * ${CAI_TEST_SLOWNESS}")
  if(limit LESS least)
    set(limit ${least})
  endif()
  set(names ${name})
  cai_take_part_in(adversarial ${arg_ADVERSARIAL_TIER})
  if(adversarial AND (arg_ADVERSARIAL OR arg_ADVERSARIAL_TIER))
    list(APPEND names adversarial.${name})
  endif()
  foreach(each IN LISTS names)
    # Compilers and Python speak as they do everywhere, and sets have one order.
    set(environment "LC_ALL=C" "LANGUAGE=" "PYTHONHASHSEED=1")
    if(NOT each STREQUAL name)
      list(APPEND environment "CAI_SIM_OPTIONS=adversarial")
    endif()
    add_test(NAME ${each} COMMAND ${arg_COMMAND})
    set_property(TEST ${each} PROPERTY ENVIRONMENT ${environment})
    set_tests_properties(${each} PROPERTIES LABELS "${labels}")
    set_tests_properties(${each} PROPERTIES TIMEOUT ${limit} COST ${seconds} PROCESSORS ${processors})
    if(arg_ALONE)
      set_tests_properties(${each} PROPERTIES RUN_SERIAL TRUE)
    endif()
    if(arg_CAI_SIM)
      set_tests_properties(${each} PROPERTIES FIXTURES_REQUIRED cai_sim)
    endif()
    if(("GPU" IN_LIST arg_NEEDS AND NOT CAI_REQUIRE_GPU) OR NOT CAI_REQUIRE_ALL)
      set_tests_properties(${each} PROPERTIES SKIP_RETURN_CODE 77)
    endif()
    set_property(GLOBAL APPEND PROPERTY cai_tenths ${tenths})
  endforeach()
endfunction()

# cai_python_test(name script [what cai_test takes but COMMAND...] [ARGUMENTS ...]): a script of the folder.
macro(cai_python_test name script)
  cmake_parse_arguments(cai_py "" "" "NEEDS;ARGUMENTS" ${ARGN})
  cai_test(${name} ${cai_py_UNPARSED_ARGUMENTS} NEEDS PYTHON ${cai_py_NEEDS}
           COMMAND "${Python3_EXECUTABLE}" -B "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${cai_py_ARGUMENTS})
endmacro()

# cai_program_of_tests(name [ALONE] [SANITIZED] source...): a program with the flags of the project. It is
# linked with the implementation of the headers and the simulation, which are compiled once (tested.c); ALONE:
# with the simulation alone, its source has the implementation. SANITIZED: with ASan and UBSan.
function(cai_program_of_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALONE;SANITIZED" "" "")
  set(twin "")
  if(arg_SANITIZED)
    set(twin _sanitized)
  endif()
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE cai_own_flags)
  target_link_libraries(${name} PRIVATE cai_tested_sim${twin})
  if(NOT arg_ALONE)
    target_link_libraries(${name} PRIVATE cai_tested${twin})
  endif()
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support" "${PROJECT_SOURCE_DIR}/sim")
  set_target_properties(${name} PROPERTIES C_STANDARD 99)
endfunction()

# cai_sanitized_test(name [TIER tier] [SECONDS ...] [NEEDS ...] PROGRAM sanitized_name source...
#                    [ARGUMENTS ...])
function(cai_sanitized_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "TIER;SECONDS;NEEDS;PROGRAM;ARGUMENTS")
  cai_take_part_in(chosen ${arg_TIER})
  set(TIER_AND_COST TIER ${arg_TIER} SECONDS ${arg_SECONDS})
  if(NOT chosen)
    return()
  endif()
  list(GET arg_PROGRAM 0 program)
  set(needed CAI_HAVE_SANITIZE)
  foreach(part IN LISTS arg_NEEDS)
    list(APPEND needed AND CAI_HAVE_${part})
  endforeach()
  if(${needed})
    cai_program_of_tests(${arg_PROGRAM} SANITIZED)
  endif()
  cai_test(${name} ${TIER_AND_COST} NEEDS SANITIZE ${arg_NEEDS} COMMAND ${program} ${arg_ARGUMENTS})
endfunction()

# cai_unit_test(area [SIMULATED] [SLOW] [WHOLE]): test_AREA.c of the folder, as unit.AREA, sanitized.AREA and
# valgrind.AREA, and in machine.* (build/compile). SIMULATED: it runs on the simulation. SLOW: it takes several
# seconds, ten when sanitized. WHOLE: it has names of the implementation that only its source defines.
function(cai_unit_test area)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SIMULATED;SLOW;WHOLE" "" "")
  set(whole "")
  set(more "")
  set(seconds 1)
  set(sanitized SECONDS 2 TIER quick)
  if(arg_WHOLE)
    set(whole ALONE)
    set(sanitized SECONDS 2 TIER full)
  endif()
  if(arg_SIMULATED)
    set(more ADVERSARIAL)
  endif()
  if(arg_SLOW)
    set(seconds 3)
    set(sanitized SECONDS 12 TIER full)
  endif()
  set_property(GLOBAL APPEND PROPERTY cai_unit_sources "${CMAKE_CURRENT_SOURCE_DIR}/test_${area}.c")
  cai_program_of_tests(test_${area} test_${area}.c ${whole})
  cai_test(unit.${area} ${more} SECONDS ${seconds} COMMAND test_${area})
  cai_sanitized_test(sanitized.${area} ${sanitized} PROGRAM sanitized_${area} test_${area}.c ${whole})
  # After MemorySanitizer and ASan, valgrind finds nothing more in programs as plain as these.
  cai_test(valgrind.${area} TIER exhaustive SECONDS 30 NEEDS VALGRIND PLAIN
           COMMAND "${CAI_VALGRIND}" --quiet --leak-check=full --error-exitcode=99
                   $<TARGET_FILE:test_${area}>)
endfunction()

# cai_tested_libraries(twin [flags...]): what cai_program_of_tests links, with these flags for all that links
# it.
function(cai_tested_libraries twin)
  set(sim "${PROJECT_SOURCE_DIR}/sim")
  add_library(cai_tested${twin} STATIC EXCLUDE_FROM_ALL tested.c)
  add_library(cai_tested_sim${twin} STATIC EXCLUDE_FROM_ALL "${sim}/cai_sim.c" "${sim}/cai_check.c"
                                                            "${sim}/cai_timeline.c")
  target_compile_definitions(cai_tested${twin} INTERFACE CAI_TESTS_LINKED)
  target_compile_definitions(cai_tested_sim${twin} INTERFACE CAI_SIM_LINKED)
  foreach(library cai_tested${twin} cai_tested_sim${twin})
    target_link_libraries(${library} PUBLIC cai::ext Threads::Threads PRIVATE cai_own_flags)
    target_include_directories(${library} PUBLIC "${sim}")
    target_compile_options(${library} PUBLIC ${ARGN})
    target_link_options(${library} PUBLIC ${ARGN})
    set_target_properties(${library} PROPERTIES C_STANDARD 99)
  endforeach()
endfunction()

# cai_report_tests(): which tests there are, what they lack, about how long they take, and how to get more.
function(cai_report_tests)
  get_property(lacking GLOBAL PROPERTY cai_lacking)
  list(REMOVE_DUPLICATES lacking)
  if(lacking)
    list(JOIN lacking ", " lacking)
    message(STATUS "cai ${PROJECT_VERSION}: tests will be skipped for want of: ${lacking}")
  else()
    message(STATUS "cai ${PROJECT_VERSION}: every part of the tests was found")
  endif()
  cai_by_tier(build 40 130 130) # seconds on two cores
  get_property(tenths GLOBAL PROPERTY cai_tenths)
  list(JOIN tenths " + " tenths)
  math(EXPR minutes "((${tenths}) / 20 + ${build} + 59) / 60")
  cai_by_tier(more "; more: -DCAI_TESTS=full (about 25 minutes)" "; more: -DCAI_TESTS=exhaustive (hours)" "")
  set(unit minutes)
  if(minutes EQUAL 1)
    set(unit minute)
  endif()
  set(time "about ${minutes} ${unit} with the build on two cores")
  message(STATUS "cai ${PROJECT_VERSION}: tests ${CAI_TESTS}, ${time}${more}")
endfunction()
