// SPDX-License-Identifier: Apache-2.0
// The structures of TensorFlow Lite's C interface that its delegates and its C library share, for
// LP64 systems: names, fields and values are the interface's, and the assertions pin where each
// field lies. Fields that nothing here reads are left without a type.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

enum TfLiteStatus : int32_t {
  kTfLiteOk = 0,
  kTfLiteError = 1,
  kTfLiteDelegateError = 2,
  kTfLiteApplicationError = 3,
  kTfLiteUnresolvedOps = 7,
  kTfLiteCancelled = 8,
};

enum TfLiteType : int32_t {
  kTfLiteNoType = 0,
  kTfLiteFloat32 = 1,
  kTfLiteInt32 = 2,
  kTfLiteUInt8 = 3,
  kTfLiteInt64 = 4,
  kTfLiteString = 5,
  kTfLiteBool = 6,
  kTfLiteInt16 = 7,
  kTfLiteComplex64 = 8,
  kTfLiteInt8 = 9,
  kTfLiteFloat16 = 10,
  kTfLiteFloat64 = 11,
  kTfLiteComplex128 = 12,
  kTfLiteUInt64 = 13,
  kTfLiteResource = 14,
  kTfLiteVariant = 15,
  kTfLiteUInt32 = 16,
  kTfLiteUInt16 = 17,
  kTfLiteInt4 = 18,
  kTfLiteBFloat16 = 19,
  kTfLiteInt2 = 20,
};

enum TfLiteAllocationType : int32_t {
  kTfLiteMemNone = 0,
  kTfLiteMmapRo = 1,
  kTfLiteArenaRw = 2,
  kTfLiteArenaRwPersistent = 3,
  kTfLiteDynamic = 4,
  kTfLitePersistentRo = 5,
  kTfLiteCustom = 6,
  kTfLiteVariantObject = 7,
};

// `size` numbers follow. The runtime allocates and frees these with malloc() and free().
struct TfLiteIntArray {
  int32_t size;
  int32_t data[];
};

struct TfLiteFloatArray {
  int32_t size;
  float data[];
};

enum TfLiteQuantizationType : int32_t {
  kTfLiteNoQuantization = 0,
  kTfLiteAffineQuantization = 1,
  kTfLiteBlockwiseQuantization = 2,
};

struct TfLiteAffineQuantization {
  TfLiteFloatArray* scale;
  TfLiteIntArray* zero_point;
  int32_t quantized_dimension;
};

struct TfLiteBlockwiseQuantization {
  int32_t scale;       // a tensor
  int32_t zero_point;  // a tensor; none if not above 0
  int32_t blocksize;
  int32_t quantized_dimension;
};

struct TfLiteQuantization {
  TfLiteQuantizationType type;
  void* params;  // one of the structures above
};

struct TfLiteDimensionMetadata {
  int32_t format;  // 0 = dense, 1 = compressed rows
  int32_t dense_size;
  TfLiteIntArray* array_segments;
  TfLiteIntArray* array_indices;
};

struct TfLiteSparsity {
  TfLiteIntArray* traversal_order;
  TfLiteIntArray* block_map;
  TfLiteDimensionMetadata* dim_metadata;
  int32_t dim_metadata_size;
};

struct TfLiteDelegate;
struct TfLiteContext;

struct TfLiteTensor {
  TfLiteType type;
  void* data;
  TfLiteIntArray* dims;
  float legacy_scale;
  int32_t legacy_zero_point;
  TfLiteAllocationType allocation_type;
  size_t bytes;
  const void* allocation;
  const char* name;
  TfLiteDelegate* delegate;
  int32_t buffer_handle;
  bool data_is_stale;
  bool is_variable;
  TfLiteQuantization quantization;
  TfLiteSparsity* sparsity;
  const TfLiteIntArray* dims_signature;  // null or empty when all of `dims` are the model's
};

struct TfLiteNode {
  TfLiteIntArray* inputs;  // tensors; -1 = omitted
  TfLiteIntArray* outputs;
  TfLiteIntArray* intermediates;
  TfLiteIntArray* temporaries;
  void* user_data;
  void* builtin_data;
  const void* custom_initial_data;
  int32_t custom_initial_data_size;
  TfLiteDelegate* delegate;
  bool might_have_side_effect;
};

// Passed by value, so its size belongs to the interface.
struct TfLiteRegistration {
  void* (*init)(TfLiteContext* context, const char* buffer, size_t length);
  void (*free)(TfLiteContext* context, void* buffer);
  TfLiteStatus (*prepare)(TfLiteContext* context, TfLiteNode* node);
  TfLiteStatus (*invoke)(TfLiteContext* context, TfLiteNode* node);
  const char* (*profiling_string)(const TfLiteContext* context, const TfLiteNode* node);
  int32_t builtin_code;
  const char* custom_name;
  int32_t version;
  void* registration_external;
  void* async_kernel;
  uint64_t inplace_operator;
};

