/* SPDX-License-Identifier: Apache-2.0 */
/* Types and codes of the Neural Networks API, binary compatible with the Android NDK's header of
   the same name up to feature level 7. Values are the NDK's; a name's feature level is the first
   that has it. Codes are documented in the NDK reference
   (developer.android.com/ndk/reference/group/ neural-networks); docs/nnapi.md says where Hearth
   differs. */
#ifndef HEARTH_ANDROID_NEURAL_NETWORKS_TYPES_H
#define HEARTH_ANDROID_NEURAL_NETWORKS_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Types of operands. A tensor's unknown dimension is 0; rank 0 stands for an unknown rank. */
typedef enum {
  /* Feature level 1. */
  ANEURALNETWORKS_FLOAT32 = 0, /* scalar */
  ANEURALNETWORKS_INT32 = 1,   /* scalar */
  ANEURALNETWORKS_UINT32 = 2,  /* scalar */
  ANEURALNETWORKS_TENSOR_FLOAT32 = 3,
  ANEURALNETWORKS_TENSOR_INT32 = 4,        /* may have a scale: biases of quantised operations */
  ANEURALNETWORKS_TENSOR_QUANT8_ASYMM = 5, /* real = (value - zeroPoint) * scale, 0 to 255 */
  /* Feature level 3. */
  ANEURALNETWORKS_BOOL = 6,                /* scalar of one byte, 0 is false */
  ANEURALNETWORKS_TENSOR_QUANT16_SYMM = 7, /* int16, zeroPoint 0 */
  ANEURALNETWORKS_TENSOR_FLOAT16 = 8,
  ANEURALNETWORKS_TENSOR_BOOL8 = 9, /* a byte for each element, 0 is false */
  ANEURALNETWORKS_FLOAT16 = 10,     /* scalar */
  /* int8 with a scale for each index of one dimension, see
     ANeuralNetworksModel_setOperandSymmPerChannelQuantParams. */
  ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL = 11,
  ANEURALNETWORKS_TENSOR_QUANT16_ASYMM = 12, /* uint16 */
  ANEURALNETWORKS_TENSOR_QUANT8_SYMM = 13,   /* int8, zeroPoint 0 */
  /* Feature level 4. */
  ANEURALNETWORKS_TENSOR_QUANT8_ASYMM_SIGNED = 14, /* int8 */
  ANEURALNETWORKS_MODEL = 15, /* another model: branches of IF, parts of WHILE */
} OperandCode;

