# Compares one column of layout.txt with a compiler or with print_layout. A compiler is also asked whether the
# members of the table tile their struct (a member that is not listed leaves a gap), and for their types.
# TABLE, MODEL (LP64, LLP64, ILP32), and either PROGRAM or COMPILER, FLAGS, INCLUDE, WORK; HEADERS,
# those of layout.txt if they are not given

set(columns LP64 LLP64 ILP32)
list(FIND columns "${MODEL}" column)
math(EXPR column "${column} + 2")
file(STRINGS "${TABLE}" lines REGEX "^[a-z]")

if(NOT HEADERS)
  set(HEADERS ext/cai_manager.h ext/cai_access.h ext/cai_ipc.h)
endif()
get_filename_component(table "${TABLE}" NAME)
set(expected "")
set(asserts "#include <stddef.h>\n")
foreach(header IN LISTS HEADERS)
  string(APPEND asserts "#include \"${header}\"\n")
endforeach()
string(APPEND asserts "#if defined(__GNUC__) && !defined(__cplusplus)\n"
       "#pragma GCC diagnostic error \"-Wincompatible-pointer-types\"\n"
       "#pragma GCC diagnostic error \"-Wpointer-sign\"\n#endif\n")
set(count 0)
set(last "") # the member before, where the one of this line must begin

# A pointer to the type of the table must point to the member. The table does not say what pointers point to, and the
# arguments of functions: such a member has the size of one, which the next offset shows.
macro(cai_type_of_member)
  list(LENGTH row length)
  if(length LESS 6)
    message(FATAL_ERROR "${table}: ${struct} ${member} has no type")
  endif()
  list(GET row 5 wanted)
  string(REGEX MATCH "^[a-z0-9_]+" scalar "${wanted}")
  string(REPLACE "${scalar}" "" extents "${wanted}")
  if(scalar MATCHES "^u?int[0-9]+$")
    set(scalar "${scalar}_t")
  elseif(scalar MATCHES "_v[0-9]+$")
    set(scalar "struct ${scalar}")
  endif()
  if(NOT scalar MATCHES "^(pointer|function)$")
    string(APPEND asserts "int ${struct}_${member}_is_not_${count}(${type} *of);\n"
           "int ${struct}_${member}_is_not_${count}(${type} *of)\n"
           "{\n    ${scalar} (*at)${extents} = &of->${member}; /* ${wanted} */\n    return at != NULL;\n}\n")
  endif()
endmacro()

# Where the last member ends, the bytes up to `number` must be no member's.
macro(cai_end_member number before)
  if(last)
    string(APPEND asserts "typedef char ${before}_in_${struct_before}_follows_${last}"
           "[offsetof(${type_before}, ${last}) + sizeof(((${type_before} *)0)->${last}) == ${number} ? 1 : -1];\n")
  endif()
endmacro()

foreach(line IN LISTS lines)
  string(REGEX REPLACE " +" ";" row "${line}")
  list(GET row 0 struct)
  list(GET row 1 member)
  list(GET row ${column} number)
  string(APPEND expected "${struct} ${member} ${number}\n")
  set(type "${struct}")
  if(struct MATCHES "_v[0-9]+$")
    set(type "struct ${struct}")
  endif()
  if(member STREQUAL "sizeof")
    set(actual "sizeof(${type})")
    cai_end_member("sizeof(${type_before})" end)
    set(last "")
  else()
    set(actual "offsetof(${type}, ${member})")
    cai_end_member(${number} ${member})
    cai_type_of_member()
    set(last "${member}")
  endif()
  set(struct_before "${struct}")
  set(type_before "${type}")
  # The name of the type is what a compiler shows where the assertion fails.
  string(APPEND asserts
         "typedef char ${struct}_${member}_is_not_${number}[${actual} == ${number} ? 1 : -1];\n")
  math(EXPR count "${count} + 1")
endforeach()
cai_end_member("sizeof(${type_before})" end)

if(PROGRAM)
  execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE printed RESULT_VARIABLE status)
  string(REPLACE "\r" "" printed "${printed}")
  if(status OR NOT printed STREQUAL expected)
    message(FATAL_ERROR "${table} says\n${expected}\nand the program (${status})\n${printed}")
  endif()
else()
  file(REMOVE_RECURSE "${WORK}")
  file(WRITE "${WORK}/asserts.c" "${asserts}")
  execute_process(COMMAND "${COMPILER}" ${FLAGS} "-I${INCLUDE}" -c asserts.c -o asserts.o
                  WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "${table} (${MODEL}) and ${COMPILER} differ")
  endif()
endif()
message(STATUS "${count} sizes and offsets of ${MODEL}: equal")
