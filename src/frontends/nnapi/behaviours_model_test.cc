// SPDX-License-Identifier: Apache-2.0
// Behaviours 1 to 12 of NNAPI: models.
#include <sys/mman.h>

#include <cmath>
#include <limits>

#include "android/NeuralNetworksExtensions.h"
#include "frontends/nnapi/testing/test_models.h"

namespace hearth::nnapi {
namespace {

using ndk::Out;
using ModelBehaviour = QuietTest;

int addOperand(ANeuralNetworksModel* model, const ndk::Type& type) {
  const ANeuralNetworksOperandType made = type.get();
  return ANeuralNetworksModel_addOperand(model, &made);
}

TEST_F(ModelBehaviour, B01_NullPointers) {
  const ndk::Model model = addModel();
  const ndk::Compilation compilation = std::move(ndk::Compilation(model).finish());
  const ndk::Execution execution(compilation);
  ANeuralNetworksModel* const m = model.get();
  ANeuralNetworksCompilation* const c = compilation.get();
  ANeuralNetworksExecution* const e = execution.get();
  ANeuralNetworksDevice* const device = ndk::devices()[0];
  const uint32_t list[] = {0};
  uint32_t number;
  int32_t type;
  int64_t level;
  uint64_t duration;
  bool answer;
  int fd;
  const char* text;
  ndk::ModelHandle modelOut;
  ndk::CompilationHandle compilationOut;
  ndk::ExecutionHandle executionOut;
  ndk::BurstHandle burstOut;
  ndk::EventHandle eventOut;
  ndk::MemoryHandle memoryOut;
  const uint8_t token[32] = {};

  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworks_getDeviceCount(nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworks_getDevice(0, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksDevice_getName(nullptr, &text));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksDevice_getName(device, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksDevice_getVersion(nullptr, &text));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksDevice_getVersion(device, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksDevice_getType(nullptr, &type));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksDevice_getType(device, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksDevice_getFeatureLevel(nullptr, &level));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksDevice_getFeatureLevel(device, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksDevice_wait(nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksDevice_getExtensionSupport(nullptr, "x", &answer));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksDevice_getExtensionSupport(device, nullptr, &answer));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksDevice_getExtensionSupport(device, "x", nullptr));

  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksModel_create(nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksModel_finish(nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksModel_addOperand(m, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, addOperand(nullptr, floats({1})));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksModel_setOperandValue(nullptr, 0, list, 4));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksModel_setOperandValueFromMemory(m, 0, nullptr, 0, 1));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksModel_setOperandValueFromModel(m, 0, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksModel_setOperandValueFromModel(nullptr, 0, m));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(m, 0, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksModel_addOperation(nullptr, 0, 1, list, 1, list));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksModel_addOperation(m, 0, 1, nullptr, 1, list));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksModel_addOperation(m, 0, 1, list, 1, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksModel_identifyInputsAndOutputs(nullptr, 1, list, 1, list));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksModel_identifyInputsAndOutputs(m, 1, nullptr, 1, list));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksModel_identifyInputsAndOutputs(m, 1, list, 1, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksModel_relaxComputationFloat32toFloat16(nullptr, true));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksModel_getSupportedOperationsForDevices(m, nullptr, 1, &answer));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksModel_getSupportedOperationsForDevices(m, &device, 1, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksModel_getExtensionOperandType(m, nullptr, 0, &type));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksModel_getExtensionOperandType(m, "x", 0, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksModel_getExtensionOperationType(nullptr, "x", 0, &type));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksModel_setOperandExtensionData(nullptr, 0, list, 4));
  // The null check comes before those of index, type and length.
  for (const size_t length : {0, 4})
    EXPECT_CODE(UNEXPECTED_NULL,
                ANeuralNetworksModel_setOperandExtensionData(m, 77, nullptr, length));

  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksCompilation_create(m, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksCompilation_create(nullptr, Out(compilationOut)));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksCompilation_createForDevices(m, nullptr, 1, Out(compilationOut)));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksCompilation_createForDevices(m, &device, 1, nullptr));
  ANeuralNetworksDevice* const none[] = {nullptr};
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksCompilation_createForDevices(m, none, 1, Out(compilationOut)));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksCompilation_setPreference(nullptr, 0));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksCompilation_setPriority(nullptr, 100));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksCompilation_setTimeout(nullptr, 1));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksCompilation_setCaching(nullptr, "/", token));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksCompilation_setCaching(c, nullptr, token));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksCompilation_setCaching(c, "/", nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksCompilation_finish(nullptr));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(c, 0, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(nullptr, 0, &number));

  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_create(c, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_create(nullptr, Out(executionOut)));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_setInput(nullptr, 0, nullptr, list, 4));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_setInput(e, 0, nullptr, nullptr, 8));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_setOutput(e, 0, nullptr, nullptr, 8));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksExecution_setInputFromMemory(e, 0, nullptr, nullptr, 0, 8));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksExecution_setOutputFromMemory(e, 0, nullptr, nullptr, 0, 8));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_compute(nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_startCompute(e, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_startCompute(nullptr, Out(eventOut)));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_burstCompute(e, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_startComputeWithDependencies(
                                   e, nullptr, 1, 0, Out(eventOut)));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksExecution_startComputeWithDependencies(e, nullptr, 0, 0, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_setReusable(nullptr, true));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_setTimeout(nullptr, 1));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_setLoopTimeout(nullptr, 1));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_setMeasureTiming(nullptr, true));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_enableInputAndOutputPadding(nullptr, true));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_getOutputOperandRank(e, 0, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_getOutputOperandDimensions(e, 0, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_getDuration(e, 0, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksExecution_getDuration(nullptr, 0, &duration));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksBurst_create(c, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksBurst_create(nullptr, Out(burstOut)));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksEvent_wait(nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksEvent_createFromSyncFenceFd(1, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksEvent_getSyncFenceFd(nullptr, &fd));

  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksMemory_createFromFd(1, PROT_READ, 0, 0, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL,
              ANeuralNetworksMemory_createFromAHardwareBuffer(nullptr, Out(memoryOut)));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksMemory_createFromDesc(nullptr, Out(memoryOut)));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksMemory_copy(nullptr, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksMemoryDesc_create(nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksMemoryDesc_addInputRole(nullptr, c, 0, 1));
  EXPECT_CODE(UNEXPECTED_NULL, ANeuralNetworksMemoryDesc_finish(nullptr));

  ANeuralNetworksModel_free(nullptr);
  ANeuralNetworksCompilation_free(nullptr);
  ANeuralNetworksExecution_free(nullptr);
  ANeuralNetworksBurst_free(nullptr);
  ANeuralNetworksEvent_free(nullptr);
  ANeuralNetworksMemory_free(nullptr);
  ANeuralNetworksMemoryDesc_free(nullptr);
}

TEST_F(ModelBehaviour, B02_AnEmptyModelIsBroken) {
  const ndk::Model model;
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_finish(model.get()));
  EXPECT_CODE(BAD_STATE, addOperand(model.get(), floats({1})));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksModel_finish(model.get()));
  ndk::CompilationHandle compilation;
  EXPECT_CODE(BAD_STATE, ANeuralNetworksCompilation_create(model.get(), Out(compilation)));
  EXPECT_EQ(compilation, nullptr);
}

