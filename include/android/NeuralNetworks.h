/* SPDX-License-Identifier: Apache-2.0 */
/* The Neural Networks API, binary compatible with the Android NDK's header of the same name up to
   feature level 7; link with -lneuralnetworks. docs/nnapi.md has the rules in full.

   Functions return a ResultCode unless their declaration says otherwise. A null pointer where an
   object is needed is UNEXPECTED_NULL, a call at the wrong time BAD_STATE. A failure sets the
   pointer to a new object to null, and writes its reason to standard error. Free functions accept
   null.

   One thread at a time may build a model, a compilation or a memory descriptor; once it is
   finished, all threads may share it. Executions of one compilation are independent of each other.
   Other functions are thread-safe. Times are in nanoseconds. */
#ifndef HEARTH_ANDROID_NEURAL_NETWORKS_H
#define HEARTH_ANDROID_NEURAL_NETWORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "NeuralNetworksTypes.h"
#include "hardware_buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Devices, since feature level 3 --- */

int ANeuralNetworks_getDeviceCount(uint32_t* numDevices);
/* The device stays valid for the life of the process. "nnapi-reference" is the last one. */
int ANeuralNetworks_getDevice(uint32_t devIndex, ANeuralNetworksDevice** device);
/* Strings stay valid for the life of the process. */
int ANeuralNetworksDevice_getName(const ANeuralNetworksDevice* device, const char** name);
int ANeuralNetworksDevice_getVersion(const ANeuralNetworksDevice* device, const char** version);
int ANeuralNetworksDevice_getType(const ANeuralNetworksDevice* device, int32_t* type);
int ANeuralNetworksDevice_getFeatureLevel(const ANeuralNetworksDevice* device,
                                          int64_t* featureLevel);
/* Returns when the device can work. Since feature level 4. */
int ANeuralNetworksDevice_wait(const ANeuralNetworksDevice* device);
/* At least the feature level of every device. Since feature level 5. */
int64_t ANeuralNetworks_getRuntimeFeatureLevel(void);
/* Default and maximum of setLoopTimeout. Since feature level 4. */
uint64_t ANeuralNetworks_getDefaultLoopTimeout(void);
uint64_t ANeuralNetworks_getMaximumLoopTimeout(void);

/* --- Models --- */

int ANeuralNetworksModel_create(ANeuralNetworksModel** model);
/* Compilations of the model, and models that contain it, stay usable. */
void ANeuralNetworksModel_free(ANeuralNetworksModel* model);
/* Operands are numbered from 0 in the order in which they are added. */
int ANeuralNetworksModel_addOperand(ANeuralNetworksModel* model,
                                    const ANeuralNetworksOperandType* type);
/* Makes the operand a constant. Up to 128 bytes are copied at once; a longer buffer must keep its
   value until the model is finished. (null, 0) marks an optional argument as omitted. */
int ANeuralNetworksModel_setOperandValue(ANeuralNetworksModel* model, int32_t index,
                                         const void* buffer, size_t length);
/* Makes the operand a constant that lies in a range of a memory, whose contents must not change
   while the model is in use. */
int ANeuralNetworksModel_setOperandValueFromMemory(ANeuralNetworksModel* model, int32_t index,
                                                   const ANeuralNetworksMemory* memory,
                                                   size_t offset, size_t length);
/* Makes an operand of type MODEL stand for a finished model. Since feature level 4. */
int ANeuralNetworksModel_setOperandValueFromModel(ANeuralNetworksModel* model, int32_t index,
                                                  const ANeuralNetworksModel* value);
/* Since feature level 3. The scales are copied. */
int ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(
    ANeuralNetworksModel* model, int32_t index,
    const ANeuralNetworksSymmPerChannelQuantParams* channelQuant);
/* Operations may be added in any order. BAD_DATA for a signature that the operation does not have.
   If the signature depends on the value of a constant or a model, that must be set before. */
int ANeuralNetworksModel_addOperation(ANeuralNetworksModel* model,
                                      ANeuralNetworksOperationType type, uint32_t inputCount,
                                      const uint32_t* inputs, uint32_t outputCount,
                                      const uint32_t* outputs);
int ANeuralNetworksModel_identifyInputsAndOutputs(ANeuralNetworksModel* model, uint32_t inputCount,
                                                  const uint32_t* inputs, uint32_t outputCount,
                                                  const uint32_t* outputs);
/* Allows TENSOR_FLOAT32 to be computed in the range and precision of IEEE 754 16-bit floats. */
int ANeuralNetworksModel_relaxComputationFloat32toFloat16(ANeuralNetworksModel* model, bool allow);
/* Ends the building. After a failure the model can only be freed. */
int ANeuralNetworksModel_finish(ANeuralNetworksModel* model);
/* Tells for each operation, in the order in which they were added, whether one of the devices runs
   it. `supportedOps` has room for all. Since feature level 3. */
