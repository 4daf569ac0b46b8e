// SPDX-License-Identifier: Apache-2.0
#include "runtime/testing/random_graph.h"

#include <iterator>

#include "runtime/testing/random_graph_layers.h"

namespace hearth::runtime {
namespace random_graph {
namespace {

// Each function adds an operation if the graph has inputs for it.
class Generator : LayerMaker {
 public:
  Generator(uint64_t seed, double headroom) : LayerMaker(seed, headroom) {
    const size_t inputs = 2 + random_() % 3;
    for (size_t i = 0; i < inputs; ++i) addInput(anyType(), anyShape());
  }

  RandomGraph make(size_t operations) {
    while (main().operations.size() < operations) addOperation();
    return finish();
  }

 private:
  void addOperation() {
    using Maker = void (Generator::*)();
    constexpr Maker kMakers[] = {
        &Generator::addArithmetic,  &Generator::addArithmetic,     &Generator::addArithmetic,
        &Generator::addFunction,    &Generator::addFunction,       &Generator::addConvolution,
        &Generator::addConvolution, &Generator::addFullyConnected, &Generator::addPooling,
        &Generator::addMove,        &Generator::addMove,           &Generator::addMove,
        &Generator::addMove,        &Generator::addConcatenation,  &Generator::addConversion,
        &Generator::addConversion,  &Generator::addReduction,      &Generator::addSoftmax,
        &Generator::addMatmul,      &Generator::addLogic,          &Generator::addJump,
        &Generator::addNorm,        &Generator::addExtension,      &Generator::addExtension,
        &Generator::addResize,      &Generator::addUpdate,         &Generator::addLstm,
        &Generator::addTfliteForm,  &Generator::addSegments,       &Generator::addSuppression,
        &Generator::addVolume};
    (this->*kMakers[random_() % std::size(kMakers)])();
  }

  void addArithmetic() {
    const auto a = pick([&](uint32_t i) {
      return isInteger(type(i)) || (isReal(type(i)) && (isExact(i) || isTelling(i)));
    });
    if (!a) return;
    const uint32_t b = partnerOf(*a);
    constexpr OperationType kTypes[] = {OperationType::kAdd,
                                        OperationType::kSub,
                                        OperationType::kMul,
                                        OperationType::kMaximum,
                                        OperationType::kMinimum,
                                        OperationType::kAdd,
                                        OperationType::kSquaredDifference};
    const OperationType operation = kTypes[random_() % std::size(kTypes)];
    const Value& left = values_[*a];
    const Value& right = values_[b];
    const bool isProduct = operation == OperationType::kMul;
    const bool isSquare = operation == OperationType::kSquaredDifference;
    const bool isChoice =
        operation == OperationType::kMaximum || operation == OperationType::kMinimum;
    const double sum = left.greatest + right.greatest;
    const double range = isProduct ? left.greatest * right.greatest : isSquare ? sum * sum : sum;
    const double errors = left.error + right.error;
    Rule rule;
    rule.passedOn = isProduct ? left.error * right.greatest + right.error * left.greatest +
                                    left.error * right.error
                    : isSquare ? errors * (2 * sum + errors)
                               : errors;
    // One correctly rounded step gives the same result in every implementation; a square takes two.
    rule.isExact = (type(*a) == kFloat && !isSquare) || isInteger(type(*a));
    if (isSquare) rule.accumulated = range;
    std::vector<uint32_t> inputs = {*a, b};
    if (!isChoice && !isSquare)
      inputs.push_back(scalar(static_cast<int32_t>(chance(60) ? 0 : number(1, 3))));
    addResult(operation, inputs, formFor(type(*a), range), rule);
  }

