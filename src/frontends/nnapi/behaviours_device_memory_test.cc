// SPDX-License-Identifier: Apache-2.0
// Behaviours 45 to 50 of NNAPI: memory descriptors and device memories.
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "frontends/nnapi/testing/memory_behaviour.h"

namespace hearth::nnapi {
namespace {

using ndk::Out;

// Asks for a memory in the role of argument 0 that `addRole` adds, and returns the result code.
int createFor(decltype(ANeuralNetworksMemoryDesc_addInputRole)* addRole,
              const ndk::Compilation& compilation, ANeuralNetworksMemory** memory) {
  ndk::MemoryDescHandle desc;
  ndk::check(ANeuralNetworksMemoryDesc_create(Out(desc)), "MemoryDesc_create");
  ndk::check(addRole(desc.get(), compilation.get(), 0, 1), "addRole");
  ndk::check(ANeuralNetworksMemoryDesc_finish(desc.get()), "MemoryDesc_finish");
  return ANeuralNetworksMemory_createFromDesc(desc.get(), memory);
}

TEST_F(MemoryBehaviour, B45_RolesOfDescriptors) {
  const ndk::Compilation compilation = compileForAll(addModel());
  const ndk::Compilation other = compileForAll(addModel({3}));
  const ndk::Model model = addModel();
  const ndk::Compilation unfinished(model);
  ndk::MemoryDescHandle desc;
  ASSERT_CODE(NO_ERROR, ANeuralNetworksMemoryDesc_create(Out(desc)));
  const auto addInput = [&](const ndk::Compilation& from, uint32_t index, float frequency) {
    return ANeuralNetworksMemoryDesc_addInputRole(desc.get(), from.get(), index, frequency);
  };
  EXPECT_CODE(BAD_DATA, ANeuralNetworksMemoryDesc_finish(desc.get()));
  EXPECT_CODE(BAD_DATA, addInput(unfinished, 0, 1));
  EXPECT_CODE(BAD_DATA, addInput(compilation, 2, 1));
  for (const float frequency : {0.0f, -1.0f, 1.5f, NAN, INFINITY})
    EXPECT_CODE(BAD_DATA, addInput(compilation, 0, frequency));
  EXPECT_CODE(NO_ERROR, addInput(compilation, 0, 1));
  EXPECT_CODE(BAD_DATA, addInput(compilation, 0, 0.5f));
  // Other dimensions, or another type.
  EXPECT_CODE(BAD_DATA, addInput(other, 0, 1));
  EXPECT_CODE(BAD_DATA,
              ANeuralNetworksMemoryDesc_addOutputRole(desc.get(), compilation.get(), 1, 1));
  EXPECT_CODE(NO_ERROR,
              ANeuralNetworksMemoryDesc_addOutputRole(desc.get(), compilation.get(), 0, 1));
  ndk::MemoryHandle memory;
  EXPECT_CODE(BAD_STATE, ANeuralNetworksMemory_createFromDesc(desc.get(), Out(memory)));
  EXPECT_EQ(memory, nullptr);
  EXPECT_CODE(NO_ERROR, ANeuralNetworksMemoryDesc_finish(desc.get()));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksMemoryDesc_finish(desc.get()));
  EXPECT_CODE(BAD_STATE, addInput(compilation, 1, 1));
  const uint32_t two = 2;
  EXPECT_CODE(BAD_STATE, ANeuralNetworksMemoryDesc_setDimensions(desc.get(), 1, &two));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksMemory_createFromDesc(desc.get(), Out(memory)));
}

