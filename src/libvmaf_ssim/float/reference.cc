// SPDX-License-Identifier: Apache-2.0
// float_ssim and float_ms_ssim as they are defined: planes of f32, one filter after the other,
// sums of products in f64 in raster order.
#include <cmath>
#include <utility>

#include "src/core/tensor/doubles.h"
#include "src/libvmaf_ssim/reference.h"

namespace similis::libvmaf_ssim_internal {
namespace {

struct Plane {
  std::int64_t height, width;
  std::vector<float> pixels;

  float at(std::int64_t row, std::int64_t column) const {
    return pixels[static_cast<std::size_t>(row * width + column)];
  }
  float at_mirrored(std::int64_t row, std::int64_t column) const {
    const auto inside = [](std::int64_t i, std::int64_t n) {
      return i < 0 ? -i - 1 : i >= n ? 2 * n - i - 1 : i;
    };
    return at(inside(row, height), inside(column, width));
  }
};

template <class Pixel> Plane plane(std::int64_t height, std::int64_t width, const Pixel& pixel) {
  Plane result{height, width, {}};
  for (std::int64_t row = 0; row < height; ++row) {
    for (std::int64_t column = 0; column < width; ++column) {
      result.pixels.push_back(pixel(row, column));
    }
  }
  return result;
}

Plane product(const Plane& a, const Plane& b) {
  return plane(a.height, a.width,
      [&](std::int64_t row, std::int64_t column) { return a.at(row, column) * b.at(row, column); });
}

Plane averaged(const Plane& in) {
  const float taps[] = {.001028f, .007599f, .036001f, .109361f, .213006f, .266012f, .213006f,
      .109361f, .036001f, .007599f, .001028f};
  const Plane across = plane(in.height, in.width - 10, [&](std::int64_t row, std::int64_t column) {
    double sum = 0;
    for (std::int64_t k = 0; k < 11; ++k) sum += in.at(row, column + k) * taps[k];
    return static_cast<float>(sum);
  });
  return plane(in.height - 10, across.width, [&](std::int64_t row, std::int64_t column) {
    double sum = 0;
    for (std::int64_t k = 0; k < 11; ++k) sum += across.at(row + k, column) * taps[k];
    return static_cast<float>(sum);
  });
}

SsimMeans ssim_of(const Plane& x, const Plane& y) {
  const Plane mean_x = averaged(x), mean_y = averaged(y);
  const Plane square_x = averaged(product(x, x)), square_y = averaged(product(y, y));
  const Plane both = averaged(product(x, y));
  const float k1 = 0.01f * 255, k2 = 0.03f * 255;
  const float c1 = k1 * k1, c2 = k2 * k2, c3 = c2 / 2;
  double ssim = 0, luminance = 0, contrast = 0, structure = 0;
  for (std::size_t i = 0; i < mean_x.pixels.size(); ++i) {
    const float mx = mean_x.pixels[i], my = mean_y.pixels[i];
    const float vx = std::fmax(0.0f, square_x.pixels[i] - mx * mx);
    const float vy = std::fmax(0.0f, square_y.pixels[i] - my * my);
    const auto root = static_cast<float>(std::sqrt(static_cast<double>(vx * vy)));
    float covariance = both.pixels[i] - mx * my;
    if (covariance < 0 && root <= 0) covariance = 0;
    const double l = (2.0 * mx * my + c1) / (mx * mx + my * my + c1);
    const double c = (2.0 * root + c2) / (vx + vy + c2);
    const double s = (covariance + c3) / (root + c3);
    ssim += l * c * s;
    luminance += l, contrast += c, structure += s;
  }
  const auto n = static_cast<double>(mean_x.pixels.size());
  return {.ssim = static_cast<float>(ssim / n),
      .luminance = static_cast<float>(luminance / n),
      .contrast = static_cast<float>(contrast / n),
      .structure = static_cast<float>(structure / n)};
}

Plane shrunk(const Plane& in, int scale) {
  if (scale == 1) return in;
  const float tap = 1.0f / static_cast<float>(scale * scale);
  const auto side = [&](std::int64_t n) { return n / scale + n % 2; };
  return plane(side(in.height), side(in.width), [&](std::int64_t row, std::int64_t column) {
    double sum = 0;
    const std::int64_t first = -(scale / 2), last = scale / 2 - (scale % 2 == 0 ? 1 : 0);
    for (std::int64_t v = first; v <= last; ++v) {
      for (std::int64_t u = first; u <= last; ++u) {
        sum += in.at_mirrored(row * scale + v, column * scale + u) * tap;
      }
    }
    return static_cast<float>(sum);
  });
}

Plane halved(const Plane& in) {
  const float quarter[5][5] = {{.000714f, -.000450f, -.002090f, .007132f, .016114f},
      {-.000450f, .000283f, .001316f, -.004490f, -.010146f},
      {-.002090f, .001316f, .006115f, -.020867f, -.047149f},
      {.007132f, -.004490f, -.020867f, .071207f, .160885f},
      {.016114f, -.010146f, -.047149f, .160885f, .363505f}};
  return plane((in.height + 1) / 2, (in.width + 1) / 2, [&](std::int64_t row, std::int64_t column) {
    double sum = 0;
    for (std::int64_t v = -4; v <= 4; ++v) {
      for (std::int64_t u = -4; u <= 4; ++u) {
        sum +=
            in.at_mirrored(2 * row + v, 2 * column + u) * quarter[4 - std::abs(v)][4 - std::abs(u)];
      }
    }
    return static_cast<float>(sum);
  });
}

// The planes of one pair, scaled to 0…255.
std::pair<Plane, Plane> pair_of(const PlanePairs& planes, std::int64_t pair) {
  const std::vector<double> x = to_doubles(planes.x), y = to_doubles(planes.y);
  const auto one = [&](const std::vector<double>& samples) {
    const auto divisor = static_cast<float>(1 << (planes.bit_depth - 8));
    return plane(planes.height(), planes.width(), [&](std::int64_t row, std::int64_t column) {
      const std::int64_t i = (pair * planes.height() + row) * planes.width() + column;
      return static_cast<float>(samples[static_cast<std::size_t>(i)]) / divisor;
    });
  };
  return {one(x), one(y)};
}

}  // namespace

std::vector<SsimMeans> reference_float_ssim(const PlanePairs& planes, int scale) {
  std::vector<SsimMeans> result;
  for (std::int64_t i = 0; i < planes.count(); ++i) {
    const auto [x, y] = pair_of(planes, i);
    result.push_back(ssim_of(shrunk(x, scale), shrunk(y, scale)));
  }
  return result;
}

std::vector<MsSsimMeans> reference_float_ms_ssim(const PlanePairs& planes) {
  std::vector<MsSsimMeans> result(static_cast<std::size_t>(planes.count()));
  for (std::int64_t i = 0; i < planes.count(); ++i) {
    auto [x, y] = pair_of(planes, i);
    for (SsimMeans& means : result[static_cast<std::size_t>(i)]) {
      means = ssim_of(x, y);
      x = halved(x);
      y = halved(y);
    }
  }
  return result;
}

}  // namespace similis::libvmaf_ssim_internal
