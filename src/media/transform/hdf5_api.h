// SPDX-License-Identifier: Apache-2.0
// The functions of libhdf5 that similis calls. The library brings 28 others, which would cost each
// start of the program 20 ms and 5.4 MB.
#pragma once

#include <hdf5.h>

#include "src/media/io/loaded_library.h"

namespace similis::media {

struct Hdf5 : LoadedLibrary {
  Hdf5();
  SIMILIS_LOADED_FUNCTION(H5Dclose)
  SIMILIS_LOADED_FUNCTION(H5Dget_create_plist)
  SIMILIS_LOADED_FUNCTION(H5Dget_space)
  SIMILIS_LOADED_FUNCTION(H5Dget_storage_size)
  SIMILIS_LOADED_FUNCTION(H5Dget_type)
  SIMILIS_LOADED_FUNCTION(H5Dopen2)
  SIMILIS_LOADED_FUNCTION(H5Dread)
  SIMILIS_LOADED_FUNCTION(H5Eset_auto2)
  SIMILIS_LOADED_FUNCTION(H5Fclose)
  SIMILIS_LOADED_FUNCTION(H5Fopen)
  SIMILIS_LOADED_FUNCTION(H5Gclose)
  SIMILIS_LOADED_FUNCTION(H5Gopen2)
  SIMILIS_LOADED_FUNCTION(H5Lexists)
  SIMILIS_LOADED_FUNCTION(H5Lget_info)
  SIMILIS_LOADED_FUNCTION(H5PLset_loading_state)
  SIMILIS_LOADED_FUNCTION(H5Pclose)
  SIMILIS_LOADED_FUNCTION(H5Pcreate)
  SIMILIS_LOADED_FUNCTION(H5Pget_chunk)
  SIMILIS_LOADED_FUNCTION(H5Pget_external_count)
  SIMILIS_LOADED_FUNCTION(H5Pget_filter2)
  SIMILIS_LOADED_FUNCTION(H5Pget_layout)
  SIMILIS_LOADED_FUNCTION(H5Pget_nfilters)
  SIMILIS_LOADED_FUNCTION(H5Pset_fapl_core)
  SIMILIS_LOADED_FUNCTION(H5Pset_file_image)
  SIMILIS_LOADED_FUNCTION(H5Sclose)
  SIMILIS_LOADED_FUNCTION(H5Sget_simple_extent_dims)
  SIMILIS_LOADED_FUNCTION(H5Sget_simple_extent_ndims)
  SIMILIS_LOADED_FUNCTION(H5Sget_simple_extent_type)
  SIMILIS_LOADED_FUNCTION(H5Tclose)
  SIMILIS_LOADED_FUNCTION(H5Tcopy)
  SIMILIS_LOADED_FUNCTION(H5Tget_class)
  SIMILIS_LOADED_FUNCTION(H5Tget_cset)
  SIMILIS_LOADED_FUNCTION(H5Tget_size)
  SIMILIS_LOADED_FUNCTION(H5Tis_variable_str)
  SIMILIS_LOADED_FUNCTION(H5Tset_cset)
  SIMILIS_LOADED_FUNCTION(H5Tset_size)
  SIMILIS_LOADED_FUNCTION(H5free_memory)
  SIMILIS_LOADED_FUNCTION(H5get_libversion)
  SIMILIS_LOADED_FUNCTION(H5open)
  // Numbers that the header's names fetch from the library as if it were linked.
  hid_t file_access = 0, native_double = 0, c_string = 0;
};

/// Opens the library in the first call.
const Hdf5& hdf5();

}  // namespace similis::media
