// SPDX-License-Identifier: Apache-2.0
// Builds random graphs. Computes each operation when it is added, and keeps the value of each
// operand.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ops/half.h"
#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/reference/kernels.h"
#include "runtime/testing/random_graph.h"

namespace hearth::runtime::random_graph {

using graph::Dimensions;
using graph::Lifetime;
using graph::OperandType;
using graph::OperationType;

inline constexpr auto kFloat = OperandType::kTensorFloat32;
inline constexpr auto kHalf = OperandType::kTensorFloat16;
inline constexpr auto kInt32 = OperandType::kTensorInt32;
inline constexpr auto kBool = OperandType::kTensorBool8;
inline constexpr auto kUint8 = OperandType::kTensorQuant8Asymm;
inline constexpr auto kInt8 = OperandType::kTensorQuant8AsymmSigned;
inline constexpr auto kInt16 = OperandType::kTensorQuant16Symm;
inline constexpr auto kInt64 = OperandType::kTensorInt64;

// The value of an operand.
struct Value {
  std::vector<uint8_t> bytes;
  double error = 0;     // largest error of another correct implementation
  double greatest = 0;  // greatest absolute value, with headroom
};

// Type and quantisation of a result.
struct Form {
  OperandType type = kFloat;
  float scale = 0;
  int32_t zeroPoint = 0;
};

inline size_t countOf(const Dimensions& dimensions) {
  size_t count = 1;
  for (const uint32_t dimension : dimensions) count *= dimension;
  return count;
}

inline bool isReal(OperandType type) {
  return type == kFloat || type == kHalf || type == kUint8 || type == kInt8 || type == kInt16;
}

inline bool isInteger(OperandType type) {
  return type == kInt32 || type == kInt64;
}

// Collects a model. Used by one thread.
class GraphBuilder {
 protected:
  GraphBuilder(uint64_t seed, double headroom) : random_(seed), headroom_(headroom) {
    model_.subgraphs.resize(1);
  }

  graph::Subgraph& main() { return model_.main(); }
  graph::Operand& operand(uint32_t index) { return main().operands[index]; }
  const Dimensions& shape(uint32_t index) { return operand(index).dimensions; }
  OperandType type(uint32_t index) { return operand(index).type; }

  uint32_t number(uint32_t least, uint32_t most) {
    return least + static_cast<uint32_t>(random_() % (most - least + 1));
  }
  bool chance(uint32_t percent) { return random_() % 100 < percent; }
  float real(float least, float most) {
    return std::uniform_real_distribution<float>(least, most)(random_);
  }

  OperandType anyType() {
    constexpr OperandType kTypes[] = {kFloat, kFloat, kFloat, kFloat, kInt8,  kInt8,  kUint8,
                                      kUint8, kHalf,  kInt16, kInt32, kInt32, kInt64, kBool};
    return kTypes[random_() % std::size(kTypes)];
  }
  Dimensions anyShape() {
    if (chance(60)) return {number(1, 2), number(4, 9), number(4, 9), number(1, 12)};
    Dimensions dimensions(number(1, 4));
    for (uint32_t& dimension : dimensions) dimension = number(1, 7);
    return dimensions;
  }
  Form anyForm(OperandType type, float range) {
    Form form{type};
    if (type == kUint8 || type == kInt8) {
      form.scale = 2 * range / 255;
      form.zeroPoint = static_cast<int32_t>(number(0, 60)) - 30 + (type == kUint8 ? 128 : 0);
    } else if (type == kInt16) {
      form.scale = range / 32767;
    }
    return form;
  }

  std::vector<uint8_t> randomContent(OperandType type, size_t count) {
    std::vector<uint8_t> bytes(count * graph::elementSize(type));
    for (size_t i = 0; i < count; ++i) {
      switch (type) {
        case kFloat:
          put(&bytes, i, real(-4, 4));
          break;
        case kHalf:
          put(&bytes, i, static_cast<ops::Half>(real(-4, 4)));
          break;
        case kInt32:
          put(&bytes, i, static_cast<int32_t>(number(0, 40)) - 20);
          break;
        case kInt64:
          put(&bytes, i, int64_t{number(0, 40)} - 20);
          break;
        case kInt16:
          put(&bytes, i, static_cast<int16_t>(random_()));
          break;
        case kBool:
          bytes[i] = random_() % 2;
          break;
        default:
          bytes[i] = static_cast<uint8_t>(random_());
      }
    }
    return bytes;
  }
  template <typename T>
  static void put(std::vector<uint8_t>* bytes, size_t index, T value) {
    std::memcpy(bytes->data() + index * sizeof(T), &value, sizeof(T));
  }

