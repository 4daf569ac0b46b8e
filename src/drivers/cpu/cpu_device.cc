// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/cpu_device.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "drivers/cpu/model_cache.h"
#include "drivers/cpu/open_stores.h"
#include "drivers/cpu/plan_builder.h"
#include "drivers/cpu/prepared_model.h"
#include "drivers/cpu/self_test.h"
#include "drivers/cpu/thread_pools.h"
#include "hal/interpreted_model.h"
#include "hal/operation_check.h"
#include "hal/request_check.h"
#include "ops/operation.h"

namespace hearth::cpu {
namespace {

class CpuDevice final : public hal::Device {
 public:
  std::string name() const override { return kCpuDeviceName; }
  std::string version() const override { return HEARTH_VERSION; }
  hal::DeviceType type() const override { return hal::DeviceType::kCpu; }
  int64_t featureLevel() const override { return 1000007; }
  std::vector<std::string> supportedExtensions() const override {
    return {std::string(graph::kTfliteExtensionName)};
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
      const graph::Model& model) override;

  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache cache) override;

  Result<hal::CacheFileCounts> numberOfCacheFilesNeeded() const override {
    return kCacheFileCounts;
  }
  Result<std::shared_ptr<hal::PreparedModel>> prepareModelFromCache(
      const hal::PrepareOptions& options, hal::Cache cache) override;
};

// What both ways to a prepared model need.
struct Workplace {
  const SelfTestResult& tested;
  std::shared_ptr<threads::ThreadPool> pool;
  std::shared_ptr<cache::SegmentStore> store;
};

Result<Workplace> workplaceFor(const hal::PrepareOptions& options) {
  if (options.deadline.hasPassed())
    return fail(ErrorCode::kMissedDeadlinePersistent,
                "The deadline passes before the model is prepared.");
  const Result<SelfTestResult>& tested = selfTest();
  if (!tested) return std::unexpected(tested.error());
  HEARTH_ASSIGN(std::shared_ptr<threads::ThreadPool> pool, sharedThreadPool(options.threads));
  return Workplace{*tested, std::move(pool), openStore(options)};
}

// Why nothing was saved; empty when it was, or nothing was to be.
std::string save(const ModelParts& parts, cache::SegmentStore& store, const hal::Cache& cache) {
  if (cache.modelFiles.empty() && cache.dataFiles.empty()) return "";
  const Status saved = saveModel(parts, store, cache);
  if (saved) return "";
  base::logInfo("A compilation is not cached. {}", saved.error().toString());
  return saved.error().toString();
}

Result<std::vector<hal::OperationSupport>> CpuDevice::supportedOperations(
    const graph::Model& model) {
  HEARTH_TRY(hal::checkPoolsMapped(model));
  HEARTH_TRY(graph::validate(model));
  std::vector<hal::OperationSupport> support = hal::checkOperations(model);
  for (const hal::OperationSupport& operation : support)
    if (!operation.supported) return support;
  // The plan tells which kernel an operation gets; without known shapes all are interpreted.
  const Result<SelfTestResult>& tested = selfTest();
  if (!tested) return support;
  PlanBuilder builder(model, tested->traits, nullptr, {});
  if (!builder.build()) return support;
  const std::vector<std::string> kernels = builder.takeKernels();
  for (size_t i = 0; i < kernels.size(); ++i) support[i].kernel = kernels[i];
  return support;
}

Result<std::shared_ptr<hal::PreparedModel>> CpuDevice::prepareModel(
    std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
    hal::Cache cache) {
  if (model == nullptr) return fail(ErrorCode::kUnexpectedNull, "The model is null.");
  HEARTH_ASSIGN(const Workplace place, workplaceFor(options));
  HEARTH_TRY(hal::checkPoolsMapped(*model));
  HEARTH_TRY(graph::validate(*model));
  HEARTH_TRY(ops::validateOperations(*model));
  auto prepared = CpuPreparedModel::create(model, options, place.tested, place.pool, place.store);
  if (prepared) {
    (*prepared)->setCacheProblem(save((*prepared)->parts(), *place.store, cache));
    return *prepared;
  }
  if (prepared.error().code() != ErrorCode::kUnsupported)
    return std::unexpected(std::move(prepared.error()));
  auto interpreted =
      hal::prepareInterpreted(model, options, place.pool, prepared.error().toString());
  if (interpreted) save({model, nullptr, nullptr, {}}, *place.store, cache);
  return interpreted;
}

Result<std::shared_ptr<hal::PreparedModel>> CpuDevice::prepareModelFromCache(
    const hal::PrepareOptions& options, hal::Cache cache) {
  HEARTH_ASSIGN(const Workplace place, workplaceFor(options));
  HEARTH_ASSIGN(SavedModel saved, loadModel(*place.store, cache));
  HEARTH_TRY(ops::validateOperations(*saved.model));
  if (saved.isInterpreted)
    return hal::prepareInterpreted(saved.model, options, place.pool,
                                   "Shapes or branches are known only at run time.");
  HEARTH_ASSIGN(std::shared_ptr<hal::PreparedModel> prepared,
                CpuPreparedModel::createSaved(std::move(saved), options, place.tested, place.pool));
  return prepared;
}

}  // namespace

std::shared_ptr<hal::Device> createCpuDevice() {
  return std::make_shared<CpuDevice>();
}

}  // namespace hearth::cpu
