// SPDX-License-Identifier: Apache-2.0
#include "api/inspection.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "api/given_shapes.h"
#include "api/handles.h"
#include "api/metadata.h"
#include "base/env.h"
#include "frontends/tflite/container/container.h"
#include "graph/step_model.h"
#include "hal/extension_operations.h"
#include "hearth/hearth.hpp"
#include "memory/pool.h"
#include "ops/custom_operator.h"
#include "runtime/partitioner.h"

namespace hearth::api {
namespace {

// A hostile file can name one subgraph in many signatures, and each one costs an import.
constexpr size_t kMaxDetailedSignatures = 32;

using Json = nlohmann::ordered_json;

// JSON has no infinity and no NaN.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json tensorJson(const tflite::TensorSummary& tensor, size_t index) {
  Json json = {{"index", index},
               {"name", tensor.name},
               {"type", tensor.tfliteType},
               {"shape", tensor.dimensions},
               {"scales", Json::array()},
               {"zero_points", tensor.zeroPoints},
               {"constant_bytes", tensor.constantBytes},
               {"variable", tensor.isVariable}};
  for (const float scale : tensor.scales) json["scales"].push_back(number(scale));
  return json;
}

Json subgraphJson(const tflite::SubgraphSummary& subgraph) {
  Json json = {{"name", subgraph.name},
               {"inputs", subgraph.inputs},
               {"outputs", subgraph.outputs},
               {"tensors", Json::array()},
               {"operation_count", subgraph.operationCount},
               {"operations", Json::array()}};
  for (size_t i = 0; i < subgraph.tensors.size(); ++i)
    json["tensors"].push_back(tensorJson(subgraph.tensors[i], i));
  for (const tflite::OperationSummary& operation : subgraph.operations)
    json["operations"].push_back({{"type", operation.name},
                                  {"version", operation.version},
                                  {"custom", operation.isCustom},
                                  {"count", operation.count},
                                  {"first_index", operation.firstIndex},
                                  {"translated", operation.isSupported}});
  return json;
}

Json argumentJson(const tflite::TensorInfo& tensor) {
  const auto type = publicType(tensor.type);
  return {{"name", tensor.name},
          {"shape", tensor.dimensions},
          {"default_shape", tensor.defaultDimensions()},
          {"type", type ? typeName(*type) : tensor.tfliteType},
          {"scale", number(tensor.scale)},
          {"zero_point", tensor.zeroPoint}};
}

// Adds the operations with each device's answer, and a summary for each device.
void addDevices(const graph::Model& model, const runtime::DeviceManager& devices, Json* signature) {
  const graph::Subgraph& main = model.main();
  Json operations = Json::array();
  for (size_t i = 0; i < main.operations.size(); ++i)
    operations.push_back({{"index", i},
                          {"type", ops::operatorName(model, main, main.operations[i])},
                          {"name", main.operations[i].name},
                          {"devices", Json::array()}});
  Json summaries = Json::array();
  for (const auto& device : devices.devices()) {
    auto support = device->explainOperations(model);
    Json summary = {{"device", device->name()}, {"operations_taken", 0}, {"problem", nullptr}};
    if (!support) {
      summary["problem"] = support.error().toString();
    } else {
      hal::leaveOutExtensionOperations(*device, model, &*support);
      size_t taken = 0;
      for (size_t i = 0; i < support->size() && i < operations.size(); ++i) {
        const hal::OperationSupport& answer = (*support)[i];
        taken += answer.supported;
        operations[i]["devices"].push_back({{"device", device->name()},
                                            {"supported", answer.supported},
                                            {"kernel", answer.kernel},
                                            {"reason", answer.reason}});
      }
      summary["operations_taken"] = taken;
    }
    summaries.push_back(std::move(summary));
  }
  (*signature)["devices"] = std::move(summaries);
  (*signature)["operations"] = std::move(operations);
}

// The inputs or outputs of a step; `operands` are indices in the whole model.
Json stepTensors(const graph::Subgraph& main, const std::vector<uint32_t>& operands) {
  Json tensors = Json::array();
  for (const uint32_t index : operands) {
    const graph::Operand& operand = main.operands[index];
    tensors.push_back({{"index", index},
                       {"name", operand.name},
                       {"type", graph::nameOf(operand.type)},
                       {"shape", operand.dimensions},
                       {"boundary", operand.lifetime == graph::Lifetime::kTemporary}});
  }
  return tensors;
}

// The partitioning of the model for an NNAPI compilation without a list of devices.
Json planJson(const graph::Model& model, const runtime::DeviceManager& devices) {
  Json plan = {{"problem", nullptr}, {"steps", Json::array()}};
  const Result<std::string> tuning = base::envChoice(base::Env::kTuning);
  runtime::DeviceSpeeds* const speeds = tuning && *tuning == "on" ? devices.speeds() : nullptr;
  const auto partition =
      runtime::partition(model, devices.devices(), hal::PrepareOptions(), speeds);
  if (!partition) {
    plan["problem"] = partition.error().toString();
    return plan;
  }
  for (const runtime::PartitionStep& step : partition->steps) {
    const graph::StepModel part = graph::makeStepModel(model, step.operations);
    const bool isDevice = step.device < devices.devices().size();
    plan["steps"].push_back(
        {{"device", isDevice ? devices.devices()[step.device]->name() : "control flow"},
         {"operations", step.operations},
         {"inputs", stepTensors(model.main(), part.inputs)},
         {"outputs", stepTensors(model.main(), part.outputs)}});
  }
  return plan;
}

// The graph of a signature, with the shapes of the options.
Result<tflite::ImportedGraph> importAs(const tflite::ModelFile& file, const std::string& key,
                                       const hearth_compile_options& options) {
  if (options.shape_count == 0) return file.importSignature(key);
  HEARTH_ASSIGN(tflite::ImportedGraph graph, file.importSignature(key, tflite::Shapes::kOpen));
  HEARTH_TRY(giveShapes(options, &graph));
  return graph;
}

Json withoutDevices(const std::string& key, const Result<tflite::ImportedGraph>& imported) {
  Json json = {{"key", key},
               {"problem", nullptr},
               {"inputs", Json::array()},
               {"outputs", Json::array()},
               {"state_tensors", 0}};
  if (!imported) {
    json["problem"] = imported.error().toString();
    return json;
  }
  for (const tflite::TensorInfo& tensor : imported->inputs)
    json["inputs"].push_back(argumentJson(tensor));
  for (const tflite::TensorInfo& tensor : imported->outputs)
    json["outputs"].push_back(argumentJson(tensor));
  json["state_tensors"] = imported->states.size();
  return json;
}

Json signatureJson(const std::string& key, const Result<tflite::ImportedGraph>& imported,
                   const runtime::DeviceManager& devices) {
  Json json = withoutDevices(key, imported);
  json.update({{"devices", Json::array()}, {"operations", Json::array()}, {"plan", nullptr}});
  if (!imported) return json;
  addDevices(*imported->model, devices, &json);
  json["plan"] = planJson(*imported->model, devices);
  return json;
}

const char* kindName(tflite::PartKind kind) {
  switch (kind) {
    case tflite::PartKind::kModel:
      return "model";
    case tflite::PartKind::kContainer:
      return "container";
    case tflite::PartKind::kWeights:
      return "weights";
    case tflite::PartKind::kTokenizer:
      return "tokenizer";
    case tflite::PartKind::kMetadata:
      return "metadata";
    case tflite::PartKind::kOther:
      break;
  }
  return "other";
}

Json valueJson(const tflite::MetadataValue& value) {
  if (const auto* const real = std::get_if<double>(&value)) return number(*real);
  return std::visit(
      [](const auto& known) -> Json {
        if constexpr (std::is_same_v<decltype(known), const std::monostate&>)
          return nullptr;
        else
          return known;
      },
      value);
}

// A list, since a key may be there twice.
Json metadataJson(const std::vector<tflite::MetadataEntry>& metadata) {
  Json json = Json::array();
  for (const tflite::MetadataEntry& entry : metadata)
    json.push_back({{"key", entry.key}, {"value", valueJson(entry.value)}});
  return json;
}

Json partJson(const tflite::Part& part) {
  return {{"name", part.name},
          {"kind", kindName(part.kind)},
          {"type", part.type},
          {"offset", part.offset},
          {"bytes", part.size},
          {"problem", part.problem.empty() ? Json(nullptr) : Json(part.problem)},
          {"metadata", metadataJson(part.metadata)}};
}

}  // namespace

