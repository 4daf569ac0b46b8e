// SPDX-License-Identifier: Apache-2.0
// The functions of TensorFlow Lite's C library, version 2.17.1, for LP64 systems. Names,
// parameters, fields and values are that library's interface; docs/tflite-programs.md says what
// each does here.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "tflite_abi/structures.h"

extern "C" {

struct TfLiteModel;
struct TfLiteInterpreterOptions;
struct TfLiteInterpreter;
struct TfLiteSignatureRunner;
struct TfLiteOperator;
struct TfLiteOpaqueTensorBuilder;
struct TfLiteBackendBuffer;
struct TfLiteSynchronization;
struct TfLiteXNNPackDelegateWeightsCache;
struct TfLiteTelemetryProfilerStruct;
struct TfLiteTelemetryInterpreterSettings;
struct TfLiteTelemetryConversionMetadata;
struct TfLiteTelemetrySubgraphInfo;
struct TfLiteTelemetryGpuDelegateSettings;

enum TfLiteAllocationStrategy : int32_t {
  kTfLiteAllocationStrategyUnknown = 0,
  kTfLiteAllocationStrategyNone = 1,
  kTfLiteAllocationStrategyMMap = 2,
  kTfLiteAllocationStrategyArena = 3,
  kTfLiteAllocationStrategyMalloc = 4,
  kTfLiteAllocationStrategyNew = 5,
};

enum TfLiteRunStability : int32_t {
  kTfLiteRunStabilityUnknown = 0,
  kTfLiteRunStabilityUnstable = 1,
  kTfLiteRunStabilitySingleRun = 2,
  kTfLiteRunStabilityAcrossRuns = 3,
};

enum TfLiteRunStep : int32_t {
  kTfLiteRunStepUnknown = 0,
  kTfLiteRunStepInit = 1,
  kTfLiteRunStepPrepare = 2,
  kTfLiteRunStepEval = 3,
};

struct TfLiteQuantizationParams {
  float scale;
  int32_t zero_point;
};

struct TfLiteCustomAllocation {
  void* data;
  size_t bytes;
};

// Returned by value, so its size belongs to the interface: this is 2.17.1's.
struct TfLiteXNNPackDelegateOptions {
  int32_t num_threads;
  uint32_t flags;
  TfLiteXNNPackDelegateWeightsCache* weights_cache;
  bool handle_variable_ops;
  const char* weight_cache_file_path;
};

struct TfLiteNnapiDelegateOptions {
  int32_t execution_preference;
  const char* accelerator_name;
  const char* cache_dir;
  const char* model_token;
  int32_t disallow_nnapi_cpu;
  int32_t allow_fp16;
  int32_t max_number_delegated_partitions;
  void* nnapi_support_library_handle;
};

using TfLiteReporter = void (*)(void* user_data, const char* format, va_list arguments);
using TfLiteFindBuiltinOp = const TfLiteRegistration* (*)(void* user_data, int32_t op, int version);
using TfLiteFindCustomOp = const TfLiteRegistration* (*)(void* user_data, const char* op,
                                                         int version);
using TfLiteFindBuiltinOperator = const TfLiteOperator* (*)(void* user_data, int op, int version);
using TfLiteFindCustomOperator = const TfLiteOperator* (*)(void* user_data, const char* op,
                                                           int version);

// --- Versions ---

const char* TfLiteVersion();
const char* TfLiteExtensionApisVersion();
int TfLiteSchemaVersion();

// --- Models ---

TfLiteModel* TfLiteModelCreate(const void* data, size_t size);
TfLiteModel* TfLiteModelCreateWithErrorReporter(const void* data, size_t size,
                                                TfLiteReporter reporter, void* user_data);
TfLiteModel* TfLiteModelCreateFromFile(const char* path);
TfLiteModel* TfLiteModelCreateFromFileWithErrorReporter(const char* path, TfLiteReporter reporter,
                                                        void* user_data);
void TfLiteModelDelete(TfLiteModel* model);

// --- Options of interpreters ---

TfLiteInterpreterOptions* TfLiteInterpreterOptionsCreate();
TfLiteInterpreterOptions* TfLiteInterpreterOptionsCopy(const TfLiteInterpreterOptions* from);
void TfLiteInterpreterOptionsDelete(TfLiteInterpreterOptions* options);
void TfLiteInterpreterOptionsSetNumThreads(TfLiteInterpreterOptions* options, int32_t threads);
void TfLiteInterpreterOptionsAddDelegate(TfLiteInterpreterOptions* options,
                                         TfLiteDelegate* delegate);
void TfLiteInterpreterOptionsSetErrorReporter(TfLiteInterpreterOptions* options,
                                              TfLiteReporter reporter, void* user_data);
void TfLiteInterpreterOptionsAddOperator(TfLiteInterpreterOptions* options,
                                         TfLiteOperator* registration);
TfLiteStatus TfLiteInterpreterOptionsEnableCancellation(TfLiteInterpreterOptions* options,
                                                        bool enable);
void TfLiteInterpreterOptionsAddBuiltinOp(TfLiteInterpreterOptions* options, int32_t op,
                                          const TfLiteRegistration* registration,
                                          int32_t min_version, int32_t max_version);
void TfLiteInterpreterOptionsAddCustomOp(TfLiteInterpreterOptions* options, const char* name,
                                         const TfLiteRegistration* registration,
                                         int32_t min_version, int32_t max_version);
void TfLiteInterpreterOptionsSetOpResolver(TfLiteInterpreterOptions* options,
                                           TfLiteFindBuiltinOp find_builtin,
                                           TfLiteFindCustomOp find_custom, void* user_data);
void TfLiteInterpreterOptionsSetOpResolverExternal(TfLiteInterpreterOptions* options,
                                                   TfLiteFindBuiltinOperator find_builtin,
                                                   TfLiteFindCustomOperator find_custom,
                                                   void* user_data);
void TfLiteInterpreterOptionsSetOpResolverExternalWithFallback(
    TfLiteInterpreterOptions* options, TfLiteFindBuiltinOperator find_builtin,
    TfLiteFindCustomOperator find_custom, TfLiteFindBuiltinOp find_builtin_registration,
    TfLiteFindCustomOp find_custom_registration, void* user_data);
void TfLiteInterpreterOptionsSetOpResolverV1(TfLiteInterpreterOptions* options,
                                             TfLiteFindBuiltinOp find_builtin,
                                             TfLiteFindCustomOp find_custom, void* user_data);
void TfLiteInterpreterOptionsSetOpResolverV2(TfLiteInterpreterOptions* options,
                                             TfLiteFindBuiltinOp find_builtin,
                                             TfLiteFindCustomOp find_custom, void* user_data);
void TfLiteInterpreterOptionsSetOpResolverV3(TfLiteInterpreterOptions* options,
                                             TfLiteFindBuiltinOp find_builtin,
                                             TfLiteFindCustomOp find_custom, void* user_data);
void TfLiteInterpreterOptionsSetUseNNAPI(TfLiteInterpreterOptions* options, bool enable);
void TfLiteInterpreterOptionsSetEnableDelegateFallback(TfLiteInterpreterOptions* options,
                                                       bool enable);
void TfLiteInterpreterOptionsSetTelemetryProfiler(TfLiteInterpreterOptions* options,
                                                  TfLiteTelemetryProfilerStruct* profiler);

// --- Interpreters ---

TfLiteInterpreter* TfLiteInterpreterCreate(const TfLiteModel* model,
                                           const TfLiteInterpreterOptions* options);
TfLiteInterpreter* TfLiteInterpreterCreateWithSelectedOps(const TfLiteModel* model,
                                                          const TfLiteInterpreterOptions* options);
void TfLiteInterpreterDelete(TfLiteInterpreter* interpreter);
int32_t TfLiteInterpreterGetInputTensorCount(const TfLiteInterpreter* interpreter);
int32_t TfLiteInterpreterGetOutputTensorCount(const TfLiteInterpreter* interpreter);
const int* TfLiteInterpreterInputTensorIndices(const TfLiteInterpreter* interpreter);
const int* TfLiteInterpreterOutputTensorIndices(const TfLiteInterpreter* interpreter);
int32_t TfLiteInterpreterGetInputTensorIndex(const TfLiteInterpreter* interpreter, int32_t index);
int32_t TfLiteInterpreterGetOutputTensorIndex(const TfLiteInterpreter* interpreter, int32_t index);
TfLiteTensor* TfLiteInterpreterGetInputTensor(const TfLiteInterpreter* interpreter, int32_t index);
const TfLiteTensor* TfLiteInterpreterGetOutputTensor(const TfLiteInterpreter* interpreter,
                                                     int32_t index);
TfLiteTensor* TfLiteInterpreterGetTensor(const TfLiteInterpreter* interpreter, int index);
int32_t TfLiteInterpreterGetVariableTensorCount(const TfLiteInterpreter* interpreter);
TfLiteTensor* TfLiteInterpreterGetVariableTensor(const TfLiteInterpreter* interpreter,
                                                 int32_t index);
TfLiteStatus TfLiteInterpreterResizeInputTensor(TfLiteInterpreter* interpreter, int32_t index,
                                                const int* dims, int32_t rank);
TfLiteStatus TfLiteInterpreterAllocateTensors(TfLiteInterpreter* interpreter);
TfLiteStatus TfLiteInterpreterInvoke(TfLiteInterpreter* interpreter);
TfLiteStatus TfLiteInterpreterCancel(const TfLiteInterpreter* interpreter);
TfLiteStatus TfLiteInterpreterResetVariableTensors(TfLiteInterpreter* interpreter);
TfLiteStatus TfLiteInterpreterSetCustomAllocationForTensor(TfLiteInterpreter* interpreter,
                                                           int index,
                                                           const TfLiteCustomAllocation* allocation,
                                                           int64_t flags);
TfLiteStatus TfLiteInterpreterModifyGraphWithDelegate(const TfLiteInterpreter* interpreter,
                                                      TfLiteDelegate* delegate);
TfLiteStatus TfLiteInterpreterSetBufferHandle(TfLiteInterpreter* interpreter, TfLiteTensor* tensor,
                                              int32_t handle, TfLiteOpaqueDelegate* delegate);
TfLiteStatus TfLiteInterpreterGetBufferHandle(TfLiteInterpreter* interpreter, int index,
                                              int32_t* handle, TfLiteOpaqueDelegate** delegate);
TfLiteStatus TfLiteInterpreterEnsureTensorDataIsReadable(TfLiteInterpreter* interpreter, int index);
void TfLiteSetAllowBufferHandleOutput(const TfLiteInterpreter* interpreter, bool allow);
int32_t TfLiteInterpreterGetSignatureCount(const TfLiteInterpreter* interpreter);
const char* TfLiteInterpreterGetSignatureKey(const TfLiteInterpreter* interpreter, int32_t index);
TfLiteSignatureRunner* TfLiteInterpreterGetSignatureRunner(const TfLiteInterpreter* interpreter,
                                                           const char* key);

// --- Signatures ---

size_t TfLiteSignatureRunnerGetInputCount(const TfLiteSignatureRunner* runner);
size_t TfLiteSignatureRunnerGetOutputCount(const TfLiteSignatureRunner* runner);
const char* TfLiteSignatureRunnerGetInputName(const TfLiteSignatureRunner* runner, int32_t index);
const char* TfLiteSignatureRunnerGetOutputName(const TfLiteSignatureRunner* runner, int32_t index);
TfLiteTensor* TfLiteSignatureRunnerGetInputTensor(TfLiteSignatureRunner* runner, const char* name);
const TfLiteTensor* TfLiteSignatureRunnerGetOutputTensor(const TfLiteSignatureRunner* runner,
                                                         const char* name);
TfLiteStatus TfLiteSignatureRunnerResizeInputTensor(TfLiteSignatureRunner* runner, const char* name,
                                                    const int* dims, int32_t rank);
TfLiteStatus TfLiteSignatureRunnerAllocateTensors(TfLiteSignatureRunner* runner);
TfLiteStatus TfLiteSignatureRunnerInvoke(TfLiteSignatureRunner* runner);
TfLiteStatus TfLiteSignatureRunnerCancel(TfLiteSignatureRunner* runner);
void TfLiteSignatureRunnerDelete(TfLiteSignatureRunner* runner);

// --- Tensors ---

TfLiteType TfLiteTensorType(const TfLiteTensor* tensor);
int32_t TfLiteTensorNumDims(const TfLiteTensor* tensor);
int32_t TfLiteTensorDim(const TfLiteTensor* tensor, int32_t index);
size_t TfLiteTensorByteSize(const TfLiteTensor* tensor);
void* TfLiteTensorData(const TfLiteTensor* tensor);
const char* TfLiteTensorName(const TfLiteTensor* tensor);
TfLiteQuantizationParams TfLiteTensorQuantizationParams(const TfLiteTensor* tensor);
TfLiteStatus TfLiteTensorCopyFromBuffer(TfLiteTensor* tensor, const void* data, size_t size);
TfLiteStatus TfLiteTensorCopyToBuffer(const TfLiteTensor* tensor, void* data, size_t size);
void TfLiteTensorDataFree(TfLiteTensor* tensor);
void TfLiteTensorFree(TfLiteTensor* tensor);
void TfLiteTensorReset(TfLiteType type, const char* name, TfLiteIntArray* dims,
                       TfLiteQuantizationParams quantization, char* buffer, size_t size,
                       TfLiteAllocationType allocation_type, const void* allocation,
                       bool is_variable, TfLiteTensor* tensor);
TfLiteStatus TfLiteTensorCopy(const TfLiteTensor* from, TfLiteTensor* to);
TfLiteStatus TfLiteTensorResizeMaybeCopy(size_t bytes, TfLiteTensor* tensor, bool preserve_data);
TfLiteStatus TfLiteTensorRealloc(size_t bytes, TfLiteTensor* tensor);
TfLiteAllocationStrategy TfLiteTensorGetAllocationStrategy(const TfLiteTensor* tensor);
TfLiteRunStability TfLiteTensorGetBufferAddressStability(const TfLiteTensor* tensor);
TfLiteRunStability TfLiteTensorGetDataStability(const TfLiteTensor* tensor);
TfLiteRunStep TfLiteTensorGetDataKnownStep(const TfLiteTensor* tensor);
TfLiteRunStep TfLiteTensorGetShapeKnownStep(const TfLiteTensor* tensor);

// --- Arrays and other parts of tensors ---

size_t TfLiteIntArrayGetSizeInBytes(int size);
TfLiteIntArray* TfLiteIntArrayCreate(int size);
int TfLiteIntArrayEqual(const TfLiteIntArray* a, const TfLiteIntArray* b);
int TfLiteIntArrayEqualsArray(const TfLiteIntArray* a, int b_size, const int* b_data);
TfLiteIntArray* TfLiteIntArrayCopy(const TfLiteIntArray* from);
void TfLiteIntArrayFree(TfLiteIntArray* array);
int TfLiteFloatArrayGetSizeInBytes(int size);
TfLiteFloatArray* TfLiteFloatArrayCreate(int size);
TfLiteFloatArray* TfLiteFloatArrayCopy(const TfLiteFloatArray* from);
void TfLiteFloatArrayFree(TfLiteFloatArray* array);
const char* TfLiteTypeGetName(TfLiteType type);
void TfLiteQuantizationFree(TfLiteQuantization* quantization);
void TfLiteSparsityFree(TfLiteSparsity* sparsity);

// --- Opaque tensors ---

TfLiteType TfLiteOpaqueTensorType(const TfLiteOpaqueTensor* tensor);
int32_t TfLiteOpaqueTensorNumDims(const TfLiteOpaqueTensor* tensor);
int32_t TfLiteOpaqueTensorDim(const TfLiteOpaqueTensor* tensor, int32_t index);
TfLiteStatus TfLiteOpaqueTensorGetNumDimsSignature(const TfLiteOpaqueTensor* tensor, int32_t* rank);
TfLiteStatus TfLiteOpaqueTensorGetDimSignature(const TfLiteOpaqueTensor* tensor, int32_t index,
                                               int32_t* dim);
int TfLiteOpaqueTensorIsVariable(const TfLiteOpaqueTensor* tensor);
size_t TfLiteOpaqueTensorByteSize(const TfLiteOpaqueTensor* tensor);
void* TfLiteOpaqueTensorData(const TfLiteOpaqueTensor* tensor);
TfLiteAllocationType TfLiteOpaqueTensorGetAllocationType(const TfLiteOpaqueTensor* tensor);
TfLiteAllocationStrategy TfLiteOpaqueTensorGetAllocationStrategy(const TfLiteOpaqueTensor* tensor);
TfLiteRunStability TfLiteOpaqueTensorGetBufferAddressStability(const TfLiteOpaqueTensor* tensor);
TfLiteRunStability TfLiteOpaqueTensorGetDataStability(const TfLiteOpaqueTensor* tensor);
TfLiteRunStep TfLiteOpaqueTensorGetDataKnownStep(const TfLiteOpaqueTensor* tensor);
TfLiteRunStep TfLiteOpaqueTensorGetShapeKnownStep(const TfLiteOpaqueTensor* tensor);
const char* TfLiteOpaqueTensorName(const TfLiteOpaqueTensor* tensor);
TfLiteQuantization TfLiteOpaqueTensorGetQuantization(const TfLiteOpaqueTensor* tensor);
TfLiteQuantizationParams TfLiteOpaqueTensorGetQuantizationParams(const TfLiteOpaqueTensor* tensor);
TfLiteStatus TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueTensor* tensor, const void* data,
                                              size_t size);