  void addFunction() {
    const auto a = pickReal();
    if (!a) return;
    struct Function {
      OperationType type;
      double steepness;
      double range;  // 0: that of the input
      bool isExact;  // in float32
      bool hasFlag = false;
    };
    constexpr Function kFunctions[] = {
        {OperationType::kRelu, 1, 0, true},          {OperationType::kRelu6, 1, 6, true},
        {OperationType::kRelu1, 1, 1, true},         {OperationType::kTanh, 1, 0, false},
        {OperationType::kLogistic, 0.25, 0, false},  {OperationType::kAbs, 1, 0, true},
        {OperationType::kNeg, 1, 0, true},           {OperationType::kHardSwish, 1.5, 0, false},
        {OperationType::kSin, 1, 1, false},          {OperationType::kCos, 1, 1, false},
        {OperationType::kGelu, 1.13, 0, false, true}};
    const Function& function = kFunctions[random_() % std::size(kFunctions)];
    Form form = formOf(*a);
    const bool isRelu = function.type == OperationType::kRelu ||
                        function.type == OperationType::kRelu6 ||
                        function.type == OperationType::kRelu1;
    if (form.scale > 0) {
      if (function.type == OperationType::kTanh)
        form = formOfUnit(form.type, true);
      else if (function.type == OperationType::kLogistic)
        form = formOfUnit(form.type, false);
      else if (!isRelu)
        form = formFor(form.type, function.range > 0 ? function.range : values_[*a].greatest);
    }
    std::vector<uint32_t> inputs = {*a};
    if (function.hasFlag) inputs.push_back(scalar(chance(50)));
    addResult(function.type, inputs, form,
              {function.steepness * values_[*a].error, function.isExact && form.type == kFloat});
  }

  void addMove() {
    const auto input = pick([](uint32_t) { return true; });
    if (!input) return;
    const Dimensions dimensions = shape(*input);
    const size_t rank = dimensions.size();
    const Rule rule{values_[*input].error, true};
    const Form form = formOf(*input);
    const auto last = static_cast<int32_t>(rank) - 1;
    std::vector<int32_t> numbers;
    switch (random_() % 10) {
      case 0: {
        const auto count = static_cast<int32_t>(countOf(dimensions));
        if (chance(50))
          numbers = {count};
        else
          numbers = {static_cast<int32_t>(dimensions[0]), -1};
        addResult(OperationType::kReshape, {*input, ints(numbers)}, form, rule);
        return;
      }
      case 1: {
        for (int32_t i = 0; i <= last; ++i) numbers.push_back(i);
        std::shuffle(numbers.begin(), numbers.end(), random_);
        addResult(OperationType::kTranspose, {*input, ints(numbers)}, form, rule);
        return;
      }
      case 2: {
        std::vector<int32_t> sizes;
        for (const uint32_t dimension : dimensions) {
          numbers.push_back(static_cast<int32_t>(number(0, dimension - 1)));
          sizes.push_back(
              static_cast<int32_t>(number(1, dimension - static_cast<uint32_t>(numbers.back()))));
        }
        addResult(OperationType::kSlice, {*input, ints(numbers), ints(sizes)}, form, rule);
        return;
      }
      case 3: {
        for (size_t i = 0; i < 2 * rank; ++i) numbers.push_back(chance(60) ? 0 : 1);
        std::vector<uint8_t> bytes(numbers.size() * sizeof(int32_t));
        std::memcpy(bytes.data(), numbers.data(), bytes.size());
        const uint32_t paddings =
            addConstant({kInt32}, {static_cast<uint32_t>(rank), 2}, std::move(bytes));
        addResult(OperationType::kPad, {*input, paddings}, form, rule);
        return;
      }
      case 4: {
        for (size_t i = 0; i < rank; ++i) numbers.push_back(static_cast<int32_t>(number(1, 2)));
        addResult(OperationType::kTile, {*input, ints(numbers)}, form, rule);
        return;
      }
      case 5: {
        const auto axis = static_cast<int32_t>(random_() % rank);
        for (uint32_t i = 0; i < number(1, 4); ++i)
          numbers.push_back(
              static_cast<int32_t>(random_() % dimensions[static_cast<size_t>(axis)]));
        addResult(OperationType::kGather, {*input, scalar(axis), ints(numbers)}, form, rule);
        return;
      }
      case 6:
        if (rank == 4)
          addResult(chance(50) ? OperationType::kDepthToSpace : OperationType::kSpaceToDepth,
                    {*input, scalar(static_cast<int32_t>(number(1, 2)))}, form, rule);
        return;
      case 7:
        if (rank < 4)
          addResult(OperationType::kExpandDims,
                    {*input, scalar(static_cast<int32_t>(random_() % (rank + 1)))}, form, rule);
        return;
      case 8:
        if (rank < 4) addResult(OperationType::kMatrixDiag, {*input}, form, rule);
        return;
      default: {
        std::vector<int32_t> ends;
        std::vector<int32_t> strides;
        for (const uint32_t dimension : dimensions) {
          const auto size = static_cast<int32_t>(dimension);
          const bool isBackwards = chance(25);
          numbers.push_back(isBackwards ? size - 1
                                        : static_cast<int32_t>(number(0, dimension / 2)));
          ends.push_back(isBackwards ? -size - 1 : size);
          strides.push_back((isBackwards ? -1 : 1) * static_cast<int32_t>(number(1, 2)));
        }
        // Limits for some leading dimensions only, as in TFLite.
        if (chance(25)) {
          const size_t given = 1 + random_() % rank;
          for (auto* limits : {&numbers, &ends, &strides}) limits->resize(given);
        }
        addResult(
            OperationType::kStridedSlice,
            {*input, ints(numbers), ints(ends), ints(strides), scalar(0), scalar(0), scalar(0)},
            form, rule);
      }
    }
  }