TEST_F(ModelBehaviour, B03_AFinishedModelDoesNotChange) {
  const ndk::Model model = addModel();
  ANeuralNetworksModel* const m = model.get();
  const uint32_t list[] = {0};
  const float scale = 1;
  const ANeuralNetworksSymmPerChannelQuantParams parameters = {0, 1, &scale};
  EXPECT_CODE(BAD_STATE, addOperand(m, floats({1})));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksModel_setOperandValue(m, 0, &scale, 4));
  EXPECT_CODE(BAD_STATE,
              ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(m, 0, &parameters));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksModel_setOperandValueFromModel(m, 0, m));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksModel_setOperandExtensionData(m, 0, &scale, 4));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksModel_addOperation(m, 0, 1, list, 1, list));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksModel_identifyInputsAndOutputs(m, 1, list, 1, list));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksModel_relaxComputationFloat32toFloat16(m, true));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksModel_finish(m));
}

// The code of finishing a model with these additions (left, right, sum), in this order.
int finishOf(const std::vector<std::array<uint32_t, 3>>& additions, uint32_t outputOperand,
             uint32_t tensorCount) {
  ndk::Model model;
  for (uint32_t i = 0; i < tensorCount; ++i) model.operand(floats({2}));
  const uint32_t none = model.int32(0);
  for (const auto& [left, right, sum] : additions)
    model.operation(ANEURALNETWORKS_ADD, {left, right, none}, {sum});
  const uint32_t inputs[] = {0};
  const uint32_t outputs[] = {outputOperand};
  ndk::check(ANeuralNetworksModel_identifyInputsAndOutputs(model.get(), 1, inputs, 1, outputs),
             "identifyInputsAndOutputs");
  return ANeuralNetworksModel_finish(model.get());
}

