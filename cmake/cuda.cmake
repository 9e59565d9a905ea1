# SPDX-License-Identifier: Apache-2.0
# GPU code: *.cu files, compiled by nvcc with flags of their own. Found or left out by itself, and
# said; SIMILIS_CUDA=ON makes a missing compiler an error.
# HIP compiles them for AMD's GPUs, of SIMILIS_HIP_ARCHITECTURES, by hipcc: what runs on CUDA devices
# then runs on those that ROCm calls by the same names, torch's among them.
# ON_CPU compiles them as C++ for this CPU, so that kernels can be tested, under sanitizers too, where
# there is no GPU; tests/gpu_on_cpu stands in for CUDA's runtime.
set(SIMILIS_CUDA AUTO CACHE STRING "GPU code: AUTO, ON, OFF, HIP or ON_CPU")
set(SIMILIS_HIP_ARCHITECTURES gfx90a CACHE STRING "AMD's architectures, such as gfx90a;gfx942")
set(SIMILIS_CUDA_ARCHITECTURES 90 CACHE STRING
  "Compute capabilities to compile for, such as 80;86;89;90;100;120; CMake's forms are taken")
set(SIMILIS_HAS_CUDA OFF)

find_program(SIMILIS_NVCC nvcc HINTS /usr/local/cuda/bin)
if(SIMILIS_CUDA STREQUAL OFF)
  message(STATUS "CUDA: left out, as SIMILIS_CUDA says")
elseif(SIMILIS_CUDA STREQUAL ON_CPU)
  find_package(Boost REQUIRED COMPONENTS context)
  set(SIMILIS_HAS_CUDA ON)
  message(STATUS "CUDA: kernels run on the CPU, for tests")
elseif(SIMILIS_SANITIZE OR SIMILIS_BUILD_FUZZERS)
  message(STATUS "CUDA: left out, sanitizers look at the CPU's code")
elseif(SIMILIS_CUDA STREQUAL HIP)
  find_program(SIMILIS_HIPCC hipcc)
  find_library(SIMILIS_HIP_RUNTIME amdhip64 HINTS /opt/rocm/lib)
  if(NOT SIMILIS_HIPCC OR NOT SIMILIS_HIP_RUNTIME)
    message(FATAL_ERROR "CUDA: SIMILIS_CUDA is HIP, and there is no hipcc, or not its library amdhip64")
  endif()
  set(SIMILIS_HAS_CUDA ON)
  message(STATUS "CUDA: HIP, for ${SIMILIS_HIP_ARCHITECTURES}")
elseif(SIMILIS_NVCC)
  set(CMAKE_CUDA_COMPILER ${SIMILIS_NVCC})
  set(CMAKE_CUDA_ARCHITECTURES ${SIMILIS_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know CUDA 13
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  find_package(CUDAToolkit REQUIRED)
  set(SIMILIS_HAS_CUDA ON)
  message(STATUS
    "CUDA: ${CUDAToolkit_VERSION}, for compute capability ${SIMILIS_CUDA_ARCHITECTURES}")
elseif(SIMILIS_CUDA STREQUAL ON)
  message(FATAL_ERROR "CUDA: SIMILIS_CUDA is ON, and there is no nvcc")
else()
  message(STATUS "CUDA: left out, there is no nvcc")
endif()

if(SIMILIS_HAS_CUDA)
  add_library(similis_gpu_objects OBJECT)
  target_include_directories(similis_gpu_objects PRIVATE
    ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
endif()
if(SIMILIS_HAS_CUDA AND SIMILIS_CUDA STREQUAL ON_CPU)
  set(SIMILIS_CUDA_RUNTIME $<BUILD_INTERFACE:similis_gpu_on_cpu>)
  add_library(similis_gpu_on_cpu STATIC
    tests/gpu_on_cpu/launch.cc tests/gpu_on_cpu/runtime.cc)
  target_link_libraries(similis_gpu_on_cpu PRIVATE similis_flags Boost::context)
  target_include_directories(similis_gpu_on_cpu PUBLIC tests/gpu_on_cpu)
  target_compile_definitions(similis_gpu_on_cpu PUBLIC SIMILIS_GPU_ON_CPU)
  target_link_libraries(similis_gpu_objects PRIVATE similis_gpu_on_cpu similis_flags)
  # nvcc includes its runtime by itself, and knows pragmas that GCC does not.
  target_compile_options(similis_gpu_objects PRIVATE -x c++ -D__CUDACC__ -mfma
    -include ${PROJECT_SOURCE_DIR}/tests/gpu_on_cpu/cuda_runtime.h -Wno-unknown-pragmas)
elseif(SIMILIS_HAS_CUDA AND SIMILIS_CUDA STREQUAL HIP)
  set(SIMILIS_CUDA_RUNTIME ${SIMILIS_HIP_RUNTIME})
  # The launcher runs hipcc in the place of the C++ compiler that it is given.
  set_target_properties(similis_gpu_objects PROPERTIES
    CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/scripts/as_hip.sh;${SIMILIS_HIPCC}")
  list(TRANSFORM SIMILIS_HIP_ARCHITECTURES PREPEND --offload-arch= OUTPUT_VARIABLE architectures)
  target_compile_options(similis_gpu_objects PRIVATE -x hip ${architectures} -fPIC
    -fvisibility=hidden -ffp-contract=off -Wno-pass-failed)
elseif(SIMILIS_HAS_CUDA)
  set(SIMILIS_CUDA_RUNTIME CUDA::cudart_static)
  set_target_properties(similis_gpu_objects PROPERTIES CUDA_VISIBILITY_PRESET hidden)
  # A fused multiply-add is written where it is meant, as on the CPU. Kernels compressed for size take
  # half the room; every driver that CUDA 13 runs on unpacks them.
  target_compile_options(similis_gpu_objects PRIVATE --fmad=false
    $<$<VERSION_GREATER_EQUAL:${CUDAToolkit_VERSION},13.0>:--compress-mode=size>
    -Xcompiler=-Wall,-Wextra,-Wshadow
    $<$<BOOL:${SIMILIS_WERROR}>:-Werror=all-warnings> $<$<BOOL:${SIMILIS_WERROR}>:-Xcompiler=-Werror>)
  # The check of GPU builds reads the registers of kernels here if they are compiled already.
  if(SIMILIS_BUILD_TESTS AND SIMILIS_CUDA_ARCHITECTURES STREQUAL 90)
    target_compile_options(similis_gpu_objects PRIVATE -Xptxas=-v)
    set(launcher ${PROJECT_SOURCE_DIR}/scripts/keep_registers.py ${CMAKE_CUDA_COMPILER_LAUNCHER})
    set_target_properties(similis_gpu_objects PROPERTIES CUDA_COMPILER_LAUNCHER "${launcher}")
  endif()
endif()
