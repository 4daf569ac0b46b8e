// SPDX-License-Identifier: Apache-2.0
// All of libneuralnetworks.so: the exported names, each one jump into libhearth.so, so that a
// process has one runtime whichever of the two interfaces it uses.
#include "frontends/nnapi/entry_points/functions.h"

#define HEARTH_FORWARD(result, name, parameters, arguments)                  \
  extern "C" __attribute__((visibility("default"))) result name parameters { \
    return functions.name arguments;                                         \
  }

namespace {

const hearth::nnapi::Functions& functions = *hearth_nnapi_functions();

}  // namespace

HEARTH_FORWARD(void, AHardwareBuffer_acquire, (AHardwareBuffer * buffer), (buffer))
HEARTH_FORWARD(int, AHardwareBuffer_allocate,
               (const AHardwareBuffer_Desc* desc, AHardwareBuffer** outBuffer), (desc, outBuffer))
HEARTH_FORWARD(void, AHardwareBuffer_describe,
               (const AHardwareBuffer* buffer, AHardwareBuffer_Desc* outDesc), (buffer, outDesc))
HEARTH_FORWARD(int, AHardwareBuffer_lock,
               (AHardwareBuffer * buffer, uint64_t usage, int32_t fence, const ARect* rect,
                void** outVirtualAddress),
               (buffer, usage, fence, rect, outVirtualAddress))
HEARTH_FORWARD(int, AHardwareBuffer_recvHandleFromUnixSocket,
               (int socketFd, AHardwareBuffer** outBuffer), (socketFd, outBuffer))
HEARTH_FORWARD(void, AHardwareBuffer_release, (AHardwareBuffer * buffer), (buffer))
HEARTH_FORWARD(int, AHardwareBuffer_sendHandleToUnixSocket,
               (const AHardwareBuffer* buffer, int socketFd), (buffer, socketFd))
HEARTH_FORWARD(int, AHardwareBuffer_unlock, (AHardwareBuffer * buffer, int32_t* fence),
               (buffer, fence))
HEARTH_FORWARD(int, ANeuralNetworksBurst_create,
               (ANeuralNetworksCompilation * compilation, ANeuralNetworksBurst** burst),
               (compilation, burst))
HEARTH_FORWARD(void, ANeuralNetworksBurst_free, (ANeuralNetworksBurst * burst), (burst))
HEARTH_FORWARD(int, ANeuralNetworksCompilation_addExtensionAttribute,
               (ANeuralNetworksCompilation * compilation, const char* extensionName,
                uint16_t attributeCodeWithinExtension, const void* data, size_t length),
               (compilation, extensionName, attributeCodeWithinExtension, data, length))
HEARTH_FORWARD(int, ANeuralNetworksCompilation_create,
               (ANeuralNetworksModel * model, ANeuralNetworksCompilation** compilation),
               (model, compilation))
HEARTH_FORWARD(int, ANeuralNetworksCompilation_createForDevices,
               (ANeuralNetworksModel * model, const ANeuralNetworksDevice* const* devices,
                uint32_t numDevices, ANeuralNetworksCompilation** compilation),
               (model, devices, numDevices, compilation))
HEARTH_FORWARD(int, ANeuralNetworksCompilation_finish, (ANeuralNetworksCompilation * compilation),
               (compilation))
HEARTH_FORWARD(void, ANeuralNetworksCompilation_free, (ANeuralNetworksCompilation * compilation),
               (compilation))
HEARTH_FORWARD(int, ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput,
               (const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* alignment),
               (compilation, index, alignment))
HEARTH_FORWARD(int, ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput,
               (const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* alignment),
               (compilation, index, alignment))
HEARTH_FORWARD(int, ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput,
               (const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* padding),
               (compilation, index, padding))
HEARTH_FORWARD(int, ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput,
               (const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* padding),
               (compilation, index, padding))
HEARTH_FORWARD(int, ANeuralNetworksCompilation_setCaching,
               (ANeuralNetworksCompilation * compilation, const char* cacheDir,
                const uint8_t* token),
               (compilation, cacheDir, token))
HEARTH_FORWARD(int, ANeuralNetworksCompilation_setPreference,
               (ANeuralNetworksCompilation * compilation, int32_t preference),
               (compilation, preference))
