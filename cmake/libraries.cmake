# SPDX-License-Identifier: Apache-2.0
# The same objects as the library that is installed and as the archive that the program and the
# tests link, since tests reach what the library hides.
add_library(similis SHARED $<TARGET_OBJECTS:similis_objects>)
add_library(similis_internal STATIC $<TARGET_OBJECTS:similis_objects>)
set_target_properties(similis PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/similis.map)
target_link_options(similis PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/similis.map -Wl,--no-undefined)
if(SIMILIS_SANITIZE)
  target_link_options(similis PRIVATE -Wl,--undefined-version -Wl,-z,undefs)
endif()
target_include_directories(similis PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_compile_features(similis PUBLIC cxx_std_20)
target_link_libraries(similis PRIVATE Threads::Threads PkgConfig::hwy $<BUILD_INTERFACE:similis_flags>)
target_link_libraries(similis_internal PUBLIC similis_flags fmt::fmt-header-only PkgConfig::hwy
  Threads::Threads)
