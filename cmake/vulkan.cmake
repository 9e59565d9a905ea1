# SPDX-License-Identifier: Apache-2.0
# GPU code for Vulkan: src/**/vulkan/*.comp, made into modules that the library carries. Found or left
# out by itself, and said; SIMILIS_VULKAN=ON makes a missing tool an error. Nothing is linked: the
# loader is opened when a Vulkan device is asked for.
set(SIMILIS_VULKAN AUTO CACHE STRING "GPU code for Vulkan: AUTO, ON or OFF")
set(SIMILIS_HAS_VULKAN OFF)

find_program(SIMILIS_GLSLANG glslangValidator)
find_program(SIMILIS_SPIRV_OPT spirv-opt)
find_program(SIMILIS_SPIRV_VAL spirv-val)
find_path(SIMILIS_VULKAN_INCLUDE vulkan/vulkan.h)
find_package(Python3 COMPONENTS Interpreter)
set(missing "")
foreach(need GLSLANG:glslang-tools SPIRV_OPT:spirv-tools SPIRV_VAL:spirv-tools
    VULKAN_INCLUDE:libvulkan-dev)
  string(REPLACE ":" ";" need ${need})
  list(GET need 0 variable)
  list(GET need 1 package)
  if(NOT SIMILIS_${variable})
    list(APPEND missing ${package})
  endif()
endforeach()
list(REMOVE_DUPLICATES missing)
list(JOIN missing ", " missing)
if(SIMILIS_VULKAN STREQUAL OFF)
  message(STATUS "Vulkan: left out, as SIMILIS_VULKAN says")
elseif(SIMILIS_SANITIZE OR SIMILIS_BUILD_FUZZERS)
  message(STATUS "Vulkan: left out, sanitizers look at the CPU's code")
elseif(NOT missing AND Python3_FOUND)
  set(SIMILIS_HAS_VULKAN ON)
  message(STATUS "Vulkan: kernels for any device, loaded at run time")
elseif(SIMILIS_VULKAN STREQUAL ON)
  message(FATAL_ERROR "Vulkan: SIMILIS_VULKAN is ON, and these packages are missing: ${missing}")
else()
  message(STATUS "Vulkan: left out, these packages are missing: ${missing}")
endif()

# GLSL's arrays and loops become registers: no variable of a function is left (seal.py check).
# Unrolling copies results without their decorations, so that they are sealed again before -O.
set(similis_spirv_unroll --merge-return --inline-entry-points-exhaustive --eliminate-dead-functions
  --ssa-rewrite --loop-unroll)
# Ids in the order of results are near each other, which makes the library smaller.
set(similis_spirv_optimise --scalar-replacement=0 -O --strip-debug --compact-ids)
set(similis_module_names "")  # NAME=FILE of each
set(similis_module_files "")

# similis_vulkan_module(NAME SOURCE [definitions]): compiled, sealed, optimised, checked, validated.
function(similis_vulkan_module name source)
  set(folder ${PROJECT_BINARY_DIR}/vulkan)
  string(MAKE_C_IDENTIFIER ${name} file)
  set(raw ${folder}/${file}.raw.spv)
  set(sealed ${folder}/${file}.sealed.spv)
  set(module ${folder}/${file}.spv)
  set(seal Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/seal.py)
  file(MAKE_DIRECTORY ${folder})
  # The compiler's list of included files has no spaces escaped; sources here have none.
  add_custom_command(OUTPUT ${module} DEPFILE ${module}.d
    COMMAND ${SIMILIS_GLSLANG} -V --quiet --target-env vulkan1.2 -I${PROJECT_SOURCE_DIR} ${ARGN}
      --depfile ${module}.d -o ${module} ${source}
    COMMAND ${CMAKE_COMMAND} -E rename ${module} ${raw}
    COMMAND ${seal} seal ${raw} ${sealed}
    COMMAND ${SIMILIS_SPIRV_OPT} ${similis_spirv_unroll} ${sealed} -o ${raw}
    COMMAND ${seal} seal ${raw} ${sealed}
    COMMAND ${SIMILIS_SPIRV_OPT} ${similis_spirv_optimise} ${sealed} -o ${module}.new
    COMMAND ${seal} check ${module}.new
    COMMAND ${SIMILIS_SPIRV_VAL} --target-env vulkan1.2 ${module}.new
    COMMAND ${CMAKE_COMMAND} -E rename ${module}.new ${module}
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/scripts/seal.py
    COMMENT "Sealing ${name}" VERBATIM)
  set(similis_module_names ${similis_module_names} ${name}=${module} PARENT_SCOPE)
  set(similis_module_files ${similis_module_files} ${module} PARENT_SCOPE)
endfunction()

# The modules of all rooms, as one source file of the library. A kernel that adds or multiplies doubles
# is built twice, for devices whose doubles are exact (its name then ends in _f64) and without.
function(similis_vulkan_modules)
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.comp)
  foreach(kernel IN LISTS kernels)
    string(REGEX REPLACE "^.*/src/(.*/)?vulkan/([^/]*)\\.comp$" "\\1\\2" name ${kernel})
    similis_vulkan_module(${name} ${kernel})
    file(STRINGS ${kernel} uses_doubles REGEX "soft_double\\.glsl")
    if(uses_doubles)
      similis_vulkan_module(${name}_f64 ${kernel} -DSIMILIS_F64)
    endif()
  endforeach()
  set(embedded ${PROJECT_BINARY_DIR}/vulkan_modules.cc)
  add_custom_command(OUTPUT ${embedded}
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/seal.py embed ${embedded}
      ${similis_module_names}
    DEPENDS ${similis_module_files} ${PROJECT_SOURCE_DIR}/scripts/seal.py
    COMMENT "Embedding the Vulkan modules" VERBATIM)
  target_sources(similis_objects PRIVATE ${embedded})
  target_include_directories(similis_objects SYSTEM PRIVATE ${SIMILIS_VULKAN_INCLUDE})
endfunction()