HEARTH_FORWARD(int, ANeuralNetworksCompilation_setPriority,
               (ANeuralNetworksCompilation * compilation, int priority), (compilation, priority))
HEARTH_FORWARD(int, ANeuralNetworksCompilation_setTimeout,
               (ANeuralNetworksCompilation * compilation, uint64_t duration),
               (compilation, duration))
HEARTH_FORWARD(int, ANeuralNetworksDevice_getExtensionSupport,
               (const ANeuralNetworksDevice* device, const char* extensionName,
                bool* isExtensionSupported),
               (device, extensionName, isExtensionSupported))
HEARTH_FORWARD(int, ANeuralNetworksDevice_getFeatureLevel,
               (const ANeuralNetworksDevice* device, int64_t* featureLevel), (device, featureLevel))
HEARTH_FORWARD(int, ANeuralNetworksDevice_getName,
               (const ANeuralNetworksDevice* device, const char** name), (device, name))
HEARTH_FORWARD(int, ANeuralNetworksDevice_getType,
               (const ANeuralNetworksDevice* device, int32_t* type), (device, type))
HEARTH_FORWARD(int, ANeuralNetworksDevice_getVersion,
               (const ANeuralNetworksDevice* device, const char** version), (device, version))
HEARTH_FORWARD(int, ANeuralNetworksDevice_wait, (const ANeuralNetworksDevice* device), (device))
HEARTH_FORWARD(int, ANeuralNetworksEvent_createFromSyncFenceFd,
               (int sync_fence_fd, ANeuralNetworksEvent** event), (sync_fence_fd, event))
HEARTH_FORWARD(void, ANeuralNetworksEvent_free, (ANeuralNetworksEvent * event), (event))
HEARTH_FORWARD(int, ANeuralNetworksEvent_getSyncFenceFd,
               (const ANeuralNetworksEvent* event, int* sync_fence_fd), (event, sync_fence_fd))
HEARTH_FORWARD(int, ANeuralNetworksEvent_wait, (ANeuralNetworksEvent * event), (event))
HEARTH_FORWARD(int, ANeuralNetworksExecution_addExtensionAttribute,
               (ANeuralNetworksExecution * execution, const char* extensionName,
                uint16_t attributeCodeWithinExtension, const void* data, size_t length),
               (execution, extensionName, attributeCodeWithinExtension, data, length))
HEARTH_FORWARD(int, ANeuralNetworksExecution_burstCompute,
               (ANeuralNetworksExecution * execution, ANeuralNetworksBurst* burst),
               (execution, burst))
HEARTH_FORWARD(int, ANeuralNetworksExecution_compute, (ANeuralNetworksExecution * execution),
               (execution))
HEARTH_FORWARD(int, ANeuralNetworksExecution_create,
               (ANeuralNetworksCompilation * compilation, ANeuralNetworksExecution** execution),
               (compilation, execution))
HEARTH_FORWARD(int, ANeuralNetworksExecution_enableInputAndOutputPadding,
               (ANeuralNetworksExecution * execution, bool enable), (execution, enable))
HEARTH_FORWARD(void, ANeuralNetworksExecution_free, (ANeuralNetworksExecution * execution),
               (execution))
HEARTH_FORWARD(int, ANeuralNetworksExecution_getDuration,
               (const ANeuralNetworksExecution* execution, int32_t durationCode,
                uint64_t* duration),
               (execution, durationCode, duration))
HEARTH_FORWARD(int, ANeuralNetworksExecution_getOutputOperandDimensions,
               (ANeuralNetworksExecution * execution, int32_t index, uint32_t* dimensions),
               (execution, index, dimensions))
HEARTH_FORWARD(int, ANeuralNetworksExecution_getOutputOperandRank,
               (ANeuralNetworksExecution * execution, int32_t index, uint32_t* rank),
               (execution, index, rank))
HEARTH_FORWARD(int, ANeuralNetworksExecution_setInput,
               (ANeuralNetworksExecution * execution, int32_t index,
                const ANeuralNetworksOperandType* type, const void* buffer, size_t length),
               (execution, index, type, buffer, length))