/* Types of operations. Inputs and outputs of each are in the NDK reference. */
typedef enum {
  /* Feature level 1. */
  ANEURALNETWORKS_ADD = 0,
  ANEURALNETWORKS_AVERAGE_POOL_2D = 1,
  ANEURALNETWORKS_CONCATENATION = 2,
  ANEURALNETWORKS_CONV_2D = 3,
  ANEURALNETWORKS_DEPTHWISE_CONV_2D = 4,
  ANEURALNETWORKS_DEPTH_TO_SPACE = 5,
  ANEURALNETWORKS_DEQUANTIZE = 6,
  ANEURALNETWORKS_EMBEDDING_LOOKUP = 7,
  ANEURALNETWORKS_FLOOR = 8,
  ANEURALNETWORKS_FULLY_CONNECTED = 9,
  ANEURALNETWORKS_HASHTABLE_LOOKUP = 10,
  ANEURALNETWORKS_L2_NORMALIZATION = 11,
  ANEURALNETWORKS_L2_POOL_2D = 12,
  ANEURALNETWORKS_LOCAL_RESPONSE_NORMALIZATION = 13,
  ANEURALNETWORKS_LOGISTIC = 14,
  ANEURALNETWORKS_LSH_PROJECTION = 15,
  ANEURALNETWORKS_LSTM = 16,
  ANEURALNETWORKS_MAX_POOL_2D = 17,
  ANEURALNETWORKS_MUL = 18,
  ANEURALNETWORKS_RELU = 19,
  ANEURALNETWORKS_RELU1 = 20,
  ANEURALNETWORKS_RELU6 = 21,
  ANEURALNETWORKS_RESHAPE = 22,
  ANEURALNETWORKS_RESIZE_BILINEAR = 23,
  ANEURALNETWORKS_RNN = 24,
  ANEURALNETWORKS_SOFTMAX = 25,
  ANEURALNETWORKS_SPACE_TO_DEPTH = 26,
  ANEURALNETWORKS_SVDF = 27,
  ANEURALNETWORKS_TANH = 28,
  /* Feature level 2. */
  ANEURALNETWORKS_BATCH_TO_SPACE_ND = 29,
  ANEURALNETWORKS_DIV = 30,
  ANEURALNETWORKS_MEAN = 31,
  ANEURALNETWORKS_PAD = 32,
  ANEURALNETWORKS_SPACE_TO_BATCH_ND = 33,
  ANEURALNETWORKS_SQUEEZE = 34,
  ANEURALNETWORKS_STRIDED_SLICE = 35,
  ANEURALNETWORKS_SUB = 36,
  ANEURALNETWORKS_TRANSPOSE = 37,
  /* Feature level 3. */
  ANEURALNETWORKS_ABS = 38,
  ANEURALNETWORKS_ARGMAX = 39,
  ANEURALNETWORKS_ARGMIN = 40,
  ANEURALNETWORKS_AXIS_ALIGNED_BBOX_TRANSFORM = 41,
  ANEURALNETWORKS_BIDIRECTIONAL_SEQUENCE_LSTM = 42,
  ANEURALNETWORKS_BIDIRECTIONAL_SEQUENCE_RNN = 43,
  ANEURALNETWORKS_BOX_WITH_NMS_LIMIT = 44,
  ANEURALNETWORKS_CAST = 45,
  ANEURALNETWORKS_CHANNEL_SHUFFLE = 46,
  ANEURALNETWORKS_DETECTION_POSTPROCESSING = 47,
  ANEURALNETWORKS_EQUAL = 48,
  ANEURALNETWORKS_EXP = 49,
  ANEURALNETWORKS_EXPAND_DIMS = 50,
  ANEURALNETWORKS_GATHER = 51,
  ANEURALNETWORKS_GENERATE_PROPOSALS = 52,
  ANEURALNETWORKS_GREATER = 53,
  ANEURALNETWORKS_GREATER_EQUAL = 54,
  ANEURALNETWORKS_GROUPED_CONV_2D = 55,
  ANEURALNETWORKS_HEATMAP_MAX_KEYPOINT = 56,
  ANEURALNETWORKS_INSTANCE_NORMALIZATION = 57,
  ANEURALNETWORKS_LESS = 58,
  ANEURALNETWORKS_LESS_EQUAL = 59,
  ANEURALNETWORKS_LOG = 60,
  ANEURALNETWORKS_LOGICAL_AND = 61,
  ANEURALNETWORKS_LOGICAL_NOT = 62,
  ANEURALNETWORKS_LOGICAL_OR = 63,
  ANEURALNETWORKS_LOG_SOFTMAX = 64,
  ANEURALNETWORKS_MAXIMUM = 65,
  ANEURALNETWORKS_MINIMUM = 66,
  ANEURALNETWORKS_NEG = 67,
  ANEURALNETWORKS_NOT_EQUAL = 68,
  ANEURALNETWORKS_PAD_V2 = 69,
  ANEURALNETWORKS_POW = 70,
  ANEURALNETWORKS_PRELU = 71,
  ANEURALNETWORKS_QUANTIZE = 72,
  ANEURALNETWORKS_QUANTIZED_16BIT_LSTM = 73,
  ANEURALNETWORKS_RANDOM_MULTINOMIAL = 74,
  ANEURALNETWORKS_REDUCE_ALL = 75,
  ANEURALNETWORKS_REDUCE_ANY = 76,
  ANEURALNETWORKS_REDUCE_MAX = 77,
  ANEURALNETWORKS_REDUCE_MIN = 78,
  ANEURALNETWORKS_REDUCE_PROD = 79,
  ANEURALNETWORKS_REDUCE_SUM = 80,
  ANEURALNETWORKS_ROI_ALIGN = 81,
  ANEURALNETWORKS_ROI_POOLING = 82,
  ANEURALNETWORKS_RSQRT = 83,
  ANEURALNETWORKS_SELECT = 84,
  ANEURALNETWORKS_SIN = 85,
  ANEURALNETWORKS_SLICE = 86,
  ANEURALNETWORKS_SPLIT = 87,
  ANEURALNETWORKS_SQRT = 88,
  ANEURALNETWORKS_TILE = 89,
  ANEURALNETWORKS_TOPK_V2 = 90,
  ANEURALNETWORKS_TRANSPOSE_CONV_2D = 91,
  ANEURALNETWORKS_UNIDIRECTIONAL_SEQUENCE_LSTM = 92,
  ANEURALNETWORKS_UNIDIRECTIONAL_SEQUENCE_RNN = 93,
  ANEURALNETWORKS_RESIZE_NEAREST_NEIGHBOR = 94,
  /* Feature level 4. */
  ANEURALNETWORKS_QUANTIZED_LSTM = 95,
  ANEURALNETWORKS_IF = 96,
  ANEURALNETWORKS_WHILE = 97,
  ANEURALNETWORKS_ELU = 98,
  ANEURALNETWORKS_HARD_SWISH = 99,
  ANEURALNETWORKS_FILL = 100,
  ANEURALNETWORKS_RANK = 101,
  /* Feature level 6. */
  ANEURALNETWORKS_BATCH_MATMUL = 102,
  ANEURALNETWORKS_PACK = 103,
  /* Feature level 7. */
  ANEURALNETWORKS_MIRROR_PAD = 104,
  ANEURALNETWORKS_REVERSE = 105,
} OperationCode;

