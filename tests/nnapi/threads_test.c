/* SPDX-License-Identifier: Apache-2.0 */
/* Mixed use of the C API from 16 threads: every execution mode on shared compilations, while others
 * compile, copy device memories and free things. Uses nothing but the headers; meant to run under
 * the thread and address sanitizers.
 *
 *   nnapi_threads_test SECONDS          HEARTH_TEST_LONG=1 makes it ten minutes
 */
#define _GNU_SOURCE /* memfd_create */
#include <android/NeuralNetworks.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 16, COUNT = 64, LONG_SECONDS = 600, MODES = 9 };

#define CHECK(call)                                                              \
  do {                                                                           \
    const int code = (call);                                                     \
    if (code != ANEURALNETWORKS_NO_ERROR) {                                      \
      fprintf(stderr, "%s:%d: %s gives %d.\n", __FILE__, __LINE__, #call, code); \
      abort();                                                                   \
    }                                                                            \
  } while (0)

#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) {                                                    \
      fprintf(stderr, "%s:%d: not %s.\n", __FILE__, __LINE__, #condition); \
      abort();                                                             \
    }                                                                      \
  } while (0)

static ANeuralNetworksModel* sumModel;      /* sum = a + b */
static ANeuralNetworksModel* layerModel;    /* y = FULLY_CONNECTED(x): each y is the sum of x */
static ANeuralNetworksCompilation* sums[3]; /* left to the runtime, and on each device */
static ANeuralNetworksCompilation* layer;
static ANeuralNetworksBurst* burst;        /* of sums[0], fought over */
static ANeuralNetworksMemory* sharedValue; /* of sums[0]: read by all */
static atomic_bool isOver;
static atomic_ulong done[MODES];

/* Begins a model of one operation. Its operands are `count` of these types, the inputs of the
 * operation and then its output. The last input is an activation. */
static ANeuralNetworksModel* beginModel(uint32_t count, const ANeuralNetworksOperandType* types) {
  const int32_t none = ANEURALNETWORKS_FUSED_NONE;
  ANeuralNetworksModel* model = NULL;
  CHECK(ANeuralNetworksModel_create(&model));
  for (uint32_t i = 0; i < count; ++i) CHECK(ANeuralNetworksModel_addOperand(model, &types[i]));
  CHECK(ANeuralNetworksModel_setOperandValue(model, (int32_t)count - 2, &none, sizeof(none)));
  return model;
}

/* Adds the operation. The first `inputs` operands are inputs of the model. */
static void finishModel(ANeuralNetworksModel* model, ANeuralNetworksOperationType operation,
                        uint32_t count, uint32_t inputs) {
  static const uint32_t operands[] = {0, 1, 2, 3, 4};
  const uint32_t* output = operands + count - 1;
  CHECK(ANeuralNetworksModel_addOperation(model, operation, count - 1, operands, 1, output));
  CHECK(ANeuralNetworksModel_identifyInputsAndOutputs(model, inputs, operands, 1, output));
  CHECK(ANeuralNetworksModel_finish(model));
}

static ANeuralNetworksModel* makeSumModel(void) {
  const uint32_t dimensions[] = {COUNT};
  const ANeuralNetworksOperandType tensor = {ANEURALNETWORKS_TENSOR_FLOAT32, 1, dimensions, 0, 0};
  const ANeuralNetworksOperandType activation = {ANEURALNETWORKS_INT32, 0, NULL, 0, 0};
  const ANeuralNetworksOperandType types[] = {tensor, tensor, activation, tensor};
  ANeuralNetworksModel* model = beginModel(4, types);
  finishModel(model, ANEURALNETWORKS_ADD, 4, 2);
  return model;
}

