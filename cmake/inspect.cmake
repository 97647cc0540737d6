# cai_inspect, which judges dictionaries. It is a tool by itself, and what the tests judge dictionaries with.

add_executable(cai_inspect tools/cai_inspect.c)
target_link_libraries(cai_inspect PRIVATE cai::ext)
if(TARGET cai_own_flags)
  target_link_libraries(cai_inspect PRIVATE cai_own_flags)
endif()
set_target_properties(cai_inspect PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}" C_STANDARD 99)