/* The activation that some operations apply to their result. */
typedef enum {
  ANEURALNETWORKS_FUSED_NONE = 0,
  ANEURALNETWORKS_FUSED_RELU = 1,  /* max(0, x) */
  ANEURALNETWORKS_FUSED_RELU1 = 2, /* x clamped to [-1, 1] */
  ANEURALNETWORKS_FUSED_RELU6 = 3, /* x clamped to [0, 6] */
} FuseCode;

/* Implicit padding of windowed operations. */
typedef enum {
  ANEURALNETWORKS_PADDING_SAME = 1,
  ANEURALNETWORKS_PADDING_VALID = 2,
} PaddingCode;

/* What a compilation is optimised for. */
typedef enum {
  ANEURALNETWORKS_PREFER_LOW_POWER = 0,
  ANEURALNETWORKS_PREFER_FAST_SINGLE_ANSWER = 1,
  ANEURALNETWORKS_PREFER_SUSTAINED_SPEED = 2,
} PreferenceCode;

/* Kinds of devices, since feature level 3. */
typedef enum {
  ANEURALNETWORKS_DEVICE_UNKNOWN = 0,
  ANEURALNETWORKS_DEVICE_OTHER = 1,
  ANEURALNETWORKS_DEVICE_CPU = 2,
  ANEURALNETWORKS_DEVICE_GPU = 3,
  ANEURALNETWORKS_DEVICE_ACCELERATOR = 4,
} DeviceTypeCode;

/* Results of functions. 0 is success. */
typedef enum {
  ANEURALNETWORKS_NO_ERROR = 0,
  ANEURALNETWORKS_OUT_OF_MEMORY = 1,
  ANEURALNETWORKS_INCOMPLETE = 2,
  ANEURALNETWORKS_UNEXPECTED_NULL = 3,
  ANEURALNETWORKS_BAD_DATA = 4,
  ANEURALNETWORKS_OP_FAILED = 5,
  ANEURALNETWORKS_BAD_STATE = 6,
  ANEURALNETWORKS_UNMAPPABLE = 7,
  /* Feature level 3. */
  ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE = 8,
  ANEURALNETWORKS_UNAVAILABLE_DEVICE = 9,
  /* Feature level 4. */
  ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT = 10,
  ANEURALNETWORKS_MISSED_DEADLINE_PERSISTENT = 11,
  ANEURALNETWORKS_RESOURCE_EXHAUSTED_TRANSIENT = 12,
  ANEURALNETWORKS_RESOURCE_EXHAUSTED_PERSISTENT = 13,
  ANEURALNETWORKS_DEAD_OBJECT = 14,
} ResultCode;

