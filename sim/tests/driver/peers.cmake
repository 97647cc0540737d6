# Numba over a table of hooks, and the suites of other libraries, on the simulated driver

add_library(pool_table MODULE pool_table.c)
target_link_libraries(pool_table PRIVATE cai::cai cai_own_flags Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(pool_table PRIVATE "${PROJECT_SOURCE_DIR}")
target_compile_options(pool_table PRIVATE "${cai_unsanitized}")
target_link_options(pool_table PRIVATE "${cai_unsanitized}")
set_target_properties(pool_table PROPERTIES PREFIX "" C_STANDARD 99)
cai_python_test(driver.numba check_numba.py CAI_SIM SECONDS 25
                ARGUMENTS --library $<TARGET_FILE:cai_numba> --plugin $<TARGET_FILE:plugin_example>
                          --pool $<TARGET_FILE:pool_table>)
cai_python_test(driver.peers check_peers.py CAI_SIM TIER full JOBS SECONDS 45
                ARGUMENTS --library $<TARGET_FILE:cai_numba>)
