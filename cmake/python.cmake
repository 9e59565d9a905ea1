# SPDX-License-Identifier: Apache-2.0
# The Python package: its files are python/similis, and native/ beside them holds the library, the
# binding for torch, the text of kernels for other GPUs and, when installed, the program.
# build/python can be imported from.
option(SIMILIS_PYTHON "Build the Python package" ON)
if(NOT SIMILIS_PYTHON OR SIMILIS_SANITIZE)
  return()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)  # writes the tables of options

set(package ${PROJECT_BINARY_DIR}/python/similis)
add_library(similis_direct MODULE python/binding/direct.cc)
# Python's functions are not linked: the interpreter that loads the binding has them.
target_link_libraries(similis_direct PRIVATE similis similis_flags)
set_target_properties(similis_direct PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${package}/native
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
# The package without the library needs the tables of options.
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
add_dependencies(similis_python similis_direct similis similis_program similis_package_data)

# In a wheel there are no links: the library has the name that the loader looks for. Wheels hold the
# component `python` and nothing else.
install(TARGETS similis_direct DESTINATION similis/native COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${similis_kernel_texts}
  DESTINATION similis/native/kernels COMPONENT python EXCLUDE_FROM_ALL)
install(FILES $<TARGET_FILE:similis> RENAME $<TARGET_SONAME_FILE_NAME:similis>
  DESTINATION similis/native COMPONENT python EXCLUDE_FROM_ALL)
install(PROGRAMS $<TARGET_FILE:similis_program>
  DESTINATION similis/native COMPONENT python EXCLUDE_FROM_ALL)
