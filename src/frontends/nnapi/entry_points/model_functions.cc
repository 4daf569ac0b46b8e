// SPDX-License-Identifier: Apache-2.0
// ANeuralNetworksModel_* of the C API.
#include <algorithm>
#include <new>
#include <span>

#include "android/NeuralNetworksExtensions.h"
#include "frontends/nnapi/entry_points/call.h"
#include "frontends/nnapi/objects/devices.h"
#include "frontends/nnapi/objects/extensions.h"
#include "frontends/nnapi/objects/model.h"

using namespace hearth;
using namespace hearth::nnapi;

namespace {

// A list of `count` indices; the pointer may be null only if `count` is 0.
Result<std::span<const uint32_t>> indexList(const uint32_t* indices, uint32_t count,
                                            const char* parameter) {
  if (count == 0) return std::span<const uint32_t>();
  HEARTH_TRY(notNull(indices, parameter));
  return std::span(indices, count);
}

Status supportedOperations(const Model& model, const DeviceList& devices, bool* supported) {
  const auto& positions = model.runPositions();
  std::fill_n(supported, positions.size(), false);
  // No driver accepts a model with an unknown operation.
  if (model.hasUnknownOperation()) return {};
  for (const std::shared_ptr<hal::Device>& device : devices) {
    auto support = device->supportedOperations(*model.graph());
    if (!support) {
      reportFailure("ANeuralNetworksModel_getSupportedOperationsForDevices", support.error());
      continue;
    }
    for (size_t i = 0; i < positions.size(); ++i)
      if (positions[i] && *positions[i] < support->size())
        supported[i] |= (*support)[*positions[i]].supported;
  }
  return {};
}

// Of an operand or of an operation.
int giveExtensionType(const char* function, const ANeuralNetworksModel* model,
                      const char* extensionName, uint16_t codeWithinExtension, int32_t* type) {
  return call(function, [&]() -> Status {
    HEARTH_NOT_NULL(model);
    HEARTH_NOT_NULL(extensionName);
    HEARTH_NOT_NULL(type);
    HEARTH_ASSIGN(*type, extensionType(extensionName, codeWithinExtension));
    return {};
  });
}

}  // namespace

int ANeuralNetworksModel_create(ANeuralNetworksModel** model) {
  return callToMake(__func__, "model", model, [] { return new ANeuralNetworksModel(); });
}

void ANeuralNetworksModel_free(ANeuralNetworksModel* model) {
  delete model;
}

int ANeuralNetworksModel_finish(ANeuralNetworksModel* model) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(model);
    return model->finish();
  });
}

int ANeuralNetworksModel_addOperand(ANeuralNetworksModel* model,
                                    const ANeuralNetworksOperandType* type) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(model);
    HEARTH_NOT_NULL(type);
    return model->addOperand(*type);
  });
}

int ANeuralNetworksModel_setOperandValue(ANeuralNetworksModel* model, int32_t index,
                                         const void* buffer, size_t length) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(model);
    return model->setOperandValue(index, buffer, length);
  });
}

int ANeuralNetworksModel_setOperandValueFromMemory(ANeuralNetworksModel* model, int32_t index,
                                                   const ANeuralNetworksMemory* memory,
                                                   size_t offset, size_t length) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(model);
    HEARTH_NOT_NULL(memory);
    return model->setOperandValueFromMemory(index, *memory->memory, {offset, length});
  });
}

int ANeuralNetworksModel_setOperandValueFromModel(ANeuralNetworksModel* model, int32_t index,
                                                  const ANeuralNetworksModel* value) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(model);
    HEARTH_NOT_NULL(value);
    return model->setOperandValueFromModel(index, *value);
  });
}

int ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(
    ANeuralNetworksModel* model, int32_t index,
    const ANeuralNetworksSymmPerChannelQuantParams* channelQuant) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(model);
    HEARTH_NOT_NULL(channelQuant);
    return model->setPerChannelQuantization(index, *channelQuant);
  });
}

int ANeuralNetworksModel_addOperation(ANeuralNetworksModel* model,
                                      ANeuralNetworksOperationType type, uint32_t inputCount,
                                      const uint32_t* inputs, uint32_t outputCount,
                                      const uint32_t* outputs) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(model);
    HEARTH_NOT_NULL(inputs);
    HEARTH_NOT_NULL(outputs);
    return model->addOperation(type, {inputs, inputCount}, {outputs, outputCount});
  });
}

int ANeuralNetworksModel_identifyInputsAndOutputs(ANeuralNetworksModel* model, uint32_t inputCount,
                                                  const uint32_t* inputs, uint32_t outputCount,
                                                  const uint32_t* outputs) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(model);
    HEARTH_ASSIGN(const auto inputList, indexList(inputs, inputCount, "inputs"));
    HEARTH_NOT_NULL(outputs);
    HEARTH_ASSIGN(const auto outputList, indexList(outputs, outputCount, "outputs"));
    return model->identifyInputsAndOutputs(inputList, outputList);
  });
}

int ANeuralNetworksModel_relaxComputationFloat32toFloat16(ANeuralNetworksModel* model, bool allow) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(model);
    return model->relaxFloat32ToFloat16(allow);
  });
}

int ANeuralNetworksModel_getSupportedOperationsForDevices(
    const ANeuralNetworksModel* model, const ANeuralNetworksDevice* const* devices,
    uint32_t numDevices, bool* supportedOps) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(model);
    HEARTH_NOT_NULL(devices);
    HEARTH_NOT_NULL(supportedOps);
    HEARTH_ASSIGN(const DeviceList list, deviceList(devices, numDevices));
    if (!model->isFinished()) return fail(ErrorCode::kBadState, "The model is not finished.");
    return supportedOperations(*model, list, supportedOps);
  });
}

int ANeuralNetworksModel_getExtensionOperandType(ANeuralNetworksModel* model,
                                                 const char* extensionName,
                                                 uint16_t operandCodeWithinExtension,
                                                 int32_t* type) {
  return giveExtensionType(__func__, model, extensionName, operandCodeWithinExtension, type);
}

int ANeuralNetworksModel_getExtensionOperationType(ANeuralNetworksModel* model,
                                                   const char* extensionName,
                                                   uint16_t operationCodeWithinExtension,
                                                   ANeuralNetworksOperationType* type) {
  return giveExtensionType(__func__, model, extensionName, operationCodeWithinExtension, type);
}

int ANeuralNetworksModel_setOperandExtensionData(ANeuralNetworksModel* model, int32_t index,
                                                 const void* data, size_t length) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(model);
    HEARTH_NOT_NULL(data);
    return model->setExtensionData(index, data, length);
  });
}
