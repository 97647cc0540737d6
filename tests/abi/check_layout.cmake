# Compares one column of layout.txt with a compiler or with print_layout.
# TABLE, MODEL (LP64, LLP64, ILP32), and either PROGRAM or COMPILER, FLAGS, INCLUDE, WORK

set(columns LP64 LLP64 ILP32)
list(FIND columns "${MODEL}" column)
math(EXPR column "${column} + 2")
file(STRINGS "${TABLE}" lines REGEX "^[a-z]")

set(expected "")
set(asserts "#include <stddef.h>\n#include \"cai_stream.h\"\n")
set(count 0)
foreach(line IN LISTS lines)
  string(REGEX REPLACE " +" ";" row "${line}")
  list(GET row 0 struct)
  list(GET row 1 member)
  list(GET row ${column} number)
  string(APPEND expected "${struct} ${member} ${number}\n")
  if(member STREQUAL "sizeof")
    set(actual "sizeof(struct ${struct})")
  else()
    set(actual "offsetof(struct ${struct}, ${member})")
  endif()
  # The name of the type is what a compiler shows where the assertion fails.
  string(APPEND asserts
         "typedef char ${struct}_${member}_is_not_${number}[${actual} == ${number} ? 1 : -1];\n")
  math(EXPR count "${count} + 1")
endforeach()

if(PROGRAM)
  execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE printed RESULT_VARIABLE status)
  string(REPLACE "\r" "" printed "${printed}")
  if(status OR NOT printed STREQUAL expected)
    message(FATAL_ERROR "layout.txt says\n${expected}\nand the program (${status})\n${printed}")
  endif()
else()
  file(REMOVE_RECURSE "${WORK}")
  file(WRITE "${WORK}/asserts.c" "${asserts}")
  execute_process(COMMAND "${COMPILER}" ${FLAGS} "-I${INCLUDE}" -c asserts.c -o asserts.o
                  WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "layout.txt (${MODEL}) and ${COMPILER} differ")
  endif()
endif()
message(STATUS "${count} sizes and offsets of ${MODEL}: equal")
