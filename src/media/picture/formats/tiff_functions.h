// SPDX-License-Identifier: Apache-2.0
// The functions of libtiff that its reader calls.
#pragma once

#include <tiffio.h>

#include "src/media/io/loaded_library.h"

namespace similis::media {

struct Tiff : LoadedLibrary {
  Tiff() : LoadedLibrary(SIMILIS_TIFF_NAME) {}
  SIMILIS_LOADED_FUNCTION(TIFFClientOpenExt)
  SIMILIS_LOADED_FUNCTION(TIFFClose)
  SIMILIS_LOADED_FUNCTION(TIFFComputeStrip)
  SIMILIS_LOADED_FUNCTION(TIFFComputeTile)
  SIMILIS_LOADED_FUNCTION(TIFFCurrentDirectory)
  SIMILIS_LOADED_FUNCTION(TIFFGetField)
  SIMILIS_LOADED_FUNCTION(TIFFGetFieldDefaulted)
  SIMILIS_LOADED_FUNCTION(TIFFGetVersion)
  SIMILIS_LOADED_FUNCTION(TIFFIsTiled)
  SIMILIS_LOADED_FUNCTION(TIFFOpenOptionsAlloc)
  SIMILIS_LOADED_FUNCTION(TIFFOpenOptionsFree)
  SIMILIS_LOADED_FUNCTION(TIFFOpenOptionsSetErrorHandlerExtR)
  SIMILIS_LOADED_FUNCTION(TIFFOpenOptionsSetMaxSingleMemAlloc)
  SIMILIS_LOADED_FUNCTION(TIFFOpenOptionsSetWarningHandlerExtR)
  SIMILIS_LOADED_FUNCTION(TIFFReadDirectory)
  SIMILIS_LOADED_FUNCTION(TIFFReadEncodedStrip)
  SIMILIS_LOADED_FUNCTION(TIFFReadEncodedTile)
  SIMILIS_LOADED_FUNCTION(TIFFScanlineSize64)
  SIMILIS_LOADED_FUNCTION(TIFFSetDirectory)
  SIMILIS_LOADED_FUNCTION(TIFFSetField)
  SIMILIS_LOADED_FUNCTION(TIFFTileRowSize64)
  SIMILIS_LOADED_FUNCTION(TIFFTileSize)
};

inline const Tiff& libtiff() {
  static const Tiff& library = *new Tiff;
  return library;
}

}  // namespace similis::media
