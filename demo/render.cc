// SPDX-License-Identifier: Apache-2.0
// Renders the demo's two pictures, each as NAME.png and, since cjpeg reads no PNG, as NAME.ppm:
// render_pictures FOLDER
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

#include "demo/landscape.h"
#include "demo/still_life.h"
#include "similis/error.hpp"
#include "src/core/parallel.h"
#include "src/media/picture/formats/png_writer.h"

namespace demo {
namespace {

constexpr int kWidth = 768, kHeight = 512;

// Linear light to an sRGB code value, bright light rolled off as film does.
std::uint8_t code_value(double light) {
  const double x = std::max(0.0, light);
  const double film = x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14);
  const double curve = film <= 0.0031308 ? 12.92 * film : 1.055 * std::pow(film, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::clamp(255 * curve + 0.5, 0.0, 255.0));
}

/// light(u, v, random) at side × side points of each pixel, averaged.
using Light = std::function<Vector(double u, double v, Random& random)>;

Vector pixel(int column, int row, int side, const Light& light) {
  Random random(static_cast<std::uint32_t>(row * kWidth + column));
  Vector sum;
  for (int sample = 0; sample < side * side; ++sample) {
    const double x = column + (sample % side + random()) / side;
    const double y = row + (sample / side + random()) / side;
    const Vector one = light((2 * x - kWidth) / kHeight, 1 - 2 * y / kHeight, random);
    // A path that meets the window by chance would leave a white dot.
    sum = sum + Vector{std::min(one.x, 6.0), std::min(one.y, 6.0), std::min(one.z, 6.0)};
  }
  return 1.0 / (side * side) * sum;
}

void write_ppm(const std::string& path, const similis::media::Image& image) {
  std::ofstream file(path, std::ios::binary);
  file << "P6\n" << image.width << ' ' << image.height << "\n255\n";
  file.write(reinterpret_cast<const char*>(image.samples8.data()),
      static_cast<std::streamsize>(image.samples8.size()));
  file.close();
  if (!file) throw similis::Error(path + ": could not be written");
}

void render(const std::string& path, int side, double exposure, const Light& light) {
  similis::media::Image image;
  image.width = kWidth;
  image.height = kHeight;
  image.samples8.resize(std::size_t{3} * kWidth * kHeight);
  similis::parallel_for({}, kHeight, [&](std::int64_t row) {
    std::uint8_t* out = image.samples8.data() + 3 * kWidth * row;
    for (int column = 0; column < kWidth; ++column) {
      const Vector color = exposure * pixel(column, static_cast<int>(row), side, light);
      *out++ = code_value(color.x);
      *out++ = code_value(color.y);
      *out++ = code_value(color.z);
    }
  });
  write_ppm(path + ".ppm", image);
  similis::media::write_png(path + ".png", image);
}

}  // namespace
}  // namespace demo

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: render_pictures FOLDER\n");
    return 2;
  }
  const std::string folder = arguments[1];
  try {
    demo::render(folder + "/landscape", 2, 0.8,
        [](double u, double v, demo::Random&) { return demo::landscape(u, v); });
    demo::render(folder + "/still_life", 7, 0.9, demo::still_life);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "render_pictures: %s\n", error.what());
    return 1;
  }
}