TfLiteStatus TfLiteOpaqueTensorCopyToBuffer(const TfLiteOpaqueTensor* tensor, void* data,
                                            size_t size);
int TfLiteOpaqueTensorGetStringCount(const TfLiteOpaqueTensor* tensor);
TfLiteStatus TfLiteOpaqueTensorGetString(const TfLiteOpaqueTensor* tensor, int index,
                                         const char** text, int* length);
TfLiteStatus TfLiteOpaqueTensorWriteStrings(TfLiteOpaqueTensor* tensor, const char* const* texts,
                                            int count, const int* lengths);
TfLiteStatus TfLiteOpaqueTensorWriteString(TfLiteOpaqueTensor* tensor, const char* text,
                                           int length);
TfLiteStatus TfLiteOpaqueTensorSetAllocationTypeToDynamic(TfLiteOpaqueTensor* tensor);
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderCreate();
void TfLiteOpaqueTensorBuilderDelete(TfLiteOpaqueTensorBuilder* builder);
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetType(TfLiteOpaqueTensorBuilder* builder,
                                                            TfLiteType type);
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetData(TfLiteOpaqueTensorBuilder* builder,
                                                            void* data);
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetAllocationType(
    TfLiteOpaqueTensorBuilder* builder, TfLiteAllocationType allocation_type);
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantizationParams(
    TfLiteOpaqueTensorBuilder* builder, TfLiteQuantizationParams params);
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantization(
    TfLiteOpaqueTensorBuilder* builder, TfLiteQuantization quantization);

