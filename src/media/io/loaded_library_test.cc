// SPDX-License-Identifier: Apache-2.0
#include "src/media/io/loaded_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "similis/error.hpp"

extern "C" int similis_function_of_no_library();

namespace similis::media {
namespace {

struct Zlib : LoadedLibrary {
  explicit Zlib(const char* name) : LoadedLibrary(name) {}
  SIMILIS_LOADED_FUNCTION(zlibVersion)
};
struct NewerZlib : Zlib {
  NewerZlib() : Zlib("libz.so.1") {}
  SIMILIS_LOADED_FUNCTION(similis_function_of_no_library)
};

TEST(LoadedLibrary, HasItsFunctions) {
  const Zlib library("libz.so.1");
  EXPECT_EQ(library.problem, "");
  EXPECT_EQ(library.zlibVersion()[0], ZLIB_VERSION[0]);
  library.require_loaded("a.gz");
}

TEST(LoadedLibrary, SaysWhatIsMissing) {
  const Zlib none("libnone.so.9");
  EXPECT_EQ(none.zlibVersion, nullptr);
  EXPECT_THAT(none.problem, testing::StartsWith("libnone.so.9 cannot be loaded (libnone.so.9: "));
  EXPECT_EQ(NewerZlib().problem, "libz.so.1 has no similis_function_of_no_library");
  try {
    NewerZlib().require_loaded("a.gz");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "cannot read a.gz: libz.so.1 has no similis_function_of_no_library");
  }
}

}  // namespace
}  // namespace similis::media