  void addConcatenation() {
    const auto first = pick([](uint32_t) { return true; });
    if (!first) return;
    const Form form = formOf(*first);
    std::vector<uint32_t> inputs = {*first};
    double error = values_[*first].error;
    for (uint32_t i = 0; i < number(1, 3); ++i) {
      const auto next = pick([&](uint32_t other) {
        return type(other) == form.type && shape(other) == shape(*first) &&
               operand(other).scale == form.scale && operand(other).zeroPoint == form.zeroPoint;
      });
      inputs.push_back(*next);
      error = std::max(error, values_[*next].error);
    }
    inputs.push_back(scalar(static_cast<int32_t>(random_() % shape(*first).size())));
    addResult(OperationType::kConcatenation, inputs, form, {error, true});
  }

  void addConversion() {
    const auto input = pickReal();
    if (!input) return;
    const Value& value = values_[*input];
    if (operand(*input).scale > 0) {
      addResult(OperationType::kDequantize, {*input}, {chance(80) ? kFloat : kHalf}, {value.error});
    } else if (chance(70)) {
      constexpr OperandType kTargets[] = {kInt8, kUint8, kInt16};
      addResult(OperationType::kQuantize, {*input},
                formFor(kTargets[random_() % std::size(kTargets)], value.greatest), {value.error});
    } else {
      addResult(OperationType::kCast, {*input}, {type(*input) == kFloat ? kHalf : kFloat},
                {value.error});
    }
  }

  void addReduction() {
    const auto input = pickReal();
    if (!input) return;
    std::vector<int32_t> axes;
    double count = 1;
    for (size_t i = 0; i < shape(*input).size(); ++i) {
      if (!chance(50)) continue;
      axes.push_back(static_cast<int32_t>(i));
      count *= shape(*input)[i];
    }
    if (axes.empty()) return;
    const Value& value = values_[*input];
    switch (random_() % 3) {
      case 0:
        addResult(OperationType::kMean,
                  {*input, ints(axes), scalar(static_cast<int32_t>(number(0, 1)))},
                  chance(50) ? formOf(*input) : formFor(type(*input), value.greatest),
                  {value.error, false, value.greatest});
        return;
      case 1:
        addResult(OperationType::kReduceMax, {*input, ints(axes), scalar(chance(50))},
                  formOf(*input), {value.error, true});
        return;
      default:
        if (type(*input) == kFloat)
          addResult(OperationType::kReduceSum, {*input, ints(axes), scalar(chance(50))},
                    formOf(*input), {value.error * count, false, value.greatest * count});
    }
  }

  void addSoftmax() {
    const auto input = pickReal();
    if (!input) return;
    Form form = formOf(*input);
    if (form.scale > 0) form = formOfUnit(form.type, false);
    const uint32_t beta = type(*input) == kHalf
                              ? addScalar(OperandType::kFloat16, static_cast<ops::Half>(1.0f))
                              : scalar(1.0f);
    // For 16-bit numbers the kernel interpolates in tables, as TFLite does, and may be some steps
    // off.
    const double tables = type(*input) == kInt16 ? 8 * form.scale : 0;
    addResult(OperationType::kSoftmax, {*input, beta}, form, {values_[*input].error + tables});
  }

  void addLogic() {
    const auto condition = pick([&](uint32_t i) { return type(i) == kBool; });
    if (!condition) return;
    if (chance(40)) {
      addResult(chance(50) ? OperationType::kLogicalAnd : OperationType::kLogicalOr,
                {*condition, partnerOf(*condition)}, {kBool}, {});
      return;
    }
    const auto yes = pick([&](uint32_t i) { return shape(i) == shape(*condition); });
    const auto no = pick([&](uint32_t i) {
      return shape(i) == shape(*condition) && type(i) == type(*yes) &&
             operand(i).scale == operand(*yes).scale &&
             operand(i).zeroPoint == operand(*yes).zeroPoint;
    });
    addResult(chance(50) ? OperationType::kSelect : OperationType::kSelectV2,
              {*condition, *yes, *no}, formOf(*yes),
              {std::max(values_[*yes].error, values_[*no].error), true});
  }