// The structure to which `buffer` points in the call of `init` of a delegate's kernel.
struct TfLiteDelegateParams {
  TfLiteDelegate* delegate;
  TfLiteIntArray* nodes_to_replace;
  TfLiteIntArray* input_tensors;
  TfLiteIntArray* output_tensors;
};

struct TfLiteContext {
  size_t tensors_size;
  TfLiteStatus (*GetExecutionPlan)(TfLiteContext* context, TfLiteIntArray** execution_plan);
  TfLiteTensor* tensors;
  void* impl_;
  // Takes `new_size`, which comes from malloc().
  TfLiteStatus (*ResizeTensor)(TfLiteContext* context, TfLiteTensor* tensor,
                               TfLiteIntArray* new_size);
  void (*ReportError)(TfLiteContext* context, const char* format, ...);
  TfLiteStatus (*AddTensors)(TfLiteContext* context, int32_t count, int32_t* first);
  TfLiteStatus (*GetNodeAndRegistration)(TfLiteContext* context, int32_t node_index,
                                         TfLiteNode** node, TfLiteRegistration** registration);
  TfLiteStatus (*ReplaceNodeSubsetsWithDelegateKernels)(TfLiteContext* context,
                                                        TfLiteRegistration registration,
                                                        const TfLiteIntArray* nodes_to_replace,
                                                        TfLiteDelegate* delegate);
  int32_t recommended_num_threads;
  void* (*GetExternalContext)(TfLiteContext* context, int32_t type);
  void (*SetExternalContext)(TfLiteContext* context, int32_t type, void* external);
  bool allow_fp32_relax_to_fp16;
  void* unused_from_profiler[6];
  // The array and what it refers to belong to the context until the next call.
  TfLiteStatus (*PreviewDelegatePartitioning)(TfLiteContext* context,
                                              const TfLiteIntArray* nodes_to_replace,
                                              TfLiteDelegateParams** partitions,
                                              int32_t* partition_count);
  void* unused_at_end[5];
};

inline constexpr int64_t kTfLiteDelegateFlagsAllowDynamicTensors = 1;

// The runtime owns no more of it than the pointer.
struct TfLiteDelegate {
  void* data_;
  TfLiteStatus (*Prepare)(TfLiteContext* context, TfLiteDelegate* delegate);
  TfLiteStatus (*CopyFromBufferHandle)(TfLiteContext* context, TfLiteDelegate* delegate,
                                       int32_t handle, TfLiteTensor* tensor);
  TfLiteStatus (*CopyToBufferHandle)(TfLiteContext* context, TfLiteDelegate* delegate,
                                     int32_t handle, TfLiteTensor* tensor);
  void (*FreeBufferHandle)(TfLiteContext* context, TfLiteDelegate* delegate, int32_t* handle);
  int64_t flags;
  void* opaque_delegate_builder;  // null for a delegate of this form
};

// What newer functions see of a structure above as one without fields.
struct TfLiteOperator;
struct TfLiteAsyncKernel;
using TfLiteOpaqueContext = TfLiteContext;
using TfLiteOpaqueNode = TfLiteNode;
using TfLiteOpaqueTensor = TfLiteTensor;
using TfLiteOpaqueDelegate = TfLiteDelegate;

struct TfLiteOpaqueDelegateBuilder {
  void* data;
  TfLiteStatus (*Prepare)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* data);
  TfLiteStatus (*CopyFromBufferHandle)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate,
                                       void* data, int32_t handle, TfLiteOpaqueTensor* tensor);
  TfLiteStatus (*CopyToBufferHandle)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate,
                                     void* data, int32_t handle, TfLiteOpaqueTensor* tensor);
  void (*FreeBufferHandle)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* data,
                           int32_t* handle);
  int64_t flags;
};

using TfLiteOperatorInit = void* (*)(TfLiteOpaqueContext* context, const char* buffer,
                                     size_t length);
using TfLiteOperatorInitWithData = void* (*)(void* user_data, TfLiteOpaqueContext* context,
                                             const char* buffer, size_t length);
using TfLiteOperatorFree = void (*)(TfLiteOpaqueContext* context, void* data);
using TfLiteOperatorFreeWithData = void (*)(void* user_data, TfLiteOpaqueContext* context,
                                            void* data);
using TfLiteOperatorStep = TfLiteStatus (*)(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node);
using TfLiteOperatorStepWithData = TfLiteStatus (*)(void* user_data, TfLiteOpaqueContext* context,
                                                    TfLiteOpaqueNode* node);
