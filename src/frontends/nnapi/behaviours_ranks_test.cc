// SPDX-License-Identifier: Apache-2.0
// Tensors of more dimensions than most models have: NNAPI gives no largest rank for many operations
// (docs/nnapi.md says what holds here).
#include <array>
#include <deque>
#include <functional>
#include <string>

#include "frontends/nnapi/testing/test_modes.h"

namespace hearth::nnapi {
namespace {

// The limit of operations that are not element-wise is 32.
constexpr uint32_t kRanks[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 31, 32};
constexpr std::array<uint32_t, 4> kHighRanks = {33, 64, 100, 1000};

// [2, 1, ..., 1, 3]
std::vector<uint32_t> shapeOfRank(uint32_t rank) {
  std::vector<uint32_t> shape(rank, 1);
  shape.front() = 2;
  shape.back() = 3;
  return shape;
}

// [1, ..., 1, 3], of one dimension less.
std::vector<uint32_t> rowOfRank(uint32_t rank) {
  std::vector<uint32_t> shape(rank - 1, 1);
  shape.back() = 3;
  return shape;
}

ndk::Type bools(std::vector<uint32_t> dimensions) {
  return {ANEURALNETWORKS_TENSOR_BOOL8, std::move(dimensions), 0, 0};
}
ndk::Type bytes(std::vector<uint32_t> dimensions) {
  return {ANEURALNETWORKS_TENSOR_QUANT8_ASYMM, std::move(dimensions), 0.5f, 3};
}

// An operation on an input of shapeOfRank(). `add` adds the operation with its other operands and
// returns the output.
struct RankCase {
  std::string name;
  bool isElementwise;
  ndk::Type (*input)(std::vector<uint32_t>);
  size_t inputBytes;
  size_t outputBytes;
  std::function<uint32_t(ndk::Model&, uint32_t input, uint32_t rank)> add;
};

// The output has the input's shape and this type.
auto unary(int32_t code, ndk::Type (*type)(std::vector<uint32_t>)) {
  return [code, type](ndk::Model& model, uint32_t input, uint32_t rank) {
    const uint32_t output = model.operand(type(shapeOfRank(rank)));
    model.operation(code, {input}, {output});
    return output;
  };
}

// The second input is a row that is broadcast.
auto binary(int32_t code, bool isFused) {
  return [code, isFused](ndk::Model& model, uint32_t input, uint32_t rank) {
    const uint32_t row = model.constant<float>(floats(rowOfRank(rank)), {1, -2, 3});
    const uint32_t output = model.operand(floats(shapeOfRank(rank)));
    std::vector<uint32_t> inputs = {input, row};
    if (isFused) inputs.push_back(model.int32(0));
    model.operation(code, inputs, {output});
    return output;
  };
}

auto comparison(int32_t code) {
  return [code](ndk::Model& model, uint32_t input, uint32_t rank) {
    const uint32_t row = model.constant<float>(floats(rowOfRank(rank)), {1, -2, 3});
    const uint32_t output = model.operand(bools(shapeOfRank(rank)));
    model.operation(code, {input, row}, {output});
    return output;
  };
}

auto reduction(int32_t code) {
  return [code](ndk::Model& model, uint32_t input, uint32_t rank) {
    const uint32_t axes = model.constant<int32_t>(ints({1}), {-1});
    std::vector<uint32_t> shape = shapeOfRank(rank);
    shape.pop_back();
    const uint32_t output = model.operand(floats(shape));
    const bool isMean = code == ANEURALNETWORKS_MEAN;
    const uint32_t keepsDimensions = isMean ? model.int32(0) : model.boolean(false);
    model.operation(code, {input, axes, keepsDimensions}, {output});
    return output;
  };
}

// Keeps values alive: constants of more than 128 bytes are copied only when the model is finished.
const std::vector<int32_t>& kept(std::vector<int32_t> values) {
  static auto* const all = new std::deque<std::vector<int32_t>>;
  return all->emplace_back(std::move(values));
}

const std::vector<int32_t>& repeated(uint32_t rank, int32_t first, int32_t others, int32_t last) {
  std::vector<int32_t> values(rank, others);
  values.front() = first;
  values.back() = last;
  return kept(std::move(values));
}

std::vector<RankCase> rankCases() {
  std::vector<RankCase> cases;
  bool isElementwise = true;
  const auto add = [&](const char* name, auto input, size_t inputBytes, size_t outputBytes,
                       std::function<uint32_t(ndk::Model&, uint32_t, uint32_t)> make) {
    cases.push_back({name, isElementwise, input, inputBytes, outputBytes, std::move(make)});
  };
  const auto onFloats = [&](const char* name, size_t outputBytes,
                            std::function<uint32_t(ndk::Model&, uint32_t, uint32_t)> make) {
    add(name, floats, 24, outputBytes, std::move(make));
  };
  onFloats("ABS", 24, unary(ANEURALNETWORKS_ABS, floats));
  onFloats("NEG", 24, unary(ANEURALNETWORKS_NEG, floats));
  onFloats("EXP", 24, unary(ANEURALNETWORKS_EXP, floats));
  onFloats("SIN", 24, unary(ANEURALNETWORKS_SIN, floats));
  onFloats("SQRT", 24, unary(ANEURALNETWORKS_SQRT, floats));
  onFloats("RSQRT", 24, unary(ANEURALNETWORKS_RSQRT, floats));
  onFloats("LOG", 24, unary(ANEURALNETWORKS_LOG, floats));
  onFloats("HARD_SWISH", 24, unary(ANEURALNETWORKS_HARD_SWISH, floats));
  onFloats("TANH", 24, unary(ANEURALNETWORKS_TANH, floats));
  onFloats("CAST", 24, unary(ANEURALNETWORKS_CAST, ints));
  onFloats("QUANTIZE", 6, unary(ANEURALNETWORKS_QUANTIZE, bytes));
  add("DEQUANTIZE", bytes, 6, 24, unary(ANEURALNETWORKS_DEQUANTIZE, floats));
  add("LOGICAL_NOT", bools, 6, 6, unary(ANEURALNETWORKS_LOGICAL_NOT, bools));
  onFloats("ADD", 24, binary(ANEURALNETWORKS_ADD, true));
  onFloats("MUL", 24, binary(ANEURALNETWORKS_MUL, true));
  onFloats("DIV", 24, binary(ANEURALNETWORKS_DIV, true));
  onFloats("MAXIMUM", 24, binary(ANEURALNETWORKS_MAXIMUM, false));
  onFloats("MINIMUM", 24, binary(ANEURALNETWORKS_MINIMUM, false));
  onFloats("POW", 24, binary(ANEURALNETWORKS_POW, false));
  onFloats("PRELU", 24, binary(ANEURALNETWORKS_PRELU, false));
  onFloats("EQUAL", 6, comparison(ANEURALNETWORKS_EQUAL));
  onFloats("LESS", 6, comparison(ANEURALNETWORKS_LESS));
  onFloats("ELU", 24, [](ndk::Model& model, uint32_t input, uint32_t rank) {
    const uint32_t output = model.operand(floats(shapeOfRank(rank)));
    model.operation(ANEURALNETWORKS_ELU, {input, model.float32(1)}, {output});
    return output;
  });
  add("SELECT", bools, 6, 24, [](ndk::Model& model, uint32_t input, uint32_t rank) {
    const uint32_t a = model.constant<float>(floats(shapeOfRank(rank)), {1, 2, 3, 4, 5, 6});
    const uint32_t b = model.constant<float>(floats(shapeOfRank(rank)), {-1, -2, -3, -4, -5, -6});
    const uint32_t output = model.operand(floats(shapeOfRank(rank)));
    model.operation(ANEURALNETWORKS_SELECT, {input, a, b}, {output});
    return output;
  });
  isElementwise = false;
  onFloats("REDUCE_SUM", 8, reduction(ANEURALNETWORKS_REDUCE_SUM));
  onFloats("REDUCE_MAX", 8, reduction(ANEURALNETWORKS_REDUCE_MAX));
  onFloats("MEAN", 8, reduction(ANEURALNETWORKS_MEAN));
  onFloats("LOG_SOFTMAX", 24, [](ndk::Model& model, uint32_t input, uint32_t rank) {
    const uint32_t output = model.operand(floats(shapeOfRank(rank)));
    model.operation(ANEURALNETWORKS_LOG_SOFTMAX, {input, model.float32(1), model.int32(-1)},
                    {output});
    return output;
  });
  for (const int32_t code : {ANEURALNETWORKS_ARGMAX, ANEURALNETWORKS_ARGMIN})
    onFloats("ARGMAX or ARGMIN", 8, [code](ndk::Model& model, uint32_t input, uint32_t rank) {
      std::vector<uint32_t> shape = shapeOfRank(rank);
      shape.pop_back();
      const uint32_t output = model.operand(ints(shape));
      model.operation(code, {input, model.int32(-1)}, {output});
      return output;
    });
  onFloats("TOPK_V2", 16, [](ndk::Model& model, uint32_t input, uint32_t rank) {
    std::vector<uint32_t> shape = shapeOfRank(rank);
    shape.back() = 2;
    const uint32_t output = model.operand(floats(shape));
    const uint32_t indices = model.operand(ints(shape));
    model.operation(ANEURALNETWORKS_TOPK_V2, {input, model.int32(2)}, {output, indices});
    return output;
  });
  onFloats("GATHER", 16, [](ndk::Model& model, uint32_t input, uint32_t rank) {
    std::vector<uint32_t> shape = shapeOfRank(rank);
    shape.back() = 2;
    const uint32_t indices = model.constant<int32_t>(ints({2}), {2, 0});
    const uint32_t output = model.operand(floats(shape));
    model.operation(ANEURALNETWORKS_GATHER, {input, model.int32(-1), indices}, {output});
    return output;
  });
  onFloats("SPLIT", 12, [](ndk::Model& model, uint32_t input, uint32_t rank) {
    std::vector<uint32_t> shape = shapeOfRank(rank);
    shape.front() = 1;
    const uint32_t first = model.operand(floats(shape));
    const uint32_t second = model.operand(floats(shape));
    model.operation(ANEURALNETWORKS_SPLIT, {input, model.int32(0), model.int32(2)},
                    {first, second});
    return second;
  });
  onFloats("SLICE", 16, [](ndk::Model& model, uint32_t input, uint32_t rank) {
    const uint32_t begin = model.constant<int32_t>(ints({rank}), repeated(rank, 0, 0, 1));
    const uint32_t size = model.constant<int32_t>(ints({rank}), repeated(rank, 2, 1, 2));
    std::vector<uint32_t> shape = shapeOfRank(rank);
    shape.back() = 2;
    const uint32_t output = model.operand(floats(shape));
    model.operation(ANEURALNETWORKS_SLICE, {input, begin, size}, {output});
    return output;
  });
  onFloats("TILE", 48, [](ndk::Model& model, uint32_t input, uint32_t rank) {
    const uint32_t multiples = model.constant<int32_t>(ints({rank}), repeated(rank, 1, 1, 2));
    std::vector<uint32_t> shape = shapeOfRank(rank);
    shape.back() = 6;
    const uint32_t output = model.operand(floats(shape));
    model.operation(ANEURALNETWORKS_TILE, {input, multiples}, {output});
    return output;
  });
  onFloats("TRANSPOSE", 24, [](ndk::Model& model, uint32_t input, uint32_t rank) {
    std::vector<int32_t> permutation;
    for (uint32_t i = rank; i-- > 0;) permutation.push_back(static_cast<int32_t>(i));
    std::vector<uint32_t> shape = shapeOfRank(rank);
    std::swap(shape.front(), shape.back());
    const uint32_t order = model.constant<int32_t>(ints({rank}), kept(permutation));
    const uint32_t output = model.operand(floats(shape));
    model.operation(ANEURALNETWORKS_TRANSPOSE, {input, order}, {output});
    return output;
  });
  onFloats("RESHAPE", 24, [](ndk::Model& model, uint32_t input, uint32_t) {
    const uint32_t shape = model.constant<int32_t>(ints({1}), {6});
    const uint32_t output = model.operand(floats({6}));
    model.operation(ANEURALNETWORKS_RESHAPE, {input, shape}, {output});
    return output;
  });
  onFloats("EXPAND_DIMS", 24, [](ndk::Model& model, uint32_t input, uint32_t rank) {
    const uint32_t output = model.operand(floats(shapeOfRank(rank + 1)));
    model.operation(ANEURALNETWORKS_EXPAND_DIMS, {input, model.int32(1)}, {output});
    return output;
  });
  onFloats("REVERSE", 24, [](ndk::Model& model, uint32_t input, uint32_t rank) {
    const uint32_t axis = model.constant<int32_t>(ints({1}), {static_cast<int32_t>(rank) - 1});
    const uint32_t output = model.operand(floats(shapeOfRank(rank)));
    model.operation(ANEURALNETWORKS_REVERSE, {input, axis}, {output});
    return output;
  });
  for (const int32_t code : {ANEURALNETWORKS_PAD, ANEURALNETWORKS_MIRROR_PAD})
    onFloats("PAD or MIRROR_PAD", 32, [code](ndk::Model& model, uint32_t input, uint32_t rank) {
      std::vector<int32_t> counts(size_t{2} * rank, 0);
      counts.back() = 1;
      std::vector<uint32_t> shape = shapeOfRank(rank);
      shape.back() = 4;
      const uint32_t paddings = model.constant<int32_t>(ints({rank, 2}), kept(counts));
      const uint32_t output = model.operand(floats(shape));
      std::vector<uint32_t> inputs = {input, paddings};
      if (code == ANEURALNETWORKS_MIRROR_PAD) inputs.push_back(model.int32(1));
      model.operation(code, inputs, {output});
      return output;
    });
  return cases;
}

class RankBehaviour : public QuietTest {};

struct RankResult {
  int code;
  std::vector<uint8_t> output;
};

// Compiles and computes the case; the model leaves the input's rank open unless `isRankKnown`.
RankResult computeRankCase(const RankCase& tried, uint32_t rank, bool isRankKnown,
                           const ANeuralNetworksDevice* device) {
  const ndk::Type type = tried.input(shapeOfRank(rank));
  ndk::Model model;
  const uint32_t input = model.operand(isRankKnown ? type : tried.input({}));
  const uint32_t output = tried.add(model, input, rank);
  model.finish({input}, {output});
  const ndk::Compilation compilation = compileWith(model, device);
  const std::vector<float> numbers = {1, 2, 3, 0.5f, 7, 6};
  const std::vector<uint8_t> bits = {1, 0, 0, 1, 1, 0};
  RankResult result{0, std::vector<uint8_t>(tried.outputBytes)};
  ndk::Execution execution(compilation);
  ndk::check(tried.inputBytes == 24 ? setTypedInput(execution, 0, type, numbers)
                                    : setTypedInput(execution, 0, type, bits),
             "setInput");
  execution.output(0, result.output);
  result.code = ANeuralNetworksExecution_compute(execution.get());
  return result;
}

TEST_F(RankBehaviour, OperationsComputeTensorsOfManyDimensions) {
  for (const RankCase& tried : rankCases()) {
    std::vector<uint32_t> ranks(std::begin(kRanks), std::end(kRanks));
    if (tried.isElementwise) ranks.insert(ranks.end(), kHighRanks.begin(), kHighRanks.end());
    for (ANeuralNetworksDevice* device : ndk::devices()) {
      // Models of unknown rank run other kernels, whose last bits may differ.
      for (const bool isRankKnown : {true, false}) {
        const RankResult expected = computeRankCase(tried, 2, isRankKnown, device);
        // Ranks that a driver does not take are computed by the reference device.
        ANeuralNetworksDevice* const other =
            isBuiltIn(device) ? device : ndk::findDevice("nnapi-reference");
        const RankResult ofOther = computeRankCase(tried, 2, isRankKnown, other);
        for (const uint32_t rank : ranks) {
          SCOPED_TRACE(tried.name + " of rank " + std::to_string(rank) + " on " +
                       ndk::nameOf(device));
          try {
            const RankResult result = computeRankCase(tried, rank, isRankKnown, device);
            EXPECT_CODE(NO_ERROR, result.code);
            EXPECT_THAT(result.output, testing::AnyOf(expected.output, ofOther.output));
          } catch (const ndk::Exception& exception) {
            ADD_FAILURE() << exception.what();
          }
        }
      }
    }
  }
}

TEST_F(RankBehaviour, RanksAboveTheLimitAreBadData) {
  for (const RankCase& tried : rankCases()) {
    if (tried.isElementwise) continue;
    for (const uint32_t rank : kHighRanks) {
      SCOPED_TRACE(tried.name + " of rank " + std::to_string(rank));
      ndk::Model model;
      const uint32_t input = model.operand(tried.input(shapeOfRank(rank)));
      try {
        tried.add(model, input, rank);
        ADD_FAILURE() << "It is taken.";
      } catch (const ndk::Exception& exception) {
        EXPECT_EQ(exception.code(), ANEURALNETWORKS_BAD_DATA);
      }
    }
  }
}

// If the rank becomes known only when the input is set, the operation computes or fails.
TEST_F(RankBehaviour, RanksAboveTheLimitThatAreKnownOnlyAtRunTime) {
  for (const RankCase& tried : rankCases()) {
    if (tried.isElementwise) continue;
    for (ANeuralNetworksDevice* device : ndk::devices()) {
      const std::vector<uint8_t> expected = computeRankCase(tried, 2, false, device).output;
      for (const uint32_t rank : kHighRanks) {
        SCOPED_TRACE(tried.name + " of rank " + std::to_string(rank) + " on " +
                     ndk::nameOf(device));
        const RankResult result = computeRankCase(tried, rank, false, device);
        if (result.code == ANEURALNETWORKS_NO_ERROR)
          EXPECT_EQ(result.output, expected);
        else
          EXPECT_CODE(OP_FAILED, result.code);
      }
    }
  }
}

// FILL makes any rank and RANK reads any rank; CONCATENATION has NNAPI's own limit.
TEST_F(RankBehaviour, OperationsThatMakeAndReadRanks) {
  for (ANeuralNetworksDevice* device : ndk::devices()) {
    SCOPED_TRACE(ndk::nameOf(device));
    for (const uint32_t rank : kRanks) {
      ndk::Model model;
      const uint32_t input = model.operand(ints({rank}));
      const uint32_t filled = model.operand(floats(shapeOfRank(rank)));
      const uint32_t found = model.operand({ANEURALNETWORKS_INT32, {}, 0, 0});
      model.operation(ANEURALNETWORKS_FILL, {input, model.float32(7)}, {filled});
      model.operation(ANEURALNETWORKS_RANK, {filled}, {found});
      model.finish({input}, {filled, found});
      const ndk::Compilation compilation = compileWith(model, device);
      const std::vector<int32_t> shape = repeated(rank, 2, 1, 3);
      std::vector<float> values(6);
      std::vector<int32_t> number(1);
      ndk::Execution(compilation).input(0, shape).output(0, values).output(1, number).compute();
      EXPECT_THAT(values, testing::Each(7));
      EXPECT_THAT(number, testing::ElementsAre(static_cast<int32_t>(rank)));
    }
  }
  ndk::Model model;
  const uint32_t input = model.operand(floats({1, 1, 1, 1, 2}));
  const uint32_t output = model.operand(floats({2, 1, 1, 1, 2}));
  EXPECT_THROW(
      model.operation(ANEURALNETWORKS_CONCATENATION, {input, input, model.int32(0)}, {output}),
      ndk::Exception);
}

}  // namespace
}  // namespace hearth::nnapi