// --- Operators ---

TfLiteOperator* TfLiteOperatorCreate(int32_t builtin_code, const char* custom_name, int version);
TfLiteOperator* TfLiteOperatorCreateWithData(int32_t builtin_code, const char* custom_name,
                                             int version, void* user_data);
void TfLiteOperatorDelete(TfLiteOperator* registration);
int32_t TfLiteOperatorGetBuiltInCode(const TfLiteOperator* registration);
const char* TfLiteOperatorGetCustomName(const TfLiteOperator* registration);
int TfLiteOperatorGetVersion(const TfLiteOperator* registration);
void* TfLiteOperatorGetUserData(const TfLiteOperator* registration);
void TfLiteOperatorSetInit(TfLiteOperator* registration, TfLiteOperatorInit init);
TfLiteStatus TfLiteOperatorSetInitWithData(TfLiteOperator* registration,
                                           TfLiteOperatorInitWithData init);
void TfLiteOperatorSetFree(TfLiteOperator* registration, TfLiteOperatorFree release);
TfLiteStatus TfLiteOperatorSetFreeWithData(TfLiteOperator* registration,
                                           TfLiteOperatorFreeWithData release);
void TfLiteOperatorSetPrepare(TfLiteOperator* registration, TfLiteOperatorStep prepare);
TfLiteStatus TfLiteOperatorSetPrepareWithData(TfLiteOperator* registration,
                                              TfLiteOperatorStepWithData prepare);
