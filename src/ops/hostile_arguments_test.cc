// SPDX-License-Identifier: Apache-2.0
// Runs valid operations with a few arguments replaced by hostile ones. Each run must end in an
// error or a result; the sanitizer presets detect anything worse.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "ops/custom_operator.h"
#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

constexpr int kRounds = 1500;

using Random = std::mt19937;

int32_t hostileInt(Random& random) {
  constexpr int32_t kValues[] = {INT32_MIN, INT32_MIN + 1, -65536,  -2,       -1, 0, 1, 2, 3, 4,
                                 7,         65536,         1 << 30, INT32_MAX};
  return kValues[random() % std::size(kValues)];
}

float hostileFloat(Random& random) {
  constexpr float kValues[] = {0.0f,     -0.0f,     1.0f, -1.0f,  1e-45f, 1e38f, -1e38f,
                               INFINITY, -INFINITY, NAN,  2.0e9f, 0.5f,   6.0f};
  return kValues[random() % std::size(kValues)];
}

// Adds arguments, some of which it replaces at random.
class Mutator {
 public:
  Mutator(OperationType type, Random& random) : builder_(type), random_(random) {}

  Mutator& tensor(OperandType type, Dimensions dimensions) {
    if (rarely()) dimensions = mutate(std::move(dimensions));
    uint64_t count = 1;
    for (uint32_t d : dimensions) count *= d;
    const bool isQuantized = graph::isQuantized(type);
    graph::Operand operand =
        OperationBuilder::tensor(type, dimensions, isQuantized ? (rarely() ? 1e30f : 0.5f) : 0.0f,
                                 type == kUint8 ? static_cast<int32_t>(random_() % 256) : 0);
    if (type == kFloat) {
      std::vector<float> values(count);
      for (float& value : values) value = hostileFloat(random_);
      builder_.input(std::move(operand), std::move(values));
    } else if (type == OperandType::kTensorInt32) {
      std::vector<int32_t> values(count);
      for (int32_t& value : values) value = hostileInt(random_);
      builder_.input(std::move(operand), std::move(values));
    } else {
      std::vector<uint8_t> values(count * graph::elementSize(type));
      for (uint8_t& value : values) value = static_cast<uint8_t>(random_());
      builder_.input(std::move(operand), std::move(values));
    }
    return *this;
  }
  // An int32 bias with the scale that fits the other quantised tensors.
  Mutator& bias(uint32_t count) {
    std::vector<int32_t> values(count);
    for (int32_t& value : values) value = hostileInt(random_);
    builder_.input(OperationBuilder::tensor(OperandType::kTensorInt32, {count}, 0.25f),
                   std::move(values));
    return *this;
  }
  // A TENSOR_INT32 of these values, some of them replaced; of rank 1 unless there is a shape.
  Mutator& indices(std::vector<int32_t> values, Dimensions dimensions = {}) {
    for (int32_t& value : values)
      if (rarely()) value = hostileInt(random_);
    if (dimensions.empty()) dimensions = {static_cast<uint32_t>(values.size())};
    builder_.input(std::move(dimensions), std::move(values));
    return *this;
  }
  // The same for a TENSOR_FLOAT32.
  Mutator& reals(std::vector<float> values, Dimensions dimensions = {}) {
    for (float& value : values)
      if (rarely()) value = hostileFloat(random_);
    if (dimensions.empty()) dimensions = {static_cast<uint32_t>(values.size())};
    builder_.input(std::move(dimensions), std::move(values));
    return *this;
  }
  Mutator& ints(std::initializer_list<int32_t> values) {
    for (int32_t value : values) builder_.scalar(rarely() ? hostileInt(random_) : value);
    return *this;
  }
  Mutator& real(float value) {
    builder_.scalar(rarely() ? hostileFloat(random_) : value);
    return *this;
  }
  Mutator& boolean(bool value) {
    builder_.scalar(rarely() ? !value : value);
    return *this;
  }
  // A constant of bytes, such as the name and the options of CUSTOM.
  Mutator& bytes(std::string text) {
    if (rarely()) text[random_() % text.size()] = static_cast<char>(random_());
    if (rarely()) text.resize(random_() % 40);
    graph::Operand operand =
        OperationBuilder::tensor(kUint8, {static_cast<uint32_t>(text.size())}, 1.0f);
    if (rarely()) operand.dimensions.clear();
    builder_.constant(std::move(operand), std::vector<char>(text.begin(), text.end()));
    return *this;
  }
  Mutator& output(OperandType type, float scale = 0.25f, int32_t zeroPoint = 3) {
    const bool isQuantized = graph::isQuantized(type);
    builder_.output(OperationBuilder::tensor(type, {}, isQuantized ? scale : 0.0f,
                                             isQuantized ? zeroPoint : 0));
    return *this;
  }

