// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/loaded_library.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include "similis/error.hpp"

namespace similis::media {

LoadedLibrary::LoadedLibrary(const char* name)
    : name_(name), library_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) problem = fmt::format("{} cannot be loaded ({})", name, dlerror());
}

void* LoadedLibrary::find(const char* name) {
  if (library_ == nullptr) return nullptr;
  void* const found = dlsym(library_, name);
  if (found == nullptr) problem = fmt::format("{} has no {}", name_, name);
  return found;
}

void LoadedLibrary::require_loaded(const std::string& file_name) const {
  if (problem.empty()) return;
  throw InvalidArgument(fmt::format("cannot read {}: {}", file_name, problem));
}

}  // namespace similis::media