void TfLiteOperatorSetInvoke(TfLiteOperator* registration, TfLiteOperatorStep invoke);
TfLiteStatus TfLiteOperatorSetInvokeWithData(TfLiteOperator* registration,
                                             TfLiteOperatorStepWithData invoke);
void TfLiteOperatorSetAsyncKernel(TfLiteOperator* registration, TfLiteOperatorKernel kernel);
TfLiteStatus TfLiteOperatorSetAsyncKernelWithData(TfLiteOperator* registration,
                                                  TfLiteOperatorKernelWithData kernel);
void TfLiteOperatorSetInplaceOperator(TfLiteOperator* registration, uint64_t inplace_operator);

// --- Nodes ---

const TfLiteOpaqueTensor* TfLiteOpaqueNodeGetInput(const TfLiteOpaqueContext* context,
                                                   const TfLiteOpaqueNode* node, int index);
TfLiteOpaqueTensor* TfLiteOpaqueNodeGetOutput(TfLiteOpaqueContext* context,
                                              const TfLiteOpaqueNode* node, int index);
int TfLiteOpaqueNodeNumberOfInputs(const TfLiteOpaqueNode* node);
int TfLiteOpaqueNodeNumberOfOutputs(const TfLiteOpaqueNode* node);
void* TfLiteOpaqueNodeGetUserData(const TfLiteOpaqueNode* node);
void* TfLiteOpaqueNodeGetBuiltinData(const TfLiteOpaqueNode* node);
TfLiteStatus TfLiteOpaqueNodeGetCustomInitialData(const TfLiteOpaqueNode* node, const void** data,
                                                  int* size);
