# The reader of images of kernels: images made in C, images that nvcc makes, launches of real libraries

set(kernel_sources "${CMAKE_CURRENT_LIST_DIR}/test_kernel.c" "${PROJECT_SOURCE_DIR}/sim/driver/cai_kernel.c"
                   "${PROJECT_SOURCE_DIR}/sim/driver/cai_ptx.c")
cai_program_of_tests(test_images ALONE ${kernel_sources})
target_include_directories(test_images PRIVATE "${PROJECT_SOURCE_DIR}/sim/driver")
target_link_libraries(test_images PRIVATE ${CMAKE_DL_LIBS})
cai_test(driver.kernel COMMAND test_images)
cai_sanitized_test(driver.kernel_sanitized TIER quick SECONDS 1 PROGRAM sanitized_images ALONE ${kernel_sources})
set(kernel_program test_images)
if(TARGET sanitized_images)
  target_include_directories(sanitized_images PRIVATE "${PROJECT_SOURCE_DIR}/sim/driver")
  target_link_libraries(sanitized_images PRIVATE ${CMAKE_DL_LIBS})
  set(kernel_program sanitized_images)
endif()
cai_python_test(driver.cubins check_cubins.py TIER full SECONDS 8 NEEDS CUDA
                ARGUMENTS --program "$<TARGET_FILE:${kernel_program}>" --nvcc "${CAI_NVCC}")
cai_python_test(driver.kernels check_kernels.py CAI_SIM JOBS SECONDS 40 TIER full)
cai_python_test(driver.ptx check_ptx.py TIER full SECONDS 12 NEEDS CUDA
                ARGUMENTS --program "$<TARGET_FILE:${kernel_program}>" --nvcc "${CAI_NVCC}")