HEARTH_FORWARD(int, ANeuralNetworksExecution_setInputFromMemory,
               (ANeuralNetworksExecution * execution, int32_t index,
                const ANeuralNetworksOperandType* type, const ANeuralNetworksMemory* memory,
                size_t offset, size_t length),
               (execution, index, type, memory, offset, length))
HEARTH_FORWARD(int, ANeuralNetworksExecution_setLoopTimeout,
               (ANeuralNetworksExecution * execution, uint64_t duration), (execution, duration))
HEARTH_FORWARD(int, ANeuralNetworksExecution_setMeasureTiming,
               (ANeuralNetworksExecution * execution, bool measure), (execution, measure))
HEARTH_FORWARD(int, ANeuralNetworksExecution_setOutput,
               (ANeuralNetworksExecution * execution, int32_t index,
                const ANeuralNetworksOperandType* type, void* buffer, size_t length),
               (execution, index, type, buffer, length))
HEARTH_FORWARD(int, ANeuralNetworksExecution_setOutputFromMemory,
               (ANeuralNetworksExecution * execution, int32_t index,
                const ANeuralNetworksOperandType* type, const ANeuralNetworksMemory* memory,
                size_t offset, size_t length),
               (execution, index, type, memory, offset, length))
HEARTH_FORWARD(int, ANeuralNetworksExecution_setReusable,
               (ANeuralNetworksExecution * execution, bool reusable), (execution, reusable))
HEARTH_FORWARD(int, ANeuralNetworksExecution_setTimeout,
               (ANeuralNetworksExecution * execution, uint64_t duration), (execution, duration))
HEARTH_FORWARD(int, ANeuralNetworksExecution_startCompute,
               (ANeuralNetworksExecution * execution, ANeuralNetworksEvent** event),
               (execution, event))
HEARTH_FORWARD(int, ANeuralNetworksExecution_startComputeWithDependencies,
               (ANeuralNetworksExecution * execution,
                const ANeuralNetworksEvent* const* dependencies, uint32_t num_dependencies,
                uint64_t duration, ANeuralNetworksEvent** event),
               (execution, dependencies, num_dependencies, duration, event))
HEARTH_FORWARD(int, ANeuralNetworksMemoryDesc_addInputRole,
               (ANeuralNetworksMemoryDesc * desc, const ANeuralNetworksCompilation* compilation,
                uint32_t index, float frequency),
               (desc, compilation, index, frequency))
HEARTH_FORWARD(int, ANeuralNetworksMemoryDesc_addOutputRole,
               (ANeuralNetworksMemoryDesc * desc, const ANeuralNetworksCompilation* compilation,
                uint32_t index, float frequency),
               (desc, compilation, index, frequency))
HEARTH_FORWARD(int, ANeuralNetworksMemoryDesc_create, (ANeuralNetworksMemoryDesc * *desc), (desc))
HEARTH_FORWARD(int, ANeuralNetworksMemoryDesc_finish, (ANeuralNetworksMemoryDesc * desc), (desc))
HEARTH_FORWARD(void, ANeuralNetworksMemoryDesc_free, (ANeuralNetworksMemoryDesc * desc), (desc))
HEARTH_FORWARD(int, ANeuralNetworksMemoryDesc_setDimensions,
               (ANeuralNetworksMemoryDesc * desc, uint32_t rank, const uint32_t* dimensions),
               (desc, rank, dimensions))
HEARTH_FORWARD(int, ANeuralNetworksMemory_copy,
               (const ANeuralNetworksMemory* src, const ANeuralNetworksMemory* dst), (src, dst))
HEARTH_FORWARD(int, ANeuralNetworksMemory_createFromAHardwareBuffer,
               (const AHardwareBuffer* ahwb, ANeuralNetworksMemory** memory), (ahwb, memory))
HEARTH_FORWARD(int, ANeuralNetworksMemory_createFromDesc,
               (const ANeuralNetworksMemoryDesc* desc, ANeuralNetworksMemory** memory),
               (desc, memory))
HEARTH_FORWARD(int, ANeuralNetworksMemory_createFromFd,
               (size_t size, int protect, int fd, size_t offset, ANeuralNetworksMemory** memory),
               (size, protect, fd, offset, memory))
