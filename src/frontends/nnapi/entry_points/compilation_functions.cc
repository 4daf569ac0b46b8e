// SPDX-License-Identifier: Apache-2.0
// ANeuralNetworksCompilation_* and ANeuralNetworksBurst_* of the C API.
#include <utility>

#include "android/NeuralNetworksExtensions.h"
#include "frontends/nnapi/entry_points/call.h"
#include "frontends/nnapi/objects/compilation.h"
#include "frontends/nnapi/objects/execution.h"
#include "runtime/compilation.h"

using namespace hearth;
using namespace hearth::nnapi;

namespace {

Result<ANeuralNetworksCompilation*> compilationOf(const ANeuralNetworksModel& model,
                                                  DeviceList devices) {
  if (!model.isFinished()) return fail(ErrorCode::kBadState, "The model is not finished.");
  return new ANeuralNetworksCompilation(model, std::move(devices));
}

int preferred(const char* function, const ANeuralNetworksCompilation* compilation, bool isInput,
              uint32_t index, uint32_t value, uint32_t* answer) {
  return call(function, [&]() -> Status {
    HEARTH_NOT_NULL(compilation);
    HEARTH_NOT_NULL(answer);
    HEARTH_ASSIGN(const auto compiled, compilation->compiled());
    const size_t count = isInput ? compiled->inputCount() : compiled->outputCount();
    if (index >= count)
      return fail(ErrorCode::kBadData, "There is no {} {}; the model has {}.",
                  isInput ? "input" : "output", index, count);
    *answer = value;
    return {};
  });
}

}  // namespace

int ANeuralNetworksCompilation_create(ANeuralNetworksModel* model,
                                      ANeuralNetworksCompilation** compilation) {
  return callToMake(__func__, "compilation", compilation,
                    [&]() -> Result<ANeuralNetworksCompilation*> {
                      HEARTH_NOT_NULL(model);
                      return compilationOf(*model, {});
                    });
}

int ANeuralNetworksCompilation_createForDevices(ANeuralNetworksModel* model,
                                                const ANeuralNetworksDevice* const* devices,
                                                uint32_t numDevices,
                                                ANeuralNetworksCompilation** compilation) {
  return callToMake(__func__, "compilation", compilation,
                    [&]() -> Result<ANeuralNetworksCompilation*> {
                      HEARTH_NOT_NULL(model);
                      HEARTH_NOT_NULL(devices);
                      HEARTH_ASSIGN(DeviceList list, deviceList(devices, numDevices));
                      return compilationOf(*model, std::move(list));
                    });
}

void ANeuralNetworksCompilation_free(ANeuralNetworksCompilation* compilation) {
  delete compilation;
}

int ANeuralNetworksCompilation_setPreference(ANeuralNetworksCompilation* compilation,
                                             int32_t preference) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(compilation);
    return compilation->setPreference(preference);
  });
}

int ANeuralNetworksCompilation_setPriority(ANeuralNetworksCompilation* compilation, int priority) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(compilation);
    return compilation->setPriority(priority);
  });
}

int ANeuralNetworksCompilation_setTimeout(ANeuralNetworksCompilation* compilation,
                                          uint64_t duration) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(compilation);
    return compilation->setTimeout(duration);
  });
}

int ANeuralNetworksCompilation_setCaching(ANeuralNetworksCompilation* compilation,
                                          const char* cacheDir, const uint8_t* token) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(compilation);
    HEARTH_NOT_NULL(cacheDir);
    HEARTH_NOT_NULL(token);
    return compilation->setCaching(cacheDir, token);
  });
}

int ANeuralNetworksCompilation_finish(ANeuralNetworksCompilation* compilation) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(compilation);
    return compilation->finish();
  });
}

int ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* alignment) {
  return preferred(__func__, compilation, true, index, runtime::kPreferredAlignment, alignment);
}

int ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* padding) {
  return preferred(__func__, compilation, true, index, runtime::kPreferredPadding, padding);
}

int ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* alignment) {
  return preferred(__func__, compilation, false, index, runtime::kPreferredAlignment, alignment);
}

int ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* padding) {
  return preferred(__func__, compilation, false, index, runtime::kPreferredPadding, padding);
}

int ANeuralNetworksCompilation_addExtensionAttribute(ANeuralNetworksCompilation* compilation,
                                                     const char* extensionName,
                                                     uint16_t attributeCodeWithinExtension,
                                                     const void* data, size_t length) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(compilation);
    HEARTH_NOT_NULL(extensionName);
    if (length != 0) HEARTH_NOT_NULL(data);
    return compilation->addAttribute(extensionName, attributeCodeWithinExtension);
  });
}

int ANeuralNetworksBurst_create(ANeuralNetworksCompilation* compilation,
                                ANeuralNetworksBurst** burst) {
  return callToMake(__func__, "burst", burst, [&]() -> Result<ANeuralNetworksBurst*> {
    HEARTH_NOT_NULL(compilation);
    HEARTH_ASSIGN(auto compiled, compilation->compiled());
    return new ANeuralNetworksBurst{{std::move(compiled)}};
  });
}

void ANeuralNetworksBurst_free(ANeuralNetworksBurst* burst) {
  delete burst;
}
