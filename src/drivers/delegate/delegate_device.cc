// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/delegate_device.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <mutex>
#include <utility>
#include <vector>

#include "base/format.h"
#include "drivers/delegate/delegate_model.h"
#include "drivers/delegate/device_context.h"
#include "graph/validated_model.h"
#include "hal/device_operators.h"
#include "hal/operation_check.h"
#include "hal/preparation_check.h"
#include "hal/request_check.h"
#include "ops/device_operator.h"
#include "ops/operation.h"

namespace hearth::drivers::delegate {
namespace {

using Supports = std::vector<hal::OperationSupport>;

bool readsOneOf(std::span<const uint32_t> operands, const std::vector<bool>& marked) {
  return std::ranges::any_of(operands, [&](uint32_t index) { return marked[index]; });
}

// Operations on shapes are computed when shapes are known, so they can be taken together with all
// others. In a part of the model, a value that another part computes is not known by then.
void answerForShapes(const graph::Subgraph& main, const std::vector<bool>& isLeft,
                     Supports* supports) {
  std::vector<bool> isOfShapes(main.operands.size());
  bool takesAll = true;
  for (size_t i = 0; i < supports->size(); ++i) {
    if (isLeft[i]) {
      takesAll &= (*supports)[i].supported;
      continue;
    }
    for (const uint32_t output : main.operations[i].outputs) isOfShapes[output] = true;
  }
  // A kernel has to compute each output of the model.
  takesAll &= !readsOneOf(main.outputs, isOfShapes);
  for (size_t i = 0; i < supports->size(); ++i) {
    hal::OperationSupport& support = (*supports)[i];
    if (!isLeft[i])
      support = takesAll ? hal::OperationSupport{true, "own", ""}
                         : hal::OperationSupport{false, "", "It depends on shapes only."};
    else if (!takesAll && support.supported && readsOneOf(main.operations[i].inputs, isOfShapes))
      support = {false, "", "It needs a value that depends on shapes, before it is computed."};
  }
}

// An operation whose result is offered as a constant goes with all operations that read it: one of
// them in another part of the model would leave the others without their constant.
void answerForConstants(const graph::Subgraph& main, const std::vector<bool>& isConstant,
                        Supports* supports) {
  std::vector<bool> isElsewhere(main.operands.size());  // results that are no constants here
  const auto refuse = [](const std::vector<uint32_t>& operands, hal::OperationSupport* support,
                         const std::vector<bool>& marked, const char* reason) {
    if (!support->supported || !readsOneOf(operands, marked)) return false;
    *support = {false, "", reason};
    return true;
  };
  for (bool hasChanged = true; hasChanged;) {
    hasChanged = false;
    std::vector<bool> isReadElsewhere(main.operands.size());
    for (size_t i = 0; i < supports->size(); ++i)
      if (!(*supports)[i].supported)
        for (const uint32_t input : main.operations[i].inputs) isReadElsewhere[input] = true;
    for (size_t i = 0; i < supports->size(); ++i) {
      const graph::Operation& operation = main.operations[i];
      hal::OperationSupport* const support = &(*supports)[i];
      if (isConstant[i] && refuse(operation.outputs, support, isReadElsewhere,
                                  "Its constant result is for operations that run elsewhere.")) {
        for (const uint32_t output : operation.outputs) isElsewhere[output] = true;
        hasChanged = true;
      }
      hasChanged |= refuse(operation.inputs, support, isElsewhere,
                           "It needs a constant that is computed elsewhere.");
    }
  }
}

class DelegateDevice final : public hal::Device {
 public:
  explicit DelegateDevice(std::shared_ptr<DeviceContext> context) : context_(std::move(context)) {}

  std::string name() const override { return context_->settings().name; }
  // The library, the first digits of its digest, and the options.
  std::string version() const override {
    constexpr size_t kDigits = 12;
    const VendorLibrary& library = context_->library();
    std::string text = std::filesystem::path(library.path()).filename().string() + " " +
                       library.digest().substr(0, kDigits);
    for (const auto& [key, value] : context_->settings().options) text += " " + key + "=" + value;
    return text;
  }
  hal::DeviceType type() const override { return hal::DeviceType::kAccelerator; }
  int64_t featureLevel() const override { return 1000007; }
  std::vector<std::string> supportedExtensions() const override {
    std::vector<std::string> extensions = {std::string(graph::kTfliteExtensionName)};
    for (const std::string& name : context_->settings().customOperators)
      extensions.push_back(hal::deviceOperatorExtension(name));
    return extensions;
  }