TfLiteStatus TfLiteOpaqueNodeInputs(const TfLiteOpaqueNode* node, const int** inputs, int* count);
TfLiteStatus TfLiteOpaqueNodeOutputs(const TfLiteOpaqueNode* node, const int** outputs, int* count);
TfLiteStatus TfLiteOpaqueNodeSetTemporaries(TfLiteOpaqueNode* node, const int* temporaries,
                                            int count);
TfLiteStatus TfLiteOpaqueNodeTemporaries(const TfLiteOpaqueNode* node, const int** temporaries,
                                         int* count);
int TfLiteOpaqueNodeGetInputTensorIndex(const TfLiteOpaqueNode* node, int index);
int TfLiteOpaqueNodeGetOutputTensorIndex(const TfLiteOpaqueNode* node, int index);

// --- Contexts ---

TfLiteStatus TfLiteOpaqueContextGetExecutionPlan(TfLiteOpaqueContext* context,
                                                 TfLiteIntArray** plan);
TfLiteStatus TfLiteOpaqueContextGetNodeAndRegistration(TfLiteOpaqueContext* context, int index,
                                                       TfLiteOpaqueNode** node,
                                                       TfLiteOperator** registration);
TfLiteStatus TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels(
    TfLiteOpaqueContext* context, TfLiteOperator* registration, const TfLiteIntArray* nodes,
    TfLiteOpaqueDelegate* delegate);
