# The examples.

set(cai_demo_dir "${PROJECT_SOURCE_DIR}/tools/demo")

# The whole exchange, on the GPU if one answers, else on the simulated runtime

add_executable(exchange examples/exchange/exchange.c examples/exchange/exchange_races.c examples/exchange/exchange_simulated.c)
target_link_libraries(exchange PRIVATE cai::sim cai_own_flags)
set_target_properties(exchange PROPERTIES C_STANDARD 99)
if(CAI_HAVE_CUDA)
  target_sources(exchange PRIVATE examples/exchange/exchange_gpu.cu)
  target_compile_definitions(exchange PRIVATE EXCHANGE_WITH_GPU)
  set_target_properties(exchange PROPERTIES CUDA_STANDARD 17)
endif()

# README's consumer, tested without a GPU
add_executable(scale_test examples/exchange/scale_test.c)
target_link_libraries(scale_test PRIVATE cai::sim cai_own_flags)
set_target_properties(scale_test PROPERTIES C_STANDARD 99)

add_custom_target(demo COMMAND exchange "${PROJECT_BINARY_DIR}" USES_TERMINAL VERBATIM)

# What cai_inspect says of the dictionaries of libraries. Its exit status 1 means that some entries were rejected.
add_custom_target(catalogue
  COMMAND ${CMAKE_COMMAND} "-DPROGRAM=$<TARGET_FILE:cai_inspect>"
          "-DINPUT=${cai_demo_dir}/interfaces.txt" -P "${PROJECT_SOURCE_DIR}/cmake/catalogue.cmake"
  USES_TERMINAL VERBATIM)

# A plugin (a table of cai_emm.h) under a manager, on the simulated runtime
add_executable(pool_demo examples/memory/pool_demo.c)
target_link_libraries(pool_demo PRIVATE cai::sim cai_own_flags)
set_target_properties(pool_demo PROPERTIES C_STANDARD 99)

# Fields on host and device: on the simulated runtime, and (stencil_gpu) on a GPU
set(cai_stencil examples/storage/stencil.c examples/storage/stencil_plain.c)
add_executable(stencil ${cai_stencil} examples/storage/stencil_simulated.c)
target_link_libraries(stencil PRIVATE cai::sim cai_own_flags)
set_target_properties(stencil PROPERTIES C_STANDARD 99)

# One table of hooks as the allocator of NVIDIA's libraries: with their headers, as far as they are found
add_executable(nvidia_adapters examples/adapters/nvidia.c)
target_link_libraries(nvidia_adapters PRIVATE cai::sim cai_own_flags)
set_target_properties(nvidia_adapters PROPERTIES C_STANDARD 99)
get_filename_component(cai_cuda_root "${CAI_NVCC}" DIRECTORY)
foreach(header cuda_runtime cutensornet custatevec cudss nvjpeg)
  find_path(CAI_${header}_DIR ${header}.h HINTS "${cai_cuda_root}/../include" DOC "where ${header}.h is")
  mark_as_advanced(CAI_${header}_DIR)
  if(CAI_${header}_DIR)
    target_include_directories(nvidia_adapters SYSTEM PRIVATE "${CAI_${header}_DIR}")
  endif()
endforeach()

foreach(name consumer layout_picture)
  add_executable(${name} examples/array/${name}.c)
  target_link_libraries(${name} PRIVATE cai::cai cai_own_flags)
  set_target_properties(${name} PROPERTIES C_STANDARD 99)
endforeach()

# build/libcai.so, .dylib or .dll: what other languages load (docs/ffi.md). Never sanitized, as their programs
# are not; never installed, as it is an example.
set(cai_unsanitized "$<$<C_COMPILER_ID:GNU,Clang,AppleClang>:-fno-sanitize=all>")
add_library(cai_shared SHARED examples/bindings/shared/cai_shared.c)
target_link_libraries(cai_shared PRIVATE cai::cai cai_own_flags Threads::Threads ${CMAKE_DL_LIBS})
target_compile_options(cai_shared PRIVATE "${cai_unsanitized}")
target_link_options(cai_shared PRIVATE "${cai_unsanitized}")
set_target_properties(cai_shared PROPERTIES PREFIX lib OUTPUT_NAME cai C_STANDARD 99
                                            LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}"
                                            RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")

