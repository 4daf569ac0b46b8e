// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/cpu_device.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/caught.h"
#include "base/log.h"
#include "cache/anonymous_store.h"
#include "cache/compilation/cache_files.h"
#include "drivers/cpu/compilation_cache/cache_explanation.h"
#include "drivers/cpu/compilation_cache/model_cache.h"
#include "drivers/cpu/compilation_cache/save_queue.h"
#include "drivers/cpu/compilation_cache/saved_segments.h"
#include "drivers/cpu/dynamic_model.h"
#include "drivers/cpu/kernel_explanation.h"
#include "drivers/cpu/model_division.h"
#include "drivers/cpu/platform/host_facts.h"
#include "drivers/cpu/platform/thread_pools.h"
#include "drivers/cpu/prepared_model.h"
#include "drivers/cpu/weights/open_stores.h"
#include "drivers/cpu/weights/segment_prefetcher.h"
#include "drivers/cpu/weights/stored_host_facts.h"
#include "graph/step_model.h"
#include "graph/validated_model.h"
#include "hal/cache_explainer.h"
#include "hal/extension_operations.h"
#include "hal/interpreted_model.h"
#include "hal/operation_check.h"
#include "hal/preparation_check.h"
#include "hal/request_check.h"
#include "memory/limits.h"
#include "ops/branch_constants.h"
#include "ops/operation.h"
#include "ops/specialized_model.h"
#include "ops/unread_pixels.h"

namespace hearth::cpu {
namespace {

// Upper limits of the address space that a start takes for the store: copies of the packed
// constants, which are larger than the constants themselves, and stacks and heaps of threads.
constexpr uint64_t kStoreCopies = 4;
constexpr uint64_t kStoreAddresses = uint64_t{256} << 20;

class CpuDevice final : public hal::Device, public hal::CacheExplainer {
 public:
  std::string name() const override { return kCpuDeviceName; }
  std::string version() const override { return HEARTH_VERSION; }
  hal::DeviceType type() const override { return hal::DeviceType::kCpu; }
  int64_t featureLevel() const override { return 1000007; }
  std::vector<std::string> supportedExtensions() const override {
    return {std::string(graph::kTfliteExtensionName), std::string(hal::kCustomExtensionName),
            std::string(hal::kStringExtensionName)};
  }

  hal::Capabilities capabilities() const override {
    // Faster than the reference CPU that all figures are relative to.
    hal::Capabilities capabilities;
    const hal::PerformanceInfo fast{0.1f, 0.5f};
    for (const graph::OperandTypeInfo& info : graph::operandTypes())
      capabilities.operandPerformance[info.type] = fast;
    capabilities.relaxedFloat32 = fast;
    capabilities.ifPerformance = fast;
    capabilities.whilePerformance = fast;
    return capabilities;
  }

  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override {
    HEARTH_TRY(hal::checkPoolsMapped(model));
    HEARTH_TRY(graph::validateOnce(model));
    std::vector<hal::OperationSupport> support = hal::checkOperations(model);
    // Only with one subgraph: checkOperations() skips subgraphs that the main one does not use.
    if (model.subgraphs.size() == 1 &&
        std::ranges::all_of(support, &hal::OperationSupport::supported))
      if (const auto* validated = graph::ValidatedModel::from(model); validated != nullptr)
        validated->setOperationsValid();
    return support;
  }
  Result<std::vector<hal::OperationSupport>> explainOperations(const graph::Model& model) override;

  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache cache) override;

  Result<hal::CacheFileCounts> numberOfCacheFilesNeeded() const override {
    return kCacheFileCounts;
  }
  Result<std::shared_ptr<hal::PreparedModel>> prepareModelFromCache(
      const hal::PrepareOptions& options, hal::Cache cache) override;
  Result<hal::StartReport> explainStart(std::shared_ptr<const graph::Model> model,
                                        const hal::PrepareOptions& options) override;
  void flush() override {
    flushStores();
    static_cast<void>(SaveQueue::finishAll());
  }

  void warmUp() override {
    // A failure is reported when a model is prepared.
    (void)initializeXnnpack();
  }