  // Operations whose steepness has no bound.
  void addJump() {
    const auto input = pick([&](uint32_t i) { return isExact(i); });
    if (!input) return;
    switch (random_() % 4) {
      case 0: {
        constexpr OperationType kTypes[] = {OperationType::kLess, OperationType::kGreaterEqual,
                                            OperationType::kEqual, OperationType::kNotEqual};
        const uint32_t other = partnerOf(*input);
        if (isExact(other))
          addResult(kTypes[random_() % std::size(kTypes)], {*input, other}, {kBool}, {});
        return;
      }
      case 1:
        if (type(*input) != kBool)
          addResult(chance(50) ? OperationType::kArgmax : OperationType::kArgmin,
                    {*input, scalar(static_cast<int32_t>(random_() % shape(*input).size()))},
                    {kInt32}, {});
        return;
      case 2:
        if (type(*input) == kFloat || type(*input) == kHalf)
          addResult(chance(50) ? OperationType::kFloor : OperationType::kCast, {*input},
                    formOf(*input), {0, true});
        return;
      default: {
        constexpr OperandType kTargets[] = {kInt32, kFloat, kBool, kInt64};
        const OperandType target = kTargets[random_() % std::size(kTargets)];
        if (target != type(*input) && operand(*input).scale == 0)
          addResult(OperationType::kCast, {*input}, {target}, {0, true});
      }
    }
  }

  void addResize() {
    const auto input =
        pick([&](uint32_t i) { return isReal(type(i)) && isTelling(i) && shape(i).size() == 4; });
    if (!input) return;
    const bool isTensor = chance(25);
    const auto size = [&] {
      const auto side = static_cast<int32_t>(number(2, 12));
      return isTensor ? ints({side}) : scalar(side);
    };
    const uint32_t width = size();
    const uint32_t height = size();
    if (chance(50))
      addResult(OperationType::kResizeNearestNeighbor, {*input, width, height, scalar(false)},
                formOf(*input), {values_[*input].error, true});
    else
      addResult(OperationType::kResizeBilinear, {*input, width, height, scalar(false)},
                formOf(*input), {values_[*input].error});
  }

  // The steepness of norms depends on the values, so they get exact inputs only.
  void addNorm() {
    const auto input = pick([&](uint32_t i) { return type(i) == kFloat && isExact(i); });
    if (!input) return;
    const Form form = formOf(*input);
    switch (random_() % 4) {
      case 0: {
        const uint32_t size = shape(*input).back();
        const uint32_t scale = addConstant({kFloat}, {size}, randomContent(kFloat, size));
        addResult(OperationType::kRmsNorm, {*input, scale, scalar(1e-3f)}, form, {});
        return;
      }
      case 1: {
        const uint32_t channels = shape(*input).back();
        const uint32_t scale = addConstant({kFloat}, {channels}, randomContent(kFloat, channels));
        const uint32_t offset = addConstant({kFloat}, {channels}, randomContent(kFloat, channels));
        addResult(OperationType::kGroupNorm,
                  {*input, scale, offset, scalar(1e-2f),
                   scalar(channels % 2 == 0 ? int32_t{2} : int32_t{1}), scalar(int32_t{-1})},
                  form, {});
        return;
      }
      case 2:
        addResult(OperationType::kL2Normalization, {*input}, form, {});
        return;
      default:
        addResult(OperationType::kLogSoftmax, {*input, scalar(1.0f), scalar(int32_t{-1})}, form,
                  {});
    }
  }