TEST_F(MemoryBehaviour, B46_DimensionsOfDescriptors) {
  const ndk::Compilation compilation = compileForAll(addModel({0, 3}));
  const auto code = [&](const std::vector<std::vector<uint32_t>>& settings, bool rolesFirst) {
    ndk::MemoryDescHandle desc;
    ndk::check(ANeuralNetworksMemoryDesc_create(Out(desc)), "MemoryDesc_create");
    int worst = 0;
    const auto addRole = [&] {
      worst = std::max(worst,
                       ANeuralNetworksMemoryDesc_addInputRole(desc.get(), compilation.get(), 0, 1));
    };
    if (rolesFirst) addRole();
    for (const std::vector<uint32_t>& dimensions : settings)
      worst = std::max(
          worst, ANeuralNetworksMemoryDesc_setDimensions(
                     desc.get(), static_cast<uint32_t>(dimensions.size()), dimensions.data()));
    if (!rolesFirst) addRole();
    return worst;
  };
  for (const bool rolesFirst : {true, false}) {
    SCOPED_TRACE(rolesFirst);
    EXPECT_CODE(NO_ERROR, code({{2, 3}}, rolesFirst));
    EXPECT_CODE(NO_ERROR, code({{2, 0}, {0, 3}}, rolesFirst));
    EXPECT_CODE(NO_ERROR, code({{}}, rolesFirst));
    EXPECT_CODE(BAD_DATA, code({{2, 4}}, rolesFirst));
    EXPECT_CODE(BAD_DATA, code({{2, 3, 1}}, rolesFirst));
    EXPECT_CODE(BAD_DATA, code({{2, 3}, {4, 3}}, rolesFirst));
  }

  // A scalar takes rank 0 only.
  const ndk::Compilation scalar = compileForAll(doublingModel());
  const uint32_t one = 1;
  for (const bool rolesFirst : {true, false}) {
    ndk::MemoryDescHandle desc;
    ASSERT_CODE(NO_ERROR, ANeuralNetworksMemoryDesc_create(Out(desc)));
    const int first = rolesFirst
                          ? ANeuralNetworksMemoryDesc_addInputRole(desc.get(), scalar.get(), 1, 1)
                          : ANeuralNetworksMemoryDesc_setDimensions(desc.get(), 1, &one);
    EXPECT_CODE(NO_ERROR, first);
    const int second = rolesFirst
                           ? ANeuralNetworksMemoryDesc_setDimensions(desc.get(), 1, &one)
                           : ANeuralNetworksMemoryDesc_addInputRole(desc.get(), scalar.get(), 1, 1);
    EXPECT_CODE(BAD_DATA, second);
    EXPECT_CODE(NO_ERROR, ANeuralNetworksMemoryDesc_setDimensions(desc.get(), 0, nullptr));
  }
}

TEST_F(MemoryBehaviour, B47_DeviceMemoryAsArgument) {
  const ndk::Compilation compilation = compileForAll(addModel());
  const ndk::Compilation other = compileForAll(addModel());
  const ndk::MemoryHandle memory = deviceMemory(compilation);
  ndk::Execution execution(compilation);
  EXPECT_CODE(BAD_DATA, setInput(execution, 0, memory, 0, 8));
  EXPECT_CODE(BAD_DATA, setInput(execution, 0, memory, 4, 0));
  EXPECT_CODE(BAD_DATA, setOutput(execution, 0, memory, 0, 8));
  EXPECT_CODE(BAD_DATA, setInput(execution, 1, memory, 0, 0));
  EXPECT_CODE(BAD_DATA, setInput(ndk::Execution(other), 0, memory, 0, 0));
  EXPECT_CODE(NO_ERROR, setInput(execution, 0, memory, 0, 0));
  EXPECT_CODE(NO_ERROR, setOutput(execution, 0, memory, 0, 0));
  // A device memory cannot hold a constant.
  ndk::Model model;
  const auto index = static_cast<int32_t>(model.operand(floats({2})));
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_setOperandValueFromMemory(model.get(), index,
                                                                       memory.get(), 0, 8));
  // One execution cannot both read and write it.
  execution.input(1, a_);
  EXPECT_CODE(BAD_DATA, ANeuralNetworksExecution_compute(execution.get()));
}

