// SPDX-License-Identifier: Apache-2.0
#include "src/media/transform/hdf5_api.h"

#include <dlfcn.h>
#include <fmt/core.h>

namespace similis::media {

// SIMILIS_HDF5_NAME is the name, with its version, of the library whose header was compiled.
Hdf5::Hdf5() : LoadedLibrary(SIMILIS_HDF5_NAME) {
  if (!problem.empty()) return;
  if (H5open() < 0) {
    problem = fmt::format("{} cannot be initialized", SIMILIS_HDF5_NAME);
    return;
  }
  const auto number = [&](const char* name) {
    // A program that links the library too, as a test does, has its variables in itself.
    const void* const linked = dlsym(RTLD_DEFAULT, name);
    const void* const found = linked != nullptr ? linked : find(name);
    return found == nullptr ? hid_t{-1} : *static_cast<const hid_t*>(found);
  };
  file_access = number("H5P_CLS_FILE_ACCESS_ID_g");
  native_double = number("H5T_NATIVE_DOUBLE_g");
  c_string = number("H5T_C_S1_g");
}

const Hdf5& hdf5() {
  static const Hdf5& result = *new Hdf5;
  return result;
}

}  // namespace similis::media
