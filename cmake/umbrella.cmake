# SPDX-License-Identifier: Apache-2.0
# similis.hpp and similis.h: all public headers of C++, and of C. Both are made of what
# include/similis holds, so that a new header is on no list; they are installed beside it.
set(SIMILIS_MADE_HEADERS ${PROJECT_BINARY_DIR}/include)

function(similis_umbrella NAME)
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${ARGN})
  list(APPEND headers similis/version.h)
  list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"")
  list(JOIN headers "\n" includes)
  configure_file(cmake/${NAME}.in ${SIMILIS_MADE_HEADERS}/similis/${NAME} @ONLY)
endfunction()
similis_umbrella(similis.hpp ${PROJECT_SOURCE_DIR}/include/similis/*.hpp)
similis_umbrella(similis.h ${PROJECT_SOURCE_DIR}/include/similis/c/*.h)
