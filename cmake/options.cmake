# SPDX-License-Identifier: Apache-2.0
# The options of a build, and the flags that every file is compiled with.
option(SIMILIS_BUILD_TESTS "Build tests" ${PROJECT_IS_TOP_LEVEL})
option(SIMILIS_BUILD_BENCHMARKS "Build benchmarks" OFF)
option(SIMILIS_BUILD_FUZZERS "Build fuzz targets (clang)" OFF)
option(SIMILIS_GPU_BUILDS "Only compile the GPU sources, as tests, with every GPU compiler there is" OFF)
option(SIMILIS_WERROR "Treat warnings as errors" OFF)
set(SIMILIS_SANITIZE "" CACHE STRING "Sanitizers to build with, as for -fsanitize=")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

find_program(SIMILIS_CCACHE ccache)
if(SIMILIS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${SIMILIS_CCACHE})
  # It leaves sources with precompiled headers alone where it is not told that it need not.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    ${SIMILIS_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${SIMILIS_CCACHE})
endif()

add_library(similis_flags INTERFACE)
target_include_directories(similis_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
# A fused multiply-add is written where it is meant, so that bits do not depend on the compiler.
target_compile_options(similis_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>
  -ffp-contract=off -fno-math-errno -fno-trapping-math
  $<$<BOOL:${SIMILIS_WERROR}>:-Werror> $<$<CONFIG:Release>:-O3>)
if(SIMILIS_SANITIZE)
  # Clang warns of loops that were to become vector code; under a sanitizer they may stay scalar.
  # GCC sees overflows in the paths that its sanitizers add, where there are none (its manual advises
  # against -Werror beside -fsanitize): the release build holds every file to its warnings.
  # Reports need lines, not variables; with -O1 the build takes half the time of -O2. A null pointer
  # faults without a check, the types that the next two look at are the address sanitizer's, and so is
  # a pointer beyond its object once it is followed: checking each sum takes a fifth of the build.
  target_compile_options(similis_flags INTERFACE
    -O1 -g1 -fsanitize=${SIMILIS_SANITIZE} -fno-sanitize=null,object-size,vptr,pointer-overflow
    -fno-sanitize-recover=all -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:Clang>:-finline-functions;-Wno-pass-failed>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-error>)
  # With its lines the program takes the usual linker 6 s, and lld 1.4.
  find_program(SIMILIS_LLD ld.lld)
  target_link_options(similis_flags INTERFACE
    -fsanitize=${SIMILIS_SANITIZE} $<$<BOOL:${SIMILIS_LLD}>:-fuse-ld=lld>)
endif()
# Code that fuzz targets call tells the fuzzer which of its parts an input reached: parsers, not
# kernels.
set(similis_fuzzed "")
if(SIMILIS_BUILD_FUZZERS)
  set(similis_fuzzed -fsanitize=fuzzer-no-link)
endif()
