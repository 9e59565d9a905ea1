// SPDX-License-Identifier: Apache-2.0
#include "src/cli/results/report.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <limits>

#include "similis/version.h"
#include "src/cli/terminal/json_text.h"

namespace similis::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Report report_of_picture() {
  Report report;
  report.device = "cpu";
  report.names = {"psnr", "ssim=k1=0"};
  report.kinds = {{}, {}};
  report.metric_settings = {{"psnr", {{"data_range", "255"}}}, {"ssim=k1=0", {{"k1", "0"}}}};
  report.samples.bit_depth = 8;
  report.samples.channels = 3;
  report.pairs = {{{"a.png", "-"}, {{"color", "converted"}}, {{0, {kInfinity, 0.1}}}}};
  return report;
}

Report report_of_directories() {
  Report report;
  report.compared = Compared::directories;
  report.device = "cpu";
  report.names = {"ssim"};
  report.kinds = {{}};
  report.metric_settings = {{"ssim", {}}};
  report.pairs = {{{"r/a.png", "d/a.png"}, {}, {{0, {0.5}}}},
      {{"r/b,\"c\".png", "d/b.png"}, {}, {{0, {0.75}}}},
      {{"r/c.png", "d/c.png"}, {}, {{0, {std::nullopt}}}}};
  report.unmatched = {{"d/x.png", "distorted"}};
  return report;
}

Report report_of_video() {
  Report report;
  report.device = "cpu";
  report.names = {"mse-y", "ms-ssim"};
  report.kinds = {{.measure = "mse", .is_error = true}, {}};
  report.metric_settings = {{"mse", {}}, {"ms-ssim", {{"weights", "[0.5, 0.25]"}}}};
  report.samples.bit_depth = 10;
  report.samples.chroma = "400";
  report.selection = {.first = 4, .every = 2};
  report.pairs = {{{"a.y4m", "<b>&\".y4m"}, {}, {{4, {0.5, kNaN}}, {6, {2.0, 1.0}}}, {8, 9}}};
  report.error = "cannot read it";
  return report;
}

std::string statistics_text(const std::string& value) {
  std::string text;
  for (const char* name : {"mean", "min", "max", "stdev", "median", "harmonic_mean", "p1", "p5",
           "p10", "p25", "p75", "p95"}) {
    const bool is_zero = std::strcmp(name, "stdev") == 0 && value != "null";
    text += (text.empty() ? "\"" : ", \"") + std::string(name) + "\": " + (is_zero ? "0" : value);
  }
  return "{" + text + "}";
}

TEST(ReportJson, OfAPicture) {
  Report report = report_of_picture();
  report.pairs[0].frames[0].values[1] = 0.25;
  EXPECT_EQ(to_json(report), "{\n  \"similis\": \"" SIMILIS_VERSION
                             "\",\n"
                             "  \"reference\": \"a.png\",\n"
                             "  \"distorted\": \"-\",\n"
                             "  \"device\": \"cpu\",\n"
                             "  \"settings\": {\n"
                             "    \"bit_depth\": 8,\n"
                             "    \"channels\": 3,\n"
                             "    \"metrics\": {\n"
                             "      \"psnr\": {\"data_range\": 255},\n"
                             "      \"ssim=k1=0\": {\"k1\": 0}\n"
                             "    },\n"
                             "    \"differences\": {\"color\": \"converted\"}\n"
                             "  },\n"
                             "  \"metrics\": {\n"
                             "    \"psnr\": " +
                                 statistics_text("null") +
                                 ",\n"
                                 "    \"ssim=k1=0\": " +
                                 statistics_text("0.25") +
                                 "\n"
                                 "  },\n"
                                 "  \"frames\": [\n"
                                 "    {\"frame\": 0, \"psnr\": null, \"ssim=k1=0\": 0.25}\n"
                                 "  ]\n"
                                 "}\n");
}

TEST(ReportJson, OfDirectories) {
  Report report = report_of_directories();
  report.error = "cannot read it";
  const Json json = Json::parse(to_json(report));
  std::vector<std::string> keys;
  for (const auto& entry : json.items()) keys.push_back(entry.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"similis", "settings", "metrics", "metrics_by_pair",
                      "pairs", "unmatched", "error"}));
  EXPECT_EQ(json["settings"]["device"], "cpu");
  EXPECT_EQ(json["metrics"]["ssim"]["mean"], 0.625);
  EXPECT_EQ(json["pairs"].size(), 3u);
  EXPECT_EQ(json["pairs"][1]["reference"], "r/b,\"c\".png");
  EXPECT_EQ(json["pairs"][1]["metrics"]["ssim"]["p75"], 0.75);
  EXPECT_EQ(json["pairs"][1]["frames"], Json::parse(R"([{"frame": 0, "ssim": 0.75}])"));
  EXPECT_TRUE(json["pairs"][2]["frames"][0]["ssim"].is_null());
  EXPECT_EQ(json["unmatched"], Json::parse(R"([{"path": "d/x.png", "side": "distorted"}])"));
  EXPECT_EQ(json["error"], "cannot read it");
}

