/* SPDX-License-Identifier: Apache-2.0 */
/* The Neural Networks API, binary compatible with the Android NDK's header of the same name up to
   feature level 7; link with -lneuralnetworks. docs/nnapi.md has the rules in full.

   Functions return a ResultCode unless they say otherwise. UNEXPECTED_NULL is the answer to a null
   pointer where one is needed, BAD_STATE to a call at the wrong time; an out-pointer is null after
   a failure. Every failure is explained by a line on standard error. Free functions accept null.

   Models, compilations and memory descriptors are built by one thread at a time and may be shared
   by all threads once they are finished. Executions of one compilation are independent of each
   other. Other functions are thread-safe. Times are in nanoseconds. */
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
/* How long a WHILE may take unless setLoopTimeout says otherwise, and at most. Since level 4. */
uint64_t ANeuralNetworks_getDefaultLoopTimeout(void);
uint64_t ANeuralNetworks_getMaximumLoopTimeout(void);

/* --- Models --- */

int ANeuralNetworksModel_create(ANeuralNetworksModel** model);
/* What was made from the model, compilations and models that contain it, lives on. */
void ANeuralNetworksModel_free(ANeuralNetworksModel* model);
/* Operands are numbered from 0 in the order in which they are added. */
int ANeuralNetworksModel_addOperand(ANeuralNetworksModel* model,
                                    const ANeuralNetworksOperandType* type);
/* Makes the operand a constant. Up to 128 bytes are copied at once; a longer buffer must keep its
   value until the model is finished. (null, 0) marks an optional argument as omitted. */
int ANeuralNetworksModel_setOperandValue(ANeuralNetworksModel* model, int32_t index,
                                         const void* buffer, size_t length);
/* The same from a range of a memory, which must keep its value as long as the model is used. */
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
/* Operations may be added in any order. BAD_DATA for a signature that the operation does not have;
   values of constants and referenced models must have been set before where it depends on them. */
int ANeuralNetworksModel_addOperation(ANeuralNetworksModel* model,
                                      ANeuralNetworksOperationType type, uint32_t inputCount,
                                      const uint32_t* inputs, uint32_t outputCount,
                                      const uint32_t* outputs);
int ANeuralNetworksModel_identifyInputsAndOutputs(ANeuralNetworksModel* model, uint32_t inputCount,
                                                  const uint32_t* inputs, uint32_t outputCount,
                                                  const uint32_t* outputs);
/* Allows TENSOR_FLOAT32 to be computed in the range and precision of IEEE 754 16-bit floats. */
int ANeuralNetworksModel_relaxComputationFloat32toFloat16(ANeuralNetworksModel* model, bool allow);
/* Ends the building. After a failure the model is of no use but to be freed. */
int ANeuralNetworksModel_finish(ANeuralNetworksModel* model);
/* For each operation, in the order in which they were added, whether one of the devices runs it.
   Since feature level 3. */
int ANeuralNetworksModel_getSupportedOperationsForDevices(
    const ANeuralNetworksModel* model, const ANeuralNetworksDevice* const* devices,
    uint32_t numDevices, bool* supportedOps);

/* --- Compilations --- */

/* For all devices: parts of the model go where they run best, with the CPU for what fails. */
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
/* A folder for compiled code and 32 bytes that stand for the model. Since feature level 3. */
int ANeuralNetworksCompilation_setCaching(ANeuralNetworksCompilation* compilation,
                                          const char* cacheDir, const uint8_t* token);
int ANeuralNetworksCompilation_finish(ANeuralNetworksCompilation* compilation);
/* Since feature level 5. Alignment of an argument's address, a power of two, and the multiple to
   which its length is best rounded up (see enableInputAndOutputPadding). */
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
/* Since feature level 5: lengths may exceed what the operands need. */
int ANeuralNetworksExecution_enableInputAndOutputPadding(ANeuralNetworksExecution* execution,
                                                         bool enable);
/* Since feature level 5: computations may follow each other, one at a time, also with new
   arguments. Before the first computation only. */
