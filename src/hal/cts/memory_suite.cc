// SPDX-License-Identifier: Apache-2.0
// Constants in all places, and no byte read or written outside what a model and a request give.
#include "hal/cts/device_fixture.h"
#include "hal/cts/guarded_memory.h"

namespace hearth::hal::cts {
namespace {

using Place = GuardedMemory::Place;

class HalMemory : public DeviceFixture {
 protected:
  // The result of a sample model on inputs in the given place; empty when it is not supported.
  std::vector<std::vector<uint8_t>> computeGuarded(const NamedModel& sample, Place place);
};
HEARTH_CTS_SUITE(HalMemory);

std::vector<std::vector<uint8_t>> HalMemory::computeGuarded(const NamedModel& sample,
                                                            Place place) {
  std::vector<std::vector<uint8_t>> results;
  const auto prepared =
      device().prepareModel(std::make_shared<const graph::Model>(sample.model), {}, {});
  if (!prepared) return results;
  const graph::Subgraph& main = sample.model.main();
  std::vector<GuardedMemory> inputs, outputs;
  Request request;
  for (uint32_t index : main.inputs) {
    const graph::Operand& operand = main.operands[index];
    inputs.emplace_back(*graph::byteSize(operand), place);
    uint8_t* data = inputs.back().data();
    if (operand.type == graph::OperandType::kTensorFloat32) {
      for (size_t i = 0; i < inputs.back().size() / 4; ++i) {
        const float value = static_cast<float>(i % 17) - 8.0f;
        std::memcpy(data + 4 * i, &value, 4);
      }
    } else {
      for (size_t i = 0; i < inputs.back().size(); ++i) data[i] = static_cast<uint8_t>(i * 37);
    }
    inputs.back().makeReadOnly();
    request.inputs.push_back(pointerArgument(data, inputs.back().size()));
  }
  for (uint32_t index : main.outputs) {
    outputs.emplace_back(*graph::byteSize(main.operands[index]), place);
    request.outputs.push_back(pointerArgument(outputs.back().data(), outputs.back().size()));
  }
  const ExecutionResult result = computeOnce(**prepared, std::move(request));
  EXPECT_TRUE(result.status) << sample.name << ": " << result.status.error().toString();
  for (const GuardedMemory& memory : outputs)
    results.emplace_back(memory.data(), memory.data() + memory.size());
  return results;
}

TEST_P(HalMemory, NothingOutsideInputsAndOutputsIsTouched) {
  size_t computed = 0;
  for (const NamedModel& sample : sampleModels()) {
    SCOPED_TRACE(sample.name);
    const auto atEnd = computeGuarded(sample, Place::kAtEnd);
    const auto atBegin = computeGuarded(sample, Place::kAtBegin);
    EXPECT_EQ(atEnd, atBegin);
    computed += atEnd.empty() ? 0 : 1;
  }
  if (computed == 0) GTEST_SKIP() << "No sample model is supported.";
}

// The same models with every tensor constant in a pool of its own that ends at a guard page.
TEST_P(HalMemory, NothingBehindConstantsIsTouched) {
  size_t computed = 0;
  for (const NamedModel& sample : sampleModels()) {
    SCOPED_TRACE(sample.name);
    std::vector<GuardedMemory> places;
    NamedModel moved = sample;
    for (graph::Operand& operand : moved.model.main().operands) {
      if (operand.lifetime != graph::Lifetime::kConstantCopy || graph::isScalar(operand.type))
        continue;
      places.emplace_back(operand.location.length, Place::kAtEnd);
      std::memcpy(places.back().data(), sample.model.constantData(operand), places.back().size());
      places.back().makeReadOnly();
      operand.lifetime = graph::Lifetime::kConstantReference;
      operand.location = {static_cast<uint32_t>(moved.model.pools.size()), 0,
                          places.back().size()};
      moved.model.pools.push_back(
          memory::Pool::borrowed(places.back().data(), places.back().size()));
    }
    if (places.empty()) continue;
    const auto referenced = computeGuarded(moved, Place::kAtEnd);
    EXPECT_EQ(referenced, computeGuarded(sample, Place::kAtEnd));
    computed += referenced.empty() ? 0 : 1;
  }
  if (computed == 0) GTEST_SKIP() << "No sample model is supported.";
}

TEST_P(HalMemory, ConvolutionWithCopiedWeights) {
  HEARTH_CTS_PREPARE(prepared, convolutionModel(3));
  std::vector<float> in(27, 1.0f), out(36);
  const ExecutionResult result = computeOnce(*prepared, {{argumentFor(in)}, {argumentFor(out)}});
  ASSERT_TRUE(result.status) << result.status.error().toString();
  // Nine positions see 4, 6, 4, 6, 9, 6, 4, 6, 4 pixels of three ones.
  const float seen[] = {12, 18, 12, 18, 27, 18, 12, 18, 12};
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], seen[i / 4] + static_cast<float>(i % 4)) << i;
}

TEST_P(HalMemory, ConstantsInPoolsAtAnyOffsetOutliveTheClientsHandle) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  for (size_t offset : {0, 4, 100, 1, 2, 3}) {
    std::shared_ptr<PreparedModel> prepared;
    {
      std::vector<uint8_t> bytes(offset + 24);
      std::memcpy(bytes.data() + offset, values.data(), 24);
      ModelBuilder builder;
      const auto kFloat = graph::OperandType::kTensorFloat32;
      const uint32_t a = builder.input(kFloat, {2, 3});
      const uint32_t b =
          builder.reference(kFloat, {2, 3}, poolOf(bytes.data(), bytes.size()), offset);
      builder.operation(graph::OperationType::kAdd, {a, b, builder.scalar(0)},
                        {builder.output(kFloat, {2, 3})});
      prepared = prepare(builder.model());
      if (prepared == nullptr) return;
    }
    std::vector<float> in(6, 10.0f), out(6);
    const ExecutionResult result = computeOnce(*prepared, {{argumentFor(in)}, {argumentFor(out)}});
    ASSERT_TRUE(result.status) << offset << ": " << result.status.error().toString();
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(out[i], 10.0f + values[i]) << offset;
  }
}

}  // namespace
}  // namespace hearth::hal::cts
