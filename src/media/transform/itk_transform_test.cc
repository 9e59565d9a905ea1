// SPDX-License-Identifier: Apache-2.0
#include "src/media/transform/itk_transform.h"

#include <bit>
#include <cmath>

#include "src/media/picture/test_pictures.h"

namespace similis::media {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Buffer text_file(const std::string& text) {
  const std::string whole = "#Insight Transform File V1.0\n" + text;
  return {whole.begin(), whole.end()};
}

Affine affine_in(const File& file) {
  const std::vector<SpaceMap> maps = read_itk_transforms(file);
  EXPECT_EQ(maps.size(), 1u);
  return std::get<Affine>(maps.at(0));
}

Affine read_text(const std::string& text) { return affine_in({text_file(text), "t.txt"}); }

std::string refusal_of(const File& file) {
  try {
    read_itk_transforms(file);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

std::string text_refusal(const std::string& text) { return refusal_of({text_file(text), "t.txt"}); }

std::string transform(
    const std::string& type, const std::string& parameters, const std::string& fixed) {
  return "#Transform 0\nTransform: " + type + "\nParameters: " + parameters +
         "\nFixedParameters: " + fixed + "\n";
}

void expect_point(const Affine& map, const Point& from, const Point& to) {
  const Point image = map(from);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(image[i], to[i], 1e-12) << i;
}

TEST(ItkTransform, AnAffineTurnsAboutItsCentre) {
  // y = M (x - c) + c + t
  const Affine map = read_text(
      transform("AffineTransform_double_3_3", "1 2 3 4 5 6 7 8 10 0.5 0.25 -1", "10 20 30"));
  expect_point(map, {10, 20, 30}, {10.5, 20.25, 29});
  expect_point(map, {11, 20, 30}, {11.5, 24.25, 36});
  expect_point(map, {10, 20, 31}, {13.5, 26.25, 39});
}

TEST(ItkTransform, EveryKindMovesPointsAsItSays) {
  struct Case {
    const char* type;
    std::string parameters, fixed;
    Point from, to;
  };
  const double s = std::sqrt(0.5);
  const std::string half = fmt::format("{:.17g}", s),
                    quarter = fmt::format("{:.17g}", std::acos(0.0));
  for (const Case& each : {Case{"IdentityTransform_double_3_3", "", "", {1, 2, 3}, {1, 2, 3}},
           Case{"TranslationTransform_double_3_3", "1 2 3", "", {1, 1, 1}, {2, 3, 4}},
           Case{"TranslationTransform_float_2_2", "1 2", "", {1, 1, 1}, {2, 3, 1}},
           Case{"ScaleTransform_double_3_3", "2 3 4", "1 1 1", {2, 2, 2}, {3, 4, 5}},
           Case{"ScaleTransform_double_2_2", "2 3", "1 1", {2, 2, 2}, {3, 4, 2}},
           Case{"Euler2DTransform_double_2_2", quarter + " 5 6", "0 0", {1, 0, 9}, {5, 7, 9}},
           Case{"Rigid2DTransform_double_2_2", quarter + " 5 6", "0 0", {1, 0, 9}, {5, 7, 9}},
           Case{"Similarity2DTransform_double_2_2", "2 " + quarter + " 5 6", "0 0", {1, 0, 9},
               {5, 8, 9}},
           Case{"AffineTransform_double_2_2", "0 -1 1 0 5 6", "1 0", {2, 0, 9}, {6, 7, 9}},
           Case{"MatrixOffsetTransformBase_double_3_3", "0 -1 0 1 0 0 0 0 1 0 0 0", "0 0 0",
               {1, 0, 0}, {0, 1, 0}},
           Case{"VersorTransform_double_3_3", "0 0 " + half, "0 0 0", {1, 0, 0}, {0, 1, 0}},
           Case{"VersorRigid3DTransform_double_3_3", half + " 0 0 1 2 3", "0 0 0", {0, 1, 0},
               {1, 2, 4}},
           Case{"Similarity3DTransform_double_3_3", "0 " + half + " 0 1 2 3 2", "0 0 0", {0, 0, 1},
               {3, 2, 3}},
           // Euler angles: about y, then x, then z; with a fourth fixed parameter x, y, z.
           Case{"Euler3DTransform_double_3_3", quarter + " 0 " + quarter + " 0 0 0", "0 0 0 0",
               {0, 1, 0}, {0, 0, 1}},
           Case{"Euler3DTransform_double_3_3", quarter + " " + quarter + " 0 1 0 0", "0 0 0 0",
               {0, 0, 1}, {2, 0, 0}},
           Case{"Euler3DTransform_double_3_3", quarter + " " + quarter + " 0 1 0 0", "0 0 0 1",
               {0, 0, 1}, {1, -1, 0}}}) {
    SCOPED_TRACE(each.type);
    expect_point(read_text(transform(each.type, each.parameters, each.fixed)), each.from, each.to);
  }
}

TEST(ItkTransform, OfACompositeTheLastPartComesFirst) {
  const Affine map = read_text("#Transform 0\nTransform: CompositeTransform_double_3_3\n" +
                               transform("ScaleTransform_double_3_3", "2 2 2", "0 0 0") +
                               transform("TranslationTransform_double_3_3", "1 0 0", ""));
  expect_point(map, {1, 1, 1}, {4, 2, 2});
}

TEST(ItkTransform, SaysWhatItDoesNotTake) {
  EXPECT_THAT(text_refusal(transform("BSplineTransform_double_3_3", "1 2", "1")),
      StartsWith(
          "cannot read t.txt: its transform has the type BSplineTransform_double_3_3; "
          "supported types are AffineTransform, MatrixOffsetTransformBase, Euler3DTransform, "));
  EXPECT_EQ(text_refusal(transform("AffineTransform_double_3_3", "1 2", "1 2 3")),
      "cannot read t.txt: its AffineTransform_double_3_3 has 2 parameters; it must have 12");
  EXPECT_EQ(text_refusal(transform("ScaleTransform_double_3_3", "1 2 3", "1 2")),
      "cannot read t.txt: its ScaleTransform_double_3_3 has 2 fixed parameters; it must have 3");
  EXPECT_EQ(text_refusal(transform("ScaleTransform_double_3_3", "1 2 x3", "1 2")),
      "cannot read t.txt: it is damaged: \"x3\" is not a number");
  EXPECT_EQ(text_refusal(transform("ScaleTransform_double_3_3", "1 2 nan", "1 2 3")),
      "cannot read t.txt: its numbers are not all finite");
  EXPECT_EQ(text_refusal("hello\n"),
      "cannot read t.txt: it is damaged: a line begins with "
      "\"hello\"");
  EXPECT_THAT(text_refusal(transform("ScaleTransform_double_3_3", "1 2 3", "") +
                           transform("ScaleTransform_double_3_3", "1 2 3", "")),
      HasSubstr("it has 2 transforms; it must have one, or one composite"));
}

#if !SIMILIS_WITH_HDF5
TEST(ItkTransform, Hdf5WithoutItsLibrarySaysWhatToInstall) {
  EXPECT_EQ(refusal_of({Buffer{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'}, "t.h5"}),
      "cannot read t.h5: it is HDF5, but this similis was built without libhdf5; install libhdf5 "
      "(on Debian: apt install libhdf5-dev) and build again, or take it apart with ANTs' "
      "CompositeTransformUtil");
}
#endif

// MATLAB level 4, in either byte order.
Buffer matlab(const std::string& type, const std::vector<double>& parameters,
    const std::vector<double>& fixed, bool is_big_endian, bool is_float = false) {
  Buffer bytes;
  const auto put = [&](auto value) {
    auto copy = std::bit_cast<std::array<std::uint8_t, sizeof value>>(value);
    if (is_big_endian) std::reverse(copy.begin(), copy.end());
    bytes.insert(bytes.end(), copy.begin(), copy.end());
  };
  for (const auto& [name, numbers] :
      {std::pair(type, parameters), std::pair(std::string("fixed"), fixed)}) {
    const std::string& text = name;
    put(std::int32_t{(is_big_endian ? 1000 : 0) + (is_float ? 10 : 0)});
    put(static_cast<std::int32_t>(numbers.size()));
    put(std::int32_t{1});
    put(std::int32_t{0});
    put(static_cast<std::int32_t>(text.size() + 1));
    bytes.insert(bytes.end(), text.begin(), text.end());
    bytes.push_back(0);
    for (const double number : numbers) {
      if (is_float) {
        put(static_cast<float>(number));
      } else {
        put(number);
      }
    }
  }
  return bytes;
}

TEST(ItkTransform, MatlabHoldsTheSame) {
  for (const bool is_big_endian : {false, true}) {
    for (const bool is_float : {false, true}) {
      const Buffer bytes = matlab("AffineTransform_double_3_3",
          {1, 2, 3, 4, 5, 6, 7, 8, 10, 0.5, 0.25, -1}, {10, 20, 30}, is_big_endian, is_float);
      expect_point(affine_in({bytes, "t.mat"}), {11, 20, 30}, {11.5, 24.25, 36});
    }
  }
}

TEST(ItkTransform, EveryCutOfAMatlabFileIsRefused) {
  const Buffer whole = matlab("TranslationTransform_double_3_3", {1, 2, 3}, {}, false);
  EXPECT_NO_THROW(affine_in({whole, "t.mat"}));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THROW(affine_in({Bytes(whole).first(length), "t.mat"}), InvalidArgument) << length;
  }
}

// ITK writes a composite to MATLAB's format with all numbers of its last part in one matrix.
TEST(ItkTransform, ACompositeWithoutItsPartsIsRefused) {
  const std::string refusal =
      ": it is a composite transform without its parts, as ITK writes it to .mat; write it as .txt "
      "or give "
      "its parts";
  const std::string type = "CompositeTransform_double_3_3";
  EXPECT_EQ(text_refusal("Transform: " + type + "\n"), "cannot read t.txt" + refusal);
  const Buffer bytes = matlab(type, {0, 0, 0, 10, 20, 30}, {0, 0, 0, 0}, false);
  EXPECT_EQ(refusal_of({bytes, "t.mat"}), "cannot read t.mat" + refusal);
}

TEST(Affine, TheInverseUndoes) {
  const Affine map = {{{{1, 2, 3, 4}, {0, -5, 6, 7}, {2, 1, 8, -9}}}};
  expect_point(inverse(map), map({1, 2, 3}), {1, 2, 3});
  expect_point(inverse(map) * map, {3, 2, 1}, {3, 2, 1});
}

}  // namespace
}  // namespace similis::media
