# Programs that are right: the simulated driver finds no race in them

cai_python_test(driver.clean check_clean.py CAI_SIM TIER full JOBS SECONDS 41)

# Storages from Python

cai_python_test(driver.field check_field.py CAI_SIM TIER full SECONDS 22 NEEDS PYTHON_H GCC NUMPY
                ARGUMENTS ${cai_cc})
cai_python_test(driver.field_planted check_field.py CAI_SIM TIER exhaustive SECONDS 90 NEEDS PYTHON_H GCC NUMPY
                ARGUMENTS ${cai_cc} --self-test)
cai_python_test(driver.field_gpu check_field.py CAI_SIM TIER full SECONDS 20 NEEDS GPU PYTHON_H GCC NUMPY
                ARGUMENTS ${cai_cc} --real)