using TfLiteOperatorKernel = TfLiteAsyncKernel* (*)(TfLiteOpaqueContext* context,
                                                    TfLiteOpaqueNode* node);
using TfLiteOperatorKernelWithData = TfLiteAsyncKernel* (*)(void* user_data,
                                                            TfLiteOpaqueContext* context,
                                                            TfLiteOpaqueNode* node);

}  // extern "C"

// What tensors with memory of the kind kTfLiteVariantObject point to: an object of a class that the
// program derives from this one.
class VariantData {
 public:
  virtual ~VariantData() = default;
  // Copies the object: to `target`, an object of the same class, or to a new one.
  virtual VariantData* CloneTo(VariantData* target) const = 0;
};

static_assert(sizeof(void*) == 8 && sizeof(size_t) == 8);

static_assert(offsetof(TfLiteTensor, data) == 8);
static_assert(offsetof(TfLiteTensor, dims) == 16);
static_assert(offsetof(TfLiteTensor, legacy_scale) == 24);
static_assert(offsetof(TfLiteTensor, allocation_type) == 32);
static_assert(offsetof(TfLiteTensor, bytes) == 40);
static_assert(offsetof(TfLiteTensor, allocation) == 48);
static_assert(offsetof(TfLiteTensor, name) == 56);
static_assert(offsetof(TfLiteTensor, delegate) == 64);
static_assert(offsetof(TfLiteTensor, buffer_handle) == 72);
static_assert(offsetof(TfLiteTensor, data_is_stale) == 76);
static_assert(offsetof(TfLiteTensor, is_variable) == 77);
static_assert(offsetof(TfLiteTensor, quantization) == 80);
static_assert(offsetof(TfLiteTensor, sparsity) == 96);
static_assert(offsetof(TfLiteTensor, dims_signature) == 104);
static_assert(sizeof(TfLiteTensor) == 112);

static_assert(offsetof(TfLiteNode, intermediates) == 16);
static_assert(offsetof(TfLiteNode, user_data) == 32);
static_assert(offsetof(TfLiteNode, builtin_data) == 40);
static_assert(offsetof(TfLiteNode, custom_initial_data) == 48);
static_assert(offsetof(TfLiteNode, custom_initial_data_size) == 56);
static_assert(offsetof(TfLiteNode, delegate) == 64);
static_assert(offsetof(TfLiteNode, might_have_side_effect) == 72);
static_assert(sizeof(TfLiteNode) == 80);

static_assert(offsetof(TfLiteRegistration, invoke) == 24);
static_assert(offsetof(TfLiteRegistration, builtin_code) == 40);
static_assert(offsetof(TfLiteRegistration, custom_name) == 48);
static_assert(offsetof(TfLiteRegistration, version) == 56);
static_assert(offsetof(TfLiteRegistration, registration_external) == 64);
static_assert(offsetof(TfLiteRegistration, inplace_operator) == 80);
static_assert(sizeof(TfLiteRegistration) == 88);

static_assert(offsetof(TfLiteDelegateParams, output_tensors) == 24);
static_assert(sizeof(TfLiteDelegateParams) == 32);

static_assert(offsetof(TfLiteContext, GetExecutionPlan) == 8);
static_assert(offsetof(TfLiteContext, tensors) == 16);
static_assert(offsetof(TfLiteContext, ResizeTensor) == 32);
static_assert(offsetof(TfLiteContext, ReportError) == 40);
static_assert(offsetof(TfLiteContext, GetNodeAndRegistration) == 56);
static_assert(offsetof(TfLiteContext, ReplaceNodeSubsetsWithDelegateKernels) == 64);
static_assert(offsetof(TfLiteContext, recommended_num_threads) == 72);
static_assert(offsetof(TfLiteContext, allow_fp32_relax_to_fp16) == 96);
static_assert(offsetof(TfLiteContext, PreviewDelegatePartitioning) == 152);
static_assert(sizeof(TfLiteContext) == 200);

static_assert(offsetof(TfLiteDelegate, Prepare) == 8);
static_assert(offsetof(TfLiteDelegate, FreeBufferHandle) == 32);
static_assert(offsetof(TfLiteDelegate, flags) == 40);
static_assert(offsetof(TfLiteDelegate, opaque_delegate_builder) == 48);
static_assert(sizeof(TfLiteDelegate) == 56);

static_assert(sizeof(TfLiteAffineQuantization) == 24);
static_assert(sizeof(TfLiteQuantization) == 16);
static_assert(offsetof(TfLiteSparsity, dim_metadata_size) == 24);
static_assert(offsetof(TfLiteDimensionMetadata, array_indices) == 16);
