// SPDX-License-Identifier: Apache-2.0
#include "src/media/transform/hdf5_api.h"

#include <dlfcn.h>
#include <fmt/core.h>

namespace similis::media {
namespace {

// SIMILIS_HDF5_NAME is the name, with its version, of the library whose header was compiled.
Hdf5 load() {
  Hdf5 api;
  void* const library = dlopen(SIMILIS_HDF5_NAME, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    api.problem = fmt::format("{} cannot be loaded ({})", SIMILIS_HDF5_NAME, dlerror());
    return api;
  }
  const auto find = [&](const char* name) {
    void* const found = dlsym(library, name);
    if (found == nullptr) api.problem = fmt::format("{} has no {}", SIMILIS_HDF5_NAME, name);
    return found;
  };
// Headers of other versions define some names as others, which are then the ones to find.
#define SIMILIS_HDF5_TEXT(name) #name
#define SIMILIS_HDF5_FIND(name) \
  api.name = reinterpret_cast<decltype(api.name)>(find(SIMILIS_HDF5_TEXT(name)));
  SIMILIS_HDF5_FUNCTIONS(SIMILIS_HDF5_FIND)
#undef SIMILIS_HDF5_FIND
#undef SIMILIS_HDF5_TEXT
  if (!api.problem.empty()) return api;
  if (api.H5open() < 0) {
    api.problem = fmt::format("{} cannot be initialized", SIMILIS_HDF5_NAME);
    return api;
  }
  const auto number = [&](const char* name) {
    // A program that links the library too, as a test does, has its variables in itself.
    const void* const linked = dlsym(RTLD_DEFAULT, name);
    const void* const found = linked != nullptr ? linked : find(name);
    return found == nullptr ? hid_t{-1} : *static_cast<const hid_t*>(found);
  };
  api.file_access = number("H5P_CLS_FILE_ACCESS_ID_g");
  api.native_double = number("H5T_NATIVE_DOUBLE_g");
  api.c_string = number("H5T_C_S1_g");
  return api;
}

}  // namespace

const Hdf5& hdf5() {
  static const Hdf5& result = *new Hdf5(load());
  return result;
}

}  // namespace similis::media
