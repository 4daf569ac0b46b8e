// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/vulkan_device.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/env.h"
#include "base/format.h"
#include "base/sha256.h"
#include "cache/store/store_options.h"
#include "drivers/vulkan/compilation_cache/model_cache.h"
#include "drivers/vulkan/compilation_cache/process_store.h"
#include "drivers/vulkan/compilation_cache/stored_pipelines.h"
#include "drivers/vulkan/dynamic_model.h"
#include "drivers/vulkan/gpu_model.h"
#include "drivers/vulkan/lowering/plan_builder.h"
#include "drivers/vulkan/prepared_model.h"
#include "graph/validated_model.h"
#include "hal/operation_check.h"
#include "hal/preparation_check.h"
#include "hal/request_check.h"
#include "ops/operation.h"
#include "ops/specialized_model.h"

namespace hearth::vulkan {
namespace {

Result<OpenGpu> openGpu(const GpuOptions& options) {
  OpenGpu open;
  HEARTH_ASSIGN(open.gpu, Gpu::open(options));
  std::shared_ptr<StoredPipelines> stored;
  if (auto store = cache::StoreOptions::fromEnvironment())
    stored = StoredPipelines::create(open.gpu->facts(), *std::move(store), openProcessStore);
  HEARTH_ASSIGN(open.pipelines, Pipelines::create(open.gpu, std::move(stored)));
  open.tensors = std::make_shared<DeviceTensors>();
  open.answers = std::make_shared<KnownAnswers>(openProcessStore);
  open.tuner = ProductTuner::create(openProcessStore);
  return open;
}

// For people; the digits at its end tell builds of this driver, GPUs, and their drivers apart that
// are called the same.
std::string versionOf(const GpuFacts& facts) {
  constexpr size_t kTelling = 8;  // bytes
  const auto build = buildAndGpu(facts);
  const base::Sha256Digest digest = build ? *build : facts.identity;
  return base::formatText(HEARTH_VERSION " on {}, {}, {}", facts.name, facts.driverVersion,
                          base::toHex(std::span(digest).first(kTelling)));
}

class VulkanDevice final : public hal::Device {
 public:
  VulkanDevice(GpuOptions options, OpenGpu open)
      : options_(std::move(options)),
        version_(versionOf(open.gpu->facts())),
        identity_(open.gpu->facts().identity),
        open_(std::move(open)) {}

  std::string name() const override {
    if (options_.number == 1) return kVulkanDeviceName;
    return base::formatText("{}-{}", kVulkanDeviceName, options_.number);
  }
  std::string version() const override { return version_; }
  hal::DeviceType type() const override {
    return open_.gpu->facts().type == VK_PHYSICAL_DEVICE_TYPE_CPU ? hal::DeviceType::kCpu
                                                                  : hal::DeviceType::kGpu;
  }
  int64_t featureLevel() const override { return 1000007; }
  std::vector<std::string> supportedExtensions() const override {
    return {std::string(graph::kTfliteExtensionName)};
  }

  Result<hal::CacheFileCounts> numberOfCacheFilesNeeded() const override {
    return kCacheFileCounts;
  }

  hal::Capabilities capabilities() const override {
    // Assumed, not measured: a GPU with memory of its own is faster than hearth-cpu, another one is
    // taken only where it is named. So is an implementation on the CPU, which was named to be here.
    const bool isFast = open_.gpu->facts().type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ||
                        open_.gpu->facts().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    const hal::PerformanceInfo assumed{isFast ? 0.05f : 0.2f, isFast ? 0.5f : 0.2f};
    hal::Capabilities capabilities;
    for (const graph::OperandTypeInfo& info : graph::operandTypes())
      capabilities.operandPerformance[info.type] = assumed;
    capabilities.relaxedFloat32 = assumed;
    return capabilities;
  }

  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override {
    HEARTH_TRY(hal::checkPoolsMapped(model));
    HEARTH_TRY(graph::validateOnce(model));
    std::vector<hal::OperationSupport> supports = hal::checkOperations(model);
    if (!ops::hasUnknownInputs(model)) {
      std::vector<uint32_t> all(supports.size());
      std::ranges::iota(all, 0u);
      checkKernels(model, all, &supports);
      return supports;
    }
    const auto trial = specializeForTrial(model);
    if (!trial) {
      for (hal::OperationSupport& support : supports)
        if (support.supported) support = {false, "", trial.error().toString()};
      return supports;
    }
    const size_t own = trial->model->main().operations.size();
    const std::span<const uint32_t> left = std::span(trial->operations).first(own);
    checkKernels(*trial->model, left, &supports);
    leaveToShapes(left, &supports);
    return supports;
  }

  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache cache) override {
    HEARTH_TRY(hal::checkPreparation(model.get(), options));
    HEARTH_TRY(ops::validateOperationsOnce(*model));
    HEARTH_ASSIGN(OpenGpu open, working());
    if (ops::hasUnknownInputs(*model))
      return DynamicModel::create(std::move(open), std::move(model), options, std::move(cache));
    return VulkanPreparedModel::create(std::move(open), *model, options, std::move(cache));
  }