  hal::Capabilities capabilities() const override {
    // Assumed, not measured: whoever installs an NPU's delegate wants what it takes to run there.
    // So it has to be faster than hearth-cpu says that it is; on a tie the first device is taken.
    const hal::PerformanceInfo assumed{0.05f, 0.05f};
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
    const auto key = context_->keyOf("claims 2", model);
    if (key)
      if (auto known = context_->claims().find(*key, model.main().operations.size()))
        return *std::move(known);
    std::vector<hal::OperationSupport> supports = hal::checkOperations(model);
    const bool areValid = std::ranges::all_of(supports, &hal::OperationSupport::supported);
    if (!areValid) return refused(std::move(supports), "The model has invalid operations.");
    // What fails here may be mended by then, so it is not remembered.
    const auto offered = offerModel(model, likelyShapes(model), *context_, {});
    if (!offered) return refused(std::move(supports), offered.error().toString());
    answerFrom(*offered, model.main(), &supports);
    if (key) context_->claims().remember(*key, supports);
    return supports;
  }

  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache /*cache*/) override {
    HEARTH_TRY(hal::checkPreparation(model.get(), options));
    HEARTH_TRY(ops::validateOperationsOnce(*model));
    return DelegateModel::create(std::move(model), context_, options);
  }

 private:
  static void answerFrom(const Offer& offered, const graph::Subgraph& main, Supports* supports) {
    const std::vector<bool> taken = offered.graph->takenOperations();
    const std::vector<bool> constant = offered.graph->constantOperations();
    // The others depend on shapes only.
    std::vector<bool> isLeft(supports->size()), isConstant(supports->size());
    for (size_t i = 0; i < taken.size() && i < offered.operations.size(); ++i) {
      const uint32_t index = offered.operations[i];
      if (index >= supports->size()) break;  // of another subgraph
      isLeft[index] = true;
      isConstant[index] = constant[i];
      hal::OperationSupport& support = (*supports)[index];
      support.supported = taken[i];
      support.kernel = taken[i] ? "own" : "";
      const std::string& refusal = offered.graph->refusals()[i];
      support.reason = taken[i]          ? ""
                       : refusal.empty() ? "The delegate does not take " +
                                               graph::nameOf(main.operations[index].type) + "."
                                         : refusal;
    }
    answerForShapes(main, isLeft, supports);
    answerForConstants(main, isConstant, supports);
  }

  // Refuses all operations that are not refused for a reason of their own.
  static std::vector<hal::OperationSupport> refused(std::vector<hal::OperationSupport> supports,
                                                    const std::string& reason) {
    for (hal::OperationSupport& support : supports)
      if (support.supported) support = {false, "", reason};
    return supports;
  }

  // The shapes of the model's inputs, with 1 for dimensions that are not known.
  static std::vector<graph::Dimensions> likelyShapes(const graph::Model& model) {
    std::vector<graph::Dimensions> shapes;
    for (const uint32_t input : model.main().inputs) {
      shapes.push_back(model.main().operands[input].dimensions);
      std::ranges::replace(shapes.back(), 0u, 1u);
    }
    return shapes;
  }

  const std::shared_ptr<DeviceContext> context_;
};

}  // namespace

Result<DeviceSettings> settingsOf(const hal::DriverManifest& manifest) {
  DeviceSettings settings;
  settings.name = manifest.name;
  settings.library = manifest.delegate->library;
  settings.options = manifest.delegate->options;
  settings.variables = manifest.delegate->variables;
  settings.cache = manifest.delegate->cache;
  settings.customOperators = manifest.customOperators;
  // Wrong variables are told where the store is opened for the CPU; here nothing is kept.
  if (auto store = cache::StoreOptions::fromEnvironment()) settings.store = *std::move(store);
  settings.prepareLimit = std::chrono::seconds(manifest.delegate->prepareSeconds);
  const std::string& version = manifest.delegate->version;
  if (version.empty()) return settings;
  constexpr std::string_view kMajor = "2.";
  int32_t minor = -1;
  if (version.starts_with(kMajor)) {
    const char* const begin = version.data() + kMajor.size();
    const char* const end = version.data() + version.size();
    const auto [rest, error] = std::from_chars(begin, end, minor);
    if (error != std::errc() || (rest != end && *rest != '.')) minor = -1;
  }
  if (minor < tflite_abi::TensorflowMinor::kOldest)
    return fail(ErrorCode::kBadData,
                "The manifest {} says \"tflite\": \"{}\"; versions are 2.{} and later ones of "
                "TensorFlow 2.",
                manifest.path, version, tflite_abi::TensorflowMinor::kOldest);
  settings.version.minor = std::min(minor, tflite_abi::TensorflowMinor::kNewest);
  return settings;
}

Result<std::shared_ptr<hal::Device>> createDevice(DeviceSettings settings) {
  for (const std::string& name : settings.customOperators)
    HEARTH_TRY(ops::registerDeviceOperator(name));
  HEARTH_ASSIGN(std::shared_ptr<DeviceContext> context, DeviceContext::create(std::move(settings)));
  return std::make_shared<DelegateDevice>(std::move(context));
}

}  // namespace hearth::drivers::delegate
