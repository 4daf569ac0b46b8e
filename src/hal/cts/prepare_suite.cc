// SPDX-License-Identifier: Apache-2.0
// Preparation of valid and invalid models.
#include <cmath>
#include <functional>

#include "hal/cts/device_fixture.h"

namespace hearth::hal::cts {
namespace {

using graph::OperandType;
using graph::OperationType;

class HalPrepare : public DeviceFixture {
 protected:
  Result<std::shared_ptr<PreparedModel>> tryPrepare(const graph::Model& model,
                                                    const PrepareOptions& options = {}) {
    return device().prepareModel(std::make_shared<const graph::Model>(model), options, {});
  }
};
HEARTH_CTS_SUITE(HalPrepare);

TEST_P(HalPrepare, AcceptsWhatItSupports) {
  size_t supported = 0;
  for (const NamedModel& sample : sampleModels()) {
    const auto supports = device().supportedOperations(sample.model);
    ASSERT_TRUE(supports) << supports.error().toString();
    bool isSupported = true;
    for (const OperationSupport& support : *supports) isSupported &= support.supported;
    const auto prepared = tryPrepare(sample.model);
    EXPECT_EQ(prepared.has_value(), isSupported)
        << sample.name << ": " << (prepared ? "" : prepared.error().toString());
    supported += isSupported ? 1 : 0;
  }
  if (supported == 0) GTEST_SKIP() << "No sample model is supported.";
}

TEST_P(HalPrepare, StartReportSaysWhyItIsNotWarm) {
  HEARTH_CTS_PREPARE(prepared, addModel({2, 3}));
  const StartReport report = prepared->startReport();
  EXPECT_NE(report.state, StartReport::State::kWarm);
  EXPECT_FALSE(report.reason.empty());
}

TEST_P(HalPrepare, BrokenModelsAreErrors) {
  const std::pair<const char*, std::function<void(graph::Model&)>> breakings[] = {
      {"no graph",
       [](graph::Model& m) {
         m.subgraphs.clear();
       }},
      {"output never written",
       [](graph::Model& m) {
         m.main().operations.clear();
       }},
      {"operand index",
       [](graph::Model& m) {
         m.main().operations[0].inputs[0] = 0x7fffffff;
       }},
      {"graph input index",
       [](graph::Model& m) {
         m.main().inputs[0] = 999;
       }},
      {"too few inputs",
       [](graph::Model& m) {
         m.main().operations[0].inputs.resize(1);
       }},
      {"no outputs",
       [](graph::Model& m) {
         m.main().operations[0].outputs.clear();
       }},
      {"types that do not go together",
       [](graph::Model& m) {
         m.main().operands[1].type = OperandType::kTensorBool8;
       }},
      {"unknown type",
       [](graph::Model& m) {
         m.main().operands[1].type = static_cast<OperandType>(777);
       }},
      {"unknown operation",
       [](graph::Model& m) {
         m.main().operations[0].type = static_cast<OperationType>(777);
       }},
      {"scale that is no number",
       [](graph::Model& m) {
         m.main().operands[0].scale = NAN;
       }},
      {"constant outside its bytes",
       [](graph::Model& m) {
         m.main().operands[2].location.offset = 1 << 20;
       }},
      {"constant of no pool",
       [](graph::Model& m) {
         m.main().operands[2].lifetime = graph::Lifetime::kConstantReference;
         m.main().operands[2].location.pool = 9;
       }},
      {"activation code",
       [](graph::Model& m) {
         m.constantBytes[0] = 99;
       }},
      {"shapes that do not broadcast",
       [](graph::Model& m) {
         m.main().operands[0].dimensions = {5, 4};
       }},
      {"output of another shape",
       [](graph::Model& m) {
         m.main().operands[3].dimensions = {3, 3};
       }},
      {"product of dimensions overflows",
       [](graph::Model& m) {
         for (size_t i : {0, 1, 3})
           m.main().operands[i].dimensions = {0xffffffff, 0xffffffff, 0xffffffff};
       }},
  };
  for (const auto& [name, breaking] : breakings) {
    graph::Model model = addModel({2, 3});
    breaking(model);
    const auto prepared = tryPrepare(model);
    // A fault that depends on the shapes of a run may be found by the execution.
    if (prepared && model.subgraphs.size() == 1 && model.main().inputs.size() == 2) {
      std::vector<float> memory(64);
      const ExecutionResult result = computeOnce(
          **prepared,
          {{pointerArgument(memory.data(), 24), pointerArgument(memory.data() + 16, 24)},
           {pointerArgument(memory.data() + 32, 24)}});
      EXPECT_FALSE(result.status) << name;
    } else {
      EXPECT_FALSE(prepared) << name;
    }
    if (!prepared) {
      EXPECT_FALSE(prepared.error().message().empty()) << name;
    }
  }
}

TEST_P(HalPrepare, PassedDeadlineIsMissed) {
  PrepareOptions options;
  options.deadline = base::Deadline::after(0);
  const auto prepared = tryPrepare(addModel({2, 3}), options);
  ASSERT_FALSE(prepared);
  EXPECT_TRUE(isMissedDeadline(prepared.error())) << prepared.error().toString();
}

TEST_P(HalPrepare, ActivationsOverTheLimitAreRefusedByName) {
  PrepareOptions options;
  graph::Model model = chainModel({1000, 1000});
  for (graph::Operand& operand : model.main().operands)
    if (operand.lifetime == graph::Lifetime::kTemporary) operand.name = "the tensor in between";
  HEARTH_CTS_PREPARE(prepared, model);
  options.maxActivationBytes = 1'000'000;
  const auto limited = tryPrepare(model, options);
  ASSERT_FALSE(limited);
  EXPECT_NE(limited.error().toString().find("the tensor in between"), std::string::npos)
      << limited.error().toString();
}

TEST_P(HalPrepare, CacheWithoutFilesIsNoError) {
  const auto result = device().prepareModelFromCache({}, {});
  EXPECT_FALSE(result);
}

}  // namespace
}  // namespace hearth::hal::cts
