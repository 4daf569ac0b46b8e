// SPDX-License-Identifier: Apache-2.0
// Behaviours 26 to 29, 35 and 47 of NNAPI: dimensions that the model leaves open, how clients set
// them and how they learn them.
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "base/descriptor.h"
#include "frontends/nnapi/testing/fake_device_test.h"
#include "frontends/nnapi/testing/test_modes.h"

namespace hearth::nnapi {
namespace {

using ndk::Out;

class ShapeBehaviour : public FakeDeviceTest {
 protected:
  // Compilations for each device and for all devices.
  static std::vector<ndk::Compilation> compileEverywhere(const ndk::Model& model) {
    std::vector<ndk::Compilation> compilations;
    for (ANeuralNetworksDevice* device : ndk::devices())
      compilations.push_back(compileWith(model, device));
    compilations.push_back(compileForAll(model));
    return compilations;
  }

  static ndk::MemoryHandle sharedMemory(size_t size) {
    const base::Descriptor file(::memfd_create("test", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(size)), 0);
    ndk::MemoryHandle memory;
    ndk::check(ANeuralNetworksMemory_createFromFd(size, PROT_READ | PROT_WRITE, file.get(), 0,
                                                  Out(memory)),
               "createFromFd");
    return memory;
  }

  // A device memory for output 0, with these dimensions if there are any.
  static ndk::MemoryHandle outputMemory(const ndk::Compilation& compilation,
                                        const std::vector<uint32_t>& dimensions) {
    ndk::MemoryDescHandle desc;
    ndk::check(ANeuralNetworksMemoryDesc_create(Out(desc)), "MemoryDesc_create");
    ndk::check(ANeuralNetworksMemoryDesc_addOutputRole(desc.get(), compilation.get(), 0, 1),
               "addOutputRole");
    if (!dimensions.empty())
      ndk::check(ANeuralNetworksMemoryDesc_setDimensions(
                     desc.get(), static_cast<uint32_t>(dimensions.size()), dimensions.data()),
                 "setDimensions");
    ndk::check(ANeuralNetworksMemoryDesc_finish(desc.get()), "MemoryDesc_finish");
    ndk::MemoryHandle memory;
    ndk::check(ANeuralNetworksMemory_createFromDesc(desc.get(), Out(memory)), "createFromDesc");
    return memory;
  }

  static int startFenced(const ndk::Execution& execution, ndk::EventHandle& event) {
    return ANeuralNetworksExecution_startComputeWithDependencies(execution.get(), nullptr, 0, 0,
                                                                 Out(event));
  }

  // An execution of addModel() with inputs of two floats.
  ndk::Execution withInputs(const ndk::Compilation& compilation) const {
    ndk::Execution execution(compilation);
    for (const int32_t index : {0, 1})
      ndk::check(setTypedInput(execution, index, floats({2}), a_), "setInput");
    return execution;
  }