int ANeuralNetworksModel_getSupportedOperationsForDevices(
    const ANeuralNetworksModel* model, const ANeuralNetworksDevice* const* devices,
    uint32_t numDevices, bool* supportedOps);

/* --- Compilations --- */

/* For all devices: each part of the model runs on the device with the lowest cost, and the CPU runs
   what fails. */
int ANeuralNetworksCompilation_create(ANeuralNetworksModel* model,
                                      ANeuralNetworksCompilation** compilation);
/* For these devices alone; an operation that none of them runs makes finish fail. Since level 3. */
int ANeuralNetworksCompilation_createForDevices(ANeuralNetworksModel* model,
                                                const ANeuralNetworksDevice* const* devices,
                                                uint32_t numDevices,
                                                ANeuralNetworksCompilation** compilation);
void ANeuralNetworksCompilation_free(ANeuralNetworksCompilation* compilation);
int ANeuralNetworksCompilation_setPreference(ANeuralNetworksCompilation* compilation,
                                             int32_t preference);
/* Since feature level 4. */
int ANeuralNetworksCompilation_setPriority(ANeuralNetworksCompilation* compilation, int priority);
/* Time for finish, counted from its start; 0 is no limit. Only with exactly one device of
   createForDevices. Since feature level 4. */
int ANeuralNetworksCompilation_setTimeout(ANeuralNetworksCompilation* compilation,
                                          uint64_t duration);
/* A folder for cache files and a token of 32 bytes that stands for the model; both are copied.
   Since feature level 3. */
int ANeuralNetworksCompilation_setCaching(ANeuralNetworksCompilation* compilation,
                                          const char* cacheDir, const uint8_t* token);
int ANeuralNetworksCompilation_finish(ANeuralNetworksCompilation* compilation);
/* Best alignment of an argument's address, a power of two, and the multiple to which its length is
   best rounded up (see enableInputAndOutputPadding). In bytes. Since feature level 5. */
int ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* alignment);
int ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* padding);
int ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* alignment);
int ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(
    const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* padding);

/* --- Executions --- */

int ANeuralNetworksExecution_create(ANeuralNetworksCompilation* compilation,
                                    ANeuralNetworksExecution** execution);
/* An execution in flight goes on; its arguments must stay valid until it ends. */
void ANeuralNetworksExecution_free(ANeuralNetworksExecution* execution);
/* Arguments are used in place and must stay valid until the computation ends. `type` may be null;
   it fills in dimensions that the model leaves open. (null, 0) omits an optional argument. */
int ANeuralNetworksExecution_setInput(ANeuralNetworksExecution* execution, int32_t index,
                                      const ANeuralNetworksOperandType* type, const void* buffer,
                                      size_t length);
int ANeuralNetworksExecution_setInputFromMemory(ANeuralNetworksExecution* execution, int32_t index,
                                                const ANeuralNetworksOperandType* type,
                                                const ANeuralNetworksMemory* memory, size_t offset,
                                                size_t length);
int ANeuralNetworksExecution_setOutput(ANeuralNetworksExecution* execution, int32_t index,
                                       const ANeuralNetworksOperandType* type, void* buffer,
                                       size_t length);
int ANeuralNetworksExecution_setOutputFromMemory(ANeuralNetworksExecution* execution, int32_t index,
                                                 const ANeuralNetworksOperandType* type,
                                                 const ANeuralNetworksMemory* memory, size_t offset,
                                                 size_t length);
/* Allows arguments to be longer than their operands. Since feature level 5. */
int ANeuralNetworksExecution_enableInputAndOutputPadding(ANeuralNetworksExecution* execution,
                                                         bool enable);
/* Allows several computations, one at a time, also with new arguments. Only before the first
   computation. Since feature level 5. */
int ANeuralNetworksExecution_setReusable(ANeuralNetworksExecution* execution, bool reusable);
/* Time for a computation; 0 is no limit. Only with exactly one device of createForDevices. Since
   feature level 4. */
int ANeuralNetworksExecution_setTimeout(ANeuralNetworksExecution* execution, uint64_t duration);
/* Time that each WHILE may take; a value above the maximum is cut to it. Since feature level 4. */
int ANeuralNetworksExecution_setLoopTimeout(ANeuralNetworksExecution* execution, uint64_t duration);
/* Whether getDuration has results. Only with exactly one device of createForDevices. Since feature
   level 3. */
int ANeuralNetworksExecution_setMeasureTiming(ANeuralNetworksExecution* execution, bool measure);

/* Computes and returns when it is done. Since feature level 3. */
int ANeuralNetworksExecution_compute(ANeuralNetworksExecution* execution);
/* Computes as one of a rapid sequence; BAD_STATE while another computation uses the burst. */
int ANeuralNetworksExecution_burstCompute(ANeuralNetworksExecution* execution,
                                          ANeuralNetworksBurst* burst);
