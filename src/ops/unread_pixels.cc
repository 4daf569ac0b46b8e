// SPDX-License-Identifier: Apache-2.0
#include "ops/unread_pixels.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ops/conv_2d.h"
#include "ops/operation.h"

namespace hearth::ops {
namespace {

using graph::Lifetime;
using graph::Model;
using graph::Operand;
using graph::Operation;
using graph::OperationType;

// Longer steps are left alone, so that their products stay far from the limits of strides.
constexpr int32_t kLongestStep = 1024;

// Every so many rows and columns, from the first ones on.
struct Steps {
  int32_t height = 1, width = 1;
  bool operator==(const Steps&) const = default;
  bool skip() const { return height != 1 || width != 1; }
};

size_t elementwiseInputs(OperationType type) {
  switch (type) {
    case OperationType::kAdd:
    case OperationType::kMul:
    case OperationType::kSub:
      return 2;
    case OperationType::kRelu:
    case OperationType::kRelu1:
    case OperationType::kRelu6:
      return 1;
    default:
      return 0;
  }
}

// Whether an operand of an element-wise operation has one pixel, for all of those of the output.
bool isOnePixel(const Operand& operand) {
  const Dimensions& dimensions = operand.dimensions;
  if (!graph::isFullySpecified(operand)) return false;
  for (size_t i = 0; i + 1 < dimensions.size(); ++i)
    if (dimensions[i] != 1) return false;
  return true;
}

// Whether two operands have as many rows and columns, and it is known how many.
bool haveSamePixels(const Operand& a, const Operand& b) {
  return a.dimensions.size() == 4 && b.dimensions.size() == 4 && a.dimensions[1] != 0 &&
         a.dimensions[2] != 0 && a.dimensions[1] == b.dimensions[1] &&
         a.dimensions[2] == b.dimensions[2];
}

uint32_t countOf(uint32_t size, int32_t step) {
  return size / static_cast<uint32_t>(step) + (size % static_cast<uint32_t>(step) != 0);
}

void keepEvery(const Steps& steps, Operand* operand) {
  if (operand->dimensions.size() != 4) return;
  operand->dimensions[1] = countOf(operand->dimensions[1], steps.height);
  operand->dimensions[2] = countOf(operand->dimensions[2], steps.width);
}

// Finds out of which rows and columns each operand of the main subgraph is read.
class Analysis {
 public:
  explicit Analysis(const Model& model)
      : main_(model.main()),
        convolutions_(main_.operations.size()),
        read_(main_.operands.size()),
        computed_(main_.operands.size()) {
    // Most models end here.
    if (std::ranges::none_of(main_.operations,
                             [&](const Operation& o) { return maySkipPixels(model, o); }))
      return;
    bool hasSteps = false;
    OperationContext context;
    for (size_t o = 0; o < main_.operations.size(); ++o) {
      if (main_.operations[o].type != OperationType::kConv2d) continue;
      makeContext(model, main_, main_.operations[o], &context);
      convolutions_[o] = findFixedConv2d(context);
      hasSteps = hasSteps || (convolutions_[o] && readsPixels(*convolutions_[o]) &&
                              stepsOf(*convolutions_[o]).skip());
    }
    if (!hasSteps) return;
    for (size_t o = main_.operations.size(); o-- > 0;) findRead(o);
    for (size_t o = 0; o < main_.operations.size(); ++o) findComputed(o);
  }

  // Whether a convolution computes more than is read.
  bool hasFound() const { return hasFound_; }
  // The rows and columns of an operand that are left.
  const Steps& computed(uint32_t operand) const { return computed_[operand]; }
  // The convolution with the strides that it has then; none where they are as before.
  std::optional<FixedConv2d> changed(size_t o) const {
    if (!convolutions_[o]) return std::nullopt;
    FixedConv2d made = *convolutions_[o];
    const Steps& in = computed_[main_.operations[o].inputs[0]];
    const Steps& out = computed_[main_.operations[o].outputs[0]];
    if (in == out) return std::nullopt;
    made.window.strideHeight = made.window.strideHeight * out.height / in.height;
    made.window.strideWidth = made.window.strideWidth * out.width / in.width;
    return made;
  }
  // The positions of the inputs of an operation of which it reads fewer pixels than there are.
  std::vector<size_t> gathered(size_t o) const {
    std::vector<size_t> positions;
    const Operation& operation = main_.operations[o];
    for (size_t i = 0; i < elementwiseInputs(operation.type); ++i) {
      const Steps& out = computed_[operation.outputs[0]];
      if (out.skip() && !isOnePixel(main_.operands[operation.inputs[i]]) &&
          computed_[operation.inputs[i]] != out)
        positions.push_back(i);
    }
    return positions;
  }

