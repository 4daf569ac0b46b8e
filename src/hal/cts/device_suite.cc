// SPDX-License-Identifier: Apache-2.0
// What a device reports about itself and about models.
#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hal/cts/device_fixture.h"

namespace hearth::hal::cts {
namespace {

class HalDevice : public DeviceFixture {};
HEARTH_CTS_SUITE(HalDevice);

TEST_P(HalDevice, NamesItself) {
  EXPECT_FALSE(device().name().empty());
  EXPECT_EQ(device().name(), device().name());
  EXPECT_FALSE(device().version().empty());
}

TEST_P(HalDevice, TypeAndFeatureLevelAreNnapis) {
  EXPECT_GE(device().type(), DeviceType::kOther);
  EXPECT_LE(device().type(), DeviceType::kAccelerator);
  const int64_t level = device().featureLevel();
  EXPECT_TRUE((level >= 27 && level <= 31) || level == 1000006 || level == 1000007) << level;
}

TEST_P(HalDevice, PerformanceIsAPositiveNumber) {
  const Capabilities capabilities = device().capabilities();
  const auto check = [](const PerformanceInfo& info) {
    EXPECT_TRUE(std::isfinite(info.execTime) && info.execTime > 0.0f);
    EXPECT_TRUE(std::isfinite(info.powerUsage) && info.powerUsage > 0.0f);
  };
  for (const auto& [type, info] : capabilities.operandPerformance) {
    EXPECT_TRUE(graph::findOperandType(type) != nullptr || graph::isDriverCode(type));
    check(info);
  }
  check(capabilities.relaxedFloat32);
  check(capabilities.ifPerformance);
  check(capabilities.whilePerformance);
}

TEST_P(HalDevice, OperandTypesBelongToItsExtensions) {
  const std::vector<std::string> extensions = device().supportedExtensions();
  std::set<std::pair<std::string, uint16_t>> known;
  for (const ExtensionOperandType& type : device().extensionOperandTypes()) {
    EXPECT_TRUE(std::ranges::contains(extensions, type.extension)) << type.extension;
    EXPECT_GT(type.elementSize, 0u);
    EXPECT_TRUE(known.emplace(type.extension, type.number).second) << type.number;
  }
}

TEST_P(HalDevice, SupportsNoOperationOfAnotherDriversExtension) {
  graph::Model model;
  model.extensions = {{2, "org.example.of-nobody"}, {3, "org.example.of-nobody-else"}};
  const auto type = static_cast<graph::OperandType>(2 << 16);
  ModelBuilder builder;
  const uint32_t in = builder.input(graph::OperandType::kTensorFloat32, {2});
  const uint32_t own = builder.temporary(type, {2});
  const uint32_t out = builder.output(graph::OperandType::kTensorFloat32, {2});
  builder.operation(static_cast<graph::OperationType>(3 << 16), {in}, {own});
  builder.operation(graph::OperationType::kRelu, {own}, {out});
  model.subgraphs = builder.model().subgraphs;
  model.main().operands[own].driverElementSize = 3;
  ASSERT_TRUE(graph::validate(model));
  const auto supports = device().supportedOperations(model);
  ASSERT_TRUE(supports) << supports.error().toString();
  ASSERT_EQ(supports->size(), 2u);
  for (const OperationSupport& support : *supports) {
    EXPECT_FALSE(support.supported);
    EXPECT_FALSE(support.reason.empty());
  }
  EXPECT_FALSE(device().prepareModel(std::make_shared<const graph::Model>(model), {}, {}));
}

TEST_P(HalDevice, AsksForAtMost32CacheFilesOfAKind) {
  const auto counts = device().numberOfCacheFilesNeeded();
  ASSERT_TRUE(counts) << counts.error().toString();
  EXPECT_LE(counts->model, 32u);
  EXPECT_LE(counts->data, 32u);
}

TEST_P(HalDevice, ReportsOnEachOperationWithKernelOrReason) {
  for (const NamedModel& sample : sampleModels()) {
    const auto supports = device().supportedOperations(sample.model);
    const auto explained = device().explainOperations(sample.model);
    ASSERT_TRUE(supports) << sample.name << ": " << supports.error().toString();
    ASSERT_TRUE(explained) << sample.name << ": " << explained.error().toString();
    ASSERT_EQ(supports->size(), sample.model.main().operations.size());
    ASSERT_EQ(explained->size(), supports->size());
    for (size_t i = 0; i < supports->size(); ++i) {
      const OperationSupport& support = (*explained)[i];
      EXPECT_EQ(support.supported, (*supports)[i].supported) << sample.name;
      if (!support.supported)
        EXPECT_NE(support.reason, "") << sample.name;
      else if (support.kernel != "reference")
        EXPECT_EQ(support.reason, "") << sample.name;
      EXPECT_EQ(support.supported, !support.kernel.empty()) << sample.name;
    }
  }
}

TEST_P(HalDevice, SupportsNoOperationWithAWrongSignature) {
  ModelBuilder builder;
  const uint32_t in = builder.input(graph::OperandType::kTensorFloat32, {2});
  builder.operation(graph::OperationType::kConv2d, {in},
                    {builder.output(graph::OperandType::kTensorFloat32, {2})});
  const auto supports = device().supportedOperations(builder.model());
  ASSERT_TRUE(supports) << supports.error().toString();
  ASSERT_EQ(supports->size(), 1u);
  EXPECT_FALSE((*supports)[0].supported);
  EXPECT_FALSE((*supports)[0].reason.empty());
}

TEST_P(HalDevice, RefusesMemoryThatItCannotMap) {
  ModelBuilder builder;
  const uint32_t in = builder.input(graph::OperandType::kTensorFloat32, {2});
  const uint32_t other = builder.reference(graph::OperandType::kTensorFloat32, {2},
                                           memory::Pool::borrowed(nullptr, 8), 0);
  builder.operation(graph::OperationType::kAdd, {in, other, builder.scalar(0)},
                    {builder.output(graph::OperandType::kTensorFloat32, {2})});
  const auto supports = device().supportedOperations(builder.model());
  ASSERT_FALSE(supports);
  EXPECT_EQ(supports.error().code(), ErrorCode::kOpFailed) << supports.error().toString();
  const auto prepared =
      device().prepareModel(std::make_shared<const graph::Model>(builder.model()), {}, {});
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code(), ErrorCode::kOpFailed) << prepared.error().toString();
}

TEST_P(HalDevice, ModelWithoutOperationsDoesNoHarm) {
  graph::Model model;
  model.subgraphs.resize(1);
  const auto supports = device().supportedOperations(model);
  if (supports) {
    EXPECT_TRUE(supports->empty());
  }
  const auto prepared = device().prepareModel(std::make_shared<const graph::Model>(model), {}, {});
  if (!prepared) return;
  const ExecutionResult result = computeOnce(**prepared, {});
  if (result.status) {
    EXPECT_TRUE(result.outputShapes.empty());
  }
}

}  // namespace
}  // namespace hearth::hal::cts
