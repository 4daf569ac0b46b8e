// SPDX-License-Identifier: Apache-2.0
#include "drivers/reference/reference_device.h"

#include <memory>
#include <utility>
#include <vector>

#include "graph/validated_model.h"
#include "hal/extension_operations.h"
#include "hal/interpreted_model.h"
#include "hal/operation_check.h"
#include "hal/preparation_check.h"
#include "hal/request_check.h"
#include "ops/interpreter.h"
#include "ops/operation.h"

namespace hearth::drivers::reference {
namespace {

constexpr int64_t kFeatureLevel = 1000007;

class ReferenceDevice final : public hal::Device {
 public:
  std::string name() const override { return "nnapi-reference"; }
  std::string version() const override { return HEARTH_VERSION; }
  hal::DeviceType type() const override { return hal::DeviceType::kCpu; }
  int64_t featureLevel() const override { return kFeatureLevel; }

  hal::Capabilities capabilities() const override {
    hal::Capabilities capabilities;
    for (const graph::OperandTypeInfo& info : graph::operandTypes())
      capabilities.operandPerformance[info.type] = {1.0f, 1.0f};
    return capabilities;
  }

  std::vector<std::string> supportedExtensions() const override {
    return {std::string(graph::kTfliteExtensionName), std::string(hal::kCustomExtensionName),
            std::string(hal::kStringExtensionName)};
  }

  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override {
    HEARTH_TRY(hal::checkPoolsMapped(model));
    HEARTH_TRY(graph::validateOnce(model));
    return hal::checkOperations(model);
  }

  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache /*cache*/) override {
    HEARTH_TRY(hal::checkPreparation(model.get(), options));
    HEARTH_TRY(ops::validateOperationsOnce(*model));
    return hal::prepareInterpreted(std::move(model), options, nullptr,
                                   "The device nnapi-reference packs nothing and keeps no cache.",
                                   nullptr, ops::KernelSet::kReference);
  }
};

}  // namespace

std::shared_ptr<hal::Device> createDevice() {
  return std::make_shared<ReferenceDevice>();
}

}  // namespace hearth::drivers::reference