 private:
  // False where the operation is no convolution whose window is one pixel and whose stride is
  // not 1. Looks at no more of it than that takes: true says nothing.
  static bool maySkipPixels(const Model& model, const Operation& operation) {
    if (operation.type != OperationType::kConv2d) return false;
    const std::vector<Operand>& operands = model.main().operands;
    const Dimensions& filter = operands[operation.inputs[1]].dimensions;
    if (filter.size() != 4 || filter[1] != 1 || filter[2] != 1) return false;
    // Where the strides are with implicit and with explicit padding.
    constexpr size_t kStrides[] = {4, 5, 7, 8};
    return std::ranges::any_of(kStrides, [&](size_t i) {
      if (i >= operation.inputs.size()) return false;
      const Operand& input = operands[operation.inputs[i]];
      if (input.type != graph::OperandType::kInt32 || !input.isConstant()) return false;
      int32_t value;
      std::memcpy(&value, model.constantData(input), sizeof value);
      return value != 1;
    });
  }

  // Whether a convolution reads single pixels, in steps that are not too long.
  static bool readsPixels(const FixedConv2d& convolution) {
    const Window2d& window = convolution.window;
    return window.filterHeight == 1 && window.filterWidth == 1 && window.padding == Padding2d() &&
           window.strideHeight <= kLongestStep && window.strideWidth <= kLongestStep;
  }
  static Steps stepsOf(const FixedConv2d& convolution) {
    return {convolution.window.strideHeight, convolution.window.strideWidth};
  }

  // Of an operation's output; all readers come behind it.
  Steps readOf(uint32_t operand) const {
    const Operand& o = main_.operands[operand];
    const Steps steps = read_[operand].value_or(Steps());
    if (o.lifetime != Lifetime::kTemporary || steps.height > kLongestStep ||
        steps.width > kLongestStep)
      return {};
    return steps;
  }

  void note(uint32_t operand, const Steps& steps) {
    std::optional<Steps>& all = read_[operand];
    all = all && *all != steps ? Steps() : steps;
  }

  bool isElementwise(const Operation& operation) const {
    const size_t count = elementwiseInputs(operation.type);
    for (size_t i = 0; i < count; ++i) {
      const Operand& input = main_.operands[operation.inputs[i]];
      if (!isOnePixel(input) &&
          (input.isConstant() || !haveSamePixels(input, main_.operands[operation.outputs[0]])))
        return false;
    }
    return count != 0;
  }

  void findRead(size_t o) {
    const Operation& operation = main_.operations[o];
    size_t known = 0;  // inputs of which less may be read
    Steps steps;
    if (convolutions_[o]) {
      if (readsPixels(*convolutions_[o])) {
        const Steps own = stepsOf(*convolutions_[o]);
        const Steps out = readOf(operation.outputs[0]);
        steps = {own.height * out.height, own.width * out.width};
        known = 1;
      }
    } else if (isElementwise(operation)) {
      steps = readOf(operation.outputs[0]);
      known = elementwiseInputs(operation.type);
    }
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      const uint32_t input = operation.inputs[i];
      note(input, i < known && !isOnePixel(main_.operands[input]) ? steps : Steps());
    }
  }

  // Only what a convolution computes is worth skipping.
  void findComputed(size_t o) {
    const Operation& operation = main_.operations[o];
    if (convolutions_[o]) {
      const uint32_t output = operation.outputs[0];
      computed_[output] = readOf(output);
      hasFound_ |= computed_[output].skip();
    } else if (isElementwise(operation)) {
      const uint32_t output = operation.outputs[0];
      const Steps steps = readOf(output);
      for (size_t i = 0; i < elementwiseInputs(operation.type); ++i)
        if (computed_[operation.inputs[i]] == steps) computed_[output] = steps;
    }
  }

  const graph::Subgraph& main_;
  std::vector<std::optional<FixedConv2d>> convolutions_;  // by operation
  std::vector<std::optional<Steps>> read_;                // by operand: none before its last reader
  std::vector<Steps> computed_;                           // by operand
  bool hasFound_ = false;
};

// Makes the model that an analysis found.
class Rewriting {
 public:
  Rewriting(const Model& model, const Analysis& analysis)
      : made_(copyOf(model, roomFor(model, analysis))) {
    std::vector<Operation> before = std::exchange(made_.main().operations, {});
    made_.main().operations.reserve(before.size());
    const auto operands = static_cast<uint32_t>(made_.main().operands.size());
    for (size_t o = 0; o < before.size(); ++o) {
      for (const size_t position : analysis.gathered(o))
        before[o].inputs[position] =
            gather(before[o].inputs[position], analysis.computed(before[o].outputs[0]));
      if (const auto changed = analysis.changed(o)) setWindow(*changed, &before[o]);
      const auto isSmaller = [&](uint32_t operand) {
        return operand < operands && analysis.computed(operand).skip();
      };
      if (std::ranges::any_of(before[o].inputs, isSmaller) ||
          std::ranges::any_of(before[o].outputs, isSmaller))
        changed_.push_back(made_.main().operations.size());
      made_.main().operations.push_back(std::move(before[o]));
    }
    for (uint32_t i = 0; i < operands; ++i)
      if (analysis.computed(i).skip()) keepEvery(analysis.computed(i), &made_.main().operands[i]);
  }

