// SPDX-License-Identifier: Apache-2.0
#include "llm/schema_formats.h"

namespace hearth::llm {
namespace {

std::string choice(std::initializer_list<std::string> choices) {
  std::string text;
  for (const std::string& one : choices) text += (text.empty() ? "(?:" : "|") + one;
  return text + ")";
}

// RFC 3339. No year 0, which programs know that begin to count with 1.
std::string date() {
  const std::string year = choice({"[0-9]{3}[1-9]", "[0-9]{2}[1-9]0", "[0-9][1-9]00", "[1-9]000"});
  const std::string leapYear =
      choice({"[0-9]{2}(?:0[48]|[2468][048]|[13579][26])", "(?:0[48]|[2468][048]|[13579][26])00"});
  const std::string days =
      choice({"(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])",
              "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)", "02-(?:0[1-9]|1[0-9]|2[0-8])"});
  return choice({year + "-" + days, leapYear + "-02-29"});
}

// RFC 3339, without leap seconds.
std::string timeOfDay() {
  return "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?"
         "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
}

// RFC 3339, appendix A.
std::string duration() {
  const std::string number = "[0-9]{1,9}";
  const std::string second = number + "S";
  const std::string minute = number + "M(?:" + second + ")?";
  const std::string hour = number + "H(?:" + minute + ")?";
  const std::string clock = "T" + choice({hour, minute, second});
  const std::string day = number + "D";
  const std::string month = number + "M(?:" + day + ")?";
  const std::string year = number + "Y(?:" + month + ")?";
  return "P" + choice({choice({day, month, year}) + "(?:" + clock + ")?", clock, number + "W"});
}

std::string ipv4() {
  const std::string byte = choice({"25[0-5]", "2[0-4][0-9]", "1[0-9]{2}", "[1-9]?[0-9]"});
  return byte + "(?:\\." + byte + "){3}";
}

// RFC 4291, without the form that ends as an address of version 4.
std::string ipv6() {
  const std::string group = "[0-9a-fA-F]{1,4}";
  const std::string before = "(?:" + group + ":)";
  const std::string behind = "(?::" + group + ")";
  return choice({before + "{7}" + group, before + "{1,7}:", before + "{1,6}" + behind,
                 before + "{1,5}" + behind + "{1,2}", before + "{1,4}" + behind + "{1,3}",
                 before + "{1,3}" + behind + "{1,4}", before + "{1,2}" + behind + "{1,5}",
                 before + behind + "{1,6}", ":(?:" + behind + "{1,7}|:)"});
}

// Names of up to four parts that are shorter than they may be, so that all together are not too
// long.
std::string hostName(const char* parts) {
  const std::string label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}[A-Za-z0-9])?";
  return label + "(?:\\." + label + ")" + parts;
}

std::string email() {
  const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]";
  return atom + "{1,31}(?:\\." + atom + "{1,31})?@" + hostName("{1,3}");
}

std::string uuid() {
  return "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";
}

std::string textOf(std::string_view format) {
  if (format == "date") return date();
  if (format == "time") return timeOfDay();
  if (format == "date-time") return date() + "T" + timeOfDay();
  if (format == "duration") return duration();
  if (format == "uuid") return uuid();
  if (format == "ipv4") return ipv4();
  if (format == "ipv6") return ipv6();
  if (format == "hostname") return hostName("{0,3}");
  if (format == "email") return email();
  return "";
}

}  // namespace

std::string expressionOfFormat(std::string_view format) {
  const std::string text = textOf(format);
  return text.empty() ? text : "^(?:" + text + ")$";
}

}  // namespace hearth::llm