TEST_F(MemoryBehaviour, B47_TypesOfDeviceMemoryAsArgument) {
  const ndk::Compilation compilation = compileForAll(addModel({0, 0}));
  ndk::MemoryDescHandle desc;
  ASSERT_CODE(NO_ERROR, ANeuralNetworksMemoryDesc_create(Out(desc)));
  ASSERT_CODE(NO_ERROR,
              ANeuralNetworksMemoryDesc_addInputRole(desc.get(), compilation.get(), 0, 1));
  ASSERT_CODE(NO_ERROR,
              ANeuralNetworksMemoryDesc_addOutputRole(desc.get(), compilation.get(), 0, 1));
  const std::array<uint32_t, 2> dimensions = {1, 2};
  ASSERT_CODE(NO_ERROR, ANeuralNetworksMemoryDesc_setDimensions(desc.get(), 2, dimensions.data()));
  ASSERT_CODE(NO_ERROR, ANeuralNetworksMemoryDesc_finish(desc.get()));
  ndk::MemoryHandle memory;
  ASSERT_CODE(NO_ERROR, ANeuralNetworksMemory_createFromDesc(desc.get(), Out(memory)));
  ndk::Execution execution(compilation);
  execution.reusable();
  const auto setTyped = [&](bool isInput, const std::vector<uint32_t>& given) {
    const ndk::Type type = floats(given);
    const ANeuralNetworksOperandType made = type.get();
    return isInput ? ANeuralNetworksExecution_setInputFromMemory(execution.get(), 0, &made,
                                                                 memory.get(), 0, 0)
                   : ANeuralNetworksExecution_setOutputFromMemory(execution.get(), 0, &made,
                                                                  memory.get(), 0, 0);
  };
  for (const bool isInput : {true, false}) {
    for (const std::vector<uint32_t>& wrong :
         {std::vector<uint32_t>{2, 2}, {1, 3}, {0, 3}, {2}, {1, 1, 2}})
      EXPECT_CODE(BAD_DATA, setTyped(isInput, wrong));
    for (const std::vector<uint32_t>& right : {std::vector<uint32_t>{0, 0}, {1, 0}, {0, 2}, {1, 2}})
      EXPECT_CODE(NO_ERROR, setTyped(isInput, right));
  }
}

TEST_F(MemoryBehaviour, B48_DeviceMemoryWithoutValue) {
  const ndk::Compilation compilation = compileForAll(addModel());
  ndk::BurstHandle burst;
  ASSERT_CODE(NO_ERROR, ANeuralNetworksBurst_create(compilation.get(), Out(burst)));
  const std::function<int(ndk::Execution&)> modes[] = {
      [](ndk::Execution& execution) { return ANeuralNetworksExecution_compute(execution.get()); },
      [](ndk::Execution& execution) {
        ndk::EventHandle event;
        return ANeuralNetworksExecution_startCompute(execution.get(), Out(event));
      },
      [&](ndk::Execution& execution) {
        return ANeuralNetworksExecution_burstCompute(execution.get(), burst.get());
      },
      [](ndk::Execution& execution) {
        return ANeuralNetworksEvent_wait(execution.startAfter({}).get());
      }};
  for (const auto& compute : modes) {
    const ndk::MemoryHandle memory = deviceMemory(compilation);
    ndk::Execution execution(compilation);
    std::vector<float> sum(2);
    execution.input(1, a_).output(0, sum);
    ASSERT_CODE(NO_ERROR, setInput(execution, 0, memory, 0, 0));
    EXPECT_CODE(OP_FAILED, compute(execution));
  }
  // A failed copy takes the value of a memory that is set as an argument.
  const ndk::MemoryHandle memory = deviceMemory(compilation);
  ASSERT_CODE(NO_ERROR, copyIn(a_, memory));
  ndk::Execution execution(compilation);
  std::vector<float> sum(2);
  execution.input(1, a_).output(0, sum);
  ASSERT_CODE(NO_ERROR, setInput(execution, 0, memory, 0, 0));
  EXPECT_CODE(BAD_DATA, copyIn({1, 2, 3}, memory));
  EXPECT_CODE(OP_FAILED, ANeuralNetworksExecution_compute(execution.get()));
  // The refusal does not use the execution up.
  ASSERT_CODE(NO_ERROR, copyIn(a_, memory));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_compute(execution.get()));
  EXPECT_THAT(sum, testing::ElementsAre(2, 4));
}