TfLiteOpaqueTensor* TfLiteOpaqueContextGetOpaqueTensor(const TfLiteOpaqueContext* context,
                                                       int index);
TfLiteStatus TfLiteOpaqueContextGetInputs(const TfLiteOpaqueContext* context, const int** inputs,
                                          int* count);
TfLiteStatus TfLiteOpaqueContextGetOutputs(const TfLiteOpaqueContext* context, const int** outputs,
                                           int* count);
TfLiteStatus TfLiteOpaqueContextGetVariables(const TfLiteOpaqueContext* context,
                                             const int** variables, int* count);
size_t TfLiteOpaqueContextGetNumNodes(const TfLiteOpaqueContext* context);
size_t TfLiteOpaqueContextGetNumTensors(const TfLiteOpaqueContext* context);
const char* TfLiteOpaqueContextGetName(const TfLiteOpaqueContext* context);
TfLiteStatus TfLiteOpaqueContextResizeTensor(TfLiteOpaqueContext* context,
                                             TfLiteOpaqueTensor* tensor, TfLiteIntArray* dims);
TfLiteStatus TfLiteOpaqueContextAcquireSubgraphContext(TfLiteOpaqueContext* context, int subgraph,
                                                       TfLiteOpaqueContext** acquired);
TfLiteStatus TfLiteOpaqueContextReleaseSubgraphContext(TfLiteOpaqueContext* context, int subgraph);
TfLiteStatus TfLiteOpaqueContextMarkSubgraphAsDelegationSkippable(TfLiteOpaqueContext* context,
                                                                  int subgraph);
