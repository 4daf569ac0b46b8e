// SPDX-License-Identifier: Apache-2.0
// `hearth inspect`.
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/format.h"
#include "tools/commands.h"
#include "tools/input_shapes.h"
#include "tools/load_model.h"
#include "tools/media/array.h"
#include "tools/text_table.h"
#include "tools/watchdog.h"

namespace hearth::tools {
namespace {

using Json = nlohmann::ordered_json;

// How many refused operations the text names before it only counts the rest.
constexpr size_t kMaxRefusals = 20;

std::string text(const Json& json) {
  return printable(json.get<std::string>());
}

std::string quantizationText(const Json& scales, const Json& zeroPoints) {
  if (scales.empty()) return "";
  if (scales.size() > 1) return base::formatText("{} scales", scales.size());
  return base::formatText(
      "{} x (q - {})", scales[0].is_null() ? "?" : base::formatText("{}", scales[0].get<float>()),
      zeroPoints.empty() ? "0" : zeroPoints[0].dump());
}

std::string argumentsText(const char* kind, const Json& arguments) {
  TextTable table({kind, "type", "shape", "value"}, "llll");
  for (const Json& argument : arguments) {
    const Json& scale = argument["scale"];
    const bool isQuantized = scale.is_null() || scale.get<double>() != 0;
    table.add({text(argument["name"]), text(argument["type"]),
               shapeText(argument["shape"].get<std::vector<uint64_t>>(),
                         argument["default_shape"].get<std::vector<uint64_t>>()),
               isQuantized
                   ? quantizationText(Json::array({scale}), Json::array({argument["zero_point"]}))
                   : ""});
  }
  return table.toString();
}

std::string answerText(const Json& answer) {
  if (!answer["supported"].get<bool>()) return "-";
  const std::string kernel = text(answer["kernel"]);
  return kernel.empty() ? "yes" : kernel;
}

// Operations grouped by type and by what each device answers.
std::string operationsText(const Json& signature, bool isFull) {
  std::vector<std::string> header = {"operation", isFull ? "index" : "count"};
  for (const Json& device : signature["devices"]) header.push_back(text(device["device"]));
  TextTable table(header, "lr" + std::string(signature["devices"].size(), 'l'));
  std::vector<std::vector<std::string>> rows;
  std::map<std::vector<std::string>, size_t> counts;
  for (const Json& operation : signature["operations"]) {
    std::vector<std::string> row = {text(operation["type"])};
    if (isFull) {
      if (!text(operation["name"]).empty()) row[0] += " " + text(operation["name"]);
      row.push_back(operation["index"].dump());
    }
    for (const Json& answer : operation["devices"]) row.push_back(answerText(answer));
    if (isFull)
      table.add(row);
    else if (++counts[row] == 1)
      rows.push_back(row);
  }
  for (std::vector<std::string>& row : rows) {
    const size_t count = counts[row];
    row.insert(row.begin() + 1, std::to_string(count));
    table.add(row);
  }
  return table.empty() ? "" : table.toString();
}

std::string refusalsText(const Json& signature) {
  std::string lines;
  size_t refusals = 0;
  for (const Json& device : signature["devices"])
    if (!device["problem"].is_null())
      lines += base::formatText("  {}: {}\n", text(device["device"]), text(device["problem"]));
  for (const Json& operation : signature["operations"])
    for (const Json& answer : operation["devices"]) {
      if (answer["supported"].get<bool>() || ++refusals > kMaxRefusals) continue;
      lines += base::formatText("  {} does not take operation {}, {}: {}\n", text(answer["device"]),
                                operation["index"].dump(), text(operation["type"]),
                                text(answer["reason"]));
    }
  if (refusals > kMaxRefusals)
    lines += base::formatText("  and {} more refusals\n", refusals - kMaxRefusals);
  return lines;
}

std::string tensorsText(const Json& subgraph) {
  TextTable table({"tensor", "name", "type", "shape", "value", "weights"}, "rllllr");
  for (const Json& tensor : subgraph["tensors"]) {
    const auto bytes = tensor["constant_bytes"].get<uint64_t>();
    table.add({tensor["index"].dump(), text(tensor["name"]), text(tensor["type"]),
               shapeText(tensor["shape"].get<std::vector<uint64_t>>(), {}),
               quantizationText(tensor["scales"], tensor["zero_points"]),
               tensor["variable"].get<bool>() ? "variable"
               : bytes == 0                   ? ""
                                              : bytesText(bytes)});
  }
  return table.toString();
}

// "0-3, 5" for operations of one step.
std::string rangesText(const std::vector<uint64_t>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    out += base::formatText("{}{}", out.empty() ? "" : ", ", numbers[i]);
    if (end - i > 1) out += base::formatText("-{}", numbers[end - 1]);
    i = end;
  }
  return out;
}

// Why operations run on a slow kernel, each reason once.
std::string slowText(const Json& signature) {
  std::vector<std::string> lines;
  std::map<std::string, std::vector<uint64_t>> operations;
  for (const Json& operation : signature["operations"])
    for (const Json& answer : operation["devices"]) {
      if (!answer["supported"].get<bool>() || text(answer["reason"]).empty()) continue;
      const std::string line = base::formatText("{} on {}: {}", text(operation["type"]),
                                                text(answer["device"]), text(answer["reason"]));
      if (!operations.contains(line)) lines.push_back(line);
      operations[line].push_back(operation["index"].get<uint64_t>());
    }
  std::string all;
  for (const std::string& line : lines)
    all += base::formatText("  slow kernel for operation{} {}, {}\n",
                            operations[line].size() == 1 ? "" : "s", rangesText(operations[line]),
                            line);
  return all;
}

std::string planText(const Json& plan) {
  if (plan.is_null()) return "";
  if (!plan["problem"].is_null())
    return base::formatText("\n  There is no plan: {}\n", text(plan["problem"]));
  TextTable table({"step", "device", "operations", "takes from and gives to other steps"}, "rlll");
  size_t number = 0;
  for (const Json& step : plan["steps"]) {
    std::string boundary;
    for (const char* list : {"inputs", "outputs"})
      for (const Json& tensor : step[list])
        if (tensor["boundary"].get<bool>())
          boundary +=
              base::formatText("{}{} {}{} {}", boundary.empty() ? "" : ", ",
                               list[0] == 'i' ? "from" : "to", tensor["index"].dump(),
                               text(tensor["name"]).empty() ? "" : " " + text(tensor["name"]),
                               shapeText(tensor["shape"].get<std::vector<uint64_t>>()));
    table.add({std::to_string(number++), text(step["device"]),
               rangesText(step["operations"].get<std::vector<uint64_t>>()), boundary});
  }
  return "\n" + table.toString();
}

// "mean 127.5, std 127.5; labels.txt (axis labels, en)": how a tensor is prepared or understood.
std::string handlingText(const Json& tensor) {
  std::string out;
  const auto add = [&out](const std::string& part) {
    if (!part.empty()) out += (out.empty() ? "" : "; ") + part;
  };
  add(text(tensor["content"]));
  add(text(tensor["color_space"]));
  for (const char* list : {"mean", "std"})
    if (!tensor[list].empty()) add(base::formatText("{} {}", list, tensor[list].dump()));
  if (!tensor["audio"].is_null())
    add(tensor["audio"]["sample_rate"].dump() + " samples per second");
  if (!tensor["score_threshold"].is_null()) add("scores from " + tensor["score_threshold"].dump());
  for (const Json& file : tensor["files"]) {
    std::string kind = text(file["type"]);
    if (!text(file["locale"]).empty()) kind += (kind.empty() ? "" : ", ") + text(file["locale"]);
    add(text(file["name"]) + (kind.empty() ? "" : " (" + kind + ")"));
  }
  return out;
}

std::string metadataTensorsText(const char* heading, const Json& tensors) {
  TextTable table({heading, "meaning", "handling"}, "lll");
  for (const Json& tensor : tensors)
    table.add({text(tensor["name"]), text(tensor["description"]), handlingText(tensor)});
  return table.empty() ? "" : "\n" + table.toString();
}

std::string metadataText(const Json& metadata) {
  std::string out;
  for (const char* key : {"name", "description", "version", "author", "license"})
    if (!text(metadata[key]).empty())
      out += base::formatText("  {:<12}{}\n", key, text(metadata[key]));
  std::string files;
  for (const Json& file : metadata["packed"])
    files += base::formatText("{}{} ({})", files.empty() ? "" : ", ", text(file["name"]),
                              bytesText(file["bytes"].get<uint64_t>()));
  if (!files.empty()) out += base::formatText("  {:<12}{}\n", "files", files);
  if (!metadata["problem"].is_null()) out += base::formatText("  {}\n", text(metadata["problem"]));
  out += metadataTensorsText("input", metadata["inputs"]);
  out += metadataTensorsText("output", metadata["outputs"]);
  return out.empty() ? "" : "\nWhat the model says of itself\n\n" + out;
}

std::string describe(const Json& json, const InspectOptions& options) {
  std::string out = base::formatText("{}{}\n\n", printable(options.model),
                                     options.part.empty() ? "" : ", " + printable(options.part));
  if (!text(json["description"]).empty())
    out += base::formatText("  {}\n", text(json["description"]));
  out += base::formatText("  {} file, {} of it weights; {} subgraph{}\n",
                          bytesText(json["file_bytes"].get<uint64_t>()),
                          bytesText(json["weight_bytes"].get<uint64_t>()), json["subgraphs"].size(),
                          json["subgraphs"].size() == 1 ? "" : "s");
  out += metadataText(json["metadata"]);
  for (const Json& signature : json["signatures"]) {
    out += base::formatText("\nSignature \"{}\"\n\n", text(signature["key"]));
    if (!signature["problem"].is_null()) {
      out += base::formatText("  {}\n", text(signature["problem"]));
      continue;
    }
    out += argumentsText("input", signature["inputs"]) + "\n";
    out += argumentsText("output", signature["outputs"]);
    const auto states = signature["state_tensors"].get<size_t>();
    if (states != 0)
      out += base::formatText("\n  {} state tensor{} keep{} values between runs\n", states,
                              states == 1 ? "" : "s", states == 1 ? "s its" : "");
    out += "\n" + operationsText(signature, options.isFull);
    const std::string refusals = refusalsText(signature);
    if (!refusals.empty()) out += "\n" + refusals;
    const std::string slow = slowText(signature);
    if (!slow.empty()) out += "\n" + slow;
    if (options.hasPlan) out += planText(signature["plan"]);
  }
  for (size_t i = 0; i < json["subgraphs"].size(); ++i) {
    const Json& subgraph = json["subgraphs"][i];
    out += base::formatText("\nSubgraph {} \"{}\": {} tensors, {} operations in the file\n", i,
                            text(subgraph["name"]), subgraph["tensors"].size(),
                            subgraph["operation_count"].dump());
    if (options.isFull) out += "\n" + tensorsText(subgraph);
    for (const Json& operation : subgraph["operations"])
      if (!operation["translated"].get<bool>())
        out +=
            base::formatText("  {} version {} ({} times, first operation {}) has no translation\n",
                             text(operation["type"]), operation["version"].dump(),
                             operation["count"].dump(), operation["first_index"].dump());
  }
  return out;
}

// "a = 1, b = 2"
std::string entriesText(const Json& metadata) {
  std::string out;
  for (const Json& entry : metadata) {
    const Json& value = entry["value"];
    out += base::formatText("{}{} = {}", out.empty() ? "" : ", ", text(entry["key"]),
                            value.is_string() ? text(value) : value.dump());
  }
  return out;
}

// Values as they are in JSON, but for a template, of which the size is enough.
std::string languageText(const Json& language) {
  TextTable table({"language model", ""}, "ll");
  for (const auto& [key, value] : language.items()) {
    if (value.is_null() || (value.is_array() && value.empty())) continue;
    std::string shown = value.is_string() ? text(value) : value.dump();
    if (key == "chat_template")
      shown = base::formatText("Jinja, {} bytes", value.get<std::string>().size());
    if (key == "caches" || (key == "suppressed_tokens" && value.size() > 8))
      shown = base::formatText("{} of them", value.size());
    table.add({key, shown});
  }
  return table.toString();
}

std::string containerText(const Json& json) {
  const auto fileBytes = json["file_bytes"].get<uint64_t>();
  std::string out =
      base::formatText("{}\n\n  {}, {}\n", text(json["model"]),
                       json["format"] == "zip"
                           ? "ZIP archive"
                           : base::formatText(".litertlm file, version {}", text(json["version"])),
                       bytesText(fileBytes));
  if (!json["metadata"].empty()) out += base::formatText("  {}\n", entriesText(json["metadata"]));
  TextTable table({"part", "kind", "type", "size", "at byte", "metadata"}, "lllrrl");
  std::string problems;
  bool hasModel = false;
  for (const Json& part : json["parts"]) {
    hasModel |= part["kind"] == "model" && part["problem"].is_null();
    table.add({text(part["name"]), text(part["kind"]), text(part["type"]),
               bytesText(part["bytes"].get<uint64_t>()), part["offset"].dump(),
               entriesText(part["metadata"])});
    if (!part["problem"].is_null())
      problems += base::formatText("  {}: {}\n", text(part["name"]), text(part["problem"]));
  }
  if (!table.empty()) out += "\n" + table.toString();
  if (!problems.empty()) out += "\n" + problems;
  if (json["language_model"].is_object()) out += "\n" + languageText(json["language_model"]);
  if (hasModel) out += "\n--part NAME inspects a model.\n";
  return out;
}

}  // namespace

