// SPDX-License-Identifier: Apache-2.0
// Models that were broken at random: the result must be an error or a result, never a crash.
#include <random>

#include "hal/cts/device_fixture.h"

namespace hearth::hal::cts {
namespace {

class HalRobustness : public SampleFixture {
 protected:
  // Prepares the model and, if that succeeds, computes with the arguments that it declares.
  void attempt(graph::Model model);
};
HEARTH_CTS_SAMPLE_SUITE(HalRobustness);

// Changes a model in one random place.
class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  void mutate(graph::Model* model) {
    graph::Subgraph& main = model->main();
    switch (below(11)) {
      case 0:
        operand(main).dimensions = dimensions();
        break;
      case 1: {
        graph::Dimensions& list = operand(main).dimensions;
        if (!list.empty()) list[below(list.size())] = dimension();
        break;
      }
      case 2:
        operand(main).type = graph::operandTypes()[below(graph::operandTypes().size())].type;
        break;
      case 3: {
        const float scales[] = {0.0f, 1e-30f, 0.5f, 1e30f, -1.0f, __builtin_nanf("")};
        operand(main).scale = scales[below(std::size(scales))];
        break;
      }
      case 4:
        operand(main).zeroPoint = static_cast<int32_t>(below(600)) - 300;
        break;
      case 5:
        operand(main).lifetime = static_cast<graph::Lifetime>(below(7));
        break;
      case 6:
        operand(main).location.offset = below(200);
        break;
      case 7: {
        std::vector<uint32_t>& inputs = operation(main).inputs;
        if (!inputs.empty()) inputs[below(inputs.size())] = below(main.operands.size() + 1);
        break;
      }
      case 8: {
        std::vector<uint32_t>& inputs = operation(main).inputs;
        if (below(2) == 0 && !inputs.empty())
          inputs.pop_back();
        else
          inputs.push_back(below(main.operands.size()));
        break;
      }
      case 9:
        operation(main).type = graph::operationTypes()[below(graph::operationTypes().size())].type;
        break;
      default:
        if (!model->constantBytes.empty())
          model->constantBytes[below(model->constantBytes.size())] =
              static_cast<uint8_t>(below(256));
        break;
    }
    fixConstants(model);
  }

  uint32_t below(size_t limit) {
    return static_cast<uint32_t>(std::uniform_int_distribution<size_t>(0, limit - 1)(random_));
  }

 private:
  graph::Operand& operand(graph::Subgraph& main) {
    return main.operands[below(main.operands.size())];
  }
  graph::Operation& operation(graph::Subgraph& main) {
    return main.operations[below(main.operations.size())];
  }
  uint32_t dimension() {
    const uint32_t choices[] = {0, 1, 2, 3, 5, 8, 100, 65536, 0x7fffffff, 0xffffffff};
    return choices[below(std::size(choices))];
  }
  graph::Dimensions dimensions() {
    graph::Dimensions list(below(7));
    for (uint32_t& value : list) value = below(4) == 0 ? dimension() : 1 + below(5);
    return list;
  }

  // Mostly adapts the lengths of constants to types and dimensions; otherwise validation would
  // detect every change.
  void fixConstants(graph::Model* model) {
    for (graph::Operand& operand : model->main().operands) {
      if (!operand.isConstant() || below(20) == 0) continue;
      const auto bytes = graph::byteSize(operand);
      if (!bytes || *bytes > (1 << 16)) continue;
      operand.location.length = *bytes;
      const size_t needed = operand.location.offset + *bytes;
      if (operand.lifetime == graph::Lifetime::kConstantCopy && needed < (1 << 20) &&
          model->constantBytes.size() < needed)
        model->constantBytes.resize(needed, 1);
    }
    // Adapts the lists of inputs and outputs to the lifetimes.
    graph::Subgraph& main = model->main();
    if (below(20) == 0) return;
    main.inputs.clear();
    main.outputs.clear();
    for (uint32_t i = 0; i < main.operands.size(); ++i) {
      if (main.operands[i].lifetime == graph::Lifetime::kSubgraphInput) main.inputs.push_back(i);
      if (main.operands[i].lifetime == graph::Lifetime::kSubgraphOutput) main.outputs.push_back(i);
    }
  }

  std::mt19937 random_;
};

void HalRobustness::attempt(graph::Model model) {
  constexpr uint64_t kMaxBytes = 1 << 20;
  (void)device().supportedOperations(model);
  PrepareOptions options;
  options.maxActivationBytes = 16 << 20;
  const auto shared = std::make_shared<const graph::Model>(std::move(model));
  const auto prepared = device().prepareModel(shared, options, {});
  if (!prepared) {
    EXPECT_FALSE(prepared.error().message().empty());
    return;
  }
  const graph::Subgraph& main = shared->main();
  std::vector<std::vector<uint8_t>> memory;
  Request request;
  for (const auto& [indices, arguments] :
       {std::pair(&main.inputs, &request.inputs), std::pair(&main.outputs, &request.outputs)})
    for (uint32_t index : *indices) {
      graph::Operand operand = main.operands[index];
      if (operand.dimensions.empty() && !graph::isScalar(operand.type)) operand.dimensions = {3, 7};
      for (uint32_t& dimension : operand.dimensions) dimension = dimension == 0 ? 3 : dimension;
      const auto bytes = graph::byteSize(operand);
      if (!bytes || *bytes > kMaxBytes) return;
      // The memory has exactly the declared size, so that a sanitizer detects an access beyond it.
      memory.emplace_back(*bytes, uint8_t{1});
      arguments->push_back(pointerArgument(
          memory.back().data(), *bytes,
          graph::isScalar(operand.type) ? graph::Dimensions() : operand.dimensions));
    }
  request.loopTimeout = 50'000'000;
  const ExecutionResult result =
      computeOnce(**prepared, std::move(request), base::Deadline::after(2'000'000'000));
  if (!result.status) {
    EXPECT_FALSE(result.status.error().message().empty());
  }
}

TEST_P(HalRobustness, MutatedModelsGiveErrorsNotCrashes) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    Mutator mutator(seed);
    graph::Model model = sample().model;
    for (uint32_t changes = 1 + mutator.below(3); changes > 0; --changes) mutator.mutate(&model);
    attempt(std::move(model));
  }
}

}  // namespace
}  // namespace hearth::hal::cts