TEST_F(ModelBehaviour, B04_OrderAndDataFlowOfOperations) {
  EXPECT_CODE(NO_ERROR, finishOf({{0, 0, 1}, {1, 1, 2}}, 2, 3));
  EXPECT_CODE(NO_ERROR, finishOf({{1, 1, 2}, {0, 0, 1}}, 2, 3));
  // A cycle, an operand that no operation writes (read or unread), an operand written twice.
  EXPECT_CODE(BAD_DATA, finishOf({{0, 2, 1}, {1, 1, 2}}, 2, 3));
  EXPECT_CODE(BAD_DATA, finishOf({{0, 1, 2}}, 2, 3));
  EXPECT_CODE(BAD_DATA, finishOf({{0, 0, 1}}, 1, 3));
  EXPECT_CODE(BAD_DATA, finishOf({{0, 0, 1}, {0, 0, 1}}, 1, 2));
  EXPECT_CODE(BAD_DATA, finishOf({{0, 0, 1}}, 2, 3));
}

TEST_F(ModelBehaviour, B05_InputsAndOutputs) {
  ndk::Model model;
  const uint32_t a = model.operand(floats({2}));
  const uint32_t b = model.operand(floats({2}));
  const uint32_t constant = model.constant<float>(floats({2}), {1, 2});
  const auto identify = [&](std::vector<uint32_t> inputs, std::vector<uint32_t> outputs) {
    return ANeuralNetworksModel_identifyInputsAndOutputs(
        model.get(), static_cast<uint32_t>(inputs.size()), inputs.data(),
        static_cast<uint32_t>(outputs.size()), outputs.data());
  };
  EXPECT_CODE(BAD_DATA, identify({a, a}, {b}));
  EXPECT_CODE(BAD_DATA, identify({a}, {b, b}));
  EXPECT_CODE(BAD_DATA, identify({a}, {a}));
  EXPECT_CODE(BAD_DATA, identify({constant}, {b}));
  EXPECT_CODE(BAD_DATA, identify({a}, {constant}));
  EXPECT_CODE(BAD_DATA, identify({3}, {b}));
  EXPECT_CODE(BAD_DATA, identify({a}, {0xffffffff}));
  EXPECT_CODE(NO_ERROR, identify({a}, {b}));
}

TEST_F(ModelBehaviour, B06_Operands) {
  const ndk::Model model;
  const auto add = [&](const ndk::Type& type) {
    return addOperand(model.get(), type);
  };
  EXPECT_CODE(BAD_DATA, add({ANEURALNETWORKS_FLOAT32, {1}, 0, 0}));
  EXPECT_CODE(BAD_DATA, add({-1, {}, 0, 0}));
  EXPECT_CODE(BAD_DATA, add({16, {1}, 0, 0}));
  EXPECT_CODE(BAD_DATA, add({10000, {}, 0, 0}));

  struct Range {
    int32_t type, lowest, highest;
  };
  for (const Range& range : {Range{ANEURALNETWORKS_TENSOR_QUANT8_ASYMM, 0, 255},
                             Range{ANEURALNETWORKS_TENSOR_QUANT8_ASYMM_SIGNED, -128, 127},
                             Range{ANEURALNETWORKS_TENSOR_QUANT16_ASYMM, 0, 65535},
                             Range{ANEURALNETWORKS_TENSOR_QUANT8_SYMM, 0, 0},
                             Range{ANEURALNETWORKS_TENSOR_QUANT16_SYMM, 0, 0}}) {
    SCOPED_TRACE(range.type);
    EXPECT_CODE(NO_ERROR, add({range.type, {2}, 0.5f, range.lowest}));
    EXPECT_CODE(NO_ERROR, add({range.type, {2}, 0.5f, range.highest}));
    EXPECT_CODE(BAD_DATA, add({range.type, {2}, 0.5f, range.lowest - 1}));
    EXPECT_CODE(BAD_DATA, add({range.type, {2}, 0.5f, range.highest + 1}));
    for (const float scale : {0.0f, -1.0f, NAN, INFINITY})
      EXPECT_CODE(BAD_DATA, add({range.type, {2}, scale, range.lowest}));
  }
  EXPECT_CODE(BAD_DATA, add({ANEURALNETWORKS_TENSOR_FLOAT32, {2}, 0.5f, 0}));
  EXPECT_CODE(BAD_DATA, add({ANEURALNETWORKS_TENSOR_FLOAT32, {2}, 0, 1}));
  EXPECT_CODE(BAD_DATA, add({ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL, {2}, 0.5f, 0}));
  EXPECT_CODE(NO_ERROR, add({ANEURALNETWORKS_TENSOR_INT32, {2}, 0.5f, 0}));

  const uint32_t dimension = 2;
  ANeuralNetworksOperandType type = {ANEURALNETWORKS_TENSOR_FLOAT32, 0, &dimension, 0, 0};
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_addOperand(model.get(), &type));
  type = {ANEURALNETWORKS_TENSOR_FLOAT32, 1, nullptr, 0, 0};
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_addOperand(model.get(), &type));

  EXPECT_CODE(NO_ERROR, add(floats({0x3fffffff})));
  EXPECT_CODE(BAD_DATA, add(floats({0x40000000})));
  EXPECT_CODE(BAD_DATA, add(floats({0x10000, 0, 0x10000})));
  EXPECT_CODE(BAD_DATA, add(floats({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff})));
  EXPECT_CODE(NO_ERROR, add(floats({0, 5})));
}