TfLiteStatus TfLiteOpaqueContextGetNodeInitDataMmapInfo(const TfLiteOpaqueContext* context,
                                                        const TfLiteOpaqueNode* node, int* fd,
                                                        int64_t* offset, int64_t* size);
TfLiteStatus TfLiteOpaqueContextAddTensor(TfLiteOpaqueContext* context,
                                          TfLiteOpaqueTensorBuilder* builder, int* index);
TfLiteStatus TfLiteOpaqueContextGetSizeOfType(TfLiteOpaqueContext* context, TfLiteType type,
                                              size_t* bytes);
void TfLiteOpaqueContextReportError(TfLiteOpaqueContext* context, const char* format, ...);
void TfLiteOpaqueContextReportErrorVa(TfLiteOpaqueContext* context, const char* format,
                                      va_list arguments);

// --- Delegates ---

TfLiteDelegate TfLiteDelegateCreate();
TfLiteOpaqueDelegate* TfLiteOpaqueDelegateCreate(const TfLiteOpaqueDelegateBuilder* builder);
void TfLiteOpaqueDelegateDelete(TfLiteOpaqueDelegate* delegate);
void* TfLiteOpaqueDelegateGetData(const TfLiteOpaqueDelegate* delegate);
TfLiteNnapiDelegateOptions TfLiteNnapiDelegateOptionsDefault();
TfLiteDelegate* TfLiteNnapiDelegateCreate(const TfLiteNnapiDelegateOptions* options);
void TfLiteNnapiDelegateDelete(TfLiteDelegate* delegate);
TfLiteXNNPackDelegateOptions TfLiteXNNPackDelegateOptionsDefault();
TfLiteDelegate* TfLiteXNNPackDelegateCreate(const TfLiteXNNPackDelegateOptions* options);
TfLiteDelegate* TfLiteXNNPackDelegateCreateWithThreadpool(
    const TfLiteXNNPackDelegateOptions* options, TfLiteContext* context);
