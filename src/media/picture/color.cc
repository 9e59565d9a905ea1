// SPDX-License-Identifier: Apache-2.0
// Every form of a colour space becomes an lcms2 profile. Two profiles make a transform, which runs
// in float without lcms2's shortcuts for 8 bits.
#include "src/media/picture/color.h"

#include <lcms2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string_view>
#include <vector>

#include "src/core/parallel.h"
#include "src/core/require.h"

namespace similis::media {
namespace {

constexpr Chromaticity kD65 = {0.3127, 0.3290};
constexpr Chromaticities kSrgbPrimaries = {kD65, {0.64, 0.33}, {0.30, 0.60}, {0.15, 0.06}};
// The gAMA that PNG files in sRGB carry: 1/2.2 in five digits.
constexpr double kSrgbGamma = 0.45455;
constexpr std::uint8_t kLinear = 8, kSrgbTransfer = 13, kPq = 16, kHlg = 18;
constexpr float kSameTolerance = 1.0f / 1024;

// y = (a·x + b)^gamma for x ≥ from, slope·x below: from code value to light.
struct Curve {
  double gamma, a = 1, b = 0, slope = 0, from = 0;
};
constexpr Curve kSrgbCurve = {2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045};
constexpr Curve kBt709Curve = {1 / 0.45, 1 / 1.099, 0.099 / 1.099, 1 / 4.5, 0.081};
constexpr Curve kSmpte240mCurve = {1 / 0.45, 1 / 1.1115, 0.1115 / 1.1115, 1 / 4.0, 0.0912};

// Code points of H.273: table 2 (primaries) and table 3 (transfer).
struct Primaries {
  std::uint8_t number;
  const char* name;
  Chromaticities at;
};
constexpr std::array kPrimaries = {
    Primaries{1, "BT.709", kSrgbPrimaries},
    Primaries{2, "BT.709", kSrgbPrimaries},
    Primaries{4, "BT.470M", {{0.310, 0.316}, {0.67, 0.33}, {0.21, 0.71}, {0.14, 0.08}}},
    Primaries{5, "BT.470BG", {kD65, {0.64, 0.33}, {0.29, 0.60}, {0.15, 0.06}}},
    Primaries{6, "SMPTE 170M", {kD65, {0.630, 0.340}, {0.310, 0.595}, {0.155, 0.070}}},
    Primaries{7, "SMPTE 240M", {kD65, {0.630, 0.340}, {0.310, 0.595}, {0.155, 0.070}}},
    Primaries{9, "BT.2020", {kD65, {0.708, 0.292}, {0.170, 0.797}, {0.131, 0.046}}},
    Primaries{11, "DCI P3", {{0.314, 0.351}, {0.680, 0.320}, {0.265, 0.690}, {0.150, 0.060}}},
    Primaries{12, "Display P3", {kD65, {0.680, 0.320}, {0.265, 0.690}, {0.150, 0.060}}},
};
struct Transfer {
  std::uint8_t number;
  const char* name;
  Curve curve;
};
constexpr std::array kTransfers = {
    Transfer{1, "BT.709", kBt709Curve},
    Transfer{2, "sRGB", kSrgbCurve},
    Transfer{4, "gamma 2.2", {2.2}},
    Transfer{5, "gamma 2.8", {2.8}},
    Transfer{6, "SMPTE 170M", kBt709Curve},
    Transfer{7, "SMPTE 240M", kSmpte240mCurve},
    Transfer{kLinear, "linear", {1.0}},
    Transfer{kSrgbTransfer, "sRGB", kSrgbCurve},
    Transfer{14, "BT.2020", kBt709Curve},
    Transfer{15, "BT.2020", kBt709Curve},
};

template <class Table> auto find(const Table& table, std::uint8_t number) {
  const auto found = std::find_if(
      table.begin(), table.end(), [&](const auto& row) { return row.number == number; });
  return found == table.end() ? nullptr : &*found;
}

bool is_hdr(const ColorSpace& color) {
  return color.cicp && (color.cicp->transfer == kPq || color.cicp->transfer == kHlg);
}

bool is_close(Chromaticity a, Chromaticity b) {
  constexpr double kTolerance = 0.001;  // writers round sRGB's to three digits
  return std::abs(a.x - b.x) < kTolerance && std::abs(a.y - b.y) < kTolerance;
}

bool is_srgb_primaries(const Chromaticities& at) {
  return is_close(at.white, kD65) && is_close(at.red, kSrgbPrimaries.red) &&
         is_close(at.green, kSrgbPrimaries.green) && is_close(at.blue, kSrgbPrimaries.blue);
}

// gAMA and cHRM as all viewers take them: sRGB if they have the values that writers of sRGB put.
struct Meaning {
  Curve curve;
  Chromaticities primaries;
  bool is_srgb;
};

Meaning meaning_of(const ColorSpace& color) {
  const bool has_srgb_primaries = !color.chromaticities || is_srgb_primaries(*color.chromaticities);
  const bool has_srgb_gamma = !color.gamma || std::abs(*color.gamma - kSrgbGamma) < 0.00006;
  if (has_srgb_primaries && has_srgb_gamma) return {kSrgbCurve, kSrgbPrimaries, true};
  return {color.gamma ? Curve{1 / *color.gamma} : kSrgbCurve,
      color.chromaticities.value_or(kSrgbPrimaries), false};
}

using Context = std::unique_ptr<std::remove_pointer_t<cmsContext>, decltype(&cmsDeleteContext)>;
using Profile = std::unique_ptr<void, decltype(&cmsCloseProfile)>;
using Transform = std::unique_ptr<void, decltype(&cmsDeleteTransform)>;
using ToneCurve = std::unique_ptr<cmsToneCurve, decltype(&cmsFreeToneCurve)>;

Context make_context() {
  Context context(cmsCreateContext(nullptr, nullptr), &cmsDeleteContext);
  if (!context) throw std::bad_alloc();
  cmsSetLogErrorHandlerTHR(context.get(), [](cmsContext, cmsUInt32Number, const char*) {});
  return context;
}

// A profile, and whether it is for grey.
struct Space {
  Profile profile;
  bool is_grey;
};

Space build(cmsContext context, const Curve& curve, const Chromaticities& at, bool is_grey) {
  const std::array<double, 5> parameters = {curve.gamma, curve.a, curve.b, curve.slope, curve.from};
  const ToneCurve tone(
      cmsBuildParametricToneCurve(context, 4, parameters.data()), &cmsFreeToneCurve);
  const cmsCIExyY white = {at.white.x, at.white.y, 1};
  if (is_grey) {
    return {{cmsCreateGrayProfileTHR(context, &white, tone.get()), &cmsCloseProfile}, true};
  }
  const cmsCIExyYTRIPLE primaries = {
      {at.red.x, at.red.y, 1}, {at.green.x, at.green.y, 1}, {at.blue.x, at.blue.y, 1}};
  const std::array<cmsToneCurve*, 3> tones = {tone.get(), tone.get(), tone.get()};
  return {
      {cmsCreateRGBProfileTHR(context, &white, &primaries, tones.data()), &cmsCloseProfile}, false};
}

// A profile's colour space, from its header. cmsGetColorSpace gives any four bytes of a file as an
// enumerator, which they need not be.
std::string_view channels_of(const std::vector<std::uint8_t>& icc_profile) {
  constexpr std::size_t kOffset = 16, kSize = 4;
  return {reinterpret_cast<const char*>(icc_profile.data()) + kOffset, kSize};
}

// The colour space as a profile; one that is for grey and RGB alike is made for grey on request.
// Throws InvalidArgument with the reason only.
Space make_space(cmsContext context, const ColorSpace& color, bool prefers_grey) {
  Space space{{nullptr, &cmsCloseProfile}, false};
  if (!color.icc_profile.empty()) {
    const auto bytes = static_cast<cmsUInt32Number>(color.icc_profile.size());
    space.profile.reset(cmsOpenProfileFromMemTHR(context, color.icc_profile.data(), bytes));
    require(space.profile != nullptr, "its ICC profile is damaged");
    const std::string_view channels = channels_of(color.icc_profile);
    require(
        channels == "GRAY" || channels == "RGB ", "its ICC profile is for neither grey nor RGB");
    space.is_grey = channels == "GRAY";
  } else if (color.cicp) {
    const auto* primaries = find(kPrimaries, color.cicp->primaries);
    const auto* transfer = find(kTransfers, color.cicp->transfer);
    require(!is_hdr(color), "its transfer function is PQ or HLG, which are not supported");
    require(primaries && transfer,
        "its colours have the code points {} (primaries) and {} (transfer), which are not "
        "supported",
        color.cicp->primaries, color.cicp->transfer);
    space = build(context, transfer->curve, primaries->at, prefers_grey);
  } else {
    const Meaning meaning = meaning_of(color);
    space = build(context, meaning.curve, meaning.primaries, prefers_grey);
  }
  require(space.profile != nullptr, "its primaries do not span a colour space");
  return space;
}

Transform make_transform(cmsContext context, const Space& from, const Space& to) {
  const auto format = [](const Space& space) {
    return space.is_grey ? TYPE_GRAY_FLT : TYPE_RGB_FLT;
  };
  Transform transform(
      cmsCreateTransformTHR(context, from.profile.get(), format(from), to.profile.get(), format(to),
          INTENT_RELATIVE_COLORIMETRIC, cmsFLAGS_NOOPTIMIZE | cmsFLAGS_NOCACHE),
      &cmsDeleteTransform);
  require(transform != nullptr, "lcms2 cannot convert between the two ICC profiles");
  return transform;
}

// Greys from black to white, then the corners of the cube and mixtures of them, as RGB.
std::vector<float> probe_colors() {
  std::vector<float> colors;
  constexpr int kGreys = 33, kSteps = 5;
  for (int i = 0; i < kGreys; ++i) {
    colors.insert(colors.end(), 3, static_cast<float>(i) / (kGreys - 1));
  }
  for (int i = 0; i < kSteps * kSteps * kSteps; ++i) {
    for (const int level : {i % kSteps, i / kSteps % kSteps, i / kSteps / kSteps}) {
      colors.push_back(static_cast<float>(level) / (kSteps - 1));
    }
  }
  return colors;
}

bool keeps_codes(cmsContext context, const Space& a, const Space& b) {
  if (a.is_grey != b.is_grey) return false;
  const std::vector<float> probes = probe_colors();
  std::vector<float> arrived(probes.size());
  const std::size_t pixels = a.is_grey ? probes.size() : probes.size() / 3;
  cmsDoTransform(make_transform(context, a, b).get(), probes.data(), arrived.data(),
      static_cast<cmsUInt32Number>(pixels));
  return std::equal(probes.begin(), probes.end(), arrived.begin(),
      [](float p, float q) { return std::abs(p - q) <= kSameTolerance; });
}

// One row at a time: code values → floats → transform → code values, alpha as it is.
template <class T>
void convert_rows(const Image& image, const std::vector<T>& from, bool doubles_grey,
    cmsHTRANSFORM transform, Image& result, std::vector<T>& to) {
  const auto pixels = static_cast<std::size_t>(image.width);
  const auto stored = static_cast<std::size_t>(image.channels);
  const auto written = static_cast<std::size_t>(result.channels);
  const std::size_t alpha = image.has_alpha() ? 1 : 0, kept = stored - alpha,
                    made = written - alpha;
  const std::size_t colors = doubles_grey ? 3 : kept;
  const float top = static_cast<float>((1 << image.bit_depth) - 1);
  std::vector<float> source(pixels * colors), target(pixels * made);
  to.resize(pixels * static_cast<std::size_t>(image.height) * written);
  const T* in = from.data();
  T* out = to.data();
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::size_t x = 0; x < pixels; ++x) {
      for (std::size_t c = 0; c < colors; ++c) {
        source[x * colors + c] = static_cast<float>(in[x * stored + (doubles_grey ? 0 : c)]) / top;
      }
    }
    cmsDoTransform(transform, source.data(), target.data(), static_cast<cmsUInt32Number>(pixels));
    for (std::size_t x = 0; x < pixels; ++x, in += stored, out += written) {
      for (std::size_t c = 0; c < made; ++c) {
        const float code = std::clamp(target[x * made + c], 0.0f, 1.0f) * top;
        out[c] = static_cast<T>(std::lround(code));
      }
      if (alpha) out[made] = in[kept];
    }
  }
}