  Result<base::Sha256Digest> cacheBuild() const override {
    HEARTH_ASSIGN(const cache::CacheOwner owner, cacheOwner({}));
    return owner.build;
  }
  hal::CacheVerdict explainCache(const graph::Model& model, const hal::PrepareOptions& options,
                                 const hal::Cache& cache) override {
    return cpu::explainCache(model, options, cache);
  }
};

// The client's cache files of a model. They stay locked from the preparation until the first save
// ends, so that other processes see that they are being written.
struct ClientFiles {
  explicit ClientFiles(hal::Cache given) : cache(std::move(given)) {
    if (cache.modelFiles.empty()) return;
    if (auto taken = cache::CacheFileLock::take(cache.modelFiles[0].get(), {})) {
      lock.emplace(std::move(*taken));
    }
  }
  bool areThere() const { return !cache.modelFiles.empty() || !cache.dataFiles.empty(); }

  const hal::Cache cache;
  std::optional<cache::CacheFileLock> lock;  // none when another process holds it
};

// Why cache files were not written; empty when they were.
std::string problemOf(const Status& saved) {
  if (saved) return "";
  base::logInfo("A compilation is not cached. {}", saved.error().toString());
  return saved.error().toString();
}

// Writes the client's cache files. Returns why that failed; empty when it did not, or when the
// client has none.
std::string save(const ModelParts& parts, cache::SegmentStore& store, ClientFiles& files) {
  if (!files.areThere()) return "";
  const Status saved = base::caught([&] { return saveModel(parts, store, files.cache); });
  files.lock.reset();
  return problemOf(saved);
}

std::shared_ptr<cache::SegmentStore> storeWithoutMemory() {
  return std::make_shared<cache::AnonymousStore>(
      cache::StoreFailure{cache::StoreReason::kNoMemory, "There is no memory for the store."});
}

// The store for a model. Where it cannot be opened, this is one that keeps nothing: a model never
// fails because of the store.
std::shared_ptr<cache::SegmentStore> storeFor(const graph::Model& model,
                                              const hal::PrepareOptions& options) {
  const uint64_t kept = WeightSession::bytesWorthKeeping(model);
  if (kept == 0)
    return std::make_shared<cache::AnonymousStore>(
        cache::StoreFailure{cache::StoreReason::kOff, "The model is too small to keep."});
  // Under a limit on the address space the model goes first: threads of the store take a part of it
  // for ever.
  if (memory::addressesLeft() / kStoreCopies < kept + kStoreAddresses) return storeWithoutMemory();
  std::shared_ptr<cache::SegmentStore> store;
  static_cast<void>(base::caught([&] {
    std::shared_ptr<cache::SegmentStore> opened = openStore(options);
    recallHostFacts(*opened);
    store = std::move(opened);
  }));
  return store != nullptr ? store : storeWithoutMemory();
}

// The part of a model that is prepared with it, for the shapes that are known or expected, or for
// dimensions of 1 where neither is the case: the model specialised for them, or, where it has to be
// divided, what reads no shape that depends on values. Errors: kUnsupported where there is
// no such part; the shapes do not suit the model.
Result<std::shared_ptr<const graph::Model>> partPreparedFirst(
    const graph::Model& model, std::span<const graph::Dimensions> expected) {
  std::vector<graph::Dimensions> shapes;
  for (const uint32_t input : model.main().inputs) {
    const graph::Operand& operand = model.main().operands[input];
    const bool isExpected = shapes.size() < expected.size();
    shapes.push_back(isExpected && !graph::isFullySpecified(operand) ? expected[shapes.size()]
                                                                     : operand.dimensions);
    for (uint32_t& dimension : shapes.back()) dimension = std::max(dimension, 1u);
  }
  if (auto specialized = ops::specialize(model, shapes)) return std::move(specialized->model);
  HEARTH_ASSIGN(const ops::PartlySpecializedModel partly, ops::specializePartly(model, shapes));
  const ModelDivision division = divideModel(partly.model->main(), partly.open);
  if (division.front.empty())
    return fail(ErrorCode::kUnsupported, "No part of the model is prepared before it is run.");
  const graph::StepModel front = graph::makeStepModel(*partly.model, division.front);
  shapes.clear();
  for (const uint32_t input : front.model->main().inputs)
    shapes.push_back(front.model->main().operands[input].dimensions);
  // Once more, for the subgraphs of IF and WHILE, as CutModel does.
  HEARTH_ASSIGN(ops::SpecializedModel specialized, ops::specialize(*front.model, shapes));
  return std::move(specialized.model);
}

// Whether shapes of a model with known inputs depend on values, so that only parts can be planned.
bool hasComputedShapes(const graph::Model& model) {
  const graph::Subgraph& main = model.main();
  // Where all shapes are declared, planning tells.
  if (std::ranges::all_of(main.operands, [](const graph::Operand& operand) {
        return !operand.hasValue() || operand.lifetime == graph::Lifetime::kSubgraph ||
               graph::isFullySpecified(operand);
      }))
    return false;
  std::vector<graph::Dimensions> shapes;
  for (const uint32_t input : main.inputs) shapes.push_back(main.operands[input].dimensions);
  const auto partly = ops::specializePartly(model, shapes);
  return partly && !partly->open.empty();
}

Result<std::vector<hal::OperationSupport>> CpuDevice::explainOperations(const graph::Model& model) {
  HEARTH_ASSIGN(std::vector<hal::OperationSupport> support, supportedOperations(model));
  for (const hal::OperationSupport& operation : support)
    if (!operation.supported) return support;
  explainKernels(model, &support);
  return support;
}

Result<std::shared_ptr<hal::PreparedModel>> CpuDevice::prepareModel(
    std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
    hal::Cache cache) {
  const StartInProgress start;
  HEARTH_TRY(hal::checkPreparation(model.get(), options));
  HEARTH_TRY(ops::validateOperationsOnce(*model));
  model = ops::withoutUnreadPixels(ops::withBranchConstants(std::move(model)));
  HEARTH_TRY(initializeXnnpack());
  const std::shared_ptr<cache::SegmentStore> store = storeFor(*model, options);
  HEARTH_ASSIGN(std::shared_ptr<threads::ThreadPool> pool, sharedThreadPool(options.threads));
  const auto files = std::make_shared<ClientFiles>(std::move(cache));
  const auto interpreted = [&](const Error& reason) -> Result<std::shared_ptr<hal::PreparedModel>> {
    HEARTH_ASSIGN(const std::shared_ptr<hal::InterpretedModel> made,
                  hal::prepareInterpreted(model, options, pool, reason.toString()));
    made->setCacheProblem(save({.model = model}, *store, *files));
    return made;
  };
  const auto dynamic = [&]() -> Result<std::shared_ptr<hal::PreparedModel>> {
    FamilyKeeping keeping;
    if (files->areThere()) {
      keeping.keep = [model, store, files](std::vector<PartWeights> parts) {
        return save({.model = model, .family = std::move(parts)}, *store, *files);
      };
      keeping.token = files->cache.token;
    }
    auto made = base::caught(
        [&] { return DynamicModel::create(model, options, pool, store, {}, std::move(keeping)); });
    if (!made) {
      if (!hal::isForInterpreter(made.error())) return std::unexpected(std::move(made.error()));
      return interpreted(made.error());
    }
    return *std::move(made);
  };
  const auto prepareWith = [&](const std::shared_ptr<cache::SegmentStore>& used) {
    CpuPreparedModel::Keeping keeping;
    if (files->areThere()) {
      keeping.keep = [used, files](CpuPreparedModel& prepared) {
        prepared.setCacheProblem(save(prepared.parts(), *used, *files));
      };
      keeping.token = files->cache.token;
    }
    return base::caught(
        [&] { return CpuPreparedModel::create(model, options, pool, used, std::move(keeping)); });
  };
  if (ops::hasUnknownInputs(*model) || hasComputedShapes(*model)) return dynamic();
  auto prepared = prepareWith(store);
  if (!prepared && prepared.error().code() == ErrorCode::kOutOfMemory && store->freeMemory()) {
    prepared = prepareWith(storeWithoutMemory());
    // If this fails, too, the store was not the reason: the model or its activations are too large.
    if (prepared) base::logWarn("There is no memory for a model together with the weight store.");
  }
  if (prepared) return *prepared;
  if (!hal::isForInterpreter(prepared.error())) return std::unexpected(std::move(prepared.error()));
  // Perhaps what is not known follows from shapes.
  return dynamic();
}

Result<std::shared_ptr<hal::PreparedModel>> CpuDevice::prepareModelFromCache(
    const hal::PrepareOptions& options, hal::Cache cache) {
  HEARTH_TRY(hal::checkDeadline(options));
  const StartInProgress start;
  HEARTH_TRY(initializeXnnpack());
  SaveQueue::waitFor(cache.token);
  HEARTH_ASSIGN(SavedModel saved, loadModel(options, cache));
  HEARTH_TRY(ops::validateOperations(*saved.model));
  HEARTH_ASSIGN(std::shared_ptr<threads::ThreadPool> pool, sharedThreadPool(options.threads));
  if (saved.isInterpreted) {
    const auto constants = std::make_shared<SavedSegments>(saved);
    FamilyKeeping keeping;
    keeping.token = cache.token;
    keeping.keep = [model = saved.model, options, store = saved.store, files = saved.files,
                    own = std::make_shared<const hal::Cache>(std::move(cache))](
                       const std::vector<PartWeights>& parts) {
      const std::shared_ptr<cache::SegmentStore> used =
          store != nullptr ? store : storeFor(*model, options);
      return problemOf(base::caught([&] { return saveParts(*files, parts, *used, *own); }));
    };
    const std::shared_ptr<cache::SegmentStore> store =
        saved.store != nullptr ? saved.store
                               : std::make_shared<cache::AnonymousStore>(cache::StoreFailure{
                                     cache::StoreReason::kOff, "The files name no segments."});
    auto dynamic = base::caught([&] {
      return DynamicModel::create(saved.model, options, pool, store,
                                  {constants, std::move(saved.family)}, std::move(keeping));
    });
    if (dynamic) return *std::move(dynamic);
    if (!hal::isForInterpreter(dynamic.error())) return std::unexpected(std::move(dynamic.error()));
    return hal::prepareInterpreted(saved.model, options, pool, dynamic.error().toString(),
                                   constants);
  }
  std::function<void(const MeasuredChoices&)> keep;
  if (options.isTuned)
    keep = [files = saved.files, own = std::make_shared<const hal::Cache>(std::move(cache))](
               const MeasuredChoices& measured) {
      if (const Status kept = saveChoices(*files, measured.encoded(), *own); !kept)
        base::logInfo("Measured kernels are not cached. {}", kept.error().toString());
    };
  HEARTH_ASSIGN(std::shared_ptr<hal::PreparedModel> prepared,
                CpuPreparedModel::createSaved(std::move(saved), options, std::move(pool), keep));
  return prepared;
}

Result<hal::StartReport> CpuDevice::explainStart(std::shared_ptr<const graph::Model> model,
                                                 const hal::PrepareOptions& options) {
  if (model == nullptr) return fail(ErrorCode::kUnexpectedNull, "The model is null.");
  HEARTH_TRY(graph::validateOnce(*model));
  if (ops::validateOperationsOnce(*model))
    model = ops::withoutUnreadPixels(ops::withBranchConstants(std::move(model)));
  HEARTH_TRY(initializeXnnpack());
  if (ops::hasUnknownInputs(*model) || hasComputedShapes(*model))
    if (auto first = partPreparedFirst(*model, options.expectedInputs)) model = *std::move(first);
  const std::shared_ptr<cache::SegmentStore> store = openStoreForLooking(options);
  recallHostFacts(*store);
  return std::make_shared<WeightSession>(store, std::move(model), std::make_shared<PackedWeights>(),
                                         options, options.threads)
      ->explain();
}

}  // namespace

std::shared_ptr<hal::Device> createCpuDevice() {
  return std::make_shared<CpuDevice>();
}

}  // namespace hearth::cpu