static ANeuralNetworksModel* makeLayerModel(void) {
  static float weights[COUNT * COUNT];
  static float bias[COUNT];
  for (int i = 0; i < COUNT * COUNT; ++i) weights[i] = 1;
  const uint32_t row[] = {1, COUNT};
  const uint32_t square[] = {COUNT, COUNT};
  const ANeuralNetworksOperandType types[] = {{ANEURALNETWORKS_TENSOR_FLOAT32, 2, row, 0, 0},
                                              {ANEURALNETWORKS_TENSOR_FLOAT32, 2, square, 0, 0},
                                              {ANEURALNETWORKS_TENSOR_FLOAT32, 1, square, 0, 0},
                                              {ANEURALNETWORKS_INT32, 0, NULL, 0, 0},
                                              {ANEURALNETWORKS_TENSOR_FLOAT32, 2, row, 0, 0}};
  ANeuralNetworksModel* model = beginModel(5, types);
  CHECK(ANeuralNetworksModel_setOperandValue(model, 1, weights, sizeof(weights)));
  CHECK(ANeuralNetworksModel_setOperandValue(model, 2, bias, sizeof(bias)));
  finishModel(model, ANEURALNETWORKS_FULLY_CONNECTED, 5, 1);
  return model;
}

static ANeuralNetworksCompilation* compile(ANeuralNetworksModel* model,
                                           const ANeuralNetworksDevice* device) {
  ANeuralNetworksCompilation* compilation = NULL;
  if (device == NULL)
    CHECK(ANeuralNetworksCompilation_create(model, &compilation));
  else
    CHECK(ANeuralNetworksCompilation_createForDevices(model, &device, 1, &compilation));
  CHECK(ANeuralNetworksCompilation_finish(compilation));
  return compilation;
}

static ANeuralNetworksMemory* makeDeviceMemory(const ANeuralNetworksCompilation* compilation) {
  ANeuralNetworksMemoryDesc* desc = NULL;
  ANeuralNetworksMemory* memory = NULL;
  CHECK(ANeuralNetworksMemoryDesc_create(&desc));
  CHECK(ANeuralNetworksMemoryDesc_addInputRole(desc, compilation, 0, 1.0f));
  CHECK(ANeuralNetworksMemoryDesc_addOutputRole(desc, compilation, 0, 1.0f));
  CHECK(ANeuralNetworksMemoryDesc_finish(desc));
  CHECK(ANeuralNetworksMemory_createFromDesc(desc, &memory));
  ANeuralNetworksMemoryDesc_free(desc);
  return memory;
}

/* What a thread works with. */
typedef struct {
  unsigned random;
  float a[COUNT];
  float b[COUNT];
  float result[COUNT];
} Work;

static unsigned next(Work* work, unsigned below) {
  work->random = work->random * 1664525u + 1013904223u;
  return (work->random >> 8) % below;
}

static void fill(Work* work) {
  const float a = (float)next(work, 1000);
  const float b = (float)next(work, 1000);
  for (int i = 0; i < COUNT; ++i) {
    work->a[i] = a;
    work->b[i] = b;
    work->result[i] = -1;
  }
}

static void expectSum(const Work* work) {
  for (int i = 0; i < COUNT; ++i) EXPECT(work->result[i] == work->a[i] + work->b[i]);
}

static ANeuralNetworksExecution* newExecution(ANeuralNetworksCompilation* compilation, Work* work) {
  ANeuralNetworksExecution* execution = NULL;
  CHECK(ANeuralNetworksExecution_create(compilation, &execution));
  CHECK(ANeuralNetworksExecution_setInput(execution, 0, NULL, work->a, sizeof(work->a)));
  CHECK(ANeuralNetworksExecution_setInput(execution, 1, NULL, work->b, sizeof(work->b)));
  CHECK(ANeuralNetworksExecution_setOutput(execution, 0, NULL, work->result, sizeof(work->result)));
  return execution;
}

static void runSync(Work* work) {
  ANeuralNetworksExecution* execution = newExecution(sums[next(work, 3)], work);
  CHECK(ANeuralNetworksExecution_compute(execution));
  ANeuralNetworksExecution_free(execution);
  expectSum(work);
}