TEST_F(MemoryBehaviour, B49_OutputsGainAndLoseTheirValue) {
  auto device =
      std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "device", .allocates = true});
  setDevicesForTest({device});
  const ndk::Compilation compilation = compileForOne(addModel());
  const ndk::MemoryHandle memory = deviceMemory(compilation);
  EXPECT_EQ(device->allocations, 1);
  const auto computeInto = [&] {
    ndk::Execution execution(compilation);
    execution.input(0, a_).input(1, a_);
    ndk::check(setOutput(execution, 0, memory, 0, 0), "setOutputFromMemory");
    return ANeuralNetworksExecution_compute(execution.get());
  };
  EXPECT_CODE(NO_ERROR, computeInto());
  EXPECT_THAT(copyOut(memory, 2), testing::ElementsAre(2, 4));
  // The memory is an input of the next execution.
  std::vector<float> sum(2);
  ndk::Execution next(compilation);
  next.input(1, a_).output(0, sum);
  ASSERT_CODE(NO_ERROR, setInput(next, 0, memory, 0, 0));
  next.compute();
  EXPECT_THAT(sum, testing::ElementsAre(3, 6));

  device->options.computeError = ErrorCode::kOpFailed;
  EXPECT_CODE(OP_FAILED, computeInto());
  const base::Descriptor file = fileOf(a_);
  const ndk::MemoryHandle target = memoryOf(file, 8);
  EXPECT_CODE(BAD_DATA, ANeuralNetworksMemory_copy(memory.get(), target.get()));
}

// Any failure takes the values of all output memories.
TEST_F(MemoryBehaviour, B49_EveryFailureTakesTheValue) {
  auto device =
      std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "device", .allocates = true});
  setDevicesForTest({device});
  const ndk::Compilation compilation = compileForOne(topTwoModel(0));
  ndk::MemoryHandle memory;
  ASSERT_CODE(NO_ERROR,
              createFor(ANeuralNetworksMemoryDesc_addOutputRole, compilation, Out(memory)));
  const std::vector<float> numbers = {3, 9, 1, 7};
  const auto computeWith = [&](size_t indexCount) {
    ndk::Execution execution(compilation);
    std::vector<int32_t> places(indexCount);
    execution.input(0, numbers).output(1, places);
    ndk::check(setOutput(execution, 0, memory, 0, 0), "setOutputFromMemory");
    return ANeuralNetworksExecution_compute(execution.get());
  };
  const base::Descriptor file = fileOf({0, 0});
  const ndk::MemoryHandle copy = memoryOf(file, 8);
  const auto hasValue = [&] {
    return ANeuralNetworksMemory_copy(memory.get(), copy.get()) == ANEURALNETWORKS_NO_ERROR;
  };
  EXPECT_CODE(NO_ERROR, computeWith(2));
  EXPECT_TRUE(hasValue());
  EXPECT_CODE(OUTPUT_INSUFFICIENT_SIZE, computeWith(1));
  EXPECT_FALSE(hasValue());
  EXPECT_CODE(NO_ERROR, computeWith(2));
  EXPECT_THAT(copyOut(memory, 2), testing::ElementsAre(9, 7));
  device->options.createError = ErrorCode::kBadData;
  EXPECT_CODE(OP_FAILED, computeWith(2));
  EXPECT_FALSE(hasValue());
}