TEST_F(ModelBehaviour, B07_ValuesHaveTheExactLength) {
  ndk::Model model;
  const auto tensor = static_cast<int32_t>(model.operand(floats({2})));
  const auto unknown = static_cast<int32_t>(model.operand(floats({0})));
  const float values[3] = {};
  const auto set = [&](int32_t index, const void* buffer, size_t length) {
    return ANeuralNetworksModel_setOperandValue(model.get(), index, buffer, length);
  };
  EXPECT_CODE(BAD_DATA, set(tensor, values, 4));
  EXPECT_CODE(BAD_DATA, set(tensor, values, 12));
  EXPECT_CODE(BAD_DATA, set(tensor, values, 0));
  EXPECT_CODE(BAD_DATA, set(unknown, values, 4));
  EXPECT_CODE(UNEXPECTED_NULL, set(tensor, nullptr, 8));
  EXPECT_CODE(BAD_DATA, set(-1, values, 8));
  EXPECT_CODE(BAD_DATA, set(2, values, 8));
  EXPECT_CODE(NO_ERROR, set(tensor, values, 8));
  EXPECT_CODE(NO_ERROR, set(unknown, nullptr, 0));
  EXPECT_CODE(NO_ERROR, set(tensor, nullptr, 0));
}

// Computes y = x + constant, of `count` floats, after the client has changed the constant's buffer.
std::vector<float> sumWithChangedConstant(uint32_t count, bool changesBeforeFinish) {
  std::vector<float> constant(count, 1);
  ndk::Model model;
  const uint32_t x = model.operand(floats({count}));
  const uint32_t y = model.operand(floats({count}));
  const uint32_t c = model.constant(floats({count}), constant);
  if (changesBeforeFinish) constant.assign(count, 100);
  model.operation(ANEURALNETWORKS_ADD, {x, c, model.int32(0)}, {y});
  model.finish({x}, {y});
  constant.assign(count, 1000);
  ndk::Compilation compilation(model);
  compilation.finish();
  const std::vector<float> zeros(count);
  std::vector<float> sum(count);
  ndk::Execution(compilation).input(0, zeros).output(0, sum).compute();
  return sum;
}

TEST_F(ModelBehaviour, B08_SmallValuesAreCopiedAtOnce) {
  // 128 bytes, 4 more, and many more.
  EXPECT_THAT(sumWithChangedConstant(32, true), testing::Each(1));
  EXPECT_THAT(sumWithChangedConstant(32, false), testing::Each(1));
  EXPECT_THAT(sumWithChangedConstant(33, false), testing::Each(1));
  EXPECT_THAT(sumWithChangedConstant(5000, false), testing::Each(1));
}

