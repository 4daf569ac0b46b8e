// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/partition.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/sha256.h"
#include "base/trace.h"
#include "frontends/delegate/shape_inference.h"
#include "frontends/delegate/tables_writer.h"
#include "frontends/tflite/model_file.h"
#include "graph/validated_model.h"
#include "ops/operation.h"
#include "runtime/compilation.h"
#include "runtime/device_manager.h"
#include "runtime/start_record.h"

namespace hearth::delegate {
namespace {

// Takes the tables out of the model's pools. They are written anew at each start, so the weight
// store would have to hash them each time, and they would stay in memory as long as the model. What
// they say is in the file, too, whose content the store remembers.
void leaveOutTables(graph::Model* model) {
  const auto forEachReference = [model](auto&& apply) {
    for (graph::Subgraph& subgraph : model->subgraphs)
      for (graph::Operand& operand : subgraph.operands)
        if (operand.lifetime == graph::Lifetime::kConstantReference) apply(operand.location.pool);
  };
  bool isRead = false;
  forEachReference([&](uint32_t pool) { isRead = isRead || pool == 0; });
  if (isRead || model->pools.empty()) return;
  forEachReference([](uint32_t& pool) { --pool; });
  model->pools.erase(model->pools.begin());
}

Result<TranslatedPartition> translateWith(const PartitionSource& source, ShapeTrust trust) {
  HEARTH_ASSIGN(WrittenTables written, writeTables(source, trust));
  HEARTH_ASSIGN(const auto file, tflite::ModelFile::fromTables(std::move(written.tables),
                                                               std::move(written.values)));
  HEARTH_ASSIGN(const tflite::ImportedGraph imported, file->importSubgraph(0));
  HEARTH_TRY(ops::validateOperationsOnce(*imported.model));
  graph::Model model = *imported.model;
  HEARTH_TRY(inferShapes(&model));
  if (source.isOfFile) leaveOutTables(&model);
  TranslatedPartition translated;
  for (const int64_t tensor : imported.stateTensors) {
    if (tensor < 0)
      return fail(ErrorCode::kUnsupported,
                  "An operation has a state that the runtime does not show.");
    translated.variables.push_back(written.tensors[static_cast<size_t>(tensor)]);
  }
  HEARTH_ASSIGN(translated.model, graph::ValidatedModel::of(std::move(model)));
  return translated;
}

// The token of one partition with its shapes, for which the client has one token for all.
hal::CacheToken tokenOf(const PartitionSource& source, const DelegateOptions& options) {
  base::Sha256 hash;
  const auto add = [&hash](uint64_t number) {
    hash.update(&number, sizeof(number));
  };
  add(options.modelToken.size());
  hash.update(options.modelToken.data(), options.modelToken.size());
  add(source.nodes.size());
  for (const auto* list : {&source.inputs, &source.outputs}) {
    add(list->size());
    for (const int32_t tensor : *list) {
      add(static_cast<uint64_t>(tensor));
      const graph::Dimensions& dimensions = source.tensors.at(tensor).dimensions;
      add(dimensions.size());
      for (const uint32_t dimension : dimensions) add(dimension);
    }
  }
  add(options.allowsFp16 ? 1 : 0);
  return hash.finish();
}

void appendReport(const runtime::Compilation& compilation, const std::string& file,
                  std::chrono::steady_clock::time_point begin) {
  if (!runtime::isReportWanted()) return;
  runtime::StartRecord record;
  record.model = file;
  record.device = compilation.deviceNames();
  record.cache = compilation.cacheOutcome();
  record.choice = compilation.parts().reason;
  record.prepareMs =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  record.setReport(compilation.preparedModel().startReportSoFar());
  runtime::appendToReport(record);
}

}  // namespace

Result<TranslatedPartition> translate(const PartitionSource& source) {
  auto translated = translateWith(source, ShapeTrust::kStated);
  if (translated) return translated;
  // After an input was resized, the runtime still states the old shapes of what is computed.
  auto again = translateWith(source, ShapeTrust::kUnknown);
  const bool tellsMore = again || again.error().code() == ErrorCode::kIncomplete;
  return tellsMore ? std::move(again) : std::move(translated);
}

Status checkDevices(const graph::Model& model, const DelegateOptions& options) {
  std::vector<std::shared_ptr<hal::Device>> devices = options.compilation.devices;
  // The last resort takes whatever any other device does.
  if (devices.empty()) devices.push_back(runtime::DeviceManager::shared().reference());
  const std::vector<graph::Operation>& operations = model.main().operations;
  std::vector<bool> isTaken(operations.size(), false);
  std::string reason;
  for (const auto& device : devices) {
    HEARTH_ASSIGN(const std::vector<hal::OperationSupport> support,
                  device->supportedOperations(model));
    for (size_t i = 0; i < operations.size() && i < support.size(); ++i) {
      if (support[i].supported) isTaken[i] = true;
      if (!support[i].supported && reason.empty()) reason = support[i].reason;
    }
  }
  const auto missing = std::ranges::find(isTaken, false);
  if (missing == isTaken.end()) return {};
  return fail(ErrorCode::kUnsupported, "No device takes {}: {}",
              graph::nameOf(operations[missing - isTaken.begin()].type), reason);
}

Result<CompiledPartition> compile(const PartitionSource& source, TranslatedPartition translated,
                                  const DelegateOptions& options, unsigned threads,
                                  const std::string& file) {
  const base::TraceSpan span("delegate", "compile");
  const auto begin = std::chrono::steady_clock::now();
  if (options.allowsFp16) {
    graph::Model relaxed = *translated.model;
    relaxed.relaxFloat32ToFloat16 = true;
    HEARTH_ASSIGN(translated.model, graph::ValidatedModel::of(std::move(relaxed)));
  }
  runtime::CompilationOptions wanted = options.compilation;
  wanted.prepare.threads = threads;
  if (!options.cacheFolder.empty()) {
    auto request = std::make_shared<runtime::CacheRequest>();
    request->folder = options.cacheFolder;
    request->token = tokenOf(source, options);
    wanted.cache = std::move(request);
  }
  CompiledPartition compiled;
  HEARTH_ASSIGN(
      const auto compilation,
      runtime::Compilation::create(translated.model, {}, wanted, runtime::DeviceManager::shared()));
  HEARTH_ASSIGN(compiled.execution, runtime::Execution::create(compilation));
  compiled.variables = std::move(translated.variables);
  for (size_t i = 0; i < source.outputs.size(); ++i)
    compiled.outputDimensions.push_back(compilation->output(i).dimensions);
  appendReport(*compilation, file, begin);
  return compiled;
}

}  // namespace hearth::delegate
