# The simulated libcudart: the API in C for each version that was built; and a program as nvcc builds it

get_property(cai_cudarts GLOBAL PROPERTY CAI_CUDART_LIBRARIES)
foreach(library IN LISTS cai_cudarts)
  string(REPLACE cai_cudart_ "" major ${library})
  add_executable(test_runtime_${major} "${CMAKE_CURRENT_LIST_DIR}/test_runtime.c")
  get_target_property(cai_headers ${library} INCLUDE_DIRECTORIES)
  target_include_directories(test_runtime_${major} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support")
  target_include_directories(test_runtime_${major} SYSTEM PRIVATE ${cai_headers})
  target_link_libraries(test_runtime_${major} PRIVATE cai_own_flags ${library} ${CAI_LIBCUDA} Threads::Threads
                                                      ${CMAKE_DL_LIBS})
  set_target_properties(test_runtime_${major} PROPERTIES C_STANDARD 99 C_EXTENSIONS ON)
  cai_test(driver.runtime_${major} COMMAND test_runtime_${major})
endforeach()

if(CAI_HAVE_CUDA AND TARGET cai_cudart_13)
  add_executable(runtime_exchange "${CMAKE_CURRENT_LIST_DIR}/runtime_exchange.cu")
  target_link_libraries(runtime_exchange PRIVATE cai::ext)
  add_dependencies(runtime_exchange cai_cudart_13)
  set_target_properties(runtime_exchange PROPERTIES CUDA_STANDARD 17 CUDA_RUNTIME_LIBRARY Shared
                                                    CUDA_ARCHITECTURES 90 SKIP_BUILD_RPATH TRUE)
  cai_test(driver.runtime_exchange COMMAND ${CMAKE_COMMAND} -E env
           "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:cai_cudart_13>" $<TARGET_FILE:runtime_exchange>)

  # The examples with kernels: functions of the host stand for them
  set(cai_examples "${PROJECT_SOURCE_DIR}/examples")
  add_library(example_kernels MODULE "${CMAKE_CURRENT_LIST_DIR}/example_kernels.c")
  target_link_libraries(example_kernels PRIVATE cai::cai cai_own_flags ${CAI_LIBCUDA})
  add_executable(simulated_saxpy "${cai_examples}/array/saxpy.cu")
  target_link_libraries(simulated_saxpy PRIVATE cai::ext)
  add_executable(simulated_exchange
    "${cai_examples}/exchange/exchange.c" "${cai_examples}/exchange/exchange_races.c"
    "${cai_examples}/exchange/exchange_simulated.c" "${cai_examples}/exchange/exchange_gpu.cu")
  target_link_libraries(simulated_exchange PRIVATE cai::sim)
  target_compile_definitions(simulated_exchange PRIVATE EXCHANGE_WITH_GPU)
  add_executable(simulated_stencil
    "${cai_examples}/storage/stencil.c" "${cai_examples}/storage/stencil_plain.c" "${cai_examples}/storage/stencil.cu")
  target_link_libraries(simulated_stencil PRIVATE cai::ext)
  add_executable(simulated_pack "${cai_examples}/transfer/pack.cu")
  target_link_libraries(simulated_pack PRIVATE cai::ext)
  set_target_properties(example_kernels simulated_exchange simulated_stencil PROPERTIES C_STANDARD 99 C_EXTENSIONS ON)
  foreach(example saxpy exchange stencil pack)
    add_dependencies(simulated_${example} cai_cudart_13)
    set_target_properties(simulated_${example} PROPERTIES CUDA_STANDARD 17 CUDA_RUNTIME_LIBRARY Shared
                                                          CUDA_ARCHITECTURES 90 SKIP_BUILD_RPATH TRUE)
    cai_test(driver.example_${example} COMMAND ${CMAKE_COMMAND} -E env
             "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:cai_cudart_13>" "LD_PRELOAD=$<TARGET_FILE:example_kernels>"
             $<TARGET_FILE:simulated_${example}>)
    set_tests_properties(driver.example_${example} PROPERTIES PASS_REGULAR_EXPRESSION
                         "1000 elements right|[^0-9]0 wrong elements|simulated device, CUDA .*262144 elements, 0 wrong|\
host and device: identical.*plain loop: identical")
  endforeach()

  # The halo by NCCL: copies stand for its kernels
  if(CAI_HAVE_NCCL_H)
    add_executable(simulated_nccl "${cai_examples}/nccl.cu" "${CMAKE_CURRENT_LIST_DIR}/nccl_stand_in.c")
    target_include_directories(simulated_nccl SYSTEM PRIVATE "${CAI_NCCL_INCLUDE}")
    target_link_libraries(simulated_nccl PRIVATE cai::ext ${CAI_LIBCUDA})
    add_dependencies(simulated_nccl cai_cudart_13)
    set_target_properties(simulated_nccl PROPERTIES
      CUDA_STANDARD 17 CUDA_RUNTIME_LIBRARY Shared CUDA_ARCHITECTURES 90 SKIP_BUILD_RPATH TRUE
      C_STANDARD 99 C_EXTENSIONS ON)
    set(cai_nccl_command ${CMAKE_COMMAND} -E env CAI_SIM_DEVICES=3
        "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:cai_cudart_13>" $<TARGET_FILE:simulated_nccl>)
    cai_test(driver.example_nccl ADVERSARIAL COMMAND ${cai_nccl_command})
    cai_test(driver.example_nccl_unordered COMMAND ${cai_nccl_command} unordered)
    set_tests_properties(driver.example_nccl adversarial.driver.example_nccl PROPERTIES
                         PASS_REGULAR_EXPRESSION "no race.*3 devices, 0 wrong")
    set_tests_properties(driver.example_nccl_unordered PROPERTIES PASS_REGULAR_EXPRESSION
                         "race on .*nothing makes s1 wait for s2.*3 devices, [1-9]")
  else()
    cai_test(driver.example_nccl NEEDS NCCL_H COMMAND simulated_nccl)
  endif()
endif()
