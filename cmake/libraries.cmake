# SPDX-License-Identifier: Apache-2.0
# The same objects as the shared and as the static library that are installed. The program and the
# tests link the static one, since they reach what the shared one hides.
add_library(similis SHARED $<TARGET_OBJECTS:similis_objects>)
add_library(similis_static STATIC $<TARGET_OBJECTS:similis_objects>)
add_library(similis::similis ALIAS similis)
add_library(similis::static ALIAS similis_static)

foreach(library similis similis_static)
  target_include_directories(${library} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${SIMILIS_MADE_HEADERS}>
    $<INSTALL_INTERFACE:include>)
  target_compile_features(${library} INTERFACE cxx_std_20)
  target_link_libraries(${library} PRIVATE Threads::Threads PkgConfig::hwy ${CMAKE_DL_LIBS}
    $<BUILD_INTERFACE:similis_flags>)
endforeach()

if(SIMILIS_HAS_CUDA)
  if(SIMILIS_CUDA MATCHES "^(HIP|ON_CPU)$")
    set_source_files_properties(${similis_gpu_sources} PROPERTIES LANGUAGE CXX)
  else()
    similis_batch(similis_gpu_sources gpu)
    if(SIMILIS_BATCH_SIZE GREATER 1)  # as in batches.cmake
      target_compile_options(similis_gpu_objects PRIVATE -Xcompiler=-Wno-subobject-linkage)
    endif()
  endif()
  target_sources(similis_gpu_objects PRIVATE ${similis_gpu_sources})
  foreach(library similis similis_static)
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:similis_gpu_objects>)
    target_link_libraries(${library} PRIVATE ${SIMILIS_CUDA_RUNTIME})
  endforeach()
endif()

set_target_properties(similis PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/similis.map)
target_link_options(similis PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/similis.map -Wl,--no-undefined)
if(SIMILIS_SANITIZE)
  target_link_options(similis PRIVATE -Wl,--undefined-version -Wl,-z,undefs)
endif()

set_target_properties(similis_static PROPERTIES OUTPUT_NAME similis EXPORT_NAME static)
target_compile_definitions(similis_static INTERFACE SIMILIS_STATIC)

# For what is built here: the internal headers come with it.
add_library(similis_internal INTERFACE)
target_link_libraries(similis_internal INTERFACE
  similis_static similis_flags PkgConfig::hwy Threads::Threads)
