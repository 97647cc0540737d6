# Programs that are right: the simulated driver finds no race in them

cai_python_test(driver.clean check_clean.py TIER full JOBS SECONDS 41)