  const std::vector<float> a_ = {1, 2};
  std::vector<float> sum_ = {0, 0};
};

TEST_F(ShapeBehaviour, B35_FencedOutputsAreSizedBySetOutput) {
  for (const std::vector<uint32_t>& open : {std::vector<uint32_t>{0}, std::vector<uint32_t>{}}) {
    const ndk::Model model = addModel(open);
    for (const ndk::Compilation& compilation : compileEverywhere(model)) {
      ndk::EventHandle event;
      const ndk::Execution execution = withInputs(compilation);
      ASSERT_CODE(NO_ERROR, setTypedOutput(execution, 0, floats({2}), sum_));
      ASSERT_CODE(NO_ERROR, startFenced(execution, event));
      EXPECT_CODE(NO_ERROR, ANeuralNetworksEvent_wait(event.get()));
      EXPECT_THAT(sum_, testing::ElementsAre(2, 4));
      EXPECT_THAT(execution.outputDimensions(0), testing::ElementsAre(2));
      sum_ = {0, 0};

      // The output is a memory.
      const ndk::MemoryHandle memory = sharedMemory(8);
      const ndk::Execution intoMemory = withInputs(compilation);
      const ndk::Type two = floats({2});
      const ANeuralNetworksOperandType type = two.get();
      ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setOutputFromMemory(intoMemory.get(), 0, &type,
                                                                         memory.get(), 0, 8));
      ASSERT_CODE(NO_ERROR, startFenced(intoMemory, event));
      EXPECT_CODE(NO_ERROR, ANeuralNetworksEvent_wait(event.get()));
      const ndk::Execution untyped = withInputs(compilation);
      ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setOutputFromMemory(untyped.get(), 0, nullptr,
                                                                         memory.get(), 0, 8));
      EXPECT_CODE(BAD_DATA, startFenced(untyped, event));

      // The type argument leaves dimensions open; the refusal does not use the execution up.
      for (const std::vector<uint32_t>& given : {std::vector<uint32_t>{0}, open}) {
        const ndk::Execution unknown = withInputs(compilation);
        ASSERT_CODE(NO_ERROR, setTypedOutput(unknown, 0, floats(given), sum_));
        EXPECT_CODE(BAD_DATA, startFenced(unknown, event));
        EXPECT_EQ(event, nullptr);
        EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_compute(unknown.get()));
      }
      // The output is not set.
      EXPECT_CODE(BAD_DATA, startFenced(withInputs(compilation), event));
    }
  }
}

// The two largest of four numbers and their indices; the outputs' dimensions are open.
ndk::Model largestModel(const std::vector<uint32_t>& open) {
  ndk::Model model;
  const uint32_t input = model.operand(floats({4}));
  const uint32_t values = model.operand(floats(open));
  const uint32_t indices = model.operand(ints(open));
  model.operation(ANEURALNETWORKS_TOPK_V2, {input, model.int32(2)}, {values, indices});
  model.finish({input}, {values, indices});
  return model;
}

TEST_F(ShapeBehaviour, B35_EachFencedOutputIsSizedOrOmitted) {
  const ndk::Model model = largestModel({0});
  const std::vector<float> input = {3, 9, 1, 7};
  for (const ndk::Compilation& compilation : compileEverywhere(model)) {
    ndk::EventHandle event;
    std::vector<int32_t> indices(2);
    ndk::Execution oneIsOpen(compilation);
    oneIsOpen.input(0, input).output(0, sum_);
    ASSERT_CODE(NO_ERROR, setTypedOutput(oneIsOpen, 1, ints({2}), indices));
    EXPECT_CODE(BAD_DATA, startFenced(oneIsOpen, event));
    ndk::Execution oneIsOmitted(compilation);
    oneIsOmitted.input(0, input);
    ASSERT_CODE(NO_ERROR,
                ANeuralNetworksExecution_setOutput(oneIsOmitted.get(), 0, nullptr, nullptr, 0));
    ASSERT_CODE(NO_ERROR, setTypedOutput(oneIsOmitted, 1, ints({2}), indices));
    ASSERT_CODE(NO_ERROR, startFenced(oneIsOmitted, event));
    EXPECT_CODE(NO_ERROR, ANeuralNetworksEvent_wait(event.get()));
    EXPECT_THAT(indices, testing::ElementsAre(1, 3));
  }
}

