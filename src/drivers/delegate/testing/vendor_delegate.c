// SPDX-License-Identifier: Apache-2.0
// An external delegate for tests, as a vendor's is known to behave: its options say which nodes it
// takes and what it does wrong. It computes ADD, MUL and SUB of float32 tensors of one shape, alone
// or with RELU, and the custom operation "vendor-times", whose input it multiplies by the first
// byte of its options.
//
// It declares the interface's structures itself, as those of TensorFlow 2.HEARTH_TEST_MINOR are.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { kOk = 0, kError = 1, kFloat32 = 1, kConstant = 1, kArena = 2, kRelu = 1 };
enum { kAdd = 0, kMul = 18, kCustom = 32, kSub = 41, kDelegateCode = 51 };

typedef struct {
  int size;
  int data[];
} IntArray;

typedef struct Delegate Delegate;
typedef struct Context Context;

typedef struct {
  int type;
  void* data;
  IntArray* dims;
  float scale;
  int zeroPoint;
  int allocationType;
  size_t bytes;
  const void* allocation;
  const char* name;
  Delegate* delegate;
  int bufferHandle;
  bool isStale, isVariable;
  struct {
    int type;
    void* params;
  } quantization;
  void* sparsity;
  const IntArray* signature;
} Tensor;

typedef struct {
  IntArray *inputs, *outputs, *intermediates, *temporaries;
  void *userData, *builtinData;
  const void* customData;
  int customSize;
  Delegate* delegate;
#if HEARTH_TEST_MINOR >= 9
  bool hasSideEffect;
#endif
} Node;

typedef struct {
  void* (*init)(Context*, const char*, size_t);
  void (*free)(Context*, void*);
  int (*prepare)(Context*, Node*);
  int (*invoke)(Context*, Node*);
  const char* (*profile)(const Context*, const Node*);
  int code;
  const char* customName;
  int version;
#if HEARTH_TEST_MINOR >= 8
  void* external;
#endif
#if HEARTH_TEST_MINOR >= 14
  void* asyncKernel;
  uint64_t inplace;
#endif
} Registration;

struct Context {
  size_t tensorCount;
  int (*plan)(Context*, IntArray**);
  Tensor* tensors;
  void* impl;
  int (*resize)(Context*, Tensor*, IntArray*);
  void (*report)(Context*, const char*, ...);
  int (*addTensors)(Context*, int, int*);
  int (*node)(Context*, int, Node**, Registration**);
  int (*replace)(Context*, Registration, const IntArray*, Delegate*);
};

struct Delegate {
  void* data;
  int (*prepare)(Context*, Delegate*);
  int (*copyFrom)(Context*, Delegate*, int, Tensor*);
  int (*copyTo)(Context*, Delegate*, int, Tensor*);
  void (*freeHandle)(Context*, Delegate*, int*);
  int64_t flags;
#if HEARTH_TEST_MINOR >= 10
  void* opaque;
#endif
};

typedef struct {
  Delegate* delegate;
  IntArray *nodes, *inputs, *outputs;
} Params;

// The options.
typedef struct {
  char take[64];   // "all", "none", or codes with commas around each: ",0,18,"
  char stage[32];  // at which it does `harm`: see harmAt()
  char harm[32];   // error, crash, abort, exit, hang
  char habit[32];  // what it does besides: see has()
  char log[512];   // a file to which it adds a letter: o when it is offered a graph, c when it
                   // compiles
  char cacheFile[512], cacheFolder[512], token[80];  // where it keeps what it has compiled
} Options;

typedef struct {
  Delegate delegate;
  Options options;
} Vendor;

typedef struct {
  int code, left, right, result, activation;
  float factor;  // of a custom operation
} Step;

typedef struct {
  Vendor* vendor;
  int count;
  Step steps[64];
  int outputs[8], outputCount;
  float* inside[256];  // values of tensors that only this kernel has
  void* kept[256];     // addresses of tensors at the preparation
  int temporary;
  float* held[256];  // outputs in buffers of the delegate
  Tensor* keptTensors;
  const Params* params;  // as they were given at the start
  bool isCompiled;       // at the first invocation
} Kernel;