# build/libcai_sim.so: the simulated CUDA and the race detector, for the examples in other languages
set(CAI_FFI FALSE)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(CAI_FFI TRUE)
  add_library(cai_sim_shared SHARED "${PROJECT_SOURCE_DIR}/sim/cai_sim.c" "${PROJECT_SOURCE_DIR}/sim/cai_check.c")
  target_include_directories(cai_sim_shared PRIVATE "${PROJECT_SOURCE_DIR}/sim")
  target_link_libraries(cai_sim_shared PRIVATE cai::cai cai_own_flags Threads::Threads)
  target_compile_options(cai_sim_shared PRIVATE "${cai_unsanitized}")
  target_link_options(cai_sim_shared PRIVATE "${cai_unsanitized}")
  set_target_properties(cai_sim_shared PROPERTIES OUTPUT_NAME cai_sim C_STANDARD 99
                                                  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endif()

# build/libcai_torch.so: what PyTorch's CUDAPluggableAllocator loads. It needs nothing of PyTorch.
add_library(cai_torch MODULE examples/adapters/torch/cai_torch.c)
target_link_libraries(cai_torch PRIVATE cai::cai cai_own_flags Threads::Threads ${CMAKE_DL_LIBS})
target_compile_options(cai_torch PRIVATE "${cai_unsanitized}")
target_link_options(cai_torch PRIVATE "${cai_unsanitized}")
set_target_properties(cai_torch PROPERTIES PREFIX lib C_STANDARD 99
                                           LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")

# build/libcai_cupy.so: what CuPy's CFunctionAllocator takes. It needs nothing of CuPy.
add_library(cai_cupy MODULE examples/adapters/cupy/cai_cupy.c)
target_link_libraries(cai_cupy PRIVATE cai::cai cai_own_flags Threads::Threads ${CMAKE_DL_LIBS})
target_compile_options(cai_cupy PRIVATE "${cai_unsanitized}")
target_link_options(cai_cupy PRIVATE "${cai_unsanitized}")
set_target_properties(cai_cupy PROPERTIES PREFIX lib C_STANDARD 99
                                          LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")

# build/libcai_numba.so: what the plugin for Numba (cai_numba.py) loads. It needs nothing of Numba.
add_library(cai_numba MODULE examples/adapters/numba/cai_numba.c)
target_link_libraries(cai_numba PRIVATE cai::cai cai_own_flags Threads::Threads ${CMAKE_DL_LIBS})
target_compile_options(cai_numba PRIVATE "${cai_unsanitized}")
target_link_options(cai_numba PRIVATE "${cai_unsanitized}")
set_target_properties(cai_numba PROPERTIES PREFIX lib C_STANDARD 99
                                           LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")

# For CV-CUDA, a source of the program that has the implementation
add_library(cai_cvcuda OBJECT examples/adapters/cvcuda/cai_cvcuda.c)
target_link_libraries(cai_cvcuda PRIVATE cai::cai cai_own_flags)
set_target_properties(cai_cvcuda PROPERTIES C_STANDARD 99)

# A plugin in a shared object, and the loader for it
add_library(plugin_example MODULE examples/memory/plugin_example.c)
target_link_libraries(plugin_example PRIVATE cai::cai cai_own_flags)
target_compile_options(plugin_example PRIVATE "${cai_unsanitized}")
target_link_options(plugin_example PRIVATE "${cai_unsanitized}")
set_target_properties(plugin_example PROPERTIES PREFIX "" C_STANDARD 99
                                                LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
add_library(plugin_loader OBJECT examples/memory/plugin_loader.c)
target_link_libraries(plugin_loader PRIVATE cai::cai cai_own_flags)
set_target_properties(plugin_loader PROPERTIES C_STANDARD 99)

if(CAI_HAVE_CUDA)
  add_executable(saxpy examples/array/saxpy.cu)
  target_link_libraries(saxpy PRIVATE cai::ext)
  add_executable(stencil_gpu ${cai_stencil} examples/storage/stencil.cu)
  target_link_libraries(stencil_gpu PRIVATE cai::cai cai_own_flags)
  set_target_properties(saxpy stencil_gpu PROPERTIES C_STANDARD 99 CUDA_STANDARD 17)
endif()
set(cai_tensor_maps OFF)
if(CAI_HAVE_CUDA AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.5)
  set(cai_tensor_maps ON)
  add_executable(tiles examples/array/tiles.cu)
  target_link_libraries(tiles PRIVATE cai::ext)
  set_target_properties(tiles PROPERTIES CUDA_STANDARD 17 CUDA_ARCHITECTURES 90) # the first that has them
endif()