TEST_F(ShapeBehaviour, B35_FencedOutputsAreSizedByTheirDeviceMemory) {
  const ndk::Model model = addModel({0});
  for (ANeuralNetworksDevice* device : ndk::devices()) {
    SCOPED_TRACE(ndk::nameOf(device));
    const ndk::Compilation compilation = compileFor(model, {device});
    const ndk::MemoryHandle memory = outputMemory(compilation, {2});
    const ndk::Execution execution = withInputs(compilation);
    ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setOutputFromMemory(execution.get(), 0, nullptr,
                                                                       memory.get(), 0, 0));
    ndk::EventHandle event;
    ASSERT_CODE(NO_ERROR, startFenced(execution, event));
    EXPECT_CODE(NO_ERROR, ANeuralNetworksEvent_wait(event.get()));
    EXPECT_THAT(execution.outputDimensions(0), testing::ElementsAre(2));
    const ndk::MemoryHandle copy = sharedMemory(8);
    EXPECT_CODE(NO_ERROR, ANeuralNetworksMemory_copy(memory.get(), copy.get()));

    // The result has other dimensions than the memory: an error in each mode.
    for (const ComputeMode& mode : computeModes()) {
      SCOPED_TRACE(mode.name);
      const ndk::MemoryHandle three = outputMemory(compilation, {3});
      ndk::Execution conflict = withInputs(compilation);
      ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setOutputFromMemory(conflict.get(), 0, nullptr,
                                                                         three.get(), 0, 0));
      EXPECT_CODE(OP_FAILED, mode.compute(compilation, conflict));
    }
  }
  // The dimensions of the memory are open, too.
  setDevicesForTest({std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "device", .allocates = true, .allocatesUnknown = true})});
  const ndk::Compilation compilation = compileFor(model, {ndk::devices()[0]});
  const ndk::MemoryHandle memory = outputMemory(compilation, {});
  const ndk::Execution execution = withInputs(compilation);
  ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setOutputFromMemory(execution.get(), 0, nullptr,
                                                                     memory.get(), 0, 0));
  ndk::EventHandle event;
  EXPECT_CODE(BAD_DATA, startFenced(execution, event));
  const ndk::Type two = floats({2});
  const ANeuralNetworksOperandType type = two.get();
  const ndk::Execution typed = withInputs(compilation);
  ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setOutputFromMemory(typed.get(), 0, &type,
                                                                     memory.get(), 0, 0));
  EXPECT_CODE(NO_ERROR, startFenced(typed, event));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksEvent_wait(event.get()));
}

TEST_F(ShapeBehaviour, B26_OnlyTheDimensionsOfATypeArgumentCount) {
  // The operands are 8-bit numbers with a scale and a zero point.
  ndk::Model model;
  const ndk::Type quantized = {ANEURALNETWORKS_TENSOR_QUANT8_ASYMM, {0, 2}, 0.5f, 10};
  const uint32_t a = model.operand(quantized);
  const uint32_t b = model.operand(quantized);
  const uint32_t sum = model.operand(quantized);
  model.operation(ANEURALNETWORKS_ADD, {a, b, model.int32(0)}, {sum});
  model.finish({a, b}, {sum});
  const std::vector<ndk::Type> others = {
      {ANEURALNETWORKS_TENSOR_QUANT8_ASYMM, {1, 2}, 0.25f, 10},
      {ANEURALNETWORKS_TENSOR_QUANT8_ASYMM, {1, 2}, 0.5f, 0},
      {ANEURALNETWORKS_TENSOR_QUANT8_ASYMM_SIGNED, {1, 2}, 0.5f, 10},
      {ANEURALNETWORKS_TENSOR_QUANT16_ASYMM, {1, 2}, 0.5f, 10},
      floats({1, 2}),
      ints({1, 2})};
  const std::vector<uint8_t> values = {12, 14};
  const ndk::MemoryHandle memory = sharedMemory(2);
  for (const ndk::Compilation& compilation : compileEverywhere(model)) {
    for (const ndk::Type& other : others) {
      SCOPED_TRACE(other.code);
      for (const ComputeMode& mode : computeModes()) {
        std::vector<uint8_t> result(2);
        ndk::Execution execution(compilation);
        EXPECT_CODE(NO_ERROR, setTypedInput(execution, 0, other, values));
        EXPECT_CODE(NO_ERROR, setTypedInput(execution, 1, other, values));
        EXPECT_CODE(NO_ERROR, setTypedOutput(execution, 0, other, result));
        EXPECT_CODE(NO_ERROR, mode.compute(compilation, execution));
        EXPECT_THAT(result, testing::ElementsAre(14, 18));
      }
      const ANeuralNetworksOperandType type = other.get();
      ndk::Execution execution(compilation);
      EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_setInputFromMemory(execution.get(), 0, &type,
                                                                        memory.get(), 0, 2));
      EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_setOutputFromMemory(execution.get(), 0, &type,
                                                                         memory.get(), 0, 2));
      // The model's element type decides the length.
      std::vector<uint8_t> eight(8);
      EXPECT_CODE(BAD_DATA, setTypedInput(execution, 1, other, eight));
    }
    // The type must be valid in itself, and its dimensions must match the model's.
    std::vector<uint8_t> result(2);
    const ndk::Execution execution(compilation);
    for (const ndk::Type& wrong :
         {ndk::Type{12345, {1, 2}, 0, 0}, ndk::Type{ANEURALNETWORKS_FLOAT32, {1, 2}, 0, 0},
          ndk::Type{ANEURALNETWORKS_TENSOR_FLOAT32, {1, 2}, 0.5f, 0},
          ndk::Type{ANEURALNETWORKS_TENSOR_QUANT8_ASYMM, {1, 2}, 0, 0},
          ndk::Type{ANEURALNETWORKS_TENSOR_QUANT8_ASYMM, {1, 2}, 0.5f, 256},
          ndk::Type{ANEURALNETWORKS_TENSOR_FLOAT32, {65536, 65536}, 0, 0}, floats({2}),
          floats({1, 1, 2}), floats({2, 1}), floats({1, 0}), floats({})}) {
      EXPECT_CODE(BAD_DATA, setTypedInput(execution, 0, wrong, values));
      EXPECT_CODE(BAD_DATA, setTypedOutput(execution, 0, wrong, result));
      const ANeuralNetworksOperandType type = wrong.get();
      EXPECT_CODE(BAD_DATA, ANeuralNetworksExecution_setInputFromMemory(execution.get(), 0, &type,
                                                                        memory.get(), 0, 2));
      EXPECT_CODE(BAD_DATA, ANeuralNetworksExecution_setOutputFromMemory(execution.get(), 0, &type,
                                                                         memory.get(), 0, 2));
    }
  }
}