  uint32_t add(graph::Operand operand, std::vector<uint8_t> bytes) {
    const auto index = static_cast<uint32_t>(main().operands.size());
    main().operands.push_back(std::move(operand));
    Value value;
    value.bytes = std::move(bytes);
    values_.push_back(std::move(value));
    values_.back().greatest = headroom_ * greatestOf(index);
    return index;
  }
  graph::Operand shaped(Form form, Dimensions dimensions) {
    graph::Operand made;
    made.type = form.type;
    made.dimensions = std::move(dimensions);
    made.scale = form.scale;
    made.zeroPoint = form.zeroPoint;
    return made;
  }
  uint32_t addInput(OperandType type, const Dimensions& dimensions) {
    graph::Operand made = shaped(anyForm(type, 4), dimensions);
    made.lifetime = Lifetime::kSubgraphInput;
    const uint32_t index = add(std::move(made), randomContent(type, countOf(dimensions)));
    main().inputs.push_back(index);
    tensors_.push_back(index);
    return index;
  }
  uint32_t addConstant(Form form, const Dimensions& dimensions, std::vector<uint8_t> bytes) {
    graph::Operand made = shaped(form, dimensions);
    made.lifetime = Lifetime::kConstantCopy;
    while (model_.constantBytes.size() % 8 != 0) model_.constantBytes.push_back(0);
    made.location.offset = model_.constantBytes.size();
    made.location.length = bytes.size();
    model_.constantBytes.insert(model_.constantBytes.end(), bytes.begin(), bytes.end());
    return add(std::move(made), std::move(bytes));
  }
  uint32_t scalar(int32_t value) { return addScalar(OperandType::kInt32, value); }
  uint32_t scalar(float value) { return addScalar(OperandType::kFloat32, value); }
  uint32_t scalar(bool value) { return addScalar(OperandType::kBool, uint8_t{value}); }
  template <typename T>
  uint32_t addScalar(OperandType type, T value) {
    std::vector<uint8_t> bytes(sizeof(T));
    put(&bytes, 0, value);
    return addConstant({type}, {}, std::move(bytes));
  }
  uint32_t ints(const std::vector<int32_t>& numbers) {
    std::vector<uint8_t> bytes(numbers.size() * sizeof(int32_t));
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return addConstant({kInt32}, {static_cast<uint32_t>(numbers.size())}, std::move(bytes));
  }

  ops::Tensor tensorOf(uint32_t index) {
    ops::Tensor tensor;
    tensor.operand = &operand(index);
    tensor.dimensions = shape(index);
    tensor.data = values_[index].bytes.data();
    tensor.isPresent = tensor.hasKnownShape = true;
    return tensor;
  }
  double greatestOf(uint32_t index) {
    if (!isReal(type(index)) || values_[index].bytes.empty()) return 0;
    const ops::RealInput values(tensorOf(index));
    double greatest = 0;
    for (const float value : values) greatest = std::max(greatest, std::abs(double{value}));
    return greatest;
  }

  // A random tensor for which `fits` holds; nullopt if there is none.
  template <typename Fits>
  std::optional<uint32_t> pick(const Fits& fits) {
    std::vector<uint32_t> found;
    for (const uint32_t index : tensors_)
      if (fits(index)) found.push_back(index);
    if (found.empty()) return std::nullopt;
    // Prefers recent results, so that graphs become deep.
    const size_t from = chance(60) ? found.size() * 2 / 3 : 0;
    return found[from + random_() % (found.size() - from)];
  }
  std::optional<uint32_t> pickReal() {
    return pick([&](uint32_t i) { return isReal(type(i)) && isTelling(i); });
  }
  // Whether the error is small enough for a comparison to detect faults.
  bool isTelling(uint32_t index) {
    return headroom_ * values_[index].error <= 0.05 * values_[index].greatest;
  }
  bool isExact(uint32_t index) { return values_[index].error == 0; }