TEST_F(MemoryBehaviour, B49_DynamicOutputsRecordTheirDimensions) {
  auto device = std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "device", .allocates = true, .allocatesUnknown = true});
  setDevicesForTest({device});
  const ndk::Compilation compilation = compileForOne(addModel({0}));
  const ndk::MemoryHandle memory = deviceMemory(compilation);
  ndk::Execution execution(compilation);
  const std::vector<float> values = {1, 2, 3};
  setBothInputs(execution, values);
  ASSERT_CODE(NO_ERROR, setOutput(execution, 0, memory, 0, 0));
  execution.compute();
  EXPECT_THAT(execution.outputDimensions(0), testing::ElementsAre(3));
  EXPECT_THAT(copyOut(memory, 3), testing::ElementsAre(2, 4, 6));
  // Plain bytes do not tell their dimensions.
  EXPECT_CODE(BAD_DATA, copyIn(values, memory));

  // If no device allocates unknown sizes, no memory is possible.
  device->options.allocatesUnknown = false;
  ndk::MemoryHandle none;
  EXPECT_CODE(OP_FAILED, createFor(ANeuralNetworksMemoryDesc_addInputRole, compilation, Out(none)));
}

// Devices of the CPU have no memory of their own. What the runtime gives them instead grows.
TEST_F(MemoryBehaviour, B49_MemoryOfUnknownSizeGrowsWithItsValues) {
  for (const bool isRankKnown : {true, false}) {
    for (ANeuralNetworksDevice* const device : ndk::devices()) {
      SCOPED_TRACE(isRankKnown);
      const ndk::Compilation compilation =
          compileWith(isRankKnown ? addModel({0}) : addModel(std::vector<uint32_t>()), device);
      const ndk::MemoryHandle memory = deviceMemory(compilation);
      ndk::Execution into(compilation);
      into.reusable();
      ASSERT_CODE(NO_ERROR, setOutput(into, 0, memory, 0, 0));
      for (const size_t count : {3, 5000, 2, 100'000}) {
        SCOPED_TRACE(count);
        const std::vector<float> values(count, 1.5f);
        setBothInputs(into, values);
        into.compute();
        EXPECT_THAT(into.outputDimensions(0), testing::ElementsAre(count));
        EXPECT_EQ(copyOut(memory, count), std::vector<float>(count, 3.0f));
        // The value is an input of these dimensions, and of no others.
        for (const size_t asked : {count, count + 1}) {
          const ndk::Type given = floats({static_cast<uint32_t>(asked)});
          const ANeuralNetworksOperandType type = given.get();
          const std::vector<float> other(asked, 1.0f);
          std::vector<float> sum(asked);
          ndk::Execution from(compilation);
          ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setInputFromMemory(from.get(), 0, &type,
                                                                            memory.get(), 0, 0));
          ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setInput(from.get(), 1, &type,
                                                                  other.data(), asked * 4));
          ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setOutput(from.get(), 0, nullptr,
                                                                   sum.data(), asked * 4));
          EXPECT_EQ(ANeuralNetworksExecution_compute(from.get()),
                    asked == count ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_OP_FAILED);
          if (asked == count) {
            EXPECT_EQ(sum, std::vector<float>(count, 4.0f));
          }
        }
        // So is the copy in another memory, which grows with it.
        const ndk::MemoryHandle copy = deviceMemory(compilation);
        ASSERT_CODE(NO_ERROR, ANeuralNetworksMemory_copy(memory.get(), copy.get()));
        EXPECT_EQ(copyOut(copy, count), std::vector<float>(count, 3.0f));
      }
      // A type that gives the dimensions of the output makes room before the computation.
      const ndk::MemoryHandle typed = deviceMemory(compilation);
      const ndk::Type four = floats({4});
      const ANeuralNetworksOperandType type = four.get();
      ndk::Execution execution(compilation);
      const std::vector<float> values = {1, 2, 3, 4};
      setBothInputs(execution, values);
      ASSERT_CODE(NO_ERROR, ANeuralNetworksExecution_setOutputFromMemory(execution.get(), 0, &type,
                                                                         typed.get(), 0, 0));
      ndk::check(ANeuralNetworksEvent_wait(execution.startAfter({}).get()), "Event_wait");
      EXPECT_THAT(copyOut(typed, 4), testing::ElementsAre(2, 4, 6, 8));
    }
  }
}

