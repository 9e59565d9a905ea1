// SPDX-License-Identifier: Apache-2.0
// SSIM of two binary PPM pictures, in C++.
#include <cstdio>
#include <fstream>
#include <similis/similis.hpp>
#include <vector>

struct Picture {
  explicit Picture(const char* file) {
    std::ifstream stream(file, std::ios::binary);
    stream.ignore(3) >> width >> height >> largest;
    pixels.resize(static_cast<std::size_t>(3 * width * height));
    stream.ignore(1).read(pixels.data(), 3 * width * height);
  }
  similis::TensorView view() const {  // channels interleaved: x steps by 3, channels by 1
    return {pixels.data(), {1, 3, height, width}, {0, 1, 3 * width, 3}, similis::DType::u8};
  }
  long width = 0, height = 0, largest = 0;
  std::vector<char> pixels;
};
int main(int, char** arguments) {
  const Picture x(arguments[1]), y(arguments[2]);
  std::printf("%.17g\n", similis::item(similis::ssim(x.view(), y.view())));
}
