# SPDX-License-Identifier: Apache-2.0
# The Python package: its files are python/similis, and native/ beside them holds the library, the
# binding on tvm-ffi, the text of kernels for other GPUs and, when installed, the program.
# build/python can be imported from.
set(SIMILIS_PYTHON AUTO CACHE STRING "The Python package's binding: AUTO, ON or OFF")
set(SIMILIS_HAS_PYTHON OFF)
set(private_python ${PROJECT_SOURCE_DIR}/.venv/bin/python)
if(SIMILIS_PYTHON STREQUAL OFF OR SIMILIS_SANITIZE)
  return()
endif()

# The interpreter that has tvm-ffi: pip's own environment when pip builds, .venv otherwise.
if(SKBUILD)
  find_package(Python REQUIRED COMPONENTS Interpreter)
  set(SIMILIS_PYTHON_INTERPRETER ${Python_EXECUTABLE})
else()
  set(SIMILIS_PYTHON_INTERPRETER ${private_python})
endif()
foreach(wanted includedir dlpack-includedir)
  execute_process(COMMAND ${SIMILIS_PYTHON_INTERPRETER} -m tvm_ffi.config --${wanted}
    OUTPUT_VARIABLE tvm_ffi_${wanted} OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE is_missing ERROR_QUIET)
  if(is_missing)
    break()
  endif()
endforeach()
if(is_missing)
  if(SIMILIS_PYTHON STREQUAL ON)
    message(FATAL_ERROR "Python: SIMILIS_PYTHON is ON, and ${SIMILIS_PYTHON_INTERPRETER} has no "
      "apache-tvm-ffi")
  endif()
  message(STATUS "Python: left out, there is no apache-tvm-ffi in .venv")
  return()
endif()
set(SIMILIS_HAS_PYTHON ON)
message(STATUS "Python: with tvm-ffi of ${SIMILIS_PYTHON_INTERPRETER}")

set(package ${PROJECT_BINARY_DIR}/python/similis)
add_library(similis_tvm_ffi MODULE python/binding/binding.cc python/binding/direct.cc)
target_include_directories(similis_tvm_ffi SYSTEM PRIVATE
  ${tvm_ffi_includedir} ${tvm_ffi_dlpack-includedir})
# tvm-ffi's own library is not linked: its package loads it for all to see, before the binding comes.
target_link_libraries(similis_tvm_ffi PRIVATE similis similis_flags)
set_target_properties(similis_tvm_ffi PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${package}/native
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")

# The package in the build folder: links to its files and folders, and none to what has moved.
file(GLOB old_links ${package}/*)
foreach(link IN LISTS old_links)
  if(IS_SYMLINK ${link} AND NOT EXISTS ${link})
    file(REMOVE ${link})
  endif()
endforeach()
file(GLOB package_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/similis/*)
list(FILTER package_files EXCLUDE REGEX "__pycache__")
set(links "")
foreach(file IN LISTS package_files)
  cmake_path(GET file FILENAME name)
  list(APPEND links COMMAND ${CMAKE_COMMAND} -E create_symlink ${file} ${package}/${name})
endforeach()
# What the package needs where it has no library: the tables of options.
set(tables ${package}/native/schema.json)
add_custom_command(OUTPUT ${tables}
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/python_tables.py
    $<TARGET_FILE:similis> ${tables}
  DEPENDS similis ${PROJECT_SOURCE_DIR}/scripts/python_tables.py
  COMMENT "Writing the tables of options" VERBATIM)
add_custom_target(similis_package_data DEPENDS ${tables} ${similis_kernel_texts})
add_custom_target(similis_python ALL
  ${links}
  COMMAND ${CMAKE_COMMAND} -E create_symlink
    $<TARGET_FILE:similis> ${package}/native/$<TARGET_SONAME_FILE_NAME:similis>
  COMMAND ${CMAKE_COMMAND} -E create_symlink
    $<TARGET_FILE:similis_program> ${package}/native/similis
  COMMENT "Linking the Python package" VERBATIM)
add_dependencies(similis_python similis_tvm_ffi similis similis_program similis_package_data)

# In a wheel there are no links: the library has the name that the loader looks for. Wheels hold the
# component `python` and nothing else.
install(TARGETS similis_tvm_ffi DESTINATION similis/native COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${similis_kernel_texts}
  DESTINATION similis/native/kernels COMPONENT python EXCLUDE_FROM_ALL)
install(FILES $<TARGET_FILE:similis> RENAME $<TARGET_SONAME_FILE_NAME:similis>
  DESTINATION similis/native COMPONENT python EXCLUDE_FROM_ALL)
install(PROGRAMS $<TARGET_FILE:similis_program>
  DESTINATION similis/native COMPONENT python EXCLUDE_FROM_ALL)