  Status run() {
    builder_.inputShapesAreKnown().limitOutput(1 << 16);
    return builder_.run();
  }

 private:
  bool rarely() { return random_() % 6 == 0; }
  Dimensions mutate(Dimensions dimensions) {
    constexpr uint32_t kSizes[] = {0, 1, 2, 3, 5, 17};
    switch (random_() % 3) {
      case 0:
        dimensions.push_back(kSizes[random_() % std::size(kSizes)]);
        break;
      case 1:
        dimensions.pop_back();
        break;
      default:
        dimensions[random_() % dimensions.size()] = kSizes[random_() % std::size(kSizes)];
    }
    if (dimensions.empty()) dimensions = {1};
    return dimensions;
  }

  OperationBuilder builder_;
  Random& random_;
};

// An operator that copies its first input.
class CopyingOperator final : public CustomOperator, public CustomNode {
 public:
  std::string_view name() const override { return "Hostile"; }
  int32_t version() const override { return 1; }
  Result<std::shared_ptr<const CustomNode>> makeNode(const CustomCall&) const override {
    return std::shared_ptr<const CustomNode>(std::shared_ptr<void>(), this);
  }
  Result<CustomOutputs> describeOutputs(const CustomCall& call) const override {
    if (call.inputs.empty() || call.inputs[0].type() != kFloat)
      return fail(ErrorCode::kBadData, "There must be a tensor of floats.");
    return CustomOutputs{false, {OperationBuilder::tensor(kFloat, call.inputs[0].dimensions)}};
  }
  Status compute(const CustomCall& call) const override {
    std::copy_n(call.inputs[0].as<float>(), call.inputs[0].elementCount(),
                call.outputs[0].as<float>());
    return {};
  }
};

struct Case {
  const char* name;
  std::function<Status(Random&)> run;
  bool canFail = true;  // some operations take every shape and value
  // Sums in another order may give another of NaN and the infinities.
  bool sumsInAnyOrder = false;
};