TEST_F(ShapeBehaviour, B26_ScalarsTakeNoDimensions) {
  const std::vector<int32_t> none = {0};
  for (const ndk::Compilation& compilation : compileEverywhere(doublingModel())) {
    ndk::Execution execution(compilation);
    EXPECT_CODE(BAD_DATA, setTypedInput(execution, 1, ints({1}), none));
    EXPECT_CODE(NO_ERROR, setTypedInput(execution, 1, {ANEURALNETWORKS_FLOAT32, {}, 0, 0}, none));
    execution.input(0, a_).output(0, sum_).compute();
    EXPECT_THAT(sum_, testing::ElementsAre(2, 4));
  }
}

TEST_F(ShapeBehaviour, B26_AnotherTypeIsWarnedOfOnce) {
  base::setLogLevel(base::LogLevel::kWarn);
  const ndk::Compilation compilation = compileForAll(addModel());
  testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) {
    ndk::Execution execution(compilation);
    for (const int32_t index : {0, 1})
      EXPECT_CODE(NO_ERROR, setTypedInput(execution, index, ints({2}), a_));
    EXPECT_CODE(NO_ERROR, setTypedOutput(execution, 0, ints({2}), sum_));
    execution.compute();
  }
  const std::string log = testing::internal::GetCapturedStderr();
  const size_t first = log.find("only its dimensions count");
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("only its dimensions count", first + 1), std::string::npos) << log;
}

// Asks the execution for the shape of an output, with both functions.
int shapeOf(const ndk::Execution& execution, int32_t index, std::vector<uint32_t>* dimensions) {
  uint32_t rank = 0;
  const int code = ANeuralNetworksExecution_getOutputOperandRank(execution.get(), index, &rank);
  dimensions->assign(rank, 0);
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandDimensions(execution.get(), index,
                                                                dimensions->data()),
            code);
  return code;
}