int ANeuralNetworksExecution_setReusable(ANeuralNetworksExecution* execution, bool reusable);
/* Time for a computation; 0 is no limit. Only with exactly one device of createForDevices. Since
   feature level 4. */
int ANeuralNetworksExecution_setTimeout(ANeuralNetworksExecution* execution, uint64_t duration);
/* Time that each WHILE may take; above the maximum it is the maximum. Since feature level 4. */
int ANeuralNetworksExecution_setLoopTimeout(ANeuralNetworksExecution* execution, uint64_t duration);
/* Only with exactly one device of createForDevices. Since feature level 3. */
int ANeuralNetworksExecution_setMeasureTiming(ANeuralNetworksExecution* execution, bool measure);

/* Computes and returns when it is done. Since feature level 3. */
int ANeuralNetworksExecution_compute(ANeuralNetworksExecution* execution);
/* The same as one of a rapid sequence; BAD_STATE while another computation uses the burst. */
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

/* Shape of an output after a computation, since feature level 3. When the computation failed
   because an output's buffer was too small, these return OUTPUT_INSUFFICIENT_SIZE too and give the
   shape that it needs. */
int ANeuralNetworksExecution_getOutputOperandRank(ANeuralNetworksExecution* execution,
                                                  int32_t index, uint32_t* rank);
int ANeuralNetworksExecution_getOutputOperandDimensions(ANeuralNetworksExecution* execution,
                                                        int32_t index, uint32_t* dimensions);
/* UINT64_MAX where there is no measurement. Since feature level 3. */
int ANeuralNetworksExecution_getDuration(const ANeuralNetworksExecution* execution,
                                         int32_t durationCode, uint64_t* duration);

/* --- Bursts, since feature level 3 --- */

int ANeuralNetworksBurst_create(ANeuralNetworksCompilation* compilation,
                                ANeuralNetworksBurst** burst);
void ANeuralNetworksBurst_free(ANeuralNetworksBurst* burst);

/* --- Events --- */

/* Returns when the execution has ended, with its result. May be called again and again. */
int ANeuralNetworksEvent_wait(ANeuralNetworksEvent* event);
/* Waits, too. */
void ANeuralNetworksEvent_free(ANeuralNetworksEvent* event);
/* An event that is signalled when poll() reports the descriptor readable (a sync fence, an
   eventfd). It is duplicated. Since feature level 4. */
int ANeuralNetworksEvent_createFromSyncFenceFd(int sync_fence_fd, ANeuralNetworksEvent** event);
/* A new descriptor, for the caller to close, that becomes readable when the event is signalled.
   OP_FAILED and -1 for an event of startCompute. Since feature level 4. */
int ANeuralNetworksEvent_getSyncFenceFd(const ANeuralNetworksEvent* event, int* sync_fence_fd);

/* --- Memory --- */

/* `size` bytes of a file from `offset` on, which need not be aligned to pages; `protect` is made of
   PROT_READ and PROT_WRITE. The descriptor is duplicated. */
int ANeuralNetworksMemory_createFromFd(size_t size, int protect, int fd, size_t offset,
                                       ANeuralNetworksMemory** memory);
/* Keeps a reference to the buffer. A BLOB is a memory of `width` bytes; another format is used as
   a whole only, with offset and length 0. Since feature level 3. */
int ANeuralNetworksMemory_createFromAHardwareBuffer(const AHardwareBuffer* ahwb,
                                                    ANeuralNetworksMemory** memory);
/* Memory of a device's own, for the roles of the descriptor. Since feature level 4. */
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
/* Joined with what the roles know; 0 is an unknown dimension, rank 0 an unknown rank. */
int ANeuralNetworksMemoryDesc_setDimensions(ANeuralNetworksMemoryDesc* desc, uint32_t rank,
                                            const uint32_t* dimensions);
int ANeuralNetworksMemoryDesc_finish(ANeuralNetworksMemoryDesc* desc);

#ifdef __cplusplus
}
#endif

#endif /* HEARTH_ANDROID_NEURAL_NETWORKS_H */
