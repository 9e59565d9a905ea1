# SPDX-License-Identifier: Apache-2.0
# Kernels for torch on Apple's and Intel's GPUs: Vulkan modules as text of Metal, for the Python
# package. Found or left out by itself, and said.
set(SIMILIS_HAS_KERNEL_TEXTS OFF)
find_program(SIMILIS_SPIRV_CROSS spirv-cross)
if(NOT SIMILIS_HAS_VULKAN)
  message(STATUS "Metal: left out, as Vulkan is")
  return()
endif()
if(NOT SIMILIS_SPIRV_CROSS)
  message(STATUS "Metal: left out, this package is missing: spirv-cross")
  return()
endif()
set(SIMILIS_HAS_KERNEL_TEXTS ON)
message(STATUS "Metal: text of the kernels for torch, by spirv-cross")

# The modules that python/similis/_torch calls.
set(kernels gpu/launch/totals ssim/fold ssim/sliding_window)
set(similis_kernel_texts "")
foreach(kernel IN LISTS kernels)
  string(MAKE_C_IDENTIFIER ${kernel} file)
  set(module ${PROJECT_BINARY_DIR}/vulkan/${file}.spv)
  set(text ${PROJECT_BINARY_DIR}/python/similis/native/kernels/${file}.metal)
  set(converter ${PROJECT_SOURCE_DIR}/scripts/metal_text.py)
  add_custom_command(OUTPUT ${text}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/python/similis/native/kernels
    COMMAND Python3::Interpreter ${converter} ${SIMILIS_SPIRV_CROSS} ${module} ${text}
    DEPENDS ${module} ${converter}
    COMMENT "Writing ${kernel} as text" VERBATIM)
  list(APPEND similis_kernel_texts ${text})
endforeach()
# Texts of kernels that had another name would go into the wheel.
file(GLOB existing_texts ${PROJECT_BINARY_DIR}/python/similis/native/kernels/*.metal)
foreach(text IN LISTS existing_texts)
  if(NOT text IN_LIST similis_kernel_texts)
    file(REMOVE ${text})
  endif()
endforeach()