// What grows under an execution that reads it leaves that execution its bytes.
TEST_F(MemoryBehaviour, B49_MemoryGrowsWhileOthersReadIt) {
  const ndk::Compilation compilation = compileFor(addModel({0}), {ndk::devices()[0]});
  const ndk::MemoryHandle memory = deviceMemory(compilation);
  const auto computeInto = [&](const std::vector<float>& values) {
    ndk::Execution execution(compilation);
    setBothInputs(execution, values);
    ndk::check(setOutput(execution, 0, memory, 0, 0), "setOutputFromMemory");
    execution.compute();
  };
  computeInto({1, 2});
  std::atomic<bool> isOver = false;
  std::thread reader([&] {
    const ndk::Type given = floats({2});
    const ANeuralNetworksOperandType type = given.get();
    while (!isOver) {
      std::vector<float> sum(2);
      ndk::Execution execution(compilation);
      ndk::check(ANeuralNetworksExecution_setInputFromMemory(execution.get(), 0, &type,
                                                             memory.get(), 0, 0),
                 "setInputFromMemory");
      ndk::check(ANeuralNetworksExecution_setInput(execution.get(), 1, &type, a_.data(), 8),
                 "setInput");
      execution.output(0, sum);
      // It fails when the memory has other dimensions meanwhile, or no value.
      static_cast<void>(ANeuralNetworksExecution_compute(execution.get()));
    }
  });
  for (size_t count = 2; count <= size_t{1} << 20; count *= 2) {
    computeInto(std::vector<float>(count, 1.0f));
    EXPECT_EQ(copyOut(memory, count), std::vector<float>(count, 2.0f));
  }
  isOver = true;
  reader.join();
}

TEST_F(MemoryBehaviour, B50_Copies) {
  for (const bool allocates : {true, false}) {
    SCOPED_TRACE(allocates);
    setDevicesForTest(
        {std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "device", .allocates = allocates}),
         std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "nnapi-reference"})});
    const ndk::Compilation compilation = compileForAll(addModel());
    const ndk::MemoryHandle first = deviceMemory(compilation);
    const ndk::MemoryHandle second = deviceMemory(compilation);
    EXPECT_CODE(BAD_DATA, ANeuralNetworksMemory_copy(first.get(), second.get()));
    EXPECT_CODE(NO_ERROR, ANeuralNetworksMemory_copy(first.get(), first.get()));
    EXPECT_CODE(NO_ERROR, copyIn(a_, first));
    EXPECT_CODE(NO_ERROR, ANeuralNetworksMemory_copy(first.get(), second.get()));
    EXPECT_THAT(copyOut(second, 2), testing::ElementsAre(1, 2));
    // A copy that fails leaves no value.
    EXPECT_CODE(BAD_DATA, copyIn({1, 2, 3}, second));
    EXPECT_CODE(BAD_DATA, ANeuralNetworksMemory_copy(second.get(), first.get()));
    const base::Descriptor file = fileOf(a_);
    const ndk::MemoryHandle plain = memoryOf(file, 8);
    EXPECT_CODE(BAD_DATA, ANeuralNetworksMemory_copy(first.get(), plain.get()));
    const ndk::MemoryHandle shorter = memoryOf(file, 4);
    EXPECT_CODE(BAD_DATA, ANeuralNetworksMemory_copy(plain.get(), shorter.get()));
    EXPECT_CODE(NO_ERROR, ANeuralNetworksMemory_copy(plain.get(), plain.get()));
    // The source has another shape.
    const ndk::Compilation wide = compileForAll(addModel({3}));
    const ndk::MemoryHandle three = deviceMemory(wide);
    ASSERT_CODE(NO_ERROR, copyIn({1, 2, 3}, three));
    EXPECT_CODE(BAD_DATA, ANeuralNetworksMemory_copy(three.get(), first.get()));
  }
}

}  // namespace
}  // namespace hearth::nnapi
