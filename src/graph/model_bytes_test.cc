// SPDX-License-Identifier: Apache-2.0
#include "graph/model_bytes.h"

#include <gtest/gtest.h>

#include <random>

#include "graph/model_digest.h"

namespace hearth::graph {
namespace {

constexpr size_t kPoolBytes = 256;
alignas(64) constexpr uint8_t kPool[kPoolBytes] = {7};

// out = in * weights + bias, with per-channel weights in a pool and a branch that copies.
Model sample() {
  Model model;
  model.relaxFloat32ToFloat16 = true;
  model.constantBytes = {1, 2, 3, 4, 5, 6, 7, 8};
  model.pools = {memory::Pool::borrowed(kPool, kPoolBytes)};
  Operand in;
  in.dimensions = {0, 3};
  in.lifetime = Lifetime::kSubgraphInput;
  Operand weights;
  weights.type = OperandType::kTensorQuant8SymmPerChannel;
  weights.dimensions = {2, 3};
  weights.perChannel = {0, {0.5f, 0.25f}};
  weights.lifetime = Lifetime::kConstantReference;
  weights.location = {0, 64, 6};
  Operand bias;
  bias.type = OperandType::kTensorInt32;
  bias.dimensions = {2};
  bias.lifetime = Lifetime::kConstantCopy;
  bias.location = {0, 0, 8};
  Operand none;
  none.lifetime = Lifetime::kNoValue;
  Operand out;
  out.type = OperandType::kTensorQuant8Asymm;
  out.dimensions = {0, 2};
  out.scale = 0.125f;
  out.zeroPoint = 9;
  out.lifetime = Lifetime::kSubgraphOutput;
  out.name = "out";
  Subgraph main;
  main.operands = {in, weights, bias, none, out};
  main.operations = {{OperationType::kFullyConnected, {0, 1, 2, 3}, {4}, "layer"}};
  main.inputs = {0};
  main.outputs = {4};
  Subgraph branch;
  Operand result = in;
  result.lifetime = Lifetime::kSubgraphOutput;
  branch.operands = {in, result};
  branch.operations = {{OperationType::kRelu, {0}, {1}, ""}};
  branch.inputs = {0};
  branch.outputs = {1};
  model.subgraphs = {main, branch};
  return model;
}

// The same with an operation of a driver's extension that reads a scalar and writes a tensor of its
// types.
Model sampleOfADriver() {
  Model model = sample();
  model.extensions = {{9, "com.example"}, {2, "com.example.other"}};
  const auto code = [](int32_t number) {
    return (9 << 16) | number;
  };
  Operand scalar;
  scalar.type = static_cast<OperandType>(code(1));
  scalar.driverElementSize = 4;
  scalar.isRankZeroTensor = true;
  scalar.lifetime = Lifetime::kConstantCopy;
  scalar.location = {0, 4, 4};
  Operand tensor;
  tensor.type = static_cast<OperandType>(code(2));
  tensor.driverElementSize = 16;
  tensor.driverData = {1, 2, 3};
  tensor.dimensions = {2, 0};
  Subgraph& main = model.main();
  const auto first = static_cast<uint32_t>(main.operands.size());
  main.operands.push_back(scalar);
  main.operands.push_back(tensor);
  main.operations.push_back({static_cast<OperationType>(code(0)), {first, 4}, {first + 1}, "own"});
  return model;
}

// The model after it was encoded and decoded, which must change nothing.
Model decodedAgain(const Model& model) {
  EXPECT_TRUE(validate(model)) << validate(model).error().toString();
  const std::vector<uint8_t> bytes = encodeModel(model);
  auto decoded = decodeModel(bytes, model.pools);
  EXPECT_TRUE(decoded) << decoded.error().toString();
  if (!decoded) return {};
  EXPECT_EQ(structureDigest(*decoded), structureDigest(model));
  EXPECT_EQ(encodeModel(*decoded), bytes);
  return *std::move(decoded);
}

TEST(ModelBytes, ExtensionsOfDriversAreKept) {
  const Model model = sampleOfADriver();
  const Model decoded = decodedAgain(model);
  EXPECT_EQ(decoded.extensions, model.extensions);
  ASSERT_FALSE(decoded.subgraphs.empty());
  const Operand& tensor = decoded.main().operands.back();
  EXPECT_EQ(tensor.driverElementSize, 16u);
  EXPECT_EQ(tensor.driverData, (std::vector<uint8_t>{1, 2, 3}));
  Model other = model;
  other.main().operands.back().driverData = {1, 2};
  EXPECT_NE(structureDigest(other), structureDigest(model));
  other = model;
  other.extensions[0].name = "com.example.2";
  EXPECT_NE(structureDigest(other), structureDigest(model));
}

TEST(ModelBytes, DecodeToTheSameModel) {
  const Model decoded = decodedAgain(sample());
  ASSERT_FALSE(decoded.subgraphs.empty());
  // Names are for people only and are not kept.
  EXPECT_EQ(decoded.main().operands[4].name, "");
}

TEST(ModelBytes, MemoryOfTheCallerGetsTheSame) {
  const Model model = sample();
  for (const Scales scales : {Scales::kAmongTheBytes, Scales::kApart}) {
    const std::vector<uint8_t> expected = encodeModel(model, scales);
    ASSERT_EQ(encodedSize(model, scales), expected.size());
    std::vector<uint8_t> bytes(expected.size() + 1, 77);
    encodeModel(model, std::span(bytes).first(expected.size()), scales);
    EXPECT_EQ(bytes.back(), 77);
    bytes.pop_back();
    EXPECT_EQ(bytes, expected);
  }
}

TEST(ModelBytes, ScalesMayBeApart) {
  const Model model = sample();
  const std::vector<uint8_t> bytes = encodeModel(model, Scales::kApart);
  const std::vector<float> scales = channelScales(model);
  EXPECT_EQ(scales, (std::vector<float>{0.5f, 0.25f}));
  EXPECT_LT(bytes.size(), encodeModel(model).size());
  const auto decoded = decodeModel(bytes, model.pools, scales);
  ASSERT_TRUE(decoded) << decoded.error().toString();
  EXPECT_EQ(structureDigest(*decoded), structureDigest(model));
  // Fewer or more scales than the model has, and scales for a model that has its own.
  EXPECT_FALSE(decodeModel(bytes, model.pools, std::span(scales).first(1)));
  EXPECT_FALSE(decodeModel(bytes, model.pools));
  EXPECT_FALSE(decodeModel(bytes, model.pools, std::vector<float>{0.5f, 0.25f, 0.125f}));
  EXPECT_FALSE(decodeModel(encodeModel(model), model.pools, scales));
  // Scales that are passed apart are checked as those among the bytes are.
  EXPECT_FALSE(decodeModel(bytes, model.pools, std::vector<float>{0.5f, -1}));
}

TEST(ModelBytes, PoolsThatDoNotFitAreAnError) {
  const std::vector<uint8_t> bytes = encodeModel(sample());
  EXPECT_FALSE(decodeModel(bytes, {}));
  EXPECT_FALSE(decodeModel(bytes, {memory::Pool::borrowed(kPool, 69)}));
  EXPECT_TRUE(decodeModel(bytes, {memory::Pool::borrowed(kPool, 70)}));
}

TEST(ModelBytes, CutBytesAreAnError) {
  for (const Model& model : {sample(), sampleOfADriver()}) {
    std::vector<uint8_t> bytes = encodeModel(model);
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(decodeModel(std::span(bytes).first(size), model.pools)) << size;
    bytes.push_back(0);
    EXPECT_FALSE(decodeModel(bytes, model.pools));
    // An empty list of extensions.
    bytes.insert(bytes.end(), 7, 0);
    EXPECT_FALSE(decodeModel(bytes, model.pools));
  }
}

// Any bytes decode to a valid model or an error; sanitizers detect anything else.
TEST(ModelBytes, ChangedBytesAreHarmless) {
  const Model model = sampleOfADriver();
  const std::vector<uint8_t> good = encodeModel(model);
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<uint8_t> bytes = good;
    for (unsigned changes = 1 + random() % 3; changes != 0; --changes)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random() % 4 == 0 ? 0xff : random());
    const auto decoded = decodeModel(bytes, model.pools);
    if (decoded) EXPECT_TRUE(validate(*decoded));
  }
}

TEST(ModelBytes, HugeCountsTakeNoMemory) {
  const Model model = sampleOfADriver();
  const std::vector<uint8_t> good = encodeModel(model);
  // Any 8 bytes may be a length.
  for (size_t at = 0; at + 8 <= good.size(); ++at) {
    std::vector<uint8_t> bytes = good;
    std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(at), 7, uint8_t{0});
    bytes[at + 7] = 0x10;  // 2^60
    const auto decoded = decodeModel(bytes, model.pools);
    if (decoded) {
      EXPECT_TRUE(validate(*decoded));
    }
  }
}

}  // namespace
}  // namespace hearth::graph