/* Computes in the background; the caller frees the event. */
int ANeuralNetworksExecution_startCompute(ANeuralNetworksExecution* execution,
                                          ANeuralNetworksEvent** event);
/* Computes in the background once all dependencies are signalled; `duration` is a limit from then
   on, 0 is none. Since feature level 4. */
int ANeuralNetworksExecution_startComputeWithDependencies(
    ANeuralNetworksExecution* execution, const ANeuralNetworksEvent* const* dependencies,
    uint32_t num_dependencies, uint64_t duration, ANeuralNetworksEvent** event);

/* Shape of an output after a computation. If this output's buffer was too small, these return
   OUTPUT_INSUFFICIENT_SIZE and write the shape that it needs. Since feature level 3. */
int ANeuralNetworksExecution_getOutputOperandRank(ANeuralNetworksExecution* execution,
                                                  int32_t index, uint32_t* rank);
int ANeuralNetworksExecution_getOutputOperandDimensions(ANeuralNetworksExecution* execution,
                                                        int32_t index, uint32_t* dimensions);
/* UINT64_MAX if the device did not measure. Since feature level 3. */
int ANeuralNetworksExecution_getDuration(const ANeuralNetworksExecution* execution,
                                         int32_t durationCode, uint64_t* duration);

/* --- Bursts, since feature level 3 --- */

int ANeuralNetworksBurst_create(ANeuralNetworksCompilation* compilation,
                                ANeuralNetworksBurst** burst);
void ANeuralNetworksBurst_free(ANeuralNetworksBurst* burst);

/* --- Events --- */

/* Waits for the end of the execution and returns its result, the same at each call. */
int ANeuralNetworksEvent_wait(ANeuralNetworksEvent* event);
/* Waits for the end of the execution. */
void ANeuralNetworksEvent_free(ANeuralNetworksEvent* event);
/* Creates an event that is signalled when poll() reports the descriptor readable (a sync fence, an
   eventfd). The descriptor is duplicated. Since feature level 4. */
int ANeuralNetworksEvent_createFromSyncFenceFd(int sync_fence_fd, ANeuralNetworksEvent** event);
/* Gives a new descriptor, which the caller closes, that is readable once the event is signalled.
   OP_FAILED and -1 for an event of startCompute. Since feature level 4. */
int ANeuralNetworksEvent_getSyncFenceFd(const ANeuralNetworksEvent* event, int* sync_fence_fd);

/* --- Memory --- */

/* `size` bytes of a file from `offset` on, which need not be aligned to pages; `protect` combines
   PROT_READ and PROT_WRITE. The descriptor is duplicated. */
int ANeuralNetworksMemory_createFromFd(size_t size, int protect, int fd, size_t offset,
                                       ANeuralNetworksMemory** memory);
/* Keeps a reference to the buffer. A BLOB is a memory of `width` bytes; a buffer of another format
   is used only as a whole, with offset and length 0. Since feature level 3. */
int ANeuralNetworksMemory_createFromAHardwareBuffer(const AHardwareBuffer* ahwb,
                                                    ANeuralNetworksMemory** memory);
/* Device memory for the roles of the descriptor. Since feature level 4. */
int ANeuralNetworksMemory_createFromDesc(const ANeuralNetworksMemoryDesc* desc,
                                         ANeuralNetworksMemory** memory);
/* Copies contents. BAD_DATA when source or destination do not fit or the source has no value yet.
   Since feature level 4. */
int ANeuralNetworksMemory_copy(const ANeuralNetworksMemory* src, const ANeuralNetworksMemory* dst);
/* Models and executions that use the memory keep it alive. */
void ANeuralNetworksMemory_free(ANeuralNetworksMemory* memory);

/* --- Memory descriptors, since feature level 4 --- */

int ANeuralNetworksMemoryDesc_create(ANeuralNetworksMemoryDesc** desc);
void ANeuralNetworksMemoryDesc_free(ANeuralNetworksMemoryDesc* desc);
/* `frequency`, above 0 and up to 1, says how often the memory is used in this role. */
int ANeuralNetworksMemoryDesc_addInputRole(ANeuralNetworksMemoryDesc* desc,
                                           const ANeuralNetworksCompilation* compilation,
                                           uint32_t index, float frequency);
int ANeuralNetworksMemoryDesc_addOutputRole(ANeuralNetworksMemoryDesc* desc,
                                            const ANeuralNetworksCompilation* compilation,
                                            uint32_t index, float frequency);
/* Adds to the dimensions that the roles know; 0 is an unknown dimension, rank 0 an unknown rank.
   BAD_DATA for a contradiction. */
int ANeuralNetworksMemoryDesc_setDimensions(ANeuralNetworksMemoryDesc* desc, uint32_t rank,
                                            const uint32_t* dimensions);
int ANeuralNetworksMemoryDesc_finish(ANeuralNetworksMemoryDesc* desc);

#ifdef __cplusplus
}
#endif

#endif /* HEARTH_ANDROID_NEURAL_NETWORKS_H */