// Computes with every combination of buffer sizes for two outputs of two elements each, and expects
// the right shape and code for each output.
void expectTrueShapes(const ndk::Compilation& compilation,
                      const std::function<void(ndk::Execution&)>& setInputs) {
  for (const ComputeMode& mode : computeModes()) {
    if (mode.isFenced) continue;  // sizes are known there
    SCOPED_TRACE(mode.name);
    for (const bool isReusable : {false, true}) {
      for (const size_t first : {0u, 1u, 2u, 5u}) {
        for (const size_t second : {0u, 1u, 2u, 5u}) {
          SCOPED_TRACE(testing::Message() << first << " and " << second << " elements");
          ndk::Execution execution(compilation);
          if (isReusable) execution.reusable();
          setInputs(execution);
          // 4-byte elements of either type; guards behind each.
          std::vector<std::vector<int32_t>> outputs(2, std::vector<int32_t>(8, 77));
          const size_t sizes[] = {first, second};
          for (const int32_t i : {0, 1})
            ndk::check(ANeuralNetworksExecution_setOutput(execution.get(), i, nullptr,
                                                          outputs[static_cast<size_t>(i)].data(),
                                                          sizes[i] * sizeof(int32_t)),
                       "setOutput");
          const bool isWhole = first >= 2 && second >= 2;
          EXPECT_EQ(mode.compute(compilation, execution),
                    isWhole ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE);
          for (const int32_t i : {0, 1}) {
            std::vector<uint32_t> dimensions;
            EXPECT_EQ(
                shapeOf(execution, i, &dimensions),
                sizes[i] >= 2 ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE)
                << "output " << i;
            EXPECT_THAT(dimensions, testing::ElementsAre(2)) << "output " << i;
            for (size_t guard = sizes[i]; guard < 8; ++guard)
              EXPECT_EQ(outputs[static_cast<size_t>(i)][guard], 77) << "output " << i;
          }
          if (!isReusable) continue;
          // With buffers of the reported shapes the computation succeeds.
          for (const int32_t i : {0, 1})
            ndk::check(ANeuralNetworksExecution_setOutput(
                           execution.get(), i, nullptr, outputs[static_cast<size_t>(i)].data(), 8),
                       "setOutput");
          EXPECT_CODE(NO_ERROR, mode.compute(compilation, execution));
          for (const int32_t i : {0, 1})
            EXPECT_THAT(execution.outputDimensions(i), testing::ElementsAre(2));
        }
      }
    }
  }
}

TEST_F(ShapeBehaviour, B27_EachOutputTellsItsOwnShape) {
  const std::vector<float> input = {3, 9, 1, 7};
  for (const std::vector<uint32_t>& open : {std::vector<uint32_t>{0}, std::vector<uint32_t>{}})
    for (const ndk::Compilation& compilation : compileEverywhere(largestModel(open)))
      expectTrueShapes(compilation, [&](ndk::Execution& execution) { execution.input(0, input); });
}

// Outputs sum = a + b and product = sum * b, of open dimensions.
ndk::Model sumAndProductModel() {
  ndk::Model model;
  const uint32_t a = model.operand(floats({0}));
  const uint32_t b = model.operand(floats({0}));
  const uint32_t sum = model.operand(floats({0}));
  const uint32_t product = model.operand(floats({0}));
  const uint32_t none = model.int32(0);
  model.operation(ANEURALNETWORKS_ADD, {a, b, none}, {sum});
  model.operation(ANEURALNETWORKS_MUL, {sum, b, none}, {product});
  model.finish({a, b}, {sum, product});
  return model;
}

