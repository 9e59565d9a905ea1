# SPDX-License-Identifier: Apache-2.0
# Most of the time that a source takes to compile goes to the headers that it includes. The presets
# of sanitizers, which compile everything once and are seldom built again, compile several
# sources as one, and .ci/run asks for that by the environment on a fresh machine; scripts/batches.py
# chooses sources that do not get in each other's way.
set(size 1)
if(DEFINED ENV{SIMILIS_BATCH_SIZE})
  set(size $ENV{SIMILIS_BATCH_SIZE})
endif()
set(SIMILIS_BATCH_SIZE ${size} CACHE STRING "Sources that are compiled as one; 1 compiles each alone")
if(SIMILIS_BATCH_SIZE GREATER 1)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  # GCC takes a source that another file includes for a header, where unnamed namespaces are a fault.
  # Its collector of garbage stays away below 1 GiB, which few of these files need.
  target_compile_options(similis_flags INTERFACE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage;--param=ggc-min-heapsize=1048576>)
endif()

# similis_batch(VARIABLE NAME): replaces the sources that the variable lists by files that include
# them. Sources have company of the same compile options; one with definitions of its own, or in C,
# stays alone.
function(similis_batch variable name)
  if(SIMILIS_BATCH_SIZE LESS_EQUAL 1)
    return()
  endif()
  # The choice is made anew when a source changes.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/scripts/batches.py ${${variable}})
  set(result "")
  set(kinds "")
  foreach(source IN LISTS ${variable})
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    get_source_file_property(is_left_out ${source} HEADER_FILE_ONLY)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    if(definitions OR is_left_out OR source MATCHES "\\.c$")
      list(APPEND result ${source})
      continue()
    endif()
    set(kind "")
    if(options)
      string(MAKE_C_IDENTIFIER "${options}" kind)
    endif()
    list(APPEND kinds "${name}${kind}")
    list(APPEND sources_${name}${kind} ${source})
    set(options_${name}${kind} "${options}")
  endforeach()
  list(REMOVE_DUPLICATES kinds)
  foreach(kind IN LISTS kinds)
    execute_process(COMMAND ${Python3_EXECUTABLE} -S ${PROJECT_SOURCE_DIR}/scripts/batches.py
        ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/batches/${kind} ${SIMILIS_BATCH_SIZE}
        ${sources_${kind}}
      OUTPUT_VARIABLE files OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    string(REPLACE "\n" ";" files "${files}")
    if(options_${kind})
      set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${options_${kind}}")
    endif()
    list(APPEND result ${files})
  endforeach()
  set(${variable} ${result} PARENT_SCOPE)
endfunction()
