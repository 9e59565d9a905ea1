# SPDX-License-Identifier: Apache-2.0
# Compiles every .cu of the library with each vendor's compiler that is there, on a machine that needs
# no GPU. A compiler that is missing shows as a skipped test. Registers that nvcc reports are held to
# tests/gpu_kernels.json.
find_program(SIMILIS_NVCC nvcc HINTS /usr/local/cuda/bin)
find_program(SIMILIS_HIPCC hipcc)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
include(cmake/batches.cmake)
file(GLOB_RECURSE similis_gpu_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/src/*.cu)

set(gpu_includes -I ${PROJECT_SOURCE_DIR} -I ${PROJECT_SOURCE_DIR}/include)
# The code around the launches is compiled, with its warnings, by any build that finds nvcc.
set(nvcc_command ${SIMILIS_NVCC} -cubin -std=c++20 -O3 --fmad=false -Werror all-warnings
  ${gpu_includes})
# If nvcc is there too, hipcc would drive it instead of clang. A loop that clang leaves rolled is
# no fault (pass-failed). -O1 takes a third less time than -O3, by which `make wheel-rocm` compiles.
# Kernels for the second architecture differ in the width of a subgroup, which the front end checks.
set(hip_command ${CMAKE_COMMAND} -E env HIP_PLATFORM=amd ${SIMILIS_HIPCC} -x hip -std=c++20 -O1
  -Wall -Wextra -Wshadow -Werror -Wno-pass-failed ${gpu_includes})

# The release build's kernels need not be compiled twice.
set(budget_command ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/gpu_build_test.py
  --built ${PROJECT_SOURCE_DIR}/build)

# Half the time of hipcc goes to headers: it compiles several sources as one.
set(similis_hip_files ${similis_gpu_sources})
similis_batch(similis_hip_files gpu)

# similis_hip_build(ARCHITECTURE options)
function(similis_hip_build architecture)
  if(NOT SIMILIS_HIPCC)
    similis_skipped_test(${architecture} "its compiler is not installed")
    return()
  endif()
  foreach(file IN LISTS similis_hip_files)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    set(name ${file})
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${file} is_batch)
    if(is_batch)
      cmake_path(GET file STEM name)
    else()
      cmake_path(RELATIVE_PATH name BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    endif()
    string(REPLACE "/" "-" report ${architecture}-${name})
    add_test(NAME ${architecture}/${name}
      COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/hip_build_test.py ${architecture}
        ${PROJECT_BINARY_DIR}/reports/${report}.xml ${file} ${PROJECT_BINARY_DIR}/${report}.o
        ${hip_command} ${ARGN})
  endforeach()
endfunction()

if(NOT similis_gpu_sources)
  similis_skipped_test(gpu_sources "there is no .cu file in src yet")
  return()
endif()
if(SIMILIS_NVCC)
  foreach(source IN LISTS similis_gpu_sources)
    string(MAKE_C_IDENTIFIER sm_90_${source} object)
    add_test(NAME sm_90/${source} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      COMMAND ${budget_command} ${source} ${nvcc_command} -arch=sm_90 ${source}
        -o ${PROJECT_BINARY_DIR}/${object}.o)
  endforeach()
else()
  similis_skipped_test(sm_90 "its compiler is not installed")
endif()
similis_hip_build(gfx90a -c --offload-arch=gfx90a)
similis_hip_build(gfx1030 --offload-arch=gfx1030 --cuda-device-only -fsyntax-only
  -Wno-unused-command-line-argument)
