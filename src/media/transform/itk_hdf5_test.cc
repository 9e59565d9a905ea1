// SPDX-License-Identifier: Apache-2.0
// ITK's transforms in HDF5. tests/simple_itk_test.py reads files that ITK wrote.
#include "src/media/transform/itk_hdf5.h"

#include <hdf5.h>

#include <array>
#include <optional>

#include "src/media/picture/test_pictures.h"
#include "src/media/transform/itk_transform.h"

namespace similis::media {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// A file in memory, made call by call.
class HandMadeHdf5 {
 public:
  HandMadeHdf5() {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 1 << 16, false);
    static int made = 0;  // two open files must not have one name, also in memory
    file_ = H5Fcreate(fmt::format("made {}", ++made).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    group_ = H5Gcreate2(file_, "TransformGroup", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  }
  ~HandMadeHdf5() {
    H5Gclose(group_);
    H5Fclose(file_);
  }
  HandMadeHdf5(const HandMadeHdf5&) = delete;
  HandMadeHdf5& operator=(const HandMadeHdf5&) = delete;

  struct Storage {
    hsize_t chunk = 0;  // 0: contiguous
    hid_t type = H5T_IEEE_F64LE;
    const char* external = nullptr;
    bool has_other_filter = false;
    hsize_t promised = 0;  // more than are written
    bool is_misspelled = false;
  };

  void add(const std::string& type, const std::vector<double>& parameters,
      const std::vector<double>& fixed, const Storage& storage) {
    const hid_t group =
        H5Gcreate2(group_, std::to_string(count_++).c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t word = H5Tcopy(H5T_C_S1);
    H5Tset_size(word, H5T_VARIABLE);
    const hsize_t one = 1;
    const hid_t space = H5Screate_simple(1, &one, nullptr);
    const hid_t set =
        H5Dcreate2(group, "TransformType", word, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const char* text = type.c_str();
    H5Dwrite(set, word, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text);
    H5Dclose(set);
    H5Sclose(space);
    H5Tclose(word);
    const std::string stem = storage.is_misspelled ? "Tranform" : "Transform";
    if (!parameters.empty()) put(group, stem + "Parameters", parameters, storage);
    if (!fixed.empty()) put(group, stem + "FixedParameters", fixed, {});
    H5Gclose(group);
  }
  void add(const std::string& type, const std::vector<double>& parameters = {},
      const std::vector<double>& fixed = {}) {
    add(type, parameters, fixed, Storage());
  }
  hid_t group() const { return group_; }

  Buffer bytes() const {
    H5Fflush(file_, H5F_SCOPE_GLOBAL);
    Buffer bytes(static_cast<std::size_t>(H5Fget_file_image(file_, nullptr, 0)));
    H5Fget_file_image(file_, bytes.data(), bytes.size());
    return bytes;
  }

 private:
  static void put(hid_t group, const std::string& name, const std::vector<double>& numbers,
      const Storage& storage) {
    const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t count = storage.promised > 0 ? storage.promised : numbers.size();
    if (storage.chunk > 0) {
      H5Pset_chunk(create, 1, &storage.chunk);
      H5Pset_shuffle(create);
      if (storage.has_other_filter) {
        H5Pset_scaleoffset(create, H5Z_SO_FLOAT_DSCALE, 3);
      } else {
        H5Pset_deflate(create, 4);
      }
    }
    if (storage.external != nullptr) H5Pset_external(create, storage.external, 0, 8 * count);
    const hid_t space = H5Screate_simple(1, &count, nullptr);
    const hid_t set =
        H5Dcreate2(group, name.c_str(), storage.type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    if (storage.promised == 0 && storage.external == nullptr) {
      H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data());
    }
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(create);
  }

  hid_t file_, group_;
  int count_ = 0;
};

const std::vector<double> kShift = {1, 2, 3};
// 2 × 2 × 1 voxels of 2, 3 and 4 mm at (10, 20, 30), x turned to y.
const std::vector<double> kFieldGrid = {2, 2, 1, 10, 20, 30, 2, 3, 4, 0, -1, 0, 1, 0, 0, 0, 0, 1};
const std::vector<double> kVectors = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.1};

std::string refusal_of(const Buffer& bytes) {
  try {
    read_itk_transforms({bytes, "t.h5"});
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

TEST(ItkHdf5, AffineMapsOfACompositeBecomeOne) {
  HandMadeHdf5 file;
  file.add("CompositeTransform_double_3_3");
  file.add("ScaleTransform_double_3_3", {2, 2, 2}, {0, 0, 0});
  file.add("TranslationTransform_double_3_3", kShift);
  const std::vector<SpaceMap> maps = read_itk_transforms({file.bytes(), "t.h5"});
  ASSERT_EQ(maps.size(), 1u);
  // ITK applies the last one first.
  EXPECT_THAT(std::get<Affine>(maps[0])({1, 1, 1}), ElementsAre(4, 6, 8));
}

TEST(ItkHdf5, MapsOfACompositeAreInTheOrderOfAPoint) {
  for (const hsize_t chunk : {0, 5}) {
    for (const bool is_misspelled : {false, true}) {
      HandMadeHdf5 file;
      file.add("CompositeTransform_double_3_3");
      file.add("TranslationTransform_double_3_3", kShift);
      file.add("DisplacementFieldTransform_double_3_3", kVectors, kFieldGrid,
          {.chunk = chunk, .is_misspelled = is_misspelled});
      const std::vector<SpaceMap> maps = read_itk_transforms({file.bytes(), "t.h5"});
      ASSERT_EQ(maps.size(), 2u);
      const auto& field = std::get<Volume>(maps[0]);
      EXPECT_EQ(field.grid.size, (std::array<std::int64_t, 3>{2, 2, 1}));
      EXPECT_EQ(field.values.dtype, DType::f64);  // 12.1 is no float
      const auto* u = field.values.elements<double>();
      EXPECT_THAT(
          std::vector<double>(u, u + 12), ElementsAre(1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12.1));
      const Affine to_lps = kTurnRasLps * field.grid.voxel_to_world;
      EXPECT_THAT(to_lps({1, 0, 0}), ElementsAre(10, 22, 30));
      EXPECT_THAT(to_lps({0, 1, 1}), ElementsAre(7, 20, 34));
      EXPECT_THAT(std::get<Affine>(maps[1])({0, 0, 0}), ElementsAre(1, 2, 3));
    }
  }
}

TEST(ItkHdf5, FieldsOfThePlaneAndOfFloats) {
  HandMadeHdf5 file;
  file.add("DisplacementFieldTransform_float_2_2", {1, 2, 3, 4.5}, {1, 2, 5, 6, 1, 2, 1, 0, 0, 1},
      {.type = H5T_IEEE_F32LE});
  const std::vector<SpaceMap> maps = read_itk_transforms({file.bytes(), "t.h5"});
  ASSERT_EQ(maps.size(), 1u);
  const auto& field = std::get<Volume>(maps[0]);
  EXPECT_TRUE(field.grid.is_flat);
  EXPECT_EQ(field.components, 2);
  const auto* u = field.values.elements<float>();
  EXPECT_THAT(std::vector<float>(u, u + 4), ElementsAre(1, 3, 2, 4.5));
}

TEST(ItkHdf5, WhatItkDoesNotWriteIsRefused) {
  using Storage = HandMadeHdf5::Storage;
  const auto with = [](const Storage& storage) {
    HandMadeHdf5 file;
    file.add("TranslationTransform_double_3_3", kShift, {}, storage);
    return refusal_of(file.bytes());
  };
  const std::string strange =
      "cannot read t.h5: its TransformParameters is not as ITK writes it, or it is damaged";
  EXPECT_EQ(with({.external = "/etc/hostname"}), strange);
  EXPECT_EQ(with({.chunk = 2, .has_other_filter = true}), strange);
  EXPECT_EQ(with({.chunk = hsize_t{1} << 28, .promised = hsize_t{1} << 28}), strange);
  EXPECT_EQ(with({.chunk = 1024, .promised = hsize_t{1} << 40}),
      "cannot read t.h5: it is cut off: its TransformParameters promises 1099511627776 numbers");
  HandMadeHdf5 linked;
  H5Lcreate_external("/etc/hostname", "/", linked.group(), "0", H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_EQ(refusal_of(linked.bytes()),
      "cannot read t.h5: its 0 is not as ITK writes it, or it is damaged");
  HandMadeHdf5 empty;
  EXPECT_THAT(refusal_of(empty.bytes()), HasSubstr("it is neither an ITK transform"));
  H5Ldelete(empty.group(), "/TransformGroup", H5P_DEFAULT);
  EXPECT_EQ(refusal_of(empty.bytes()),
      "cannot read t.h5: it is HDF5 without a TransformGroup, so no transform of ITK's");
  HandMadeHdf5 field;
  field.add("DisplacementFieldTransform_double_3_3", kShift, kFieldGrid);
  EXPECT_EQ(refusal_of(field.bytes()),
      "cannot read t.h5: its DisplacementFieldTransform_double_3_3 has 3 parameters; it must have "
      "3 for each of 4 voxels");
  HandMadeHdf5 gridless;
  gridless.add("DisplacementFieldTransform_double_3_3", kVectors, kShift);
  EXPECT_EQ(refusal_of(gridless.bytes()),
      "cannot read t.h5: its DisplacementFieldTransform_double_3_3 has 3 fixed parameters; it must "
      "have 18");
}

// Any damage is refused in one line, or leaves maps.
TEST(ItkHdf5, DamageIsRefused) {
  HandMadeHdf5 made;
  made.add("CompositeTransform_double_3_3");
  made.add("DisplacementFieldTransform_double_3_3", kVectors, kFieldGrid, {.chunk = 5});
  const Buffer whole = made.bytes();
  EXPECT_EQ(refusal_of(whole), "");
  std::uint32_t state = 3;
  const auto random = [&](std::size_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    Buffer bytes = whole;
    if (i < 20) {
      bytes.resize(whole.size() * static_cast<std::size_t>(i) / 20);
    } else {
      for (int k = 0; k < 4; ++k) {
        bytes[16 + random(bytes.size() - 16)] = static_cast<std::uint8_t>(random(256));
      }
    }
    const std::string words = refusal_of(bytes);
    refused += words.empty() ? 0 : 1;
    if (!words.empty()) {
      EXPECT_THAT(words, StartsWith("cannot read t.h5: "));
      EXPECT_EQ(words.find('\n'), words.npos);
    }
  }
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace similis::media
