# Real libraries, each with each, on the simulated driver. The pairs that numba-cuda, cuda.core and PyCUDA make.

cai_python_test(driver.matrix check_matrix.py CAI_SIM TIER full SECONDS 20 NEEDS PYTHON_H GCC NUMPY
                ARGUMENTS --least 20 --against "${CMAKE_CURRENT_LIST_DIR}/h100_pairs.txt")
cai_python_test(driver.matrix_adversarial check_matrix.py CAI_SIM TIER full SECONDS 20 NEEDS PYTHON_H GCC NUMPY
                ARGUMENTS --adversarial --least 20)
cai_python_test(driver.matrix_planted check_matrix.py CAI_SIM TIER full SECONDS 40 NEEDS PYTHON_H GCC NUMPY
                ARGUMENTS --planted)