TEST_F(ModelBehaviour, B09_PerChannelQuantisation) {
  ndk::Model model;
  const ndk::Type perChannel = {ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL, {2, 1, 1, 3}, 0, 0};
  const auto filter = static_cast<int32_t>(model.operand(perChannel));
  const auto plain = static_cast<int32_t>(model.operand(floats({2})));
  const auto unknown = static_cast<int32_t>(
      model.operand({ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL, {0, 3}, 0, 0}));
  const float scales[] = {0.5f, 0.25f};
  const float zero[] = {0.5f, 0.0f};
  const float negative[] = {-0.5f, 0.25f};
  const float nan[] = {NAN, 0.25f};
  const auto set = [&](int32_t index, uint32_t channel, uint32_t count, const float* values) {
    const ANeuralNetworksSymmPerChannelQuantParams parameters = {channel, count, values};
    return ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model.get(), index,
                                                                    &parameters);
  };
  EXPECT_CODE(BAD_DATA, set(plain, 0, 2, scales));
  EXPECT_CODE(BAD_DATA, set(filter, 4, 2, scales));
  EXPECT_CODE(BAD_DATA, set(filter, 3, 2, scales));
  EXPECT_CODE(BAD_DATA, set(filter, 0, 1, scales));
  EXPECT_CODE(BAD_DATA, set(filter, 0, 2, nullptr));
  EXPECT_CODE(BAD_DATA, set(filter, 0, 2, zero));
  EXPECT_CODE(BAD_DATA, set(filter, 0, 2, negative));
  EXPECT_CODE(BAD_DATA, set(filter, 0, 2, nan));
  EXPECT_CODE(BAD_DATA, set(unknown, 0, 0, scales));
  EXPECT_CODE(BAD_DATA, set(9, 0, 2, scales));
  EXPECT_CODE(NO_ERROR, set(filter, 0, 2, scales));
  EXPECT_CODE(BAD_DATA,
              addOperand(model.get(), {ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL, {2}, 1, 0}));
  EXPECT_CODE(BAD_DATA,
              addOperand(model.get(), {ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL, {2}, 0, 1}));

  // Without parameters the model cannot be finished.
  ndk::Model incomplete;
  const uint32_t input = incomplete.operand(perChannel);
  const uint32_t output = incomplete.operand(floats({2, 1, 1, 3}));
  incomplete.operation(ANEURALNETWORKS_DEQUANTIZE, {input}, {output});
  ndk::check(ANeuralNetworksModel_identifyInputsAndOutputs(incomplete.get(), 1, &input, 1, &output),
             "identifyInputsAndOutputs");
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_finish(incomplete.get()));
}

TEST_F(ModelBehaviour, B10_ReferencedModels) {
  const ndk::Model unfinished;
  const ndk::Model finished = addModel();
  ndk::Model model;
  const auto reference = static_cast<int32_t>(model.operand({ANEURALNETWORKS_MODEL, {}, 0, 0}));
  const auto tensor = static_cast<int32_t>(model.operand(floats({1})));
  const auto set = [&](int32_t index, const ndk::Model& value) {
    return ANeuralNetworksModel_setOperandValueFromModel(model.get(), index, value.get());
  };
  EXPECT_CODE(BAD_STATE, set(reference, unfinished));
  EXPECT_CODE(BAD_STATE, set(reference, model));
  EXPECT_CODE(BAD_DATA, set(2, finished));
  EXPECT_CODE(BAD_DATA, set(-1, finished));
  EXPECT_CODE(BAD_DATA, set(tensor, finished));
  EXPECT_CODE(NO_ERROR, set(reference, finished));
}

TEST_F(ModelBehaviour, B11_SignaturesOfOperations) {
  ndk::Model model;
  const uint32_t a = model.operand(floats({2}));
  const uint32_t other = model.operand(ints({2}));
  const uint32_t sum = model.operand(floats({2}));
  const uint32_t none = model.int32(0);
  const auto add = [&](int32_t code, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs) {
    return ANeuralNetworksModel_addOperation(model.get(), code,
                                             static_cast<uint32_t>(inputs.size()), inputs.data(),
                                             static_cast<uint32_t>(outputs.size()), outputs.data());
  };
  EXPECT_CODE(BAD_DATA, add(ANEURALNETWORKS_ADD, {a, a}, {sum}));
  EXPECT_CODE(BAD_DATA, add(ANEURALNETWORKS_ADD, {a, other, none}, {sum}));
  EXPECT_CODE(BAD_DATA, add(ANEURALNETWORKS_ADD, {a, a, none}, {other}));
  EXPECT_CODE(BAD_DATA, add(ANEURALNETWORKS_ADD, {a, a, none}, {sum, sum}));
  EXPECT_CODE(BAD_DATA, add(ANEURALNETWORKS_ADD, {a, a, 77}, {sum}));
  EXPECT_CODE(BAD_DATA, add(106, {a, a, none}, {sum}));
  EXPECT_CODE(BAD_DATA, add(-1, {a, a, none}, {sum}));
  EXPECT_CODE(BAD_DATA, add(10000, {a, a, none}, {sum}));
  EXPECT_CODE(NO_ERROR, add(ANEURALNETWORKS_ADD, {a, a, none}, {sum}));
}

