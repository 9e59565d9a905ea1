// SPDX-License-Identifier: Apache-2.0
// The JSON document as XML. Names of metrics, such as ssim=window_size=7, are not XML names, so
// they are attributes: <score metric="…" value="…"/>. Values that are null in JSON are omitted.
#include <fmt/core.h>

#include <cmath>
#include <cstddef>

#include "src/cli/results/report.h"
#include "src/cli/terminal/json_text.h"
#include "src/core/number_text.h"

namespace similis::cli {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (c == '\t' || c == '\n' || c == '\r') {
      result += "&#" + std::to_string(code) + ";";
    } else if (code < 0x20) {
      result += "\xef\xbf\xbd";  // U+FFFD, as XML 1.0 cannot represent the character
    } else {
      result += c;
    }
  }
  return result;
}

// A plain value as in JSON, but texts without quotes and lists without brackets.
std::string value_text(const Json& value) {
  if (value.is_string()) {
    const std::string valid = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return Json::parse(valid).get<std::string>();
  }
  if (value.is_number_float()) return shortest(value.get<double>());
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& element : value) {
    if (!text.empty()) text += ',';
    text += value_text(element);
  }
  return text;
}

bool is_plain(const Json& value) {
  if (value.is_number_float()) return std::isfinite(value.get<double>());
  if (value.is_array()) return value.empty() || !value.front().is_structured();
  return !value.is_null() && !value.is_object();
}

std::string attribute(const std::string& name, const Json& value) {
  if (!is_plain(value)) return {};
  return fmt::format(" {}=\"{}\"", name, escaped(value_text(value)));
}

// The plain members of an object as attributes.
std::string attributes(const Json& object) {
  std::string text;
  for (const auto& [name, value] : object.items()) text += attribute(name, value);
  return text;
}

// An element for each member of an object whose keys are names of metrics or files.
std::string named_elements(
    const char* element, const char* name, const Json& object, const std::string& indent) {
  std::string text;
  for (const auto& [key, value] : object.items()) {
    text += fmt::format("{}<{}{}{}/>\n", indent, element, attribute(name, key),
        value.is_object() ? attributes(value) : attribute("text", value));
  }
  return text;
}

// The changes made to the inputs on request, an element for each step.
std::string done_xml(const Json& settings, const std::string& indent) {
  std::string text;
  if (!settings.contains("done")) return text;
  for (const Json& step : settings["done"]) {
    text += fmt::format("{}<done{}/>\n", indent, attributes(step));
  }
  return text;
}

std::string settings_xml(const Json& settings) {
  std::string text = fmt::format("  <settings{}>\n", attributes(settings));
  for (const auto& [key, value] : settings.items()) {
    if (!value.is_object() || key == "metrics" || key == "differences") continue;
    const bool is_by_file = !value.empty() && value.front().is_object();
    text += is_by_file ? named_elements(key.c_str(), "distorted", value, "    ")
                       : fmt::format("    <{}{}/>\n", key, attributes(value));
  }
  text += named_elements("metric", "name", settings["metrics"], "    ");
  if (settings.contains("differences")) {
    const char* name = settings["differences"].front().is_object() ? "distorted" : "kind";
    text += named_elements("difference", name, settings["differences"], "    ");
  }
  text += done_xml(settings, "    ");
  text += "  </settings>\n";
  return text;
}

std::string metrics_xml(const Json& metrics, const std::string& indent) {
  return fmt::format("{0}<metrics>\n{1}{0}</metrics>\n", indent,
      named_elements("metric", "name", metrics, indent + "  "));
}

std::string frames_xml(const Json& frames, const std::string& indent) {
  std::string text = fmt::format("{}<frames>\n", indent);
  for (const Json& frame : frames) {
    text += fmt::format("{}  <frame{}>", indent, attribute("number", frame["frame"]));
    for (const auto& [name, value] : frame.items()) {
      if (name == "frame" || !is_plain(value)) continue;
      text += fmt::format("<score{}{}/>", attribute("metric", name), attribute("value", value));
    }
    text += "</frame>\n";
  }
  text += fmt::format("{}</frames>\n", indent);
  return text;
}

std::string pairs_xml(const Json& pairs) {
  std::string text = "  <pairs>\n";
  for (const Json& pair : pairs) {
    std::string settings;
    if (pair.contains("settings")) {
      const Json& own = pair["settings"];
      settings = fmt::format("      <settings{}>\n{}{}      </settings>\n", attributes(own),
          own.contains("metrics") ? named_elements("metric", "name", own["metrics"], "        ")
                                  : "",
          done_xml(own, "        "));
    }
    text += fmt::format("    <pair{}{}>\n{}{}{}    </pair>\n",
        attribute("reference", pair["reference"]), attribute("distorted", pair["distorted"]),
        settings, metrics_xml(pair["metrics"], "      "), frames_xml(pair["frames"], "      "));
  }
  text += "  </pairs>\n";
  return text;
}

std::string encodes_xml(const Json& encodes) {
  std::string text = "  <encodes>\n";
  for (const Json& encode : encodes) {
    text += fmt::format("    <encode{}>\n{}{}    </encode>\n", attributes(encode),
        metrics_xml(encode["metrics"], "      "), frames_xml(encode["frames"], "      "));
  }
  return text + "  </encodes>\n";
}

std::string curves_xml(const Json& curves) {
  std::string text = "  <curves>\n";
  for (const Json& curve : curves) {
    text += fmt::format("    <curve{}>\n{}    </curve>\n", attributes(curve),
        curve.contains("metrics") ? named_elements("metric", "name", curve["metrics"], "      ")
                                  : "");
  }
  return text + "  </curves>\n";
}

std::string unmatched_xml(const Json& unmatched) {
  std::string text = "  <unmatched>\n";
  for (const Json& file : unmatched) text += fmt::format("    <file{}/>\n", attributes(file));
  text += "  </unmatched>\n";
  return text;
}

}  // namespace

std::string to_xml(const Report& report) {
  const Json document = report_document(report);
  std::string head = attribute("version", document["similis"]);
  for (const char* name : {"reference", "distorted", "device", "error"}) {
    if (document.contains(name)) head += attribute(name, document[name]);
  }
  if (report.compared == Compared::encodes) {
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<similis{}>\n{}{}{}</similis>\n", head,
        settings_xml(document["settings"]), encodes_xml(document["encodes"]),
        document.contains("curves") ? curves_xml(document["curves"]) : "");
  }
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<similis{}>\n{}{}{}</similis>\n",
      head, settings_xml(document["settings"]), metrics_xml(document["metrics"], "  "),
      report.compared == Compared::directories
          ? pairs_xml(document["pairs"]) + unmatched_xml(document["unmatched"])
          : frames_xml(document["frames"], "  "));
}

}  // namespace similis::cli