TEST_F(ShapeBehaviour, B27_EachOutputTellsItsOwnShapeBetweenDevices) {
  using graph::OperationType;
  auto adds = std::make_shared<FakeDevice>(FakeDeviceOptions{
      .name = "adds", .operations = {OperationType::kAdd}, .performance = {0.1f, 0.1f}});
  auto muls = std::make_shared<FakeDevice>(FakeDeviceOptions{
      .name = "muls", .operations = {OperationType::kMul}, .performance = {0.1f, 0.1f}});
  auto reference = std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "nnapi-reference"});
  setDevicesForTest({adds, muls, reference});
  const auto devices = ndk::devices();
  const std::vector<float> a = {1, 2};
  const auto setInputs = [&](ndk::Execution& execution) {
    for (const int32_t index : {0, 1})
      ndk::check(setTypedInput(execution, index, floats({2}), a), "setInput");
  };
  const ndk::Model model = sumAndProductModel();
  const ndk::Compilation listed = compileFor(model, {devices[0], devices[1]});
  expectTrueShapes(listed, setInputs);
  EXPECT_GT(adds->computations, 0);
  EXPECT_GT(muls->computations, 0);
  const ndk::Compilation everywhere = compileForAll(model);
  expectTrueShapes(everywhere, setInputs);
  // The reference computes, since another device fails.
  muls->options.computeError = ErrorCode::kOpFailed;
  expectTrueShapes(everywhere, setInputs);
  // The values are right after a failure, too.
  muls->options.computeError.reset();
  ndk::Execution execution(listed);
  execution.reusable();
  setInputs(execution);
  std::vector<float> sum(1);
  std::vector<float> product(2);
  execution.output(0, sum).output(1, product);
  EXPECT_CODE(OUTPUT_INSUFFICIENT_SIZE, ANeuralNetworksExecution_compute(execution.get()));
  sum.resize(2);
  execution.output(0, sum);
  EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_compute(execution.get()));
  EXPECT_THAT(sum, testing::ElementsAre(2, 4));
  EXPECT_THAT(product, testing::ElementsAre(2, 8));
}

// The two largest elements of the input in one branch, of the negated input in the other.
ndk::Model largestBranchModel() {
  const ndk::Model then = largestModel({0});
  ndk::Model otherwise;
  {
    const uint32_t input = otherwise.operand(floats({4}));
    const uint32_t negative = otherwise.operand(floats({4}));
    const uint32_t values = otherwise.operand(floats({0}));
    const uint32_t indices = otherwise.operand(ints({0}));
    otherwise.operation(ANEURALNETWORKS_NEG, {input}, {negative});
    otherwise.operation(ANEURALNETWORKS_TOPK_V2, {negative, otherwise.int32(2)}, {values, indices});
    otherwise.finish({input}, {values, indices});
  }
  ndk::Model model;
  const uint32_t condition = model.operand({ANEURALNETWORKS_TENSOR_BOOL8, {1}, 0, 0});
  const uint32_t input = model.operand(floats({4}));
  const uint32_t values = model.operand(floats({0}));
  const uint32_t indices = model.operand(ints({0}));
  model.operation(ANEURALNETWORKS_IF, {condition, model.model(then), model.model(otherwise), input},
                  {values, indices});
  model.finish({condition, input}, {values, indices});
  return model;
}

TEST_F(ShapeBehaviour, B27_EachOutputTellsItsOwnShapeAfterABranch) {
  const std::vector<float> input = {3, 9, 1, 7};
  const auto expectForBoth = [&](const ndk::Compilation& compilation) {
    for (const uint8_t condition : {1, 0}) {
      const std::vector<uint8_t> value = {condition};
      expectTrueShapes(compilation, [&](ndk::Execution& execution) {
        execution.input(0, value).input(1, input);
      });
    }
  };
  for (const ndk::Compilation& compilation : compileEverywhere(largestBranchModel()))
    expectForBoth(compilation);
  // Neither device takes IF.
  using graph::OperationType;
  setDevicesForTest({std::make_shared<FakeDevice>(FakeDeviceOptions{
                         .name = "sorts", .operations = {OperationType::kTopkV2}}),
                     std::make_shared<FakeDevice>(FakeDeviceOptions{
                         .name = "negates", .operations = {OperationType::kNeg}})});
  const auto devices = ndk::devices();
  expectForBoth(compileFor(largestBranchModel(), {devices[0], devices[1]}));
}