  void addExtension() {
    const auto input = pick([](uint32_t) { return true; });
    if (!input) return;
    const Dimensions dimensions = shape(*input);
    const Rule same{values_[*input].error, true};
    const Form form = formOf(*input);
    const bool isExactFloat = type(*input) == kFloat && isExact(*input);
    std::vector<int32_t> numbers;
    switch (random_() % 8) {
      case 0:
        numbers = {static_cast<int32_t>(number(1, 3))};
        for (const uint32_t dimension : dimensions)
          numbers.push_back(static_cast<int32_t>(dimension));
        addResult(OperationType::kBroadcastTo, {*input, ints(numbers)}, form, same);
        return;
      case 1:
        numbers = {static_cast<int32_t>(random_() % dimensions.size())};
        addResult(OperationType::kReverse, {*input, ints(numbers)}, form, same);
        return;
      case 2: {
        std::vector<uint8_t> bytes(4 * sizeof(int32_t));
        for (size_t i = 0; i < 4; ++i)
          put(&bytes, i, static_cast<int32_t>(random_() % dimensions[0]));
        addResult(OperationType::kGatherNd,
                  {*input, addConstant({kInt32}, {4, 1}, std::move(bytes))}, form, same);
        return;
      }
      case 3:
        addResult(
            OperationType::kPack,
            {scalar(static_cast<int32_t>(random_() % (dimensions.size() + 1))), *input, *input},
            form, same);
        return;
      case 4:
        if (isExactFloat) {
          constexpr OperationType kTypes[] = {OperationType::kCeil, OperationType::kRound,
                                              OperationType::kSign, OperationType::kRelu0To1};
          addResult(kTypes[random_() % std::size(kTypes)], {*input}, form, {0, true});
        }
        return;
      case 5:
        if (type(*input) == kBool) addResult(OperationType::kLogicalNot, {*input}, {kBool}, {});
        return;
      case 6:
        if (isInteger(type(*input))) {
          constexpr OperationType kTypes[] = {OperationType::kFloorDiv, OperationType::kFloorMod};
          addResult(kTypes[random_() % std::size(kTypes)], {*input, partnerOf(*input)}, form, {});
        }
        return;
      default:
        if (isExactFloat) addResult(OperationType::kExp, {*input}, form, {});
    }
  }

  // Forms of operations that NNAPI does not have.
  void addTfliteForm() {
    const auto input = pick([](uint32_t) { return true; });
    if (!input) return;
    const Dimensions dimensions = shape(*input);
    const Rule same{values_[*input].error, true};
    const Form form = formOf(*input);
    switch (random_() % 5) {
      case 0: {  // an index list for each element of the first dimensions
        if (dimensions.size() < 2) return;
        const auto axis =
            static_cast<int32_t>(number(1, static_cast<uint32_t>(dimensions.size()) - 1));
        const auto shared = static_cast<int32_t>(number(1, static_cast<uint32_t>(axis)));
        Dimensions lists(dimensions.begin(), dimensions.begin() + shared);
        lists.push_back(number(1, 4));
        std::vector<uint8_t> bytes(countOf(lists) * sizeof(int32_t));
        for (size_t i = 0; i < countOf(lists); ++i)
          put(&bytes, i, static_cast<int32_t>(random_() % dimensions[static_cast<size_t>(axis)]));
        addResult(
            OperationType::kGather,
            {*input, scalar(axis), addConstant({kInt32}, lists, std::move(bytes)), scalar(shared)},
            form, same);
        return;
      }
      case 1: {  // a value of any type
        std::vector<int32_t> sizes;
        for (const uint32_t dimension : dimensions)
          sizes.push_back(static_cast<int32_t>(dimension));
        const uint32_t value = addConstant(form, {1}, randomContent(form.type, 1));
        addResult(OperationType::kFill, {ints(sizes), value}, form, {0, true});
        return;
      }
      case 2: {
        if (!isExact(*input)) return;
        const auto count = static_cast<int32_t>(number(1, dimensions.back()));
        addResults(OperationType::kTopkV2, {*input, chance(50) ? ints({count}) : scalar(count)},
                   {form, {kInt32}}, {0, true});
        return;
      }
      case 3: {
        if (dimensions.size() < 3) return;
        std::vector<uint8_t> bytes;
        std::vector<int32_t> blocks;
        for (size_t i = 1; i + 1 < dimensions.size() && i < 3; ++i) {
          blocks.push_back(static_cast<int32_t>(number(1, 3)));
          const auto block = static_cast<uint32_t>(blocks.back());
          const uint32_t before = number(0, 2);
          const uint32_t rest = (dimensions[i] + before) % block;
          bytes.resize(blocks.size() * 2 * sizeof(int32_t));
          put(&bytes, 2 * blocks.size() - 2, before);
          put(&bytes, 2 * blocks.size() - 1, rest == 0 ? 0 : block - rest);
        }
        const uint32_t paddings =
            addConstant({kInt32}, {static_cast<uint32_t>(blocks.size()), 2}, std::move(bytes));
        addResult(OperationType::kSpaceToBatchNd, {*input, ints(blocks), paddings}, form, same);
        return;
      }
      default: {
        std::vector<int32_t> blocks;
        uint32_t batches = dimensions[0];
        for (size_t i = 1; i + 1 < dimensions.size() && i < 3; ++i) {
          const uint32_t block = batches % 3 == 0 ? 3 : batches % 2 == 0 ? 2 : 1;
          blocks.push_back(static_cast<int32_t>(block));
          batches /= block;
        }
        if (!blocks.empty())
          addResult(OperationType::kBatchToSpaceNd, {*input, ints(blocks)}, form, same);
      }
    }
  }

