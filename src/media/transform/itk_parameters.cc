// SPDX-License-Identifier: Apache-2.0
// With the matrix M, the translation t and the centre c that a type's parameters stand for,
//   y = M (x - c) + c + t
// Source: the class documentation of ITK 5 (itk::MatrixOffsetTransformBase and those derived).
#include "src/media/transform/itk_parameters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "src/core/counted.h"

namespace similis::media {
namespace {

using Numbers = std::vector<double>;

Affine rotation_about(std::size_t axis, double angle) {
  const std::size_t u = (axis + 1) % 3, v = (axis + 2) % 3;
  Affine rotation;
  rotation.rows[u][u] = rotation.rows[v][v] = std::cos(angle);
  rotation.rows[v][u] = std::sin(angle);
  rotation.rows[u][v] = -std::sin(angle);
  return rotation;
}

Affine translation(const Numbers& numbers, std::size_t first, std::size_t count) {
  Affine result;
  for (std::size_t i = 0; i < count; ++i) result.rows[i][3] = numbers[first + i];
  return result;
}

// The rotation of a unit quaternion given by its vector part.
Affine versor(const Numbers& p) {
  const double x = p[0], y = p[1], z = p[2];
  const double w = std::sqrt(std::max(0.0, 1 - (x * x + y * y + z * z)));
  Affine r;
  r.rows[0] = {1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), 0};
  r.rows[1] = {2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w), 0};
  r.rows[2] = {2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y), 0};
  return r;
}

Affine scaling(const Point& factors) {
  Affine result;
  for (std::size_t i = 0; i < 3; ++i) result.rows[i][i] = factors[i];
  return result;
}

template <std::size_t dimension> Affine matrix(const Numbers& p) {
  Affine result = translation(p, dimension * dimension, dimension);
  for (std::size_t i = 0; i < dimension; ++i) {
    for (std::size_t j = 0; j < dimension; ++j) result.rows[i][j] = p[i * dimension + j];
  }
  return result;
}

// The fourth fixed parameter says in which order the angles are taken.
Affine euler_3d(const Numbers& p, const Numbers& fixed) {
  const Affine x = rotation_about(0, p[0]), y = rotation_about(1, p[1]);
  const Affine z = rotation_about(2, p[2]);
  const bool is_zyx = fixed.size() > 3 && fixed[3] != 0;
  return translation(p, 3, 3) * (is_zyx ? z * y * x : z * x * y);
}

struct Type {
  const char* name;
  std::size_t dimension;
  std::size_t parameters;
  Affine (*map)(const Numbers& parameters, const Numbers& fixed);  // without the centre
};

using P = const Numbers&;
constexpr std::array kTypes = {Type{"AffineTransform", 3, 12, [](P p, P) { return matrix<3>(p); }},
    Type{"AffineTransform", 2, 6, [](P p, P) { return matrix<2>(p); }},
    Type{"MatrixOffsetTransformBase", 3, 12, [](P p, P) { return matrix<3>(p); }},
    Type{"MatrixOffsetTransformBase", 2, 6, [](P p, P) { return matrix<2>(p); }},
    Type{"Euler3DTransform", 3, 6, euler_3d},
    Type{"Euler2DTransform", 2, 3,
        [](P p, P) { return translation(p, 1, 2) * rotation_about(2, p[0]); }},
    Type{"Rigid2DTransform", 2, 3,
        [](P p, P) { return translation(p, 1, 2) * rotation_about(2, p[0]); }},
    Type{"VersorTransform", 3, 3, [](P p, P) { return versor(p); }},
    Type{"VersorRigid3DTransform", 3, 6, [](P p, P) { return translation(p, 3, 3) * versor(p); }},
    Type{"Similarity3DTransform", 3, 7,
        [](P p, P) {
          return translation(p, 3, 3) * versor(p) * scaling({p[6], p[6], p[6]});
        }},
    Type{"Similarity2DTransform", 2, 4,
        [](P p, P) {
          return translation(p, 2, 2) * rotation_about(2, p[1]) * scaling({p[0], p[0], 1});
        }},
    Type{"ScaleTransform", 3, 3,
        [](P p, P) {
          return scaling({p[0], p[1], p[2]});
        }},
    Type{"ScaleTransform", 2, 2,
        [](P p, P) {
          return scaling({p[0], p[1], 1});
        }},
    Type{"TranslationTransform", 3, 3, [](P p, P) { return translation(p, 0, 3); }},
    Type{"TranslationTransform", 2, 2, [](P p, P) { return translation(p, 0, 2); }},
    Type{"IdentityTransform", 3, 0, [](P, P) { return Affine(); }},
    Type{"IdentityTransform", 2, 0, [](P, P) { return Affine(); }}};

std::string known_types() {
  std::string names;
  for (const Type& type : kTypes) {
    const std::string name = type.name;
    if (names.find(name + ",") == names.npos) names += name + ", ";
  }
  names.resize(names.size() - 2);
  return names;
}

// The 3 at the end of "AffineTransform_double_3_3"; 0 if there is none.
std::size_t dimension_of(const std::string& type) {
  if (type.ends_with("_3_3")) return 3;
  return type.ends_with("_2_2") ? 2 : 0;
}

}  // namespace

std::string class_name(const ItkTransform& transform) {
  return transform.type.substr(0, transform.type.find('_'));
}

Affine affine_of(const ItkTransform& transform, const File& file) {
  const std::string name = class_name(transform);
  const std::string words = one_line(transform.type);  // a damaged file's may hold anything
  const std::size_t dimension = dimension_of(transform.type);
  const auto type = std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& candidate) {
    return candidate.name == name && candidate.dimension == dimension;
  });
  if (type == kTypes.end()) {
    refuse(file, "its transform has the type {}; supported types are {} in 2 or 3 dimensions",
        words, known_types());
  }
  if (transform.parameters.size() != type->parameters) {
    refuse(file, "its {} has {}; it must have {}", words,
        counted(transform.parameters.size(), "parameter"), type->parameters);
  }
  if (!transform.fixed.empty() && transform.fixed.size() < dimension) {
    refuse(file, "its {} has {}; it must have {}", words,
        counted(transform.fixed.size(), "fixed parameter"), dimension);
  }
  const Affine map = type->map(transform.parameters, transform.fixed);
  if (std::isnan(determinant(map))) refuse(file, "its numbers are not all finite");
  if (transform.fixed.empty()) return map;
  Numbers back = transform.fixed;
  for (double& number : back) number = -number;
  return translation(transform.fixed, 0, dimension) * map * translation(back, 0, dimension);
}

}  // namespace similis::media