  Result<std::shared_ptr<hal::PreparedModel>> prepareModelFromCache(
      const hal::PrepareOptions& options, hal::Cache cache) override {
    HEARTH_TRY(hal::checkDeadline(options));
    HEARTH_ASSIGN(OpenGpu open, working());
    HEARTH_ASSIGN(auto saved, loadModel(open.gpu->facts(), cache));
    if (auto* const family = std::get_if<SavedFamily>(&saved))
      return DynamicModel::createSaved(std::move(open), options, std::move(*family),
                                       std::move(cache));
    return VulkanPreparedModel::createSaved(
        std::move(open), options, std::get<SavedModel>(std::move(saved)), std::move(cache));
  }

  Result<std::unique_ptr<hal::Buffer>> allocate(
      const hal::BufferDescription& description,
      const std::vector<hal::BufferRole>& roles) override {
    if (roles.empty()) return fail(ErrorCode::kBadData, "The buffer is to have no role.");
    HEARTH_ASSIGN(const OpenGpu open, working());
    std::optional<uint64_t> bytes;
    for (const hal::BufferRole& role : roles) {
      const auto* const model = dynamic_cast<const GpuModel*>(role.preparedModel.get());
      if (model == nullptr || model->gpu() != open.gpu)
        return fail(ErrorCode::kUnsupported, "A role of the buffer is of a model elsewhere.");
      HEARTH_ASSIGN(const uint64_t wanted,
                    model->argumentBytes(role.isInput, role.index, description.dimensions));
      if (bytes.value_or(wanted) != wanted)
        return fail(ErrorCode::kBadData, "One role of the buffer has {} bytes, another {}.", *bytes,
                    wanted);
      bytes = wanted;
    }
    return open.tensors->allocate(open.gpu, *bytes, description.dimensions);
  }

  void flush() override {
    const OpenGpu open = current();
    open.pipelines->flushStore();
    open.answers->flush();
    if (open.tuner != nullptr) open.tuner->flush();
  }

 private:
  // Says of operations of `supports` how this driver runs them. `numbers` are their places there,
  // one for each operation of the model, of which all shapes of inputs are known.
  void checkKernels(const graph::Model& model, std::span<const uint32_t> numbers,
                    std::vector<hal::OperationSupport>* supports) {
    std::vector<bool> isValid;
    for (const uint32_t number : numbers) isValid.push_back((*supports)[number].supported);
    const OpenGpu open = current();
    std::vector<CheckedLowering> lowered = checkLowerings(model, isValid, open.gpu->facts());
    for (size_t i = 0; i < numbers.size(); ++i) {
      hal::OperationSupport& support = (*supports)[numbers[i]];
      if (!support.supported) continue;
      for (const std::string& shader : lowered[i].shaders)
        if (const Status right = open.answers->check(open, shader);
            lowered[i].status && !right && right.error().code() == ErrorCode::kUnsupported)
          lowered[i].status = right;
      if (lowered[i].status)
        support.kernel = "own";
      else
        support = {false, "", lowered[i].status.error().toString()};
    }
  }

  // Operations that are not `left` follow from the shapes of inputs alone. They are computed when a
  // plan is made, where the model runs here as a whole; otherwise another device may need them.
  static void leaveToShapes(std::span<const uint32_t> left,
                            std::vector<hal::OperationSupport>* supports) {
    const bool isWhole =
        std::ranges::all_of(left, [&](uint32_t number) { return (*supports)[number].supported; });
    for (uint32_t number = 0; number < supports->size(); ++number) {
      hal::OperationSupport& support = (*supports)[number];
      if (!support.supported || std::ranges::contains(left, number)) continue;
      support.kernel = "own";
      if (!isWhole)
        support = {false, "", "It follows from shapes, and the GPU does not run all of the model."};
    }
  }

  OpenGpu current() {
    const std::lock_guard lock(mutex_);
    return open_;
  }

  // The GPU, opened again if it was lost.
  Result<OpenGpu> working() {
    const std::lock_guard lock(mutex_);
    if (open_.gpu->isLost()) {
      HEARTH_ASSIGN(OpenGpu again, openGpu(options_));
      // Without a GPU that was there before, this number is that of another one.
      if (again.gpu->facts().identity != identity_)
        return fail(ErrorCode::kUnavailableDevice, "The GPU that was lost is not there any more.");
      open_ = std::move(again);
    }
    return open_;
  }

  const GpuOptions options_;
  const std::string version_;
  const base::Sha256Digest identity_;  // GpuFacts::identity
  std::mutex mutex_;
  OpenGpu open_;
};

}  // namespace

GpuOptions optionsOfEnvironment() {
  return {.wanted = base::envString(base::Env::kVulkanDevice)};
}

Result<std::unique_ptr<hal::Device>> createDevice(const GpuOptions& options, uint32_t* choices) {
  HEARTH_ASSIGN(OpenGpu open, openGpu(options));
  if (choices != nullptr) *choices = open.gpu->choices();
  return deviceOf(options, std::move(open));
}

std::unique_ptr<hal::Device> deviceOf(const GpuOptions& options, OpenGpu open) {
  return std::make_unique<VulkanDevice>(options, std::move(open));
}

}  // namespace hearth::vulkan