static int doHarm(const char* harm) {
  if (strcmp(harm, "crash") == 0) {
    volatile int* nowhere = NULL;
    *nowhere = 1;
  }
  if (strcmp(harm, "abort") == 0) abort();
  if (strcmp(harm, "exit") == 0) exit(3);
  if (strcmp(harm, "hang") == 0)
    for (;;) usleep(1000);
  return kError;
}

// Stages are create, prepare, init, kernel, invoke, numbers (an invocation with other numbers than
// zeros), copy, free, destroy, and thread: some time later, while nobody calls.
static int harmAt(const Vendor* vendor, const char* stage) {
  return strcmp(vendor->options.stage, stage) == 0 ? doHarm(vendor->options.harm) : kOk;
}

// A stage before there are options.
__attribute__((constructor)) static void load(void) {
  const char* const harm = getenv("VENDOR_LOAD");
  if (harm != NULL) doHarm(harm);
}

static bool has(const Vendor* vendor, const char* habit) {
  return strcmp(vendor->options.habit, habit) == 0;
}

static bool takes(const Vendor* vendor, int code) {
  char text[16];
  snprintf(text, sizeof text, ",%d,", code);
  return strcmp(vendor->options.take, "all") == 0 || strstr(vendor->options.take, text) != NULL;
}

static size_t elements(const Tensor* tensor) {
  size_t count = 1;
  for (int i = 0; i < tensor->dims->size; ++i) count *= (size_t)tensor->dims->data[i];
  return count;
}

static void writeLog(const Vendor* vendor, char letter) {
  if (vendor->options.log[0] == '\0') return;
  FILE* const file = fopen(vendor->options.log, "a");
  if (file == NULL) abort();
  fputc(letter, file);
  fclose(file);
}

