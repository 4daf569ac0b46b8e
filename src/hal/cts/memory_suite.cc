// SPDX-License-Identifier: Apache-2.0
// Constants in all kinds of memory; no byte outside a model and a request may be read or written.
#include "hal/cts/device_fixture.h"
#include "hal/cts/guarded_memory.h"

namespace hearth::hal::cts {
namespace {

using Place = GuardedMemory::Place;

// Runs sample models in memory between inaccessible pages.
class HalGuard : public SampleFixture {
 protected:
  // Computes a model for fixed inputs, all in guarded memory, and returns the outputs; empty after
  // a failure.
  std::vector<std::vector<uint8_t>> compute(PreparedModel& prepared, Place place);
};
HEARTH_CTS_SAMPLE_SUITE(HalGuard);

class HalConstants : public DeviceFixture {};
HEARTH_CTS_SUITE(HalConstants);

void fillWithPattern(const graph::Operand& operand, const GuardedMemory& memory) {
  for (size_t i = 0; i < memory.size(); ++i) memory.data()[i] = static_cast<uint8_t>(i * 37);
  if (operand.type != graph::OperandType::kTensorFloat32) return;
  for (size_t i = 0; i < memory.size() / sizeof(float); ++i) {
    const float value = static_cast<float>(i % 17) - 8.0f;
    std::memcpy(memory.data() + i * sizeof(float), &value, sizeof(float));
  }
}

std::vector<std::vector<uint8_t>> HalGuard::compute(PreparedModel& prepared, Place place) {
  const graph::Subgraph& main = sample().model.main();
  std::vector<GuardedMemory> inputs, outputs;
  Request request;
  for (uint32_t index : main.inputs) {
    inputs.emplace_back(*graph::byteSize(main.operands[index]), place);
    fillWithPattern(main.operands[index], inputs.back());
    inputs.back().makeReadOnly();
    request.inputs.push_back(pointerArgument(inputs.back().data(), inputs.back().size()));
  }
  for (uint32_t index : main.outputs) {
    outputs.emplace_back(*graph::byteSize(main.operands[index]), place);
    request.outputs.push_back(pointerArgument(outputs.back().data(), outputs.back().size()));
  }
  const ExecutionResult result = computeOnce(prepared, std::move(request));
  EXPECT_TRUE(result.status) << result.status.error().toString();
  std::vector<std::vector<uint8_t>> results;
  for (const GuardedMemory& memory : outputs)
    results.emplace_back(memory.data(), memory.data() + memory.size());
  return results;
}

TEST_P(HalGuard, NothingOutsideInputsAndOutputsIsTouched) {
  HEARTH_CTS_PREPARE(prepared, sample().model);
  EXPECT_EQ(compute(*prepared, Place::kAtEnd), compute(*prepared, Place::kAtBegin));
}

// Puts every tensor constant into a pool of its own that ends at a guard page.
TEST_P(HalGuard, NothingBehindConstantsIsTouched) {
  std::vector<GuardedMemory> places;
  graph::Model moved = sample().model;
  for (graph::Operand& operand : moved.main().operands) {
    if (!operand.isConstant() || graph::isScalar(operand.type)) continue;
    places.emplace_back(operand.location.length, Place::kAtEnd);
    std::memcpy(places.back().data(), sample().model.constantData(operand), places.back().size());
    places.back().makeReadOnly();
    operand.lifetime = graph::Lifetime::kConstantReference;
    operand.location = {static_cast<uint32_t>(moved.pools.size()), 0, places.back().size()};
    moved.pools.push_back(memory::Pool::borrowed(places.back().data(), places.back().size()));
  }
  HEARTH_CTS_PREPARE(referenced, moved);
  HEARTH_CTS_PREPARE(copied, sample().model);
  EXPECT_EQ(compute(*referenced, Place::kAtEnd), compute(*copied, Place::kAtEnd));
}

TEST_P(HalConstants, ConvolutionWithCopiedWeights) {
  HEARTH_CTS_PREPARE(prepared, convolutionModel(3));
  std::vector<float> in(27, 1.0f), out(36);
  const ExecutionResult result = computeOnce(*prepared, {{argumentFor(in)}, {argumentFor(out)}});
  ASSERT_TRUE(result.status) << result.status.error().toString();
  // The windows at the nine positions contain 4, 6, 4, 6, 9, 6, 4, 6, 4 pixels of three ones.
  const float seen[] = {12, 18, 12, 18, 27, 18, 12, 18, 12};
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], seen[i / 4] + static_cast<float>(i % 4)) << i;
}

TEST_P(HalConstants, ConstantsInPoolsAtAnyOffsetOutliveTheClientsHandle) {
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
