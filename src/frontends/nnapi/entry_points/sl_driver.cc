// SPDX-License-Identifier: Apache-2.0
// The support-library table: pointers to the functions of the C API and to those that only the
// table has.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "android/NeuralNetworksSupportLibraryImpl.h"
#include "base/log.h"
#include "frontends/nnapi/entry_points/call.h"
#include "frontends/nnapi/objects/compilation.h"
#include "frontends/nnapi/objects/devices.h"
#include "frontends/nnapi/objects/extensions.h"

using namespace hearth;
using namespace hearth::nnapi;

namespace {

SL_ANeuralNetworksPerformanceInfo asPerformanceInfo(const hal::PerformanceInfo& info) {
  return {info.execTime, info.powerUsage};
}

int setCachingFromFds(ANeuralNetworksCompilation* compilation, const int* modelCacheFds,
                      const uint32_t numModelCacheFiles, const int* dataCacheFds,
                      const uint32_t numDataCacheFiles, const uint8_t* token) {
  return call("SL_ANeuralNetworksCompilation_setCachingFromFds", [&]() -> Status {
    HEARTH_NOT_NULL(compilation);
    HEARTH_NOT_NULL(token);
    if (numModelCacheFiles != 0) HEARTH_NOT_NULL(modelCacheFds);
    if (numDataCacheFiles != 0) HEARTH_NOT_NULL(dataCacheFds);
    return compilation->setCachingByFiles({modelCacheFds, numModelCacheFiles},
                                          {dataCacheFds, numDataCacheFiles}, token);
  });
}

int getNumberOfCacheFilesNeeded(const ANeuralNetworksDevice* device, uint32_t* numModelCacheFiles,
                                uint32_t* numDataCacheFiles) {
  return call("SL_ANeuralNetworksDevice_getNumberOfCacheFilesNeeded", [&]() -> Status {
    HEARTH_NOT_NULL(device);
    HEARTH_NOT_NULL(numModelCacheFiles);
    HEARTH_NOT_NULL(numDataCacheFiles);
    HEARTH_ASSIGN(const hal::CacheFileCounts counts, device->device->numberOfCacheFilesNeeded());
    *numModelCacheFiles = counts.model;
    *numDataCacheFiles = counts.data;
    return {};
  });
}

int getPerformanceInfo(const ANeuralNetworksDevice* device, int32_t performanceInfoKind,
                       SL_ANeuralNetworksPerformanceInfo* performanceInfo) {
  return call("SL_ANeuralNetworksDevice_getPerformanceInfo", [&]() -> Status {
    HEARTH_NOT_NULL(device);
    HEARTH_NOT_NULL(performanceInfo);
    const hal::Capabilities capabilities = device->device->capabilities();
    switch (performanceInfoKind) {
      case SL_ANEURALNETWORKS_CAPABILITIES_PERFORMANCE_RELAXED_SCALAR:
      case SL_ANEURALNETWORKS_CAPABILITIES_PERFORMANCE_RELAXED_TENSOR:
        *performanceInfo = asPerformanceInfo(capabilities.relaxedFloat32);
        return {};
      case SL_ANEURALNETWORKS_CAPABILITIES_PERFORMANCE_IF:
        *performanceInfo = asPerformanceInfo(capabilities.ifPerformance);
        return {};
      case SL_ANEURALNETWORKS_CAPABILITIES_PERFORMANCE_WHILE:
        *performanceInfo = asPerformanceInfo(capabilities.whilePerformance);
        return {};
      default:
        return fail(ErrorCode::kBadData, "The kind of performance {} is unknown.",
                    performanceInfoKind);
    }
  });
}

int forEachOperandPerformanceInfo(const ANeuralNetworksDevice* device, void* context,
                                  void (*callback)(SL_ANeuralNetworksOperandPerformanceInfo,
                                                   void*)) {
  return call("SL_ANeuralNetworksDevice_forEachOperandPerformanceInfo", [&]() -> Status {
    HEARTH_NOT_NULL(device);
    HEARTH_NOT_NULL(context);
    if (callback == nullptr) return fail(ErrorCode::kUnexpectedNull, "The callback is null.");
    const hal::Capabilities capabilities = device->device->capabilities();
    for (const auto& [type, info] : capabilities.operandPerformance)
      if (!isExtensionType(static_cast<int32_t>(type)))
        callback({static_cast<int32_t>(type), asPerformanceInfo(info)}, context);
    return {};
  });
}

int getVendorExtensionCount(const ANeuralNetworksDevice* device, uint32_t* count) {
  return call("SL_ANeuralNetworksDevice_getVendorExtensionCount", [&]() -> Status {
    HEARTH_NOT_NULL(device);
    HEARTH_NOT_NULL(count);
    *count = static_cast<uint32_t>(clientExtensions(*device->device).size());
    return {};
  });
}

Result<std::string> extensionOf(const ANeuralNetworksDevice& device, uint32_t index) {
  const std::vector<std::string> names = clientExtensions(*device.device);
  if (index >= names.size())
    return fail(ErrorCode::kBadData, "The device {} has {} extensions, none of index {}.",
                device.name, names.size(), index);
  return names[index];
}

int getVendorExtensionName(const ANeuralNetworksDevice* device, uint32_t index,
                           const char** extensionName) {
  return call("SL_ANeuralNetworksDevice_getVendorExtensionName", [&]() -> Status {
    HEARTH_NOT_NULL(device);
    HEARTH_NOT_NULL(extensionName);
    HEARTH_ASSIGN(const std::string name, extensionOf(*device, index));
    HEARTH_ASSIGN(*extensionName, lastingExtensionName(name));
    return {};
  });
}

int forEachVendorExtensionOperandTypeInformation(
    const ANeuralNetworksDevice* device, uint32_t index, void* context,
    void (*callback)(SL_ANeuralNetworksExtensionOperandTypeInformation, void*)) {
  return call("SL_ANeuralNetworksDevice_forEachVendorExtensionOperandTypeInformation",
              [&]() -> Status {
                HEARTH_NOT_NULL(device);
                HEARTH_NOT_NULL(context);
                if (callback == nullptr)
                  return fail(ErrorCode::kUnexpectedNull, "The callback is null.");
                HEARTH_ASSIGN(const std::string name, extensionOf(*device, index));
                HEARTH_ASSIGN(const int32_t first, extensionType(name, 0));
                for (const auto& type : device->device->extensionOperandTypes())
                  if (type.extension == name)
                    callback({type.elementSize, type.number, type.isTensor}, context);
                for (const graph::OperandTypeInfo& info : graph::operandTypes()) {
                  const auto type = static_cast<int32_t>(info.type);
                  if ((type >> 16) != (first >> 16)) continue;
                  callback({static_cast<uint32_t>(info.elementSize), static_cast<uint16_t>(type),
                            !info.isScalar},
                           context);
                }
                return {};
              });
}

// Diagnostics serve Android's telemetry. This library collects none, so it never calls the
// callbacks, and there is no information to return.
template <typename Answer, typename Info>
Answer noInformation(const Info* /*info*/) {
  return Answer();
}

void registerCallbacks(ANeuralNetworksDiagnosticCompilationFinishedCallback /*compilation*/,
                       ANeuralNetworksDiagnosticExecutionFinishedCallback /*execution*/,
                       void* /*context*/) {
  base::logInfo("Diagnostic callbacks are registered; this library calls none.");
}

// Sets the functions of the table that libneuralnetworks.so exports, too.
template <typename Table>
void takeExported(Table& table) {
#define HEARTH_NNAPI_FUNCTION(name) \
  if constexpr (requires { table.name; }) table.name = ::name;
#include "frontends/nnapi/entry_points/functions.inc"
#undef HEARTH_NNAPI_FUNCTION
}

NnApiSLDriverImplFL5 makeTable() {
  NnApiSLDriverImplFL5 table{};
  table.base.implFeatureLevel = ANEURALNETWORKS_FEATURE_LEVEL_5;
  takeExported(table);
  table.SL_ANeuralNetworksCompilation_setCachingFromFds = setCachingFromFds;
  table.SL_ANeuralNetworksDevice_getNumberOfCacheFilesNeeded = getNumberOfCacheFilesNeeded;
  table.SL_ANeuralNetworksDevice_getPerformanceInfo = getPerformanceInfo;
  table.SL_ANeuralNetworksDevice_forEachOperandPerformanceInfo = forEachOperandPerformanceInfo;
  table.SL_ANeuralNetworksDevice_getVendorExtensionCount = getVendorExtensionCount;
  table.SL_ANeuralNetworksDevice_getVendorExtensionName = getVendorExtensionName;
  table.SL_ANeuralNetworksDevice_forEachVendorExtensionOperandTypeInformation =
      forEachVendorExtensionOperandTypeInformation;
  table.SL_ANeuralNetworksDiagnosticCompilationInfo_getSessionId = noInformation;
  table.SL_ANeuralNetworksDiagnosticCompilationInfo_getNnApiVersion = noInformation;
  table.SL_ANeuralNetworksDiagnosticCompilationInfo_getModelArchHash = noInformation;
  table.SL_ANeuralNetworksDiagnosticCompilationInfo_getDeviceIds = noInformation;
  table.SL_ANeuralNetworksDiagnosticCompilationInfo_getErrorCode = noInformation;
  table.SL_ANeuralNetworksDiagnosticCompilationInfo_getInputDataClass = noInformation;
  table.SL_ANeuralNetworksDiagnosticCompilationInfo_getOutputDataClass = noInformation;
  table.SL_ANeuralNetworksDiagnosticCompilationInfo_getCompilationTimeNanos = noInformation;
  table.SL_ANeuralNetworksDiagnosticCompilationInfo_isCachingEnabled = noInformation;
  table.SL_ANeuralNetworksDiagnosticCompilationInfo_isControlFlowUsed = noInformation;
  table.SL_ANeuralNetworksDiagnosticCompilationInfo_areDynamicTensorsUsed = noInformation;
  table.SL_ANeuralNetworksDiagnosticExecutionInfo_getSessionId = noInformation;
  table.SL_ANeuralNetworksDiagnosticExecutionInfo_getNnApiVersion = noInformation;
  table.SL_ANeuralNetworksDiagnosticExecutionInfo_getModelArchHash = noInformation;
  table.SL_ANeuralNetworksDiagnosticExecutionInfo_getDeviceIds = noInformation;
  table.SL_ANeuralNetworksDiagnosticExecutionInfo_getExecutionMode = noInformation;
  table.SL_ANeuralNetworksDiagnosticExecutionInfo_getInputDataClass = noInformation;
  table.SL_ANeuralNetworksDiagnosticExecutionInfo_getOutputDataClass = noInformation;
  table.SL_ANeuralNetworksDiagnosticExecutionInfo_getErrorCode = noInformation;
  table.SL_ANeuralNetworksDiagnosticExecutionInfo_getRuntimeExecutionTimeNanos = noInformation;
  table.SL_ANeuralNetworksDiagnosticExecutionInfo_getDriverExecutionTimeNanos = noInformation;
  table.SL_ANeuralNetworksDiagnosticExecutionInfo_getHardwareExecutionTimeNanos = noInformation;
  table.SL_ANeuralNetworksDiagnosticExecutionInfo_isCachingEnabled = noInformation;
  table.SL_ANeuralNetworksDiagnosticExecutionInfo_isControlFlowUsed = noInformation;
  table.SL_ANeuralNetworksDiagnosticExecutionInfo_areDynamicTensorsUsed = noInformation;
  table.SL_ANeuralNetworksDiagnostic_registerCallbacks = registerCallbacks;
  return table;
}

}  // namespace

NnApiSLDriverImpl* ANeuralNetworks_getSLDriverImpl() {
  static NnApiSLDriverImplFL5 table = makeTable();
  return &table.base;
}
