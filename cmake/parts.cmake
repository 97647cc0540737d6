# Finds what the examples and tests can use beside a C compiler. Each part sets CAI_HAVE_<PART>. The tests of
# what is missing are shown as skipped.

include(CheckCSourceCompiles)
include(CheckLanguage)
set(cai_missing "")

# cai_part(NAME "what it is" found): records a part.
macro(cai_part name what)
  if(${ARGN})
    set(CAI_HAVE_${name} TRUE)
  else()
    set(CAI_HAVE_${name} FALSE)
    list(APPEND cai_missing "${what}")
  endif()
  set(CAI_PART_${name} "${what}")
endmacro()

# cai_program(NAME "what it is" names...): a part that is a program, found as CAI_<NAME>.
macro(cai_program name what)
  find_program(CAI_${name} NAMES ${ARGN} DOC "${what}")
  mark_as_advanced(CAI_${name})
  cai_part(${name} "${what}" CAI_${name})
endmacro()

# cai_try(WORKS "what it is" command...): stores in the cache whether the command ends with 0.
function(cai_try works what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  set(value FALSE)
  if(result EQUAL 0)
    set(value TRUE)
  endif()
  set(${works} ${value} CACHE INTERNAL "${what}")
endfunction()

# Languages
check_language(CXX)
if(CMAKE_CXX_COMPILER)
  enable_language(CXX)
endif()
cai_part(CXX "C++ compiler" CMAKE_CXX_COMPILER)

# Without a GPU the programs for it are only compiled, which the tests `quick` leave out.
execute_process(COMMAND nvidia-smi -L OUTPUT_VARIABLE cai_gpus ERROR_QUIET RESULT_VARIABLE cai_ignored)
find_program(CAI_NVCC nvcc HINTS /usr/local/cuda/bin DOC "nvcc")
mark_as_advanced(CAI_NVCC)
if(CAI_NVCC AND NOT DEFINED ENV{CUDACXX})
  set(ENV{CUDACXX} "${CAI_NVCC}")
endif()
if(CAI_TESTS STREQUAL "quick" AND NOT cai_gpus MATCHES "GPU 0" AND NOT CAI_REQUIRE_ALL)
  cai_part(CUDA "GPU" FALSE)
else()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER AND CAI_HAVE_CXX)
    enable_language(CUDA)
  endif()
  cai_part(CUDA "nvcc" CMAKE_CUDA_COMPILER AND CAI_HAVE_CXX AND CAI_NVCC)
endif()

# Python
find_package(Python3 3.8 QUIET COMPONENTS Interpreter)
cai_part(PYTHON "Python 3.8" Python3_Interpreter_FOUND)
set(cai_numpy_status 1)
if(CAI_HAVE_PYTHON)
  execute_process(COMMAND "${Python3_EXECUTABLE}" -c "from numpy.lib import array_utils"
                  RESULT_VARIABLE cai_numpy_status OUTPUT_QUIET ERROR_QUIET)
