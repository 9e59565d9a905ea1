# SPDX-License-Identifier: Apache-2.0
# GPU code: *.cu files, compiled by nvcc with flags of their own. Found or left out by itself, and
# said; SIMILIS_CUDA=ON makes a missing compiler an error.
set(SIMILIS_CUDA AUTO CACHE STRING "GPU code: AUTO, ON or OFF")
set(SIMILIS_CUDA_ARCHITECTURES 90 CACHE STRING
  "Compute capabilities to compile for, such as 80;86;89;90;100;120; CMake's forms are taken")
set(SIMILIS_HAS_CUDA OFF)

find_program(SIMILIS_NVCC nvcc HINTS /usr/local/cuda/bin)
if(SIMILIS_CUDA STREQUAL OFF)
  message(STATUS "CUDA: left out, as SIMILIS_CUDA says")
elseif(SIMILIS_SANITIZE OR SIMILIS_BUILD_FUZZERS)
  message(STATUS "CUDA: left out, sanitizers look at the CPU's code")
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
  set_target_properties(similis_gpu_objects PROPERTIES CUDA_VISIBILITY_PRESET hidden)
  target_include_directories(similis_gpu_objects PRIVATE
    ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  # A fused multiply-add is written where it is meant, as on the CPU. Kernels compressed for size take
  # half the room; every driver that CUDA 13 runs on unpacks them.
  target_compile_options(similis_gpu_objects PRIVATE --fmad=false
    $<$<VERSION_GREATER_EQUAL:${CUDAToolkit_VERSION},13.0>:--compress-mode=size>
    -Xcompiler=-Wall,-Wextra,-Wshadow
    $<$<BOOL:${SIMILIS_WERROR}>:-Werror=all-warnings> $<$<BOOL:${SIMILIS_WERROR}>:-Xcompiler=-Werror>)
endif()