  void addSegments() {
    const auto input = pick([&](uint32_t i) {
      return type(i) == kInt32 || (type(i) == kFloat && (isExact(i) || isTelling(i)));
    });
    if (!input) return;
    const Dimensions dimensions = shape(*input);
    const Dimensions leading(
        dimensions.begin(),
        dimensions.begin() + number(1, static_cast<uint32_t>(dimensions.size())));
    const auto count = static_cast<int32_t>(number(1, 4));
    const size_t rows = countOf(leading);
    std::vector<uint8_t> bytes(rows * sizeof(int32_t));
    // Every segment has a row if there are enough of them, and some rows have no segment.
    for (size_t i = 0; i < rows; ++i)
      put(&bytes, i,
          static_cast<int32_t>(i) < count
              ? static_cast<int32_t>(i)
              : static_cast<int32_t>(number(0, static_cast<uint32_t>(count))) - 1);
    const Value& value = values_[*input];
    const auto total = static_cast<double>(rows);
    constexpr OperationType kTypes[] = {
        OperationType::kUnsortedSegmentProd, OperationType::kUnsortedSegmentMax,
        OperationType::kUnsortedSegmentSum, OperationType::kUnsortedSegmentMin};
    const OperationType operation = kTypes[random_() % std::size(kTypes)];
    Rule rule{value.error, true};
    if (operation == OperationType::kUnsortedSegmentSum)
      rule = {value.error * total, false, value.greatest * total};
    if (operation == OperationType::kUnsortedSegmentProd) {
      if (!isExact(*input)) return;
      rule = {};
    }
    addResult(operation, {*input, addConstant({kInt32}, leading, std::move(bytes)), ints({count})},
              formOf(*input), rule);
  }

  void addSuppression() {
    const uint32_t count = number(1, 20);
    const uint32_t boxes = addInput(kFloat, {count, 4});
    const auto scores = pick([&](uint32_t i) {
      return type(i) == kFloat && isExact(i) && shape(i) == Dimensions{count};
    });
    const auto oneReal = [&](float value) {
      std::vector<uint8_t> bytes(sizeof value);
      put(&bytes, 0, value);
      return addConstant({kFloat}, {1}, std::move(bytes));
    };
    std::vector<uint32_t> inputs = {boxes, scores ? *scores : addInput(kFloat, {count}),
                                    ints({static_cast<int32_t>(number(1, 12))}),
                                    oneReal(real(0.1f, 1)), oneReal(real(-1, 1))};
    std::vector<Form> forms = {{kInt32}, {kInt32}};
    if (chance(50)) {
      inputs.push_back(oneReal(real(0.1f, 1)));
      forms.push_back({kFloat});
    }
    addResults(OperationType::kNonMaxSuppression, std::move(inputs), forms, {});
  }

  void addUpdate() {
    const auto input = pick([](uint32_t) { return true; });
    if (!input) return;
    Dimensions dimensions = shape(*input);
    const bool isRow = !dimensions.empty() && chance(30);
    std::vector<int32_t> begin;
    for (uint32_t& dimension : dimensions) {
      const uint32_t size = !isRow ? number(1, dimension) : begin.empty() ? 1 : dimension;
      begin.push_back(static_cast<int32_t>(number(0, dimension - size)));
      dimension = size;
    }
    const uint32_t update =
        addConstant(formOf(*input), dimensions, randomContent(type(*input), countOf(dimensions)));
    std::vector<uint32_t> inputs = {*input, update, ints(begin)};
    if (isRow) inputs.push_back(scalar(true));
    addResult(OperationType::kDynamicUpdateSlice, std::move(inputs), formOf(*input),
              {values_[*input].error, true});
  }
};

}  // namespace
}  // namespace random_graph

RandomGraph makeRandomGraph(uint64_t seed, size_t operations, double headroom) {
  return random_graph::Generator(seed, headroom).make(operations);
}

}  // namespace hearth::runtime