void TfLiteXNNPackDelegateDelete(TfLiteDelegate* delegate);
int TfLiteXNNPackDelegateGetFlags(TfLiteDelegate* delegate);
const TfLiteXNNPackDelegateOptions* TfLiteXNNPackDelegateGetOptions(TfLiteDelegate* delegate);
void* TfLiteXNNPackDelegateGetThreadPool(TfLiteDelegate* delegate);
TfLiteXNNPackDelegateWeightsCache* TfLiteXNNPackDelegateWeightsCacheCreate();
TfLiteXNNPackDelegateWeightsCache* TfLiteXNNPackDelegateWeightsCacheCreateWithSize(size_t size);
bool TfLiteXNNPackDelegateWeightsCacheFinalizeSoft(TfLiteXNNPackDelegateWeightsCache* cache);
bool TfLiteXNNPackDelegateWeightsCacheFinalizeHard(TfLiteXNNPackDelegateWeightsCache* cache);
void TfLiteXNNPackDelegateWeightsCacheDelete(TfLiteXNNPackDelegateWeightsCache* cache);

// --- Buffers and synchronisation of asynchronous kernels ---

TfLiteBackendBuffer* TfLiteBackendBufferCreate();
void TfLiteBackendBufferDelete(TfLiteBackendBuffer* buffer);
void TfLiteBackendBufferSetPtr(TfLiteBackendBuffer* buffer, void* pointer);
void* TfLiteBackendBufferGetPtr(const TfLiteBackendBuffer* buffer);
TfLiteSynchronization* TfLiteSynchronizationCreate();
void TfLiteSynchronizationDelete(TfLiteSynchronization* synchronization);
void TfLiteSynchronizationSetPtr(TfLiteSynchronization* synchronization, void* pointer);
void* TfLiteSynchronizationGetPtr(const TfLiteSynchronization* synchronization);

// --- Telemetry ---

const TfLiteTelemetryConversionMetadata* TfLiteTelemetryInterpreterSettingsGetConversionMetadata(
    const TfLiteTelemetryInterpreterSettings* settings);
size_t TfLiteTelemetryInterpreterSettingsGetNumSubgraphInfo(
    const TfLiteTelemetryInterpreterSettings* settings);
const TfLiteTelemetrySubgraphInfo* TfLiteTelemetryInterpreterSettingsGetSubgraphInfo(
    const TfLiteTelemetryInterpreterSettings* settings);
const int32_t* TfLiteTelemetryConversionMetadataGetModelOptimizationModes(
    const TfLiteTelemetryConversionMetadata* metadata);
size_t TfLiteTelemetryConversionMetadataGetNumModelOptimizationModes(
    const TfLiteTelemetryConversionMetadata* metadata);
size_t TfLiteTelemetrySubgraphInfoGetNumQuantizations(const TfLiteTelemetrySubgraphInfo* subgraph);
const TfLiteQuantization* TfLiteTelemetrySubgraphInfoGetQuantizations(
    const TfLiteTelemetrySubgraphInfo* subgraph);
int32_t TfLiteTelemetryGpuDelegateSettingsGetBackend(
    const TfLiteTelemetryGpuDelegateSettings* settings);
size_t TfLiteTelemetryGpuDelegateSettingsGetNumNodesDelegated(
    const TfLiteTelemetryGpuDelegateSettings* settings);

}  // extern "C"

static_assert(sizeof(TfLiteXNNPackDelegateOptions) == 32);
static_assert(offsetof(TfLiteXNNPackDelegateOptions, weight_cache_file_path) == 24);
static_assert(sizeof(TfLiteNnapiDelegateOptions) == 56);
static_assert(offsetof(TfLiteNnapiDelegateOptions, model_token) == 24);
static_assert(offsetof(TfLiteNnapiDelegateOptions, nnapi_support_library_handle) == 48);
static_assert(sizeof(TfLiteQuantizationParams) == 8);