  // How large the error of an operation's output may be.
  struct Rule {
    double passedOn = 0;     // error from the inputs
    bool isExact = false;    // the operation adds no rounding
    double accumulated = 0;  // greatest sum of absolute products, for float rounding
  };
  // Adds the operation; none if it is not valid, or a result is empty, a scalar or too large.
  void addResult(OperationType operationType, std::vector<uint32_t> inputs, Form form, Rule rule) {
    addResults(operationType, std::move(inputs), {form}, rule);
  }
  // The same for one with several results, which obey one rule.
  void addResults(OperationType operationType, std::vector<uint32_t> inputs,
                  const std::vector<Form>& forms, Rule rule) {
    graph::Operation operation;
    operation.type = operationType;
    operation.inputs = std::move(inputs);
    const size_t first = main().operands.size();
    for (const Form& form : forms) {
      operation.outputs.push_back(static_cast<uint32_t>(main().operands.size()));
      graph::Operand made = shaped(form, {});
      made.lifetime = Lifetime::kTemporary;
      main().operands.push_back(made);
      values_.emplace_back();
    }
    const auto giveUp = [&] {
      main().operands.resize(first);
      values_.resize(first);
    };
    const ops::OperationDefinition* definition = ops::findOperation(operationType);
    if (!definition->validate(model_, main(), operation)) return giveUp();
    ops::OperationContext context = ops::makeContext(model_, main(), operation);
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      if (operand(operation.inputs[i]).lifetime == Lifetime::kNoValue) continue;
      context.inputs[i] = tensorOf(operation.inputs[i]);
    }
    constexpr size_t kMostElements = 20000;
    if (!definition->prepare(context)) return giveUp();
    for (size_t i = 0; i < forms.size(); ++i) {
      ops::Tensor& result = context.outputs[i];
      const size_t count = result.elementCount();
      if (count == 0 || count > kMostElements || result.rank() == 0) return giveUp();
      const uint32_t output = operation.outputs[i];
      operand(output).dimensions = result.dimensions;
      values_[output].bytes.resize(count * graph::elementSize(forms[i].type));
      result.data = values_[output].bytes.data();
    }
    // The reference kernel computes, because the kernels of src/ops are under test, too.
    const ops::reference::Kernel kernel = ops::reference::findKernel(operationType);
    if (kernel == nullptr || !kernel(context))
      throw std::logic_error(std::string("The formula does not compute ") +
                             graph::nameOf(operationType));
    for (size_t i = 0; i < forms.size(); ++i) {
      const uint32_t output = operation.outputs[i];
      const double greatest = greatestOf(output);
      // Excludes infinities and numbers beyond float16.
      if (!(greatest < 1000)) return giveUp();
      values_[output].greatest = headroom_ * greatest;
      values_[output].error = errorOf(forms[i], rule, headroom_ * greatest);
    }
    tensors_.insert(tensors_.end(), operation.outputs.begin(), operation.outputs.end());
    main().operations.push_back(std::move(operation));
  }
  static double errorOf(Form form, const Rule& rule, double greatest) {
    if (!isReal(form.type)) return 0;
    double error = rule.passedOn;
    if (form.type == kHalf && (!rule.isExact || error > 0)) error += 2e-3 * greatest + 1e-6;
    if (form.type == kFloat && !rule.isExact)
      error += 1e-5 * std::max(greatest, rule.accumulated) + 1e-7;
    if (form.scale > 0 && !rule.isExact) error += 1.01 * form.scale;
    return error;
  }

  // The form of an operand, and a new one for numbers up to `range`.
  Form formOf(uint32_t index) {
    return {type(index), operand(index).scale, operand(index).zeroPoint};
  }
  Form formFor(OperandType type, double range) {
    return anyForm(type, static_cast<float>(std::max(range, 0.1)));
  }

  // The form that results of functions onto [-1, 1] (signed) and [0, 1] must have.
  static Form formOfUnit(OperandType type, bool isSigned) {
    if (type == kInt16) return {type, 1.0f / 32768, 0};
    if (isSigned) return {type, 1.0f / 128, type == kInt8 ? 0 : 128};
    return {type, 1.0f / 256, type == kInt8 ? -128 : 0};
  }

  // A tensor to combine with `index` element by element.
  uint32_t partnerOf(uint32_t index) {
    const auto other = pick([&](uint32_t i) {
      return type(i) == type(index) && shape(i) == shape(index) && (isExact(i) || isTelling(i));
    });
    if (other && chance(60)) return *other;
    Dimensions dimensions = shape(index);
    for (uint32_t& dimension : dimensions)
      if (chance(25)) dimension = 1;
    if (chance(30) && dimensions.size() > 1) dimensions.erase(dimensions.begin());
    if (chance(30)) return addInput(type(index), dimensions);
    return addConstant(anyForm(type(index), 4), dimensions,
                       randomContent(type(index), countOf(dimensions)));
  }

  RandomGraph finish() {
    std::vector<bool> isRead(main().operands.size());
    for (const graph::Operation& operation : main().operations)
      for (const uint32_t input : operation.inputs) isRead[input] = true;
    RandomGraph made;
    for (const graph::Operation& operation : main().operations)
      for (const uint32_t output : operation.outputs) {
        // All results that no operation reads become outputs, and some of the others.
        if (isRead[output] && !chance(10)) continue;
        operand(output).lifetime = Lifetime::kSubgraphOutput;
        main().outputs.push_back(output);
        made.outputs.push_back(values_[output].bytes);
        made.tolerances.push_back(values_[output].error);
      }
    for (const uint32_t input : main().inputs) made.inputs.push_back(values_[input].bytes);
    for (const Value& value : values_) made.limits.push_back(value.greatest);
    made.model = std::make_shared<graph::Model>(std::move(model_));
    return made;
  }

  std::mt19937_64 random_;
  const double headroom_;
  graph::Model model_;
  std::vector<Value> values_;      // by operand
  std::vector<uint32_t> tensors_;  // inputs and results
};

}  // namespace hearth::runtime::random_graph