static void runAsync(Work* work) {
  ANeuralNetworksExecution* execution = newExecution(sums[next(work, 3)], work);
  ANeuralNetworksEvent* event = NULL;
  CHECK(ANeuralNetworksExecution_startCompute(execution, &event));
  /* Freed in flight half of the time; freeing the event waits. */
  if (next(work, 2) != 0) CHECK(ANeuralNetworksEvent_wait(event));
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksEvent_free(event);
  expectSum(work);
}

static void runBurst(Work* work) {
  ANeuralNetworksExecution* execution = newExecution(sums[0], work);
  const int code = ANeuralNetworksExecution_burstCompute(execution, burst);
  EXPECT(code == ANEURALNETWORKS_NO_ERROR || code == ANEURALNETWORKS_BAD_STATE);
  ANeuralNetworksExecution_free(execution);
  if (code == ANEURALNETWORKS_NO_ERROR) expectSum(work);
}

/* result = ((a + b) + b) + b, one execution behind the other, in and out of the fence's form. */
static void runFenced(Work* work) {
  enum { STEPS = 3 };
  float values[STEPS + 1][COUNT];
  memcpy(values[0], work->a, sizeof(work->a));
  ANeuralNetworksEvent* events[STEPS] = {NULL};
  for (int i = 0; i < STEPS; ++i) {
    ANeuralNetworksExecution* execution = NULL;
    CHECK(ANeuralNetworksExecution_create(sums[next(work, 3)], &execution));
    CHECK(ANeuralNetworksExecution_setInput(execution, 0, NULL, values[i], sizeof(values[i])));
    CHECK(ANeuralNetworksExecution_setInput(execution, 1, NULL, work->b, sizeof(work->b)));
    CHECK(ANeuralNetworksExecution_setOutput(execution, 0, NULL, values[i + 1],
                                             sizeof(values[i + 1])));
    ANeuralNetworksEvent* imported = NULL;
    const ANeuralNetworksEvent* dependency = i > 0 ? events[i - 1] : NULL;
    if (i > 0 && next(work, 2) != 0) {
      int fence = -1;
      CHECK(ANeuralNetworksEvent_getSyncFenceFd(events[i - 1], &fence));
      CHECK(ANeuralNetworksEvent_createFromSyncFenceFd(fence, &imported));
      close(fence);
      dependency = imported;
    }
    CHECK(ANeuralNetworksExecution_startComputeWithDependencies(execution, &dependency, i > 0, 0,
                                                                &events[i]));
    ANeuralNetworksExecution_free(execution);
    ANeuralNetworksEvent_free(imported);
  }
  CHECK(ANeuralNetworksEvent_wait(events[STEPS - 1]));
  for (int i = 0; i < STEPS; ++i) ANeuralNetworksEvent_free(events[i]);
  for (int i = 0; i < COUNT; ++i) EXPECT(values[STEPS][i] == work->a[i] + STEPS * work->b[i]);
}

static void runReusable(Work* work) {
  ANeuralNetworksExecution* execution = NULL;
  CHECK(ANeuralNetworksExecution_create(sums[next(work, 3)], &execution));
  CHECK(ANeuralNetworksExecution_setReusable(execution, true));
  CHECK(ANeuralNetworksExecution_setInput(execution, 0, NULL, work->a, sizeof(work->a)));
  CHECK(ANeuralNetworksExecution_setInput(execution, 1, NULL, work->b, sizeof(work->b)));
  CHECK(ANeuralNetworksExecution_setOutput(execution, 0, NULL, work->result, sizeof(work->result)));
  for (int i = 0; i < 5; ++i) {
    work->a[0] = (float)i;
    CHECK(ANeuralNetworksExecution_compute(execution));
    expectSum(work);
  }
  ANeuralNetworksExecution_free(execution);
}