// As if the kernel's nodes took seconds: what was compiled is left in the cache. A cache that was
// not made for these nodes is an error, or with the habit "trust" the end, as in libraries that
// read it without a check.
static int compile(const Kernel* kernel) {
  const Options* const options = &kernel->vendor->options;
  char path[1024] = "";
  if (options->cacheFile[0] != '\0') snprintf(path, sizeof path, "%s", options->cacheFile);
  if (options->cacheFolder[0] != '\0') {
    snprintf(path, sizeof path, "%s/kernels", options->cacheFolder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/kernels/%s.bin", options->cacheFolder, options->token);
  }
  char code[256] = "compiled";
  for (int i = 0; i < kernel->count && i < 32; ++i)
    snprintf(code + strlen(code), 8, " %d", kernel->steps[i].code);
  FILE* file = path[0] != '\0' ? fopen(path, "r") : NULL;
  if (file != NULL) {
    char found[256] = "";
    const bool isOwn = fgets(found, sizeof found, file) != NULL && strcmp(found, code) == 0;
    fclose(file);
    if (isOwn) return kOk;
    if (has(kernel->vendor, "trust")) abort();
    return kError;
  }
  writeLog(kernel->vendor, 'c');
  if (path[0] == '\0') return kOk;
  file = fopen(path, "w");
  if (file == NULL) return kError;
  fputs(code, file);
  fclose(file);
  return kOk;
}

static void* kernelInit(Context* context, const char* buffer, size_t length) {
  (void)length;
  const Params* const params = (const Params*)buffer;
  Kernel* const kernel = calloc(1, sizeof(Kernel));
  kernel->vendor = params->delegate->data;
  kernel->params = params;
  kernel->temporary = -1;
  if (harmAt(kernel->vendor, "init") != kOk) {
    free(kernel);
    return NULL;
  }
  for (int i = 0; i < params->nodes->size && i < 64; ++i) {
    Node* node = NULL;
    Registration* registration = NULL;
    if (context->node(context, params->nodes->data[i], &node, &registration) != kOk) return NULL;
    const bool hasTwo = node->inputs->size > 1;
    // The parameters of these operations begin with the activation.
    const int* const parameters = node->builtinData;
    Step step = {registration->code,
                 node->inputs->data[0],
                 hasTwo ? node->inputs->data[1] : -1,
                 node->outputs->data[0],
                 parameters != NULL ? parameters[0] : 0,
                 0};
    if (step.code == kCustom) {
      const bool isKnown = strcmp(registration->customName, "vendor-times") == 0;
      if (!isKnown || parameters != NULL || node->customSize < 1) return NULL;
      step.factor = ((const uint8_t*)node->customData)[0];
    }
    kernel->steps[kernel->count++] = step;
  }
  for (int i = 0; i < params->outputs->size && i < 8; ++i)
    kernel->outputs[kernel->outputCount++] = params->outputs->data[i];
  if (has(kernel->vendor, "temporaries")) context->addTensors(context, 200, &kernel->temporary);
  return kernel;
}

static void kernelFree(Context* context, void* data) {
  (void)context;
  Kernel* const kernel = data;
  if (kernel == NULL) return;
  harmAt(kernel->vendor, "free");  // it cannot fail
  for (int i = 0; i < 256; ++i) {
    free(kernel->inside[i]);
    free(kernel->held[i]);
  }
  free(kernel);
}

static bool isOutput(const Kernel* kernel, int tensor) {
  for (int i = 0; i < kernel->outputCount; ++i)
    if (kernel->outputs[i] == tensor) return true;
  return false;
}

static int kernelPrepare(Context* context, Node* node) {
  Kernel* const kernel = node->userData;
  if (kernel == NULL) return kError;
  if (harmAt(kernel->vendor, "kernel") != kOk) {
    context->report(context, "kernel %d cannot be prepared", 7);
    return kError;
  }
  if (has(kernel->vendor, "params") && (node->builtinData != kernel->params ||
                                        kernel->params->delegate != &kernel->vendor->delegate ||
                                        kernel->params->nodes->size != kernel->count))
    return kError;
  for (int i = 0; i < kernel->count; ++i) {
    const int result = kernel->steps[i].result;
    if (!isOutput(kernel, result)) {
      free(kernel->inside[result]);
      kernel->inside[result] = calloc(elements(&context->tensors[result]), sizeof(float));
    }
  }
  if (has(kernel->vendor, "resize"))
    for (int i = 0; i < kernel->outputCount; ++i) {
      Tensor* const tensor = &context->tensors[kernel->outputs[i]];
      const size_t bytes = sizeof(int) * (size_t)(tensor->dims->size + 1);
      IntArray* const dims = malloc(bytes);
      memcpy(dims, tensor->dims, bytes);
      if (context->resize(context, tensor, dims) != kOk) return kError;
    }
  if (has(kernel->vendor, "misshape")) {
    IntArray* const dims = malloc(sizeof(int) * 2);
    dims->size = 1;
    dims->data[0] = 1 << 20;
    if (context->resize(context, &context->tensors[kernel->outputs[0]], dims) != kOk) return kError;
  }
  if (has(kernel->vendor, "dynamic"))
    for (int i = 0; i < kernel->outputCount; ++i) {
      Tensor* const tensor = &context->tensors[kernel->outputs[i]];
      tensor->allocationType = 4;
      tensor->data = calloc(1, tensor->bytes);
    }
  if (kernel->temporary >= 0) {
    Tensor* const tensor = &context->tensors[kernel->temporary];
    tensor->type = kFloat32;
    tensor->allocationType = kArena;
    IntArray* const dims = malloc(sizeof(int) * 2);
    dims->size = 1;
    dims->data[0] = 1000;
    if (context->resize(context, tensor, dims) != kOk) return kError;
    free(node->temporaries);
    node->temporaries = malloc(sizeof(int) * 2);
    node->temporaries->size = 1;
    node->temporaries->data[0] = kernel->temporary;
  }
  kernel->keptTensors = context->tensors;
  return kernel->vendor->options.cacheFile[0] != '\0' ? kOk : compile(kernel);
}

// The values of a tensor, wherever they are.
static float* valuesOf(Context* context, Kernel* kernel, int tensor, bool isFirst) {
  if (kernel->inside[tensor] != NULL) return kernel->inside[tensor];
  Tensor* const found =
      has(kernel->vendor, "pointers") ? &kernel->keptTensors[tensor] : &context->tensors[tensor];
  if (has(kernel->vendor, "handles") && isOutput(kernel, tensor)) {
    if (kernel->held[tensor] == NULL) kernel->held[tensor] = calloc(1, found->bytes);
    found->delegate = &kernel->vendor->delegate;
    found->bufferHandle = tensor;
    found->isStale = true;
    return kernel->held[tensor];
  }
  if (!has(kernel->vendor, "keep")) return found->data;
  // As a delegate does that remembers where tensors were at its first invocation.
  if (isFirst && kernel->kept[tensor] == NULL) kernel->kept[tensor] = found->data;
  return kernel->kept[tensor];
}

static Kernel* lastKernel;

// Whether the first input holds a number. A driver that tries a kernel has zeros in it.
static bool hasNumbers(const Context* context, const Kernel* kernel) {
  const float* const values = context->tensors[kernel->steps[0].left].data;
  return values != NULL && values[0] != 0.0f;
}

static int kernelInvoke(Context* context, Node* node) {
  Kernel* const kernel = node->userData;
  lastKernel = kernel;
  if (harmAt(kernel->vendor, "invoke") != kOk ||
      (hasNumbers(context, kernel) && harmAt(kernel->vendor, "numbers") != kOk)) {
    context->report(context, "the NPU does not answer");
    return kError;
  }
  if (has(kernel->vendor, "print")) {
    printf("vendor: invoke\n");
    fflush(stdout);
    fprintf(stderr, "vendor: invoke\n");
  }
  if (kernel->vendor->options.cacheFile[0] != '\0' && !kernel->isCompiled) {
    if (compile(kernel) != kOk) {
      context->report(context, "the cache is of another model");
      return kError;
    }
    kernel->isCompiled = true;
  }
  if (kernel->temporary >= 0) {
    float* const values = context->tensors[kernel->temporary].data;
    if (values == NULL) return kError;
    for (int i = 0; i < 1000; ++i) values[i] = (float)i;
  }
  for (int i = 0; i < kernel->count; ++i) {
    const Step step = kernel->steps[i];
    const bool isCustom = step.code == kCustom;
    if (!isCustom && step.code != kAdd && step.code != kMul && step.code != kSub) return kError;
    const float* const left = valuesOf(context, kernel, step.left, true);
    const float* const right = isCustom ? left : valuesOf(context, kernel, step.right, true);
    float* const result = valuesOf(context, kernel, step.result, true);
    const size_t count = elements(&context->tensors[step.result]);
    if (left == NULL || right == NULL || result == NULL) return kError;
    for (size_t k = 0; k < count; ++k)
      result[k] = isCustom            ? left[k] * step.factor
                  : step.code == kAdd ? left[k] + right[k]
                  : step.code == kMul ? left[k] * right[k]
                                      : left[k] - right[k];
    for (size_t k = 0; k < count && step.activation == kRelu; ++k)
      if (result[k] < 0.0f) result[k] = 0.0f;
    if (has(kernel->vendor, "overrun") && isOutput(kernel, step.result)) result[count] = 1.0f;
    if (has(kernel->vendor, "underrun") && isOutput(kernel, step.result)) result[-1] = 1.0f;
    if (has(kernel->vendor, "trample") && isOutput(kernel, step.result))
      memset(result, 0x55, (size_t)64 << 20);
  }
  if (has(kernel->vendor, "vandal"))
    for (int i = 0; i < kernel->outputCount; ++i) {
      context->tensors[kernel->outputs[i]].dims = NULL;
      context->tensors[kernel->outputs[i]].data = NULL;
    }
  return kOk;
}

static int copyFrom(Context* context, Delegate* delegate, int handle, Tensor* tensor) {
  if (harmAt(delegate->data, "copy") != kOk) {
    context->report(context, "the NPU's memory cannot be read");
    return kError;
  }
  memcpy(tensor->data, lastKernel->held[handle], tensor->bytes);
  return kOk;
}

static void freeHandle(Context* context, Delegate* delegate, int* handle) {
  (void)context;
  (void)delegate;
  *handle = -1;
}

// Reads all constants, as those do that copy weights to a device. With `isWriting` it changes them,
// as if to rearrange them in place.
static float readConstants(const Context* context, bool isWriting) {
  float sum = 0.0f;
  for (size_t i = 0; i < context->tensorCount; ++i) {
    const Tensor* const tensor = &context->tensors[i];
    if (tensor->allocationType != kConstant) continue;
    if (isWriting && tensor->bytes > 0) ((uint8_t*)tensor->data)[0] ^= 0xff;
    for (size_t k = 0; k < tensor->bytes; ++k) sum += ((const uint8_t*)tensor->data)[k];
  }
  return sum;
}

static int delegatePrepare(Context* context, Delegate* delegate) {
  Vendor* const vendor = delegate->data;
  writeLog(vendor, 'o');
  if (harmAt(vendor, "prepare") != kOk) {
    context->report(context, "the compiler of %s fails", "NPU");
    return kError;
  }
  volatile float sum = readConstants(context, has(vendor, "constants"));
  (void)sum;
  IntArray* plan = NULL;
  if (context->plan(context, &plan) != kOk) return kError;
  IntArray* const nodes = malloc(sizeof(int) * (size_t)(plan->size + 1));
  nodes->size = 0;
  for (int i = 0; i < plan->size; ++i) {
    Node* node = NULL;
    Registration* registration = NULL;
    if (context->node(context, plan->data[i], &node, &registration) != kOk) return kError;
    if (takes(vendor, registration->code)) nodes->data[nodes->size++] = plan->data[i];
  }
  if (has(vendor, "nowhere")) nodes->data[nodes->size - 1] = 12345;
  Registration registration;
  memset(&registration, 0, sizeof registration);
  registration.init = kernelInit;
  registration.free = kernelFree;
  registration.prepare = kernelPrepare;
  registration.invoke = kernelInvoke;
  registration.code = kDelegateCode;
  registration.customName = "Vendor Delegate";
  registration.version = 1;
  const int status = context->replace(context, registration, nodes, delegate);
  free(nodes);
  return status;
}

static void* idle(void* vendor) {
  usleep(20000);
  harmAt(vendor, "thread");
  for (;;) usleep(1000);
  return NULL;
}

static void handler(int number) {
  (void)number;
}

static void copyOption(char* to, size_t size, const char* from) {
  snprintf(to, size, "%s", from);
}

EXPORT Delegate* tflite_plugin_create_delegate(const char* const* keys, const char* const* values,
                                               size_t count, void (*report)(const char*)) {
  Vendor* const vendor = calloc(1, sizeof(Vendor));
  copyOption(vendor->options.take, sizeof vendor->options.take, "all");
  Options* const options = &vendor->options;
  const struct {
    const char* name;
    char* value;
    size_t size;
  } known[] = {{"take", options->take, sizeof options->take},
               {"stage", options->stage, sizeof options->stage},
               {"harm", options->harm, sizeof options->harm},
               {"habit", options->habit, sizeof options->habit},
               {"log", options->log, sizeof options->log},
               {"cache_file_path", options->cacheFile, sizeof options->cacheFile},
               {"cache_dir", options->cacheFolder, sizeof options->cacheFolder},
               {"model_token", options->token, sizeof options->token}};
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < sizeof known / sizeof known[0]; ++k)
      if (strcmp(keys[i], known[k].name) == 0) copyOption(known[k].value, known[k].size, values[i]);
  if (harmAt(vendor, "create") != kOk) {
    if (report != NULL) report("there is no NPU");
    free(vendor);
    return NULL;
  }
  if (has(vendor, "thread")) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, idle, vendor) == 0) pthread_detach(thread);
  }
  if (has(vendor, "signals")) {
    const int numbers[] = {SIGSEGV, SIGBUS, SIGABRT, SIGTERM, SIGPIPE};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) signal(numbers[i], handler);
  }
  if (has(vendor, "fork") && fork() == 0)
    for (;;) pause();
  // As after an error in the bookkeeping of descriptors.
  if (has(vendor, "close"))
    for (int i = 3; i < 64; ++i) close(i);
  if (has(vendor, "leak")) vendor->delegate.data = malloc(1 << 20);
  vendor->delegate.data = vendor;
  vendor->delegate.prepare = delegatePrepare;
  vendor->delegate.copyFrom = copyFrom;
  vendor->delegate.freeHandle = freeHandle;
  vendor->delegate.flags = has(vendor, "static") ? 0 : 1;
  return &vendor->delegate;
}

EXPORT void tflite_plugin_destroy_delegate(Delegate* delegate) {
  if (delegate == NULL) return;
  Vendor* const vendor = delegate->data;
  harmAt(vendor, "destroy");
  free(vendor);
}