/* What ANeuralNetworksExecution_getDuration measures. */
typedef enum {
  ANEURALNETWORKS_DURATION_ON_HARDWARE = 0,
  ANEURALNETWORKS_DURATION_IN_DRIVER = 1,
  /* Feature level 4: from when all dependencies are signalled. */
  ANEURALNETWORKS_FENCED_DURATION_ON_HARDWARE = 2,
  ANEURALNETWORKS_FENCED_DURATION_IN_DRIVER = 3,
} DurationCode;

/* Relative priorities of executions, since feature level 4. */
typedef enum {
  ANEURALNETWORKS_PRIORITY_LOW = 90,
  ANEURALNETWORKS_PRIORITY_MEDIUM = 100,
  ANEURALNETWORKS_PRIORITY_HIGH = 110,
  ANEURALNETWORKS_PRIORITY_DEFAULT = ANEURALNETWORKS_PRIORITY_MEDIUM,
} PriorityCode;

/* Feature levels of devices and of the runtime, since feature level 5. */
typedef enum {
  ANEURALNETWORKS_FEATURE_LEVEL_1 = 27,
  ANEURALNETWORKS_FEATURE_LEVEL_2 = 28,
  ANEURALNETWORKS_FEATURE_LEVEL_3 = 29,
  ANEURALNETWORKS_FEATURE_LEVEL_4 = 30,
  ANEURALNETWORKS_FEATURE_LEVEL_5 = 31,
  ANEURALNETWORKS_FEATURE_LEVEL_6 = 1000006,
  ANEURALNETWORKS_FEATURE_LEVEL_7 = 1000007,
  ANEURALNETWORKS_FEATURE_LEVEL_8 = 1000008,
} FeatureLevelCode;

enum {
  /* Longest value that ANeuralNetworksModel_setOperandValue copies at once, in bytes. */
  ANEURALNETWORKS_MAX_SIZE_OF_IMMEDIATELY_COPIED_VALUES = 128,
  /* Bytes of the token of ANeuralNetworksCompilation_setCaching, since feature level 3. */
  ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN = 32,
};

/* Shared memory, driver memory or a hardware buffer. */
typedef struct ANeuralNetworksMemory ANeuralNetworksMemory;
/* A graph of operations; immutable once it is finished. */
typedef struct ANeuralNetworksModel ANeuralNetworksModel;
/* A model prepared for devices; immutable once it is finished. */
typedef struct ANeuralNetworksCompilation ANeuralNetworksCompilation;
/* One application of a compilation to arguments. */
typedef struct ANeuralNetworksExecution ANeuralNetworksExecution;
/* The end of an execution that runs in the background, or a sync fence. */
typedef struct ANeuralNetworksEvent ANeuralNetworksEvent;
/* Since feature level 3: a rapid sequence of executions of one compilation. */
typedef struct ANeuralNetworksBurst ANeuralNetworksBurst;
/* Since feature level 3: a device; never freed. */
typedef struct ANeuralNetworksDevice ANeuralNetworksDevice;
/* Since feature level 4: the roles of a device memory. */
typedef struct ANeuralNetworksMemoryDesc ANeuralNetworksMemoryDesc;

/* Type of an operand. */
typedef struct ANeuralNetworksOperandType {
  int32_t type;               /* an OperandCode, or an extension's type */
  uint32_t dimensionCount;    /* 0 for scalars and tensors of unknown rank */
  const uint32_t* dimensions; /* null if and only if dimensionCount is 0; 0 is unknown */
  float scale;                /* of quantised types, else 0 */
  int32_t zeroPoint;          /* of asymmetrically quantised types, else 0 */
} ANeuralNetworksOperandType;

/* Since feature level 3: quantisation of ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL. */
typedef struct ANeuralNetworksSymmPerChannelQuantParams {
  uint32_t channelDim; /* the dimension that has a scale for each index */
  uint32_t scaleCount; /* equal to that dimension */
  const float* scales; /* all positive */
} ANeuralNetworksSymmPerChannelQuantParams;

/* An OperationCode, or an extension's operation. */
typedef int32_t ANeuralNetworksOperationType;

#ifdef __cplusplus
}
#endif

#endif /* HEARTH_ANDROID_NEURAL_NETWORKS_TYPES_H */