// Doubles x, and adds 1 to a count, while the count is less than 3. `outer`, `inner` and `result`
// are x's dimensions in the model, in the subgraphs and as the body's output; they may be open.
ndk::Model doublingModel(const std::vector<uint32_t>& outer, const std::vector<uint32_t>& inner,
                         const std::vector<uint32_t>& result) {
  ndk::Model condition;
  {
    const uint32_t x = condition.operand(floats(inner));
    const uint32_t count = condition.operand(floats({1}));
    const uint32_t limit = condition.constant<float>(floats({1}), {3});
    const uint32_t goesOn = condition.operand({ANEURALNETWORKS_TENSOR_BOOL8, {1}, 0, 0});
    condition.operation(ANEURALNETWORKS_LESS, {count, limit}, {goesOn});
    condition.finish({x, count}, {goesOn});
  }
  ndk::Model body;
  {
    const uint32_t x = body.operand(floats(inner));
    const uint32_t count = body.operand(floats({1}));
    const uint32_t next = body.operand(floats(result));
    const uint32_t nextCount = body.operand(floats({1}));
    const uint32_t one = body.constant<float>(floats({1}), {1});
    body.operation(ANEURALNETWORKS_ADD, {x, x, body.int32(0)}, {next});
    body.operation(ANEURALNETWORKS_ADD, {count, one, body.int32(0)}, {nextCount});
    body.finish({x, count}, {next, nextCount});
  }
  ndk::Model model;
  const uint32_t x = model.operand(floats(outer));
  const uint32_t count = model.operand(floats({1}));
  const uint32_t last = model.operand(floats(inner));
  const uint32_t lastCount = model.operand(floats({1}));
  model.operation(ANEURALNETWORKS_WHILE, {model.model(condition), model.model(body), x, count},
                  {last, lastCount});
  model.finish({x, count}, {last, lastCount});
  return model;
}

TEST_F(ShapeBehaviour, B56_ALoopBetweenDevicesKnowsWhatItsSubgraphsLeaveOpen) {
  using graph::OperationType;
  const ndk::Model model = doublingModel({2}, {0}, {2});
  std::vector<std::vector<float>> results;
  const auto compute = [&](const ndk::Compilation& compilation, float from, size_t size) {
    const std::vector<float> count = {from};
    std::vector<float> result(size, -1);
    std::vector<float> last(1);
    ndk::Execution execution(compilation);
    execution.input(0, a_).input(1, count).output(0, result).output(1, last);
    const int code = ANeuralNetworksExecution_compute(execution.get());
    std::vector<uint32_t> dimensions;
    EXPECT_EQ(shapeOf(execution, 0, &dimensions), code);
    EXPECT_THAT(dimensions, testing::ElementsAre(2));
    EXPECT_EQ(shapeOf(execution, 1, &dimensions), ANEURALNETWORKS_NO_ERROR);
    return std::pair(code, result);
  };
  std::vector<ndk::Compilation> compilations = compileEverywhere(model);
  setDevicesForTest({std::make_shared<FakeDevice>(
                         FakeDeviceOptions{.name = "adds", .operations = {OperationType::kAdd}}),
                     std::make_shared<FakeDevice>(FakeDeviceOptions{
                         .name = "compares", .operations = {OperationType::kLess}})});
  const auto devices = ndk::devices();
  compilations.push_back(compileFor(model, {devices[0], devices[1]}));
  for (const ndk::Compilation& compilation : compilations) {
    for (const float from : {0.0f, 2.0f, 3.0f}) {
      const float factor = from == 0 ? 8 : from == 2 ? 2 : 1;
      const auto [code, result] = compute(compilation, from, 2);
      EXPECT_EQ(code, ANEURALNETWORKS_NO_ERROR);
      EXPECT_THAT(result, testing::ElementsAre(factor, 2 * factor));
      EXPECT_EQ(compute(compilation, from, 1).first, ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE);
    }
  }
}

}  // namespace
}  // namespace hearth::nnapi
