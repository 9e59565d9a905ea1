# SPDX-License-Identifier: Apache-2.0
# Compiles every .cu of the library with each vendor's compiler that is there, one test for each
# pair, on a machine that needs no GPU. A compiler that is missing shows as a skipped test. What nvcc
# says of registers is held to tests/gpu_kernels.json.
find_program(SIMILIS_NVCC nvcc HINTS /usr/local/cuda/bin)
find_program(SIMILIS_HIPCC hipcc)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
file(GLOB_RECURSE similis_gpu_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/src/*.cu)

set(gpu_includes -I ${PROJECT_SOURCE_DIR} -I ${PROJECT_SOURCE_DIR}/include)
# The code around the launches is compiled, with its warnings, by any build that finds nvcc.
set(nvcc_command ${SIMILIS_NVCC} -cubin -std=c++20 -O3 --fmad=false -Werror all-warnings
  ${gpu_includes})
# If nvcc is there too, hipcc would drive it instead of clang. A loop that clang leaves rolled is
# no fault (pass-failed). Kernels for the second architecture differ in the width of a subgroup, which
# the front end checks.
set(hip_command ${CMAKE_COMMAND} -E env HIP_PLATFORM=amd ${SIMILIS_HIPCC} -x hip -std=c++20 -O3
  -Wall -Wextra -Wshadow -Werror -Wno-pass-failed ${gpu_includes})

# The release build's kernels need not be compiled twice.
set(budget_command ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/gpu_build_test.py
  --built ${PROJECT_SOURCE_DIR}/build)

# similis_gpu_build(ARCHITECTURE COMPILER COMMAND [checker]): the checker is given the source and the
# command, and runs it.
function(similis_gpu_build architecture compiler command)
  if(NOT compiler)
    similis_skipped_test(${architecture} "its compiler is not installed")
    return()
  endif()
  foreach(source IN LISTS similis_gpu_sources)
    string(MAKE_C_IDENTIFIER ${architecture}_${source} object)
    set(checker "")
    if(ARGN)
      set(checker ${ARGN} ${source})
    endif()
    add_test(NAME ${architecture}/${source} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      COMMAND ${checker} ${command} ${source} -o ${PROJECT_BINARY_DIR}/${object}.o)
  endforeach()
endfunction()

if(similis_gpu_sources)
  similis_gpu_build(sm_90 "${SIMILIS_NVCC}" "${nvcc_command};-arch=sm_90" ${budget_command})
  similis_gpu_build(gfx90a "${SIMILIS_HIPCC}" "${hip_command};-c;--offload-arch=gfx90a")
  similis_gpu_build(gfx1030 "${SIMILIS_HIPCC}" "${hip_command};--offload-arch=gfx1030;--cuda-device-only;-fsyntax-only;-Wno-unused-command-line-argument")
else()
  similis_skipped_test(gpu_sources "there is no .cu file in src yet")
endif()
