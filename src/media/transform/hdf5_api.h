// SPDX-License-Identifier: Apache-2.0
// The functions of libhdf5 that similis calls, found at run time: the library is opened when the
// first file needs it. It brings 28 others, which cost each start 20 ms and 5.4 MB.
#pragma once

#include <hdf5.h>

#include <string>

namespace similis::media {

#define SIMILIS_HDF5_FUNCTIONS(X) \
  X(H5Dclose)                     \
  X(H5Dget_create_plist)          \
  X(H5Dget_space)                 \
  X(H5Dget_storage_size)          \
  X(H5Dget_type)                  \
  X(H5Dopen2)                     \
  X(H5Dread)                      \
  X(H5Eset_auto2)                 \
  X(H5Fclose)                     \
  X(H5Fopen)                      \
  X(H5Gclose)                     \
  X(H5Gopen2)                     \
  X(H5Lexists)                    \
  X(H5Lget_info)                  \
  X(H5PLset_loading_state)        \
  X(H5Pclose)                     \
  X(H5Pcreate)                    \
  X(H5Pget_chunk)                 \
  X(H5Pget_external_count)        \
  X(H5Pget_filter2)               \
  X(H5Pget_layout)                \
  X(H5Pget_nfilters)              \
  X(H5Pset_fapl_core)             \
  X(H5Pset_file_image)            \
  X(H5Sclose)                     \
  X(H5Sget_simple_extent_dims)    \
  X(H5Sget_simple_extent_ndims)   \
  X(H5Sget_simple_extent_type)    \
  X(H5Tclose)                     \
  X(H5Tcopy)                      \
  X(H5Tget_class)                 \
  X(H5Tget_cset)                  \
  X(H5Tget_size)                  \
  X(H5Tis_variable_str)           \
  X(H5Tset_cset)                  \
  X(H5Tset_size)                  \
  X(H5free_memory)                \
  X(H5get_libversion)             \
  X(H5open)

struct Hdf5 {
#define SIMILIS_HDF5_MEMBER(name) decltype(&::name) name = nullptr;
  SIMILIS_HDF5_FUNCTIONS(SIMILIS_HDF5_MEMBER)
#undef SIMILIS_HDF5_MEMBER
  // Numbers that the header's names fetch from the library as if it were linked.
  hid_t file_access = 0, native_double = 0, c_string = 0;
  std::string problem;  ///< why the library cannot be used; empty where it can
};

/// Opens the library in the first call. It stays open.
const Hdf5& hdf5();

}  // namespace similis::media