HEARTH_FORWARD(void, ANeuralNetworksMemory_free, (ANeuralNetworksMemory * memory), (memory))
HEARTH_FORWARD(int, ANeuralNetworksModel_addOperand,
               (ANeuralNetworksModel * model, const ANeuralNetworksOperandType* type),
               (model, type))
HEARTH_FORWARD(int, ANeuralNetworksModel_addOperation,
               (ANeuralNetworksModel * model, ANeuralNetworksOperationType type,
                uint32_t inputCount, const uint32_t* inputs, uint32_t outputCount,
                const uint32_t* outputs),
               (model, type, inputCount, inputs, outputCount, outputs))
HEARTH_FORWARD(int, ANeuralNetworksModel_create, (ANeuralNetworksModel * *model), (model))
HEARTH_FORWARD(int, ANeuralNetworksModel_finish, (ANeuralNetworksModel * model), (model))
HEARTH_FORWARD(void, ANeuralNetworksModel_free, (ANeuralNetworksModel * model), (model))
HEARTH_FORWARD(int, ANeuralNetworksModel_getExtensionOperandType,
               (ANeuralNetworksModel * model, const char* extensionName,
                uint16_t operandCodeWithinExtension, int32_t* type),
               (model, extensionName, operandCodeWithinExtension, type))
HEARTH_FORWARD(int, ANeuralNetworksModel_getExtensionOperationType,
               (ANeuralNetworksModel * model, const char* extensionName,
                uint16_t operationCodeWithinExtension, ANeuralNetworksOperationType* type),
               (model, extensionName, operationCodeWithinExtension, type))
HEARTH_FORWARD(int, ANeuralNetworksModel_getSupportedOperationsForDevices,
               (const ANeuralNetworksModel* model, const ANeuralNetworksDevice* const* devices,
                uint32_t numDevices, bool* supportedOps),
               (model, devices, numDevices, supportedOps))
HEARTH_FORWARD(int, ANeuralNetworksModel_identifyInputsAndOutputs,
               (ANeuralNetworksModel * model, uint32_t inputCount, const uint32_t* inputs,
                uint32_t outputCount, const uint32_t* outputs),
               (model, inputCount, inputs, outputCount, outputs))
HEARTH_FORWARD(int, ANeuralNetworksModel_relaxComputationFloat32toFloat16,
               (ANeuralNetworksModel * model, bool allow), (model, allow))
HEARTH_FORWARD(int, ANeuralNetworksModel_setOperandExtensionData,
               (ANeuralNetworksModel * model, int32_t index, const void* data, size_t length),
               (model, index, data, length))
HEARTH_FORWARD(int, ANeuralNetworksModel_setOperandSymmPerChannelQuantParams,
               (ANeuralNetworksModel * model, int32_t index,
                const ANeuralNetworksSymmPerChannelQuantParams* channelQuant),
               (model, index, channelQuant))
HEARTH_FORWARD(int, ANeuralNetworksModel_setOperandValue,
               (ANeuralNetworksModel * model, int32_t index, const void* buffer, size_t length),
               (model, index, buffer, length))
HEARTH_FORWARD(int, ANeuralNetworksModel_setOperandValueFromMemory,
               (ANeuralNetworksModel * model, int32_t index, const ANeuralNetworksMemory* memory,
                size_t offset, size_t length),
               (model, index, memory, offset, length))
HEARTH_FORWARD(int, ANeuralNetworksModel_setOperandValueFromModel,
               (ANeuralNetworksModel * model, int32_t index, const ANeuralNetworksModel* value),
               (model, index, value))
HEARTH_FORWARD(uint64_t, ANeuralNetworks_getDefaultLoopTimeout, (void), ())
HEARTH_FORWARD(int, ANeuralNetworks_getDevice, (uint32_t devIndex, ANeuralNetworksDevice** device),
               (devIndex, device))
HEARTH_FORWARD(int, ANeuralNetworks_getDeviceCount, (uint32_t* numDevices), (numDevices))
HEARTH_FORWARD(uint64_t, ANeuralNetworks_getMaximumLoopTimeout, (void), ())
HEARTH_FORWARD(int64_t, ANeuralNetworks_getRuntimeFeatureLevel, (void), ())
HEARTH_FORWARD(NnApiSLDriverImpl*, ANeuralNetworks_getSLDriverImpl, (void), ())