// Kernels take them for .tflite files.
TEST_F(ModelBehaviour, B11_FormsThatNnapiDoesNotHave) {
  ndk::Model model;
  const uint32_t image = model.operand(floats({1, 2, 2, 1}));
  const uint32_t made = model.operand(floats({}));
  const uint32_t indices = model.operand(ints({1}));
  const uint32_t scalar = model.int32(1);
  const uint32_t zero = model.int32(0);
  const uint32_t number = model.constant<int32_t>(ints({1}), {1});
  const std::vector<uint32_t> forms[] = {
      {ANEURALNETWORKS_GATHER, image, scalar, indices, scalar},
      {ANEURALNETWORKS_RESIZE_BILINEAR, image, number, number},
      {ANEURALNETWORKS_RESIZE_NEAREST_NEIGHBOR, image, scalar, number},
      {ANEURALNETWORKS_STRIDED_SLICE, image, number, number, number, zero, zero, zero},
  };
  for (const std::vector<uint32_t>& form : forms)
    EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_addOperation(
                              model.get(), static_cast<int32_t>(form[0]),
                              static_cast<uint32_t>(form.size()) - 1, form.data() + 1, 1, &made));
  const uint32_t results[] = {made, indices};
  const uint32_t largest[] = {image, number};
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_addOperation(model.get(), ANEURALNETWORKS_TOPK_V2, 2,
                                                          largest, 2, results));
  const auto int8 = [&](std::vector<uint32_t> dimensions) {
    return model.operand({ANEURALNETWORKS_TENSOR_QUANT8_ASYMM_SIGNED, dimensions, 1.0f, 0});
  };
  const auto int16 = [&](std::vector<uint32_t> dimensions) {
    return model.operand({ANEURALNETWORKS_TENSOR_QUANT16_SYMM, dimensions, 1.0f, 0});
  };
  const uint32_t bias = model.operand(ints({1}));
  const uint32_t svdf[] = {int8({1, 2}),  int8({1, 2}), int16({1, 3}), bias,
                           int16({1, 3}), scalar,       scalar};
  const uint32_t svdfResults[] = {int16({1, 3}), int8({1, 1})};
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_addOperation(model.get(), ANEURALNETWORKS_SVDF, 7,
                                                          svdf, 2, svdfResults));
}

TEST_F(ModelBehaviour, B12_TrailingDefaultsMayBeOmitted) {
  const std::vector<float> x = {1, 2, 3, 4};
  std::vector<std::vector<float>> results;
  for (const int given : {0, 1, 2}) {
    ndk::Model model;
    const uint32_t input = model.operand(floats({1, 2, 2, 1}));
    const uint32_t filter = model.constant<float>(floats({1, 1, 1, 1}), {3});
    const uint32_t bias = model.constant<float>(floats({1}), {1});
    const uint32_t output = model.operand(floats({1, 2, 2, 1}));
    std::vector<uint32_t> inputs = {
        input,          filter,         bias,          model.int32(ANEURALNETWORKS_PADDING_SAME),
        model.int32(1), model.int32(1), model.int32(0)};
    // Layout NHWC, then dilation 1 and 1.
    if (given >= 1) inputs.push_back(model.boolean(false));
    if (given >= 2) inputs.insert(inputs.end(), {model.int32(1), model.int32(1)});
    model.operation(ANEURALNETWORKS_CONV_2D, inputs, {output});
    model.finish({input}, {output});
    ndk::Compilation compilation(model);
    compilation.finish();
    std::vector<float> y(4);
    ndk::Execution(compilation).input(0, x).output(0, y).compute();
    results.push_back(y);
  }
  EXPECT_THAT(results, testing::Each(testing::ElementsAre(4, 7, 10, 13)));
}

}  // namespace
}  // namespace hearth::nnapi