TEST(ReportJson, OfAVideo) {
  const Json json = Json::parse(to_json(report_of_video()));
  EXPECT_EQ(json["settings"], Json::parse(R"({"bit_depth": 10, "chroma": "400",
      "frames": {"reference": 8, "distorted": 9},
      "selection": {"first": 4, "every": 2, "offset": 0},
      "metrics": {"mse": {}, "ms-ssim": {"weights": [0.5, 0.25]}}})"));
  EXPECT_EQ(json["frames"][0], Json::parse(R"({"frame": 4, "mse-y": 0.5, "ms-ssim": null})"));
  EXPECT_EQ(json["metrics"]["mse-y"]["mean"], 1.25);
  EXPECT_TRUE(json["metrics"]["ms-ssim"]["mean"].is_null()) << "one of its numbers is none";
}

TEST(ReportXml, HoldsWhatTheJsonDocumentDoes) {
  const std::string xml = to_xml(report_of_video());
  const std::string expected_start =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<similis version=\"" SIMILIS_VERSION
      "\" reference=\"a.y4m\" distorted=\"&lt;b>&amp;&quot;.y4m\" device=\"cpu\""
      " error=\"cannot read it\">\n"
      "  <settings bit_depth=\"10\" chroma=\"400\">\n"
      "    <frames reference=\"8\" distorted=\"9\"/>\n"
      "    <selection first=\"4\" every=\"2\" offset=\"0\"/>\n"
      "    <metric name=\"mse\"/>\n"
      "    <metric name=\"ms-ssim\" weights=\"0.5,0.25\"/>\n"
      "  </settings>\n"
      "  <metrics>\n"
      "    <metric name=\"mse-y\" mean=\"1.25\" min=\"0.5\" max=\"2\" stdev=\"0.75\"";
  EXPECT_EQ(xml.substr(0, expected_start.size()), expected_start);
  EXPECT_NE(xml.find("    <metric name=\"ms-ssim\"/>\n"
                     "  </metrics>\n"
                     "  <frames>\n"
                     "    <frame number=\"4\"><score metric=\"mse-y\" value=\"0.5\"/></frame>\n"
                     "    <frame number=\"6\"><score metric=\"mse-y\" value=\"2\"/>"
                     "<score metric=\"ms-ssim\" value=\"1\"/></frame>\n"
                     "  </frames>\n"
                     "</similis>\n"),
      std::string::npos)
      << xml;
}

TEST(ReportXml, OfDirectories) {
  Report report = report_of_directories();
  report.pairs[0].differences = {{"color", "converted"}};
  const std::string xml = to_xml(report);
  for (const char* part :
      {"  <settings device=\"cpu\">\n", "    <metric name=\"ssim\"/>\n",
          "    <difference distorted=\"d/a.png\" color=\"converted\"/>\n",
          "    <pair reference=\"r/b,&quot;c&quot;.png\" distorted=\"d/b.png\">\n      <metrics>\n",
          "        <frame number=\"0\"><score metric=\"ssim\" value=\"0.75\"/></frame>\n",
          "  <unmatched>\n    <file path=\"d/x.png\" side=\"distorted\"/>\n  </unmatched>\n"}) {
    EXPECT_NE(xml.find(part), std::string::npos) << part << xml;
  }
  EXPECT_NE(to_xml(report_of_picture()).find("<difference kind=\"color\" text=\"converted\"/>"),
      std::string::npos);
}

TEST(JsonText, NamesThatAreNotUtf8AreStillJson) {
  EXPECT_EQ(json_text(Json("a\xff\n\"")), "\"a\xef\xbf\xbd\\n\\\"\"\n");
}

TEST(JsonText, DoublesAreTheShortestThatReadBack) {
  EXPECT_EQ(json_text(Json{0.1, 1.0, 1e-7, 1e23, 5e-324, kInfinity, kNaN, -0.0, 7}),
      "[0.1, 1, 1e-07, 1e+23, 5e-324, null, null, -0, 7]\n");
}

RC_GTEST_PROP(JsonText, DoublesReadBack, (double number)) {
  RC_ASSERT(Json::parse(json_text(Json(number))).get<double>() == number);
}

TEST(ReportCsv, QuotesNamesAndLeavesMissingValuesEmpty) {
  EXPECT_EQ(to_csv(report_of_picture()), "frame,psnr,ssim=k1=0\n0,inf,0.1\n");
  EXPECT_EQ(to_csv(report_of_directories()),
      "reference,distorted,frame,ssim\n"
      "r/a.png,d/a.png,0,0.5\n"
      "\"r/b,\"\"c\"\".png\",d/b.png,0,0.75\n"
      "r/c.png,d/c.png,0,\n");
}

TEST(ReportTable, IsAligned) {
  EXPECT_EQ(to_table(report_of_picture()),
      "metric        value\n"
      "psnr            inf\n"
      "ssim=k1=0  0.100000\n");
  Report small = report_of_picture();
  small.pairs[0].frames[0].values = {3.317188e-13, -0.00025};
  EXPECT_EQ(to_table(small),
      "metric         value\n"
      "psnr       3.317e-13\n"
      "ssim=k1=0  -0.000250\n");
  Report report = report_of_directories();
  report.pairs[0].files.distorted = "d/é.png";
  EXPECT_EQ(to_table(report),
      "distorted      ssim\n"
      "é.png      0.500000\n"
      "b.png      0.750000\n"
      "c.png             -\n"
      "\n"
      "mean       0.625000\n"
      "min        0.500000\n"
      "max        0.750000\n");
}

}  // namespace
}  // namespace similis::cli