Outcome<void> inspectCommand(
    const InspectOptions& options,
    const std::function<std::string(const std::string& path)>& describeLanguage) {
  CompileOptions wanted;
  HEARTH_ASSIGN(wanted.shapes, parseInputShapes(options.shapes));
  Watchdog watchdog(options.timeoutSeconds);
  watchdog.beginStage("inspecting the model");
  std::string inspection;
  bool isContainer = false;
  bool isLoaded = false;
  try {
    if (options.part.empty()) inspection = describeContainer(options.model);
    isContainer = options.part.empty() && Json::parse(inspection)["format"] != "tflite";
    if (!isContainer) {
      HEARTH_ASSIGN(const Model model, loadModel(options.model, options.part));
      isLoaded = true;
      inspection = options.shapes.empty() ? model.inspect() : model.inspect(wanted);
    }
  } catch (const Exception& exception) {
    Failure failure(exception);
    // Of a model that is there, only an input of the command line can be missing.
    if (exception.code() == HEARTH_NOT_FOUND && isLoaded) failure.exitCode = kExitUsage;
    return std::unexpected(std::move(failure));
  }
  Json json = {{"model", options.model}};
  if (!isContainer) json["part"] = options.part.empty() ? Json(nullptr) : Json(options.part);
  json.update(Json::parse(inspection));
  if (isContainer) {
    const std::string language = describeLanguage(options.model);
    json["language_model"] = language.empty() ? Json(nullptr) : Json::parse(language);
  }
  watchdog.beginStage("");
  if (options.isJson)
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  else
    std::cout << (isContainer ? containerText(json) : describe(json, options));
  return {};
}

}  // namespace hearth::tools