static void runDeviceMemory(Work* work) {
  ANeuralNetworksCompilation* compilation = sums[next(work, 3)];
  ANeuralNetworksMemory* first = makeDeviceMemory(compilation);
  ANeuralNetworksMemory* second = makeDeviceMemory(compilation);
  ANeuralNetworksExecution* execution = NULL;
  CHECK(ANeuralNetworksExecution_create(compilation, &execution));
  CHECK(ANeuralNetworksExecution_setInput(execution, 0, NULL, work->a, sizeof(work->a)));
  CHECK(ANeuralNetworksExecution_setInput(execution, 1, NULL, work->b, sizeof(work->b)));
  CHECK(ANeuralNetworksExecution_setOutputFromMemory(execution, 0, NULL, first, 0, 0));
  CHECK(ANeuralNetworksExecution_compute(execution));
  ANeuralNetworksExecution_free(execution);
  CHECK(ANeuralNetworksMemory_copy(first, second));
  CHECK(ANeuralNetworksExecution_create(compilation, &execution));
  CHECK(ANeuralNetworksExecution_setInputFromMemory(execution, 0, NULL, second, 0, 0));
  CHECK(ANeuralNetworksExecution_setInput(execution, 1, NULL, work->b, sizeof(work->b)));
  CHECK(ANeuralNetworksExecution_setOutput(execution, 0, NULL, work->result, sizeof(work->result)));
  CHECK(ANeuralNetworksExecution_compute(execution));
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksMemory_free(first);
  ANeuralNetworksMemory_free(second);
  for (int i = 0; i < COUNT; ++i) EXPECT(work->result[i] == work->a[i] + 2 * work->b[i]);
}

/* All threads read one device memory, whose floats are 7. */
static void runSharedValue(Work* work) {
  ANeuralNetworksExecution* execution = NULL;
  CHECK(ANeuralNetworksExecution_create(sums[0], &execution));
  CHECK(ANeuralNetworksExecution_setInputFromMemory(execution, 0, NULL, sharedValue, 0, 0));
  CHECK(ANeuralNetworksExecution_setInput(execution, 1, NULL, work->b, sizeof(work->b)));
  CHECK(ANeuralNetworksExecution_setOutput(execution, 0, NULL, work->result, sizeof(work->result)));
  CHECK(ANeuralNetworksExecution_compute(execution));
  ANeuralNetworksExecution_free(execution);
  for (int i = 0; i < COUNT; ++i) EXPECT(work->result[i] == 7 + work->b[i]);
}