Image converted(const Image& image, const ColorSpace& target) {
  const Context context = make_context();
  const bool is_grey = image.channels <= 2;
  const Space from = make_space(context.get(), image.color, is_grey);
  require(is_grey || !from.is_grey, "its ICC profile is for grey but it has colour");
  Space to{{nullptr, &cmsCloseProfile}, false};
  try {
    to = make_space(context.get(), target, from.is_grey);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("the other picture: {}", error.what()));
  }
  require(
      from.is_grey || !to.is_grey, "it has colour but the other picture's ICC profile is for grey");
  Image result{.width = image.width,
      .height = image.height,
      .channels = (to.is_grey ? 1 : 3) + image.has_alpha(),
      .bit_depth = image.bit_depth,
      .source_bit_depth = image.source_bit_depth,
      .color = target,
      .format = image.format,
      .frames = image.frames};
  const Transform transform = make_transform(context.get(), from, to);
  const bool doubles_grey = is_grey && !from.is_grey;
  if (image.bit_depth == 8) {
    convert_rows(image, image.samples8, doubles_grey, transform.get(), result, result.samples8);
  } else {
    convert_rows(image, image.samples16, doubles_grey, transform.get(), result, result.samples16);
  }
  return result;
}

LinearLight in_linear_light(const ColorSpace& color, int channels,
    const std::vector<float>& encoded, const Execution& exec) {
  const Context context = make_context();
  const bool is_grey = channels == 1;
  const Space from = make_space(context.get(), color, is_grey);
  require(is_grey || !from.is_grey, "its ICC profile is for grey but it has colour");
  const bool doubles_grey = is_grey && !from.is_grey;
  LinearLight light{.channels = doubles_grey ? 3 : channels, .samples = {}};
  const Space to = build(context.get(), Curve{1.0}, kSrgbPrimaries, from.is_grey);
  const Transform transform = make_transform(context.get(), from, to);
  const std::size_t pixels = encoded.size() / static_cast<std::size_t>(channels);
  const auto width = static_cast<std::size_t>(light.channels);
  light.samples.resize(pixels * width);
  constexpr std::size_t kPiece = 16384;  // pixels per task
  parallel_for(
      exec, static_cast<std::int64_t>((pixels + kPiece - 1) / kPiece), [&](std::int64_t i) {
        const std::size_t first = static_cast<std::size_t>(i) * kPiece;
        const std::size_t count = std::min(kPiece, pixels - first);
        std::vector<float> tripled;
        const float* in = encoded.data() + first * static_cast<std::size_t>(channels);
        if (doubles_grey) {
          for (std::size_t k = 0; k < count; ++k) tripled.insert(tripled.end(), 3, in[k]);
          in = tripled.data();
        }
        cmsDoTransform(transform.get(), in, light.samples.data() + first * width,
            static_cast<cmsUInt32Number>(count));
      });
  return light;
}

