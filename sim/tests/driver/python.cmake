# sim/python: what the package cai_sim says, on a stub in place of the driver, and on the driver if it is built

set(cai_driver_folder "")
if(CAI_LIBCUDA AND TARGET ${CAI_LIBCUDA})
  set(cai_driver_folder --driver "$<TARGET_FILE_DIR:${CAI_LIBCUDA}>")
endif()
cai_python_test(driver.python check_python_sim.py SECONDS 15 NEEDS GCC
                ARGUMENTS ${cai_cc} ${cai_driver_folder})
# For all tests that have CAI_SIM: the installed package is of this tree.
cai_python_test(driver.package check_package.py)
if(TEST driver.package)
  set_tests_properties(driver.package PROPERTIES FIXTURES_SETUP cai_sim)
endif()
cai_python_test(driver.host check_findings.py CAI_SIM TIER full SECONDS 30 ARGUMENTS host)
cai_python_test(driver.lifetimes check_findings.py CAI_SIM TIER full SECONDS 30 ARGUMENTS lifetime)
cai_python_test(driver.recorded ../../../tools/demo/record.py CAI_SIM TIER full SECONDS 10)
cai_python_test(driver.streams_doc check_streams_doc.py CAI_SIM TIER full SECONDS 20)
cai_python_test(driver.verdicts check_verdicts.py CAI_SIM TIER exhaustive JOBS SECONDS 200)
cai_python_test(driver.advice check_advice.py CAI_SIM TIER exhaustive SECONDS 60)
cai_python_test(driver.recorder check_recorder.py CAI_SIM TIER full JOBS SECONDS 12)
cai_python_test(driver.recorder_gpu check_recorder.py CAI_SIM TIER full JOBS SECONDS 30 NEEDS GPU ARGUMENTS --real)
cai_python_test(driver.libraries check_libraries.py CAI_SIM TIER full SECONDS 15 ARGUMENTS ${cai_cc})
