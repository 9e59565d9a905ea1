// SPDX-License-Identifier: Apache-2.0
// Shared libraries that are opened when the first file needs them. A linked library costs every run
// its start-up time and memory, whatever the run reads.
//
//   struct Avif : LoadedLibrary {
//     Avif() : LoadedLibrary(SIMILIS_AVIF_NAME) {}
//     SIMILIS_LOADED_FUNCTION(avifDecoderCreate)
//   };
#pragma once

#include <string>

namespace similis::media {

class LoadedLibrary {
 public:
  /// Opens the library, which stays open. `name` includes the version whose header was compiled.
  explicit LoadedLibrary(const char* name);

  std::string problem;  ///< why the library cannot be used; empty where it can

  /// Throws InvalidArgument with the problem, if there is one.
  void require_loaded(const std::string& file_name) const;

 protected:
  /// Null, with a problem, if the library has no such function or variable.
  void* find(const char* name);

 private:
  const char* name_;
  void* library_;
};

/// In a struct derived from LoadedLibrary: a pointer to the function, under the function's name.
/// Some headers define a name as that of one version: H5Lget_info as H5Lget_info1.
#define SIMILIS_LOADED_FUNCTION(function) \
  decltype(&::function) function =        \
      reinterpret_cast<decltype(&::function)>(find(SIMILIS_LOADED_TEXT(function)));
#define SIMILIS_LOADED_TEXT(function) #function

}  // namespace similis::media
