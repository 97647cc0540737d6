# Numba over a table of hooks, and the suites of other libraries, on the simulated driver

cai_python_test(driver.numba check_numba.py SECONDS 15
                ARGUMENTS --library $<TARGET_FILE:cai_numba> --plugin $<TARGET_FILE:plugin_example>)
cai_python_test(driver.peers check_peers.py TIER full JOBS SECONDS 45
                ARGUMENTS --library $<TARGET_FILE:cai_numba>)