  Model take() { return std::move(made_); }

  // Whether the operations are valid that are new or have other operands than before, given that
  // all were before. A limit that the model keeps may be passed by the explicit form of a padding.
  bool isValid() const {
    const auto isValidOperation = [this](size_t o) {
      const Operation& operation = made_.main().operations[o];
      return findOperation(operation.type)->validate(made_, made_.main(), operation).has_value();
    };
    return graph::validate(made_) && std::ranges::all_of(changed_, isValidOperation);
  }

 private:
  // At least as many operands as are added.
  static size_t roomFor(const Model& model, const Analysis& analysis) {
    constexpr size_t kOfWindow = 10, kOfGather = 7;
    size_t room = 0;
    for (size_t o = 0; o < model.main().operations.size(); ++o)
      room += (analysis.changed(o) ? kOfWindow : 0) + kOfGather * analysis.gathered(o).size();
    return room;
  }
  // A copy with room for more operands: to move hundreds of them takes as long as to copy them.
  static Model copyOf(const Model& model, size_t room) {
    Model made;
    made.constantBytes = model.constantBytes;
    made.pools = model.pools;
    made.relaxFloat32ToFloat16 = model.relaxFloat32ToFloat16;
    made.extensions = model.extensions;
    const graph::Subgraph& main = model.main();
    graph::Subgraph& own = made.subgraphs.emplace_back();
    own.operands.reserve(main.operands.size() + room);
    own.operands.insert(own.operands.end(), main.operands.begin(), main.operands.end());
    own.operations = main.operations;
    own.inputs = main.inputs;
    own.outputs = main.outputs;
    own.name = main.name;
    made.subgraphs.insert(made.subgraphs.end(), model.subgraphs.begin() + 1, model.subgraphs.end());
    return made;
  }

  uint32_t add(Operand operand) {
    made_.main().operands.push_back(std::move(operand));
    return static_cast<uint32_t>(made_.main().operands.size() - 1);
  }

  template <typename T>
  uint32_t constant(graph::OperandType type, Dimensions dimensions, std::span<const T> values) {
    Operand operand;
    operand.type = type;
    operand.dimensions = std::move(dimensions);
    operand.lifetime = Lifetime::kConstantCopy;
    // Kernels read numbers where they lie.
    std::vector<uint8_t>& bytes = made_.constantBytes;
    bytes.resize((bytes.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    operand.location = {0, bytes.size(), values.size_bytes()};
    bytes.resize(bytes.size() + values.size_bytes());
    std::memcpy(bytes.data() + operand.location.offset, values.data(), values.size_bytes());
    return add(std::move(operand));
  }
  uint32_t integer(int32_t value) {
    return constant<int32_t>(graph::OperandType::kInt32, {}, std::array{value});
  }
  uint32_t integers(const std::array<int32_t, 4>& values) {
    return constant<int32_t>(graph::OperandType::kTensorInt32, {4}, values);
  }

  // The rows and columns that are read of an operand that has all.
  uint32_t gather(uint32_t source, const Steps& steps) {
    Operand operand = made_.main().operands[source];
    operand.lifetime = Lifetime::kTemporary;
    operand.location = {};
    keepEvery(steps, &operand);
    const uint32_t gathered = add(std::move(operand));
    constexpr int32_t kAllDimensions = 0b1111;
    const uint32_t none = integers({});
    changed_.push_back(made_.main().operations.size());
    made_.main().operations.push_back(
        {OperationType::kStridedSlice,
         {source, none, none, integers({1, steps.height, steps.width, 1}), integer(kAllDimensions),
          integer(kAllDimensions), integer(0)},
         {gathered},
         ""});
    return gathered;
  }

  // The form with explicit padding, which holds for each stride.
  void setWindow(const FixedConv2d& convolution, Operation* operation) {
    const Window2d& window = convolution.window;
    const uint32_t activation = operation->inputs[convolution.activation];
    operation->inputs.resize(3);
    for (const int32_t value : {window.padding.left, window.padding.right, window.padding.top,
                                window.padding.bottom, window.strideWidth, window.strideHeight})
      operation->inputs.push_back(integer(value));
    operation->inputs.push_back(activation);
    operation->inputs.push_back(
        constant<uint8_t>(graph::OperandType::kBool, {}, std::array{uint8_t{0}}));
    operation->inputs.push_back(integer(window.dilationWidth));
    operation->inputs.push_back(integer(window.dilationHeight));
  }

  Model made_;
  std::vector<size_t> changed_;  // of the operations
};

}  // namespace

std::shared_ptr<const Model> withoutUnreadPixels(std::shared_ptr<const Model> model) {
  const Analysis analysis(*model);
  if (!analysis.hasFound()) return model;
  Rewriting rewriting(*model, analysis);
  if (!rewriting.isValid()) return model;
  return std::make_shared<const Model>(rewriting.take());
}

}  // namespace hearth::ops