const Case kCases[] = {
    {"Conv2d",
     [](Random& r) {
       const OperandType type = r() % 2 ? kFloat : kUint8;
       return Mutator(OperationType::kConv2d, r)
           .tensor(type, {1, 5, 4, 2})
           .tensor(type, {3, 2, 2, 2})
           .tensor(type == kFloat ? kFloat : OperandType::kTensorInt32, {3})
           .ints({1, 1, 1, 1, 2, 1, 0})
           .boolean(false)
           .ints({1, 2})
           .output(type)
           .run();
     },
     true, true},
    {"Conv2dImplicit",
     [](Random& r) {
       return Mutator(OperationType::kConv2d, r)
           .tensor(kFloat, {1, 5, 4, 2})
           .tensor(kFloat, {3, 2, 2, 2})
           .tensor(kFloat, {3})
           .ints({1, 2, 1, 0})
           .boolean(false)
           .ints({1, 2})
           .output(kFloat)
           .run();
     },
     true, true},
    {"DepthwiseConv2d",
     [](Random& r) {
       return Mutator(OperationType::kDepthwiseConv2d, r)
           .tensor(kInt8, {1, 5, 4, 2})
           .tensor(kInt8, {1, 2, 2, 4})
           .bias(4)
           .ints({1, 1, 1, 2, 0})
           .boolean(true)
           .ints({1, 2})
           .output(kInt8)
           .run();
     }},
    {"GroupedConv2d",
     [](Random& r) {
       return Mutator(OperationType::kGroupedConv2d, r)
           .tensor(kUint8, {1, 5, 4, 4})
           .tensor(kUint8, {2, 2, 2, 2})
           .bias(2)
           .ints({0, 1, 0, 1, 1, 1, 2, 1})
           .boolean(false)
           .output(kUint8)
           .run();
     }},
    {"TransposeConv2d",
     [](Random& r) {
       return Mutator(OperationType::kTransposeConv2d, r)
           .tensor(kFloat, {1, 3, 4, 2})
           .tensor(kFloat, {3, 2, 2, 2})
           .tensor(kFloat, {3})
           .ints({0, 1, 0, 1, 2, 1, 0})
           .boolean(false)
           .output(kFloat)
           .run();
     },
     true, true},
    {"TransposeConv2dShape",
     [](Random& r) {
       return Mutator(OperationType::kTransposeConv2d, r)
           .tensor(kFloat, {1, 3, 4, 2})
           .tensor(kFloat, {3, 2, 2, 2})
           .tensor(kFloat, {3})
           .indices({1, 3, 8, 3})
           .ints({1, 2, 1, 0})
           .boolean(false)
           .output(kFloat)
           .run();
     },
     true, true},
    {"FullyConnected",
     [](Random& r) {
       return Mutator(OperationType::kFullyConnected, r)
           .tensor(kUint8, {2, 3, 4})
           .tensor(kUint8, {5, 4})
           .bias(5)
           .ints({0})
           .output(kUint8)
           .run();
     }},
    {"AveragePool2d",
     [](Random& r) {
       return Mutator(OperationType::kAveragePool2d, r)
           .tensor(kFloat, {1, 5, 4, 2})
           .ints({1, 0, 1, 1, 2, 2, 3, 3, 0})
           .boolean(true)
           .output(kFloat)
           .run();
     }},
    {"MaxPool2d",
     [](Random& r) {
       return Mutator(OperationType::kMaxPool2d, r)
           .tensor(kFloat, {1, 5, 4, 2})
           .ints({1, 2, 2, 3, 3, 0})
           .boolean(false)
           .output(kFloat)
           .run();
     }},
    {"Softmax",
     [](Random& r) {
       return Mutator(OperationType::kSoftmax, r)
           .tensor(kUint8, {2, 3, 4})
           .real(1.0f)
           .ints({1})
           .output(kUint8, 1.0f / 256, 0)
           .run();
     }},
    {"Div",
     [](Random& r) {
       const OperandType type = r() % 2 ? kInt8 : OperandType::kTensorInt32;
       return Mutator(OperationType::kDiv, r)
           .tensor(type, {2, 1, 4})
           .tensor(type, {3, 1})
           .ints({0})
           .output(type)
           .run();
     }},
    {"Mul",
     [](Random& r) {
       return Mutator(OperationType::kMul, r)
           .tensor(OperandType::kTensorInt32, {2, 1, 4})
           .tensor(OperandType::kTensorInt32, {3, 1})
           .ints({2})
           .output(OperandType::kTensorInt32)
           .run();
     }},
    {"Pow",
     [](Random& r) {
       return Mutator(OperationType::kPow, r)
           .tensor(OperandType::kTensorInt32, {2, 1, 4})
           .tensor(OperandType::kTensorInt32, {3, 1})
           .output(OperandType::kTensorInt32)
           .run();
     }},
    {"Less",
     [](Random& r) {
       return Mutator(OperationType::kLess, r)
           .tensor(kFloat, {2, 1, 4})
           .tensor(kFloat, {3, 1})
           .output(OperandType::kTensorBool8)
           .run();
     }},
    {"HardSwish",
     [](Random& r) {
       return Mutator(OperationType::kHardSwish, r).tensor(kUint8, {2, 3}).output(kUint8).run();
     },
     false},
    {"L2Normalization",
     [](Random& r) {
       return Mutator(OperationType::kL2Normalization, r)
           .tensor(kUint8, {2, 3})
           .ints({-1})
           .output(kUint8, 1.0f / 128, 128)
           .run();
     }},
    {"LocalResponseNormalization",
     [](Random& r) {
       return Mutator(OperationType::kLocalResponseNormalization, r)
           .tensor(kFloat, {2, 3, 2})
           .ints({1})
           .real(1.0f)
           .real(1.0f)
           .real(0.5f)
           .ints({-1})
           .output(kFloat)
           .run();
     }},
    {"InstanceNormalization",
     [](Random& r) {
       return Mutator(OperationType::kInstanceNormalization, r)
           .tensor(kFloat, {1, 3, 2, 2})
           .real(1.0f)
           .real(1.0f)
           .real(0.5f)
           .boolean(false)
           .output(kFloat)
           .run();
     }},
    {"BatchMatmul",
     [](Random& r) {
       return Mutator(OperationType::kBatchMatmul, r)
           .tensor(kInt8, {2, 1, 2, 3})
           .tensor(kInt8, {2, 3, 2})
           .boolean(false)
           .boolean(false)
           .output(kInt8)
           .run();
     }},
    {"ChannelShuffle",
     [](Random& r) {
       return Mutator(OperationType::kChannelShuffle, r)
           .tensor(kFloat, {2, 3, 4})
           .ints({2, -1})
           .output(kFloat)
           .run();
     }},
    {"Concatenation",
     [](Random& r) {
       const OperandType type = r() % 2 ? kFloat : kUint8;
       return Mutator(OperationType::kConcatenation, r)
           .tensor(type, {2, 1, 3, 1, 2})
           .tensor(type, {2, 2, 3, 1, 2})
           .ints({1})
           .output(type)
           .run();
     }},
    {"GatherSharedDimensions",
     [](Random& r) {
       return Mutator(OperationType::kGather, r)
           .tensor(kFloat, {2, 3, 4, 2})
           .ints({2})
           .indices({0, 3, 1, 1}, {2, 2})
           .ints({1})
           .output(kFloat)
           .run();
     }},
    {"ResizeToTensors",
     [](Random& r) {
       return Mutator(
                  r() % 2 ? OperationType::kResizeBilinear : OperationType::kResizeNearestNeighbor,
                  r)
           .tensor(kFloat, {1, 3, 4, 2})
           .indices({5})
           .indices({6})
           .boolean(false)
           .boolean(false)
           .boolean(false)
           .output(kFloat)
           .run();
     },
     true, true},
    {"Rfft2d",
     [](Random& r) {
       return Mutator(OperationType::kRfft2d, r)
           .tensor(kFloat, {2, 3, 5})
           .indices({4, 8})
           .output(OperandType::kTensorComplex64)
           .run();
     },
     true, true},
    {"ComplexArithmetic",
     [](Random& r) {
       const OperationType types[] = {OperationType::kAdd, OperationType::kSub, OperationType::kMul,
                                      OperationType::kDiv};
       return Mutator(types[r() % 4], r)
           .tensor(OperandType::kTensorComplex64, {2, 1, 4})
           .tensor(OperandType::kTensorComplex64, {3, 1})
           .ints({0})
           .output(OperandType::kTensorComplex64)
           .run();
     }},
    {"ComplexCast",
     [](Random& r) {
       const bool isFrom = r() % 2 != 0;
       return Mutator(OperationType::kCast, r)
           .tensor(isFrom ? OperandType::kTensorComplex64 : kFloat, {2, 3})
           .output(isFrom ? kFloat : OperandType::kTensorComplex64)
           .run();
     },
     false, false},
    {"SquaredDifference",
     [](Random& r) {
       const OperandType type = r() % 2 ? kInt8 : OperandType::kTensorInt32;
       return Mutator(OperationType::kSquaredDifference, r)
           .tensor(type, {2, 1, 4})
           .tensor(type, {3, 1})
           .output(type)
           .run();
     }},
    {"Bitwise",
     [](Random& r) {
       return Mutator(r() % 2 ? OperationType::kBitwiseXor : OperationType::kRightShift, r)
           .tensor(OperandType::kTensorInt32, {2, 1, 4})
           .tensor(OperandType::kTensorInt32, {3, 1})
           .output(OperandType::kTensorInt32)
           .run();
     }},
    {"Bitcast",
     [](Random& r) {
       constexpr OperandType kTypes[] = {OperandType::kTensorInt64, OperandType::kTensorInt32,
                                         OperandType::kTensorBool8};
       return Mutator(OperationType::kBitcast, r)
           .tensor(OperandType::kTensorInt32, {3, 2})
           .output(kTypes[r() % std::size(kTypes)])
           .run();
     }},
    {"MatrixDiag",
     [](Random& r) {
       return Mutator(OperationType::kMatrixDiag, r).tensor(kFloat, {2, 3}).output(kFloat).run();
     },
     false},
    {"MatrixSetDiag",
     [](Random& r) {
       return Mutator(OperationType::kMatrixSetDiag, r)
           .tensor(kFloat, {2, 3, 5})
           .tensor(kFloat, {2, 3})
           .output(kFloat)
           .run();
     }},
    {"Bucketize",
     [](Random& r) {
       return Mutator(OperationType::kBucketize, r)
           .tensor(kFloat, {2, 3})
           .tensor(kFloat, {1})
           .output(OperandType::kTensorInt32)
           .run();
     }},
    {"Conv3dTranspose",
     [](Random& r) {
       return Mutator(OperationType::kConv3dTranspose, r)
           .tensor(kFloat, {1, 2, 2, 2, 3})
           .tensor(kFloat, {2, 1, 2, 4, 3})
           .tensor(kFloat, {4})
           .ints({1, 2, 1, 2, 1, 1, 1, 0})
           .indices({1, 4, 2, 4, 4})
           .output(kFloat)
           .run();
     },
     true, true},
    {"RandomUniform",
     [](Random& r) {
       return Mutator(OperationType::kRandomUniform, r)
           .indices({2, 3})
           .tensor(OperandType::kTensorInt64, {2})
           .tensor(OperandType::kTensorInt64, {1})
           .output(kFloat)
           .output(OperandType::kTensorInt64)
           .run();
     }},
    {"Multinomial",
     [](Random& r) {
       return Mutator(OperationType::kMultinomial, r)
           .tensor(kFloat, {2, 3})
           .indices({4})
           .tensor(OperandType::kTensorInt64, {2})
           .tensor(OperandType::kTensorInt64, {1})
           .output(OperandType::kTensorInt32)
           .output(OperandType::kTensorInt64)
           .run();
     }},
    {"SparseToDense",
     [](Random& r) {
       return Mutator(OperationType::kSparseToDense, r)
           .indices({0, 1, 1, 2}, {2, 2})
           .indices({2, 3})
           .tensor(kFloat, {2})
           .tensor(kFloat, {1})
           .output(kFloat)
           .run();
     }},
    {"Unique",
     [](Random& r) {
       return Mutator(OperationType::kUnique, r)
           .tensor(kFloat, {9})
           .output(kFloat)
           .output(OperandType::kTensorInt32)
           .run();
     }},
    {"Custom",
     [](Random& r) {
       static_cast<void>(registerCustomOperator(std::make_unique<CopyingOperator>()));
       return Mutator(OperationType::kCustom, r)
           .bytes("Hostile")
           .ints({1, 2})
           .bytes("options")
           .tensor(kFloat, {2, 3})
           .output(r() % 4 == 0 ? OperandType::kTensorInt32 : kFloat)
           .run();
     }},
    {"FillWithTensor",
     [](Random& r) {
       return Mutator(OperationType::kFill, r)
           .indices({2, 3, 2})
           .tensor(kFloat, {1})
           .output(kFloat)
           .run();
     }},
    {"BatchToSpaceNd",
     [](Random& r) {
       return Mutator(OperationType::kBatchToSpaceNd, r)
           .tensor(kFloat, {4, 2, 3, 2})
           .indices({2, 2})
           .boolean(false)
           .output(kFloat)
           .run();
     }},
    {"StridedSliceShortLimits",
     [](Random& r) {
       return Mutator(OperationType::kStridedSlice, r)
           .tensor(kFloat, {3, 4, 2})
           .indices({0, 1})
           .indices({3, 4})
           .indices({1, 2})
           .ints({0, 0, 0})
           .output(kFloat)
           .run();
     }},
    {"TopkTensorCount",
     [](Random& r) {
       return Mutator(OperationType::kTopkV2, r)
           .tensor(kFloat, {3, 4})
           .indices({2})
           .output(kFloat)
           .output(OperandType::kTensorInt32)
           .run();
     }},
    {"UnsortedSegment",
     [](Random& r) {
       constexpr OperationType kTypes[] = {
           OperationType::kUnsortedSegmentProd, OperationType::kUnsortedSegmentMax,
           OperationType::kUnsortedSegmentSum, OperationType::kUnsortedSegmentMin};
       const OperandType type = r() % 2 ? kFloat : OperandType::kTensorInt32;
       return Mutator(kTypes[r() % std::size(kTypes)], r)
           .tensor(type, {2, 2, 3})
           .indices({0, 2, -1, 1}, {2, 2})
           .indices({3})
           .output(type)
           .run();
     }},
    {"NonMaxSuppression",
     [](Random& r) {
       return Mutator(OperationType::kNonMaxSuppression, r)
           .tensor(kFloat, {5, 4})
           .tensor(kFloat, {5})
           .indices({3})
           .reals({0.5f})
           .reals({0.1f})
           .reals({0.3f})
           .output(OperandType::kTensorInt32)
           .output(OperandType::kTensorInt32)
           .output(kFloat)
           .run();
     }},
    {"TfliteDetectionPostprocess",
     [](Random& r) {
       return Mutator(OperationType::kTfliteDetectionPostprocess, r)
           .reals({0, 0, 0, 0, 0, 0.1f, 0, 0, 1, 0, 1, 0}, {1, 3, 4})
           .reals({0, 0.9f, 0.1f, 0, 0.8f, 0.3f, 1, 0.1f, 0.7f}, {1, 3, 3})
           .reals({0.5f, 0.5f, 1, 1, 0.5f, 0.5f, 1, 1, 2, 2, 0.5f, 1}, {3, 4})
           .ints({3, 2, 100})
           .boolean(false)
           .real(0.2f)
           .real(0.5f)
           .ints({2})
           .real(10)
           .real(10)
           .real(5)
           .real(5)
           .output(kFloat)
           .output(kFloat)
           .output(kFloat)
           .output(kFloat)
           .run();
     }},
};

class HostileArgumentsTest : public testing::TestWithParam<Case> {};

TEST_P(HostileArgumentsTest, EndInErrorsOrResults) {
  int passed = 0;
  int failed = 0;
  std::string lastError;
  for (int round = 0; round < kRounds; ++round) {
    Random random(static_cast<uint32_t>(round));
    const Status status = GetParam().run(random);
    ++(status ? passed : failed);
    if (!status) {
      lastError = status.error().toString();
      // kOpFailed would mean that the reference kernel gives another result.
      if (!GetParam().sumsInAnyOrder) {
        EXPECT_NE(status.error().code(), ErrorCode::kOpFailed) << lastError;
      }
      EXPECT_FALSE(lastError.empty());
    }
  }
  // Both kinds of outcome must occur, else the mutations test nothing.
  EXPECT_GT(passed, 0) << lastError;
  if (GetParam().canFail) {
    EXPECT_GT(failed, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostileArgumentsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hearth::ops