Result<std::string> describeContainer(const std::string& path) {
  HEARTH_ASSIGN(const memory::PoolRef pool, tflite::openModelPool(path));
  HEARTH_ASSIGN(const std::optional<tflite::Container> found,
                tflite::readContainer({pool->data(), pool->size()}));
  Json json = {{"format", "tflite"},
               {"version", nullptr},
               {"file_bytes", pool->size()},
               {"metadata", Json::array()},
               {"parts", Json::array()}};
  if (found) {
    json["format"] = found->format == tflite::ContainerFormat::kZip ? "zip" : "litertlm";
    if (!found->version.empty()) json["version"] = found->version;
    json["metadata"] = metadataJson(found->metadata);
    for (const tflite::Part& part : found->parts) json["parts"].push_back(partJson(part));
  }
  return json.dump(2);
}

std::string describeSignature(const tflite::ModelFile& file, const std::string& key) {
  return withoutDevices(key, file.importSignature(key))
      .dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string inspectModel(const tflite::ModelFile& file, const runtime::DeviceManager& devices) {
  constexpr hearth_compile_options kDefaults = HEARTH_COMPILE_OPTIONS_INIT;
  return *inspectModel(file, devices, kDefaults);  // without shapes and a key nothing fails
}

Result<std::string> inspectModel(const tflite::ModelFile& file,
                                 const runtime::DeviceManager& devices,
                                 const hearth_compile_options& options) {
  const tflite::ModelSummary summary = file.summary();
  Json json = {{"description", summary.description},
               {"version", summary.version},
               {"file_bytes", summary.fileBytes},
               {"weight_bytes", summary.weightBytes},
               {"metadata", metadataJson(file.metadata())},
               {"signatures", Json::array()},
               {"subgraphs", Json::array()}};
  std::vector<std::string> keys = file.signatureKeys();
  const std::string_view wanted = options.signature == nullptr ? "" : options.signature;
  if (!wanted.empty()) {
    if (!std::ranges::contains(keys, wanted))
      return fail(ErrorCode::kNotFound, "The model has no signature \"{}\", it has {}.", wanted,
                  keys.size());
    keys = {std::string(wanted)};
  }
  if (keys.empty()) keys.emplace_back();
  keys.resize(std::min(keys.size(), kMaxDetailedSignatures));
  bool isAnyTaken = options.shape_count == 0;
  std::optional<Error> refusal;
  for (const std::string& key : keys) {
    const auto imported = importAs(file, key, options);
    isAnyTaken |= imported.has_value();
    if (!imported && !refusal) refusal = imported.error();
    json["signatures"].push_back(signatureJson(key, imported, devices));
  }
  if (!isAnyTaken)
    return std::unexpected(std::move(*refusal).addContext("while giving the inputs other shapes"));
  for (const tflite::SubgraphSummary& subgraph : summary.subgraphs)
    json["subgraphs"].push_back(subgraphJson(subgraph));
  // Names in a file need not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hearth::api