std::string profile_name(const ColorSpace& color) {
  constexpr std::size_t kLongestName = 60;
  const Context context = make_context();
  const Profile profile(cmsOpenProfileFromMemTHR(context.get(), color.icc_profile.data(),
                            static_cast<cmsUInt32Number>(color.icc_profile.size())),
      &cmsCloseProfile);
  std::array<char, kLongestName + 1> name{};
  if (profile) {
    cmsGetProfileInfoASCII(profile.get(), cmsInfoDescription, "en", "US", name.data(), name.size());
  }
  std::string words(name.data());
  std::erase_if(words, [](char c) { return c < ' ' || c > '~'; });
  return words;
}

}  // namespace

bool same_color(const ColorSpace& a, const ColorSpace& b) {
  if (a == b) return true;
  if (is_hdr(a) || is_hdr(b)) return false;
  try {
    const Context context = make_context();
    const Space from = make_space(context.get(), a, false);
    const Space to = make_space(context.get(), b, from.is_grey);
    const Space back = make_space(context.get(), a, to.is_grey);
    return keeps_codes(context.get(), back, to);
  } catch (const InvalidArgument&) {
    return false;
  }
}

std::string describe(const ColorSpace& color) {
  if (!color.icc_profile.empty()) {
    const std::string name = profile_name(color);
    return name.empty() ? "an ICC profile without a name" : "ICC profile " + name;
  }
  if (color.cicp) {
    const auto* primaries = find(kPrimaries, color.cicp->primaries);
    const auto* transfer = find(kTransfers, color.cicp->transfer);
    const std::string light = transfer                      ? transfer->name
                              : color.cicp->transfer == kPq ? "PQ"
                              : color.cicp->transfer == kHlg
                                  ? "HLG"
                                  : fmt::format("transfer {}", color.cicp->transfer);
    const std::string place =
        primaries ? primaries->name : fmt::format("primaries {}", color.cicp->primaries);
    if (place == "BT.709" && light == "sRGB") return "sRGB";
    return place == light ? place : place + " " + light;
  }
  if (meaning_of(color).is_srgb) return "sRGB";
  std::string words = color.gamma ? fmt::format("gamma {:.5g}", *color.gamma) : "sRGB's curve";
  if (color.chromaticities) words += " with primaries of its own";
  return words;
}

LinearLight linear_light(const ColorSpace& color, int channels, const std::vector<float>& encoded,
    const std::string& name, const Execution& exec) {
  try {
    return in_linear_light(color, channels, encoded, exec);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("cannot convert {} to linear light: {}", name, error.what()));
  }
}

Image convert_color(const Image& image, const ColorSpace& target, const std::string& name) {
  if (image.color == target) return image;
  try {
    require(!image.has_floats(), "it has floating-point samples");
    return converted(image, target);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(
        fmt::format("cannot convert {} to {}: {}", name, describe(target), error.what()));
  }
}

}  // namespace similis::media