endif()
cai_part(NUMPY "Python with NumPy 2" cai_numpy_status EQUAL 0)
set(CAI_PYTHON_INCLUDE "")
if(CAI_HAVE_PYTHON)
  execute_process(COMMAND "${Python3_EXECUTABLE}" -c
                          "import sysconfig; print(sysconfig.get_path('include'))"
                  OUTPUT_VARIABLE CAI_PYTHON_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
cai_part(PYTHON_H "Python.h" CAI_HAVE_PYTHON AND EXISTS "${CAI_PYTHON_INCLUDE}/Python.h")

# Compilers of the compile matrix, by name; whichever the project itself is built with
cai_program(GCC gcc gcc)
cai_program(GXX g++ g++)
cai_program(CLANG clang clang)
cai_program(CLANGXX clang++ clang++)
cai_program(NM nm nm)
cai_program(GCOV gcov gcov)
cai_program(SIZE size size)

# Other languages
cai_program(RUSTC rustc rustc)
cai_program(GFORTRAN gfortran gfortran)
cai_program(GO Go go)

# Two MPIs, by their compilers, and the folder of an <mpi.h>
cai_program(OPENMPI "Open MPI" mpicc.openmpi)
cai_program(MPICH "MPICH" mpicc.mpich)
find_path(CAI_MPI_INCLUDE mpi.h PATH_SUFFIXES openmpi mpich
          HINTS "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/include" "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/mpich"
          DOC "where mpi.h is")
mark_as_advanced(CAI_MPI_INCLUDE)
cai_part(MPI_H "mpi.h" CAI_MPI_INCLUDE)

# NCCL's header and library, of the toolkit or of the system
get_filename_component(cai_nvcc_folder "${CAI_NVCC}" DIRECTORY)
set(cai_nccl_folders "${cai_nvcc_folder}/.." /usr/local/cuda "${PROJECT_SOURCE_DIR}/build/cuda/nccl/nvidia/nccl")
find_path(CAI_NCCL_INCLUDE nccl.h HINTS ${cai_nccl_folders} PATH_SUFFIXES include DOC "where nccl.h is")
find_library(CAI_NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${cai_nccl_folders} PATH_SUFFIXES lib lib64 DOC "NCCL")
mark_as_advanced(CAI_NCCL_INCLUDE CAI_NCCL_LIBRARY)
cai_part(NCCL_H "nccl.h" CAI_NCCL_INCLUDE)
cai_part(NCCL "NCCL" CAI_NCCL_INCLUDE AND CAI_NCCL_LIBRARY)

# HIP's headers, of Debian or of ROCm
find_path(CAI_HIP_INCLUDE hip/hip_runtime_api.h HINTS /opt/rocm/include DOC "where hip/hip_runtime_api.h is")
mark_as_advanced(CAI_HIP_INCLUDE)
cai_part(HIP_H "hip/hip_runtime_api.h" CAI_HIP_INCLUDE)

# Other machines: compilers and what runs their programs
cai_program(MINGW "MinGW-w64 gcc" x86_64-w64-mingw32-gcc)
cai_program(WINE wine wine64 wine HINTS /usr/lib/wine)
cai_program(AARCH64 "aarch64 gcc" aarch64-linux-gnu-gcc)
cai_program(QEMU_AARCH64 qemu-aarch64 qemu-aarch64-static qemu-aarch64)
cai_program(S390X "s390x gcc" s390x-linux-gnu-gcc)
cai_program(QEMU_S390X qemu-s390x qemu-s390x-static qemu-s390x)

# 32-bit programs: where gcc-multilib gave way to a cross compiler, <asm/...> needs a hint.
set(CMAKE_REQUIRED_QUIET TRUE)
set(cai_m32_source "#include <errno.h>
#include <stdio.h>
int main(void) { return printf(\"%d\", errno) < 0 || sizeof(void *) != 4; }")
set(CAI_M32_FLAGS -m32)
set(CMAKE_REQUIRED_FLAGS "-m32")
check_c_source_compiles("${cai_m32_source}" CAI_M32_PLAIN)
if(NOT CAI_M32_PLAIN)
  set(CAI_M32_FLAGS -m32 -idirafter "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}")
  list(JOIN CAI_M32_FLAGS " " CMAKE_REQUIRED_FLAGS)
  check_c_source_compiles("${cai_m32_source}" CAI_M32_HINTED)
endif()
unset(CMAKE_REQUIRED_FLAGS)
cai_part(M32 "-m32" CAI_M32_PLAIN OR CAI_M32_HINTED)

# DLPack's own header, of 1.0 or later: where CAI_DLPACK_INCLUDE says, in a package of Python, in the system
set(cai_packages "")
if(CAI_HAVE_PYTHON)
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -c "import sysconfig; print(sysconfig.get_path('platlib'))"
    OUTPUT_VARIABLE cai_packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
find_path(CAI_DLPACK_INCLUDE dlpack/dlpack.h HINTS "${cai_packages}/tvm_ffi/include"
          DOC "where dlpack/dlpack.h is")
mark_as_advanced(CAI_DLPACK_INCLUDE)
set(CAI_DLPACK_IS_VERSIONED FALSE)
if(CAI_DLPACK_INCLUDE)
  set(CMAKE_REQUIRED_INCLUDES "${CAI_DLPACK_INCLUDE}")
  unset(CAI_DLPACK_IS_VERSIONED)
  check_c_source_compiles("#include <dlpack/dlpack.h>
struct DLManagedTensorVersioned x;
int main(void) { return x.flags != 0; }" CAI_DLPACK_IS_VERSIONED)
  unset(CMAKE_REQUIRED_INCLUDES)
endif()
cai_part(DLPACK "dlpack.h 1.0" CAI_DLPACK_IS_VERSIONED)

# The headers of Apache TVM FFI, which bring a dlpack.h: in a package of Python
find_path(CAI_TVM_FFI_INCLUDE tvm/ffi/c_api.h HINTS "${cai_packages}/tvm_ffi/include"
          DOC "where tvm/ffi/c_api.h is")
mark_as_advanced(CAI_TVM_FFI_INCLUDE)
cai_part(TVM_FFI "apache-tvm-ffi" CAI_TVM_FFI_INCLUDE)

# The headers of CUDA's driver API, of 13.0 or later: in a toolkit, or in a package of Python
find_path(CAI_CUDA_TYPEDEFS cudaTypedefs.h
          HINTS "$ENV{CUDA_HOME}/include" /usr/local/cuda/include "${cai_packages}/nvidia/cu13/include"
                "${cai_packages}/nvidia/cuda_runtime/include" DOC "where cudaTypedefs.h is")
mark_as_advanced(CAI_CUDA_TYPEDEFS)
set(cai_cuda_version "")
if(CAI_CUDA_TYPEDEFS)
  file(STRINGS "${CAI_CUDA_TYPEDEFS}/cuda.h" cai_cuda_version REGEX "^#define CUDA_VERSION [0-9]+$")
  string(REGEX REPLACE "[^0-9]" "" cai_cuda_version "${cai_cuda_version}")
endif()
cai_part(LIBCUDA "cudaTypedefs.h of CUDA 13" CAI_HAVE_PYTHON AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND
         CMAKE_SIZEOF_VOID_P EQUAL 8 AND cai_cuda_version GREATER_EQUAL 13000)

# An mdspan for C++17 and C++20, of the toolkit's CCCL
find_path(CAI_CCCL_INCLUDE cuda/std/mdspan HINTS "${cai_nvcc_folder}/../include/cccl" /usr/local/cuda/include/cccl
          DOC "where cuda/std/mdspan is")
mark_as_advanced(CAI_CCCL_INCLUDE)
cai_part(MDSPAN "CCCL's mdspan" CAI_CCCL_INCLUDE)

# Checkers
set(CAI_SANITIZE -fsanitize=address,undefined -fno-sanitize-recover=all)
set(CMAKE_REQUIRED_FLAGS "-fsanitize=address,undefined -fno-sanitize-recover=all")
check_c_source_compiles("int main(void) { return 0; }" CAI_SANITIZE_WORKS)
unset(CMAKE_REQUIRED_FLAGS)
cai_part(SANITIZE "sanitizers" CAI_SANITIZE_WORKS)
set(CAI_SANITIZE_MEMORY -fsanitize=memory -fno-sanitize-recover=all -g)
if(CAI_HAVE_CLANG AND NOT DEFINED CAI_SANITIZE_MEMORY_WORKS)
  set(cai_trial "${PROJECT_BINARY_DIR}/CMakeFiles/cai_sanitize_memory")
  file(WRITE "${cai_trial}.c" "int main(void) { return 0; }\n")
  cai_try(CAI_SANITIZE_MEMORY_WORKS "clang's MemorySanitizer"
          "${CAI_CLANG}" ${CAI_SANITIZE_MEMORY} "${cai_trial}.c" -o "${cai_trial}")
endif()
cai_part(SANITIZE_MEMORY "clang's MemorySanitizer" CAI_SANITIZE_MEMORY_WORKS)
# What is compiled for HIP: kernels, without its headers and libraries
set(CAI_HIP_KERNELS -x hip --offload-arch=gfx90a -nogpulib -nogpuinc -fsyntax-only)
if(CAI_HAVE_CLANGXX AND NOT DEFINED CAI_HIP_KERNELS_WORK)
  set(cai_trial "${PROJECT_BINARY_DIR}/CMakeFiles/cai_hip_kernels.cpp")
  file(WRITE "${cai_trial}" "__attribute__((global)) void kernel(int *out) { *out = 1; }\n")
  cai_try(CAI_HIP_KERNELS_WORK "clang compiles kernels of HIP" "${CAI_CLANGXX}" ${CAI_HIP_KERNELS} "${cai_trial}")
endif()
cai_part(HIP_KERNELS "clang for kernels of HIP" CAI_HIP_KERNELS_WORK)
cai_program(VALGRIND valgrind valgrind)
cai_part(PLAIN "programs that valgrind can run" NOT CMAKE_C_FLAGS MATCHES "-fsanitize")
cai_program(CLANG_TIDY clang-tidy clang-tidy)
cai_program(CPPCHECK cppcheck cppcheck)
cai_program(PKG_CONFIG pkg-config pkg-config)

# Packages. The tools from PyPI have a virtual environment of their own.
cai_program(GIT git git)
cai_program(DPKG dpkg-buildpackage dpkg-buildpackage)
cai_program(DEBHELPER debhelper dh)
set(CAI_PACKAGING_TOOLS "${PROJECT_BINARY_DIR}/packaging-tools"
    CACHE PATH "virtual environment with tests/build/packaging/requirements.txt")
cai_part(PACKAGING_TOOLS "packaging tools" EXISTS "${CAI_PACKAGING_TOOLS}/bin/meson")
unset(CMAKE_REQUIRED_QUIET)

# The site: MkDocs from PyPI, a clang with wasi-libc and lld, and what runs the pages
set(CAI_SITE_TOOLS "${PROJECT_BINARY_DIR}/site-tools"
    CACHE PATH "virtual environment with tools/site/requirements.txt")
cai_part(SITE_TOOLS "site tools" EXISTS "${CAI_SITE_TOOLS}/bin/mkdocs")
if(CAI_HAVE_CLANG AND NOT CAI_WASM_WORKS)
  set(cai_trial "${PROJECT_BINARY_DIR}/CMakeFiles/cai_wasm")
  file(WRITE "${cai_trial}.c" "#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n")
  cai_try(CAI_WASM_WORKS "clang makes programs for WASI"
          "${CAI_CLANG}" --target=wasm32-wasi "${cai_trial}.c" -o "${cai_trial}")
endif()
cai_part(WASM "clang for WebAssembly" CAI_WASM_WORKS)
cai_program(NODE Node.js node nodejs)
cai_program(CHROMIUM chromium-headless-shell chromium-headless-shell)

# A GPU is required by CAI_REQUIRE_GPU alone.
set(cai_required_missing ${cai_missing})
cai_part(GPU "GPU" cai_gpus MATCHES "GPU 0")
if(NOT CAI_REQUIRE_ALL)
  set(cai_required_missing "")
endif()
if(CAI_REQUIRE_GPU AND NOT CAI_HAVE_GPU)
  list(APPEND cai_required_missing "GPU")
endif()

if(cai_required_missing)
  list(JOIN cai_required_missing ", " cai_missing_text)
  message(FATAL_ERROR "cai: required and missing: ${cai_missing_text}")
endif()

# The flags of our own programs, and all headers for them; never of a consumer.
add_library(cai_own_flags INTERFACE)
target_link_libraries(cai_own_flags INTERFACE cai::ext)
set(cai_gnu "$<AND:$<COMPILE_LANGUAGE:C>,$<C_COMPILER_ID:GNU,Clang,AppleClang>>")
set(cai_warnings
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Wcast-align
  -Wdouble-promotion -Wformat=2 -Wvla -Wstrict-prototypes -Wmissing-prototypes
  -Wold-style-definition)
target_compile_options(cai_own_flags INTERFACE
  "$<${cai_gnu}:${cai_warnings};-UNDEBUG>" "$<$<C_COMPILER_ID:MSVC>:/W4>"
  "$<$<AND:${cai_gnu},$<BOOL:${CAI_REQUIRE_ALL}>>:-Werror>")
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
  if(CAI_TESTS STREQUAL "quick") # a fifth of the time to build
    set(CMAKE_BUILD_TYPE Debug)
  endif()
endif()