static void runSharedMemory(Work* work) {
  const size_t size = 3 * sizeof(work->a) + 4;
  const int fd = memfd_create("arguments", 0);
  EXPECT(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
  EXPECT(pwrite(fd, work->a, sizeof(work->a), 4) == (ssize_t)sizeof(work->a));
  EXPECT(pwrite(fd, work->b, sizeof(work->b), 4 + (off_t)sizeof(work->a)) ==
         (ssize_t)sizeof(work->b));
  ANeuralNetworksMemory* memory = NULL;
  CHECK(ANeuralNetworksMemory_createFromFd(size, PROT_READ | PROT_WRITE, fd, 0, &memory));
  ANeuralNetworksExecution* execution = NULL;
  CHECK(ANeuralNetworksExecution_create(sums[next(work, 3)], &execution));
  for (int i = 0; i < 2; ++i)
    CHECK(ANeuralNetworksExecution_setInputFromMemory(
        execution, i, NULL, memory, 4 + (size_t)i * sizeof(work->a), sizeof(work->a)));
  CHECK(ANeuralNetworksExecution_setOutputFromMemory(execution, 0, NULL, memory,
                                                     4 + 2 * sizeof(work->a), sizeof(work->a)));
  ANeuralNetworksMemory_free(memory);
  CHECK(ANeuralNetworksExecution_compute(execution));
  ANeuralNetworksExecution_free(execution);
  EXPECT(pread(fd, work->result, sizeof(work->result), 4 + 2 * (off_t)sizeof(work->a)) ==
         (ssize_t)sizeof(work->result));
  close(fd);
  expectSum(work);
}

/* Compiles anew now and then, else uses the compilation that all share. */
static void runLayer(Work* work) {
  const bool compiles = next(work, 8) == 0;
  ANeuralNetworksCompilation* compilation = compiles ? compile(layerModel, NULL) : layer;
  ANeuralNetworksExecution* execution = NULL;
  CHECK(ANeuralNetworksExecution_create(compilation, &execution));
  if (compiles) ANeuralNetworksCompilation_free(compilation);
  CHECK(ANeuralNetworksExecution_setInput(execution, 0, NULL, work->a, sizeof(work->a)));
  CHECK(ANeuralNetworksExecution_setOutput(execution, 0, NULL, work->result, sizeof(work->result)));
  CHECK(ANeuralNetworksExecution_compute(execution));
  ANeuralNetworksExecution_free(execution);
  for (int i = 0; i < COUNT; ++i) EXPECT(work->result[i] == COUNT * work->a[0]);
}

static void (*const modes[MODES])(Work*) = {runSync,        runAsync,        runBurst,
                                            runFenced,      runReusable,     runDeviceMemory,
                                            runSharedValue, runSharedMemory, runLayer};

static void* threadMain(void* argument) {
  Work work = {0};
  work.random = (unsigned)(size_t)argument * 7919u + 1;
  /* Every thread uses every mode, however slow the machine is. */
  for (unsigned i = 0; i < MODES || !atomic_load(&isOver); ++i) {
    const unsigned mode = i < MODES ? i : next(&work, MODES);
    fill(&work);
    modes[mode](&work);
    atomic_fetch_add(&done[mode], 1);
  }
  return NULL;
}

int main(int argc, char** argv) {
  const char* isLong = getenv("HEARTH_TEST_LONG");
  unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 30;
  if (isLong != NULL && strcmp(isLong, "1") == 0) seconds = LONG_SECONDS;

  sumModel = makeSumModel();
  layerModel = makeLayerModel();
  uint32_t deviceCount = 0;
  CHECK(ANeuralNetworks_getDeviceCount(&deviceCount));
  sums[0] = compile(sumModel, NULL);
  for (uint32_t i = 0; i < 2; ++i) {
    ANeuralNetworksDevice* device = NULL;
    CHECK(ANeuralNetworks_getDevice(i == 0 ? 0 : deviceCount - 1, &device));
    sums[1 + i] = compile(sumModel, device);
  }
  layer = compile(layerModel, NULL);
  CHECK(ANeuralNetworksBurst_create(sums[0], &burst));
  sharedValue = makeDeviceMemory(sums[0]);
  Work seven = {0};
  for (int i = 0; i < COUNT; ++i) seven.a[i] = 7;
  ANeuralNetworksExecution* execution = NULL;
  CHECK(ANeuralNetworksExecution_create(sums[0], &execution));
  CHECK(ANeuralNetworksExecution_setInput(execution, 0, NULL, seven.a, sizeof(seven.a)));
  CHECK(ANeuralNetworksExecution_setInput(execution, 1, NULL, seven.b, sizeof(seven.b)));
  CHECK(ANeuralNetworksExecution_setOutputFromMemory(execution, 0, NULL, sharedValue, 0, 0));
  CHECK(ANeuralNetworksExecution_compute(execution));
  ANeuralNetworksExecution_free(execution);

  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; ++i)
    EXPECT(pthread_create(&threads[i], NULL, threadMain, (void*)i) == 0);
  const struct timespec duration = {(time_t)seconds, 0};
  nanosleep(&duration, NULL);
  atomic_store(&isOver, true);
  for (size_t i = 0; i < THREADS; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);

  for (int i = 0; i < MODES; ++i) printf("mode %d: %lu times\n", i, atomic_load(&done[i]));
  ANeuralNetworksMemory_free(sharedValue);
  ANeuralNetworksBurst_free(burst);
  for (int i = 0; i < 3; ++i) ANeuralNetworksCompilation_free(sums[i]);
  ANeuralNetworksCompilation_free(layer);
  ANeuralNetworksModel_free(sumModel);
  ANeuralNetworksModel_free(layerModel);
  return 0;
}
