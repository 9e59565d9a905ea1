# SPDX-License-Identifier: Apache-2.0
# `cmake --install` leaves these: headers, libsimilis.so and libsimilis.a, the program, and the files
# by which find_package(similis) and pkg-config find them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/similis)

install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY include/similis ${SIMILIS_MADE_HEADERS}/similis
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS similis EXPORT similisTargets)
install(TARGETS similis_static EXPORT similisStaticTargets)
if(TARGET similis_program)
  install(TARGETS similis_program)
endif()

install(EXPORT similisTargets NAMESPACE similis:: DESTINATION ${package_folder})
install(EXPORT similisStaticTargets NAMESPACE similis:: DESTINATION ${package_folder})
configure_package_config_file(cmake/similisConfig.cmake.in similisConfig.cmake
  INSTALL_DESTINATION ${package_folder})
# Until 1.0 a minor version may break what an older one promised.
write_basic_package_version_file(similisConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/similisConfig.cmake ${PROJECT_BINARY_DIR}/similisConfigVersion.cmake
  DESTINATION ${package_folder})

file(RELATIVE_PATH prefix_from_pkgconfig
  /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)  # so that the installed tree can be moved
set(cudart_libs "")
if(SIMILIS_HAS_CUDA)
  set(cudart_libs "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt -ldl ")
endif()
configure_file(cmake/similis.pc.in similis.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/similis.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
