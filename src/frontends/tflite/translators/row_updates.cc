// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/row_updates.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "ops/control_flow.h"

namespace hearth::tflite {
namespace {

using graph::Dimensions;
using graph::Lifetime;
using graph::Operand;
using graph::OperandType;
using graph::Operation;
using graph::OperationType;

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

class RowUpdates {
 public:
  RowUpdates(ModelBuilder& builder, graph::Subgraph* subgraph)
      : builder_(builder),
        subgraph_(*subgraph),
        producers_(subgraph->operands.size(), kNone),
        reads_(subgraph->operands.size()) {
    std::vector<bool> isWritten(subgraph_.operands.size());
    for (uint32_t o = 0; o < subgraph_.operations.size(); ++o) {
      for (const uint32_t input : subgraph_.operations[o].inputs) ++reads_[input];
      for (const uint32_t output : subgraph_.operations[o].outputs) {
        // The validation of the model refuses what is written twice.
        producers_[output] = isWritten[output] ? kNone : o;
        isWritten[output] = true;
      }
    }
    for (const uint32_t output : subgraph_.outputs) ++reads_[output];
  }

  // To be called before write(), if nothing but the body of this loop is the subgraph: finds the
  // inputs that begin at 0 or above and grow by 1 in each round.
  void findCounters(const graph::Subgraph& outer, std::span<const uint32_t> loopInputs) {
    const size_t count = std::min(subgraph_.inputs.size(), subgraph_.outputs.size());
    for (size_t i = 0; i < count && ops::kWhileFirstInput + i < loopInputs.size(); ++i) {
      const auto first = integersOf(outer.operands[loopInputs[ops::kWhileFirstInput + i]]);
      if (first && first->front() >= 0 && isInteger(subgraph_.inputs[i]) &&
          isNext(subgraph_.outputs[i], subgraph_.inputs[i]))
        counters_.insert(subgraph_.inputs[i]);
    }
  }

  void write() {
    std::vector<std::pair<uint32_t, Operation>> begins;  // in front of which operation
    std::vector<bool> isRemoved(subgraph_.operations.size());
    for (uint32_t o = 0; o < subgraph_.operations.size(); ++o) {
      const std::optional<RowUpdate> update = find(subgraph_.operations[o]);
      if (!update) continue;
      begins.emplace_back(o, replace(o, *update));
      for (const uint32_t operation : update->replaced)
        isRemoved[operation] = isRemoved[operation] || isUnread(operation);
    }
    if (begins.empty()) return;
    std::vector<Operation> kept;
    auto begin = begins.begin();
    for (uint32_t o = 0; o < subgraph_.operations.size(); ++o) {
      if (begin != begins.end() && begin->first == o) kept.push_back(std::move(begin++->second));
      if (!isRemoved[o]) kept.push_back(std::move(subgraph_.operations[o]));
    }
    subgraph_.operations = std::move(kept);
  }

 private:
  struct RowUpdate {
    uint32_t data = 0;
    uint32_t row = 0;     // what is written
    uint32_t number = 0;  // where, of rank 1
    uint32_t zeros = 0;   // where in the other dimensions
    uint32_t axis = 0;    // of CONCATENATION: 0
    // What has no reader any more, unless others read it, each behind those that read its results.
    std::vector<uint32_t> replaced;
  };
  // One of the two slices.
  struct Part {
    uint32_t operation = 0;
    uint32_t data = 0, begin = 0, size = 0;
  };
  // A list of integers with a computed first one.
  struct ComputedList {
    uint32_t operation = 0;
    uint32_t first = 0;  // of rank 1
    uint32_t others = 0;
  };

  const Operand& operand(uint32_t index) const { return subgraph_.operands[index]; }

  std::optional<RowUpdate> find(const Operation& join) const {
    constexpr size_t kAxis = 3;
    if (!isJoinOfRows(join, kAxis)) return std::nullopt;
    const std::optional<Part> before = partOf(join.inputs[0]);
    const std::optional<Part> behind = partOf(join.inputs[2]);
    if (!before || !behind || before->data != behind->data) return std::nullopt;
    const uint32_t data = before->data;
    const std::optional<ComputedList> size = computedList(before->size);
    const std::optional<ComputedList> begin = computedList(behind->begin);
    if (!haveFormsOfAnUpdate(data, join)) return std::nullopt;
    const size_t rank = operand(data).dimensions.size();
    if (!size || !begin || !areZeros(before->begin, rank) || !areZeros(begin->others, rank - 1) ||
        !takesAll(size->others, data, 1) || !takesAll(behind->size, data, 0) ||
        integersOf(behind->size)->front() != -1)
      return std::nullopt;
    const uint32_t number = elementOf(size->first);
    const uint32_t next = elementOf(begin->first);
    const bool isNeverBelow0 = counters_.contains(number);
    if (!isNext(next, number) || (!isNeverBelow0 && !keepsKnownRows(data, join.outputs[0])))
      return std::nullopt;
    RowUpdate update{data,
                     join.inputs[1],
                     size->first,
                     begin->others,
                     join.inputs[kAxis],
                     {before->operation, behind->operation, size->operation, begin->operation}};
    if (next != begin->first) update.replaced.push_back(producers_[begin->first]);
    update.replaced.push_back(producers_[next]);
    return update;
  }

  // CONCATENATION of three tensors along the first axis.
  bool isJoinOfRows(const Operation& operation, size_t axis) const {
    return operation.type == OperationType::kConcatenation && operation.inputs.size() == axis + 1 &&
           operation.outputs.size() == 1 && isScalar(operation.inputs[axis], 0);
  }

  std::optional<Part> partOf(uint32_t result) const {
    const Operation* const slice = producer(result, OperationType::kSlice, 3);
    if (slice == nullptr || reads_[result] != 1) return std::nullopt;
    return Part{producers_[result], slice->inputs[0], slice->inputs[1], slice->inputs[2]};
  }

  std::optional<ComputedList> computedList(uint32_t list) const {
    const Operation* const join = producer(list, OperationType::kConcatenation, 3);
    if (join == nullptr || !isScalar(join->inputs[2], 0) ||
        operand(join->inputs[0]).dimensions != Dimensions{1} || !isInteger(join->inputs[0]))
      return std::nullopt;
    return ComputedList{producers_[list], join->inputs[0], join->inputs[1]};
  }

  // Whether types, scales and shapes are those of an update of a row.
  bool haveFormsOfAnUpdate(uint32_t data, const Operation& join) const {
    const Operand& whole = operand(data);
    const Operand& row = operand(join.inputs[1]);
    const Operand& result = operand(join.outputs[0]);
    const size_t rank = whole.dimensions.size();
    if (rank < 2 || row.dimensions.size() != rank || row.dimensions[0] != 1 ||
        (result.dimensions.empty() && result.isRankZeroTensor))
      return false;
    for (const uint32_t part : {join.inputs[0], join.inputs[2]})
      if (!mayBeAnyPart(operand(part), whole)) return false;
    return std::ranges::all_of(
        std::array{join.inputs[0], join.inputs[1], join.inputs[2], join.outputs[0]},
        [&](uint32_t index) { return haveSameElements(operand(index), whole); });
  }

  bool keepsKnownRows(uint32_t data, uint32_t result) const {
    const Dimensions& before = operand(data).dimensions;
    const Dimensions& after = operand(result).dimensions;
    return before[0] != 0 && !after.empty() && after[0] == before[0];
  }

  static bool haveSameElements(const Operand& a, const Operand& b) {
    return a.type == b.type && a.scale == b.scale && a.zeroPoint == b.zeroPoint &&
           a.perChannel.scales.empty() && b.perChannel.scales.empty();
  }

  // Whether the file lets a slice have any number of rows, and all that is in them.
  static bool mayBeAnyPart(const Operand& part, const Operand& whole) {
    if (part.dimensions.empty()) return !part.isRankZeroTensor;
    if (part.dimensions.size() != whole.dimensions.size() || part.dimensions[0] != 0) return false;
    for (size_t i = 1; i < part.dimensions.size(); ++i)
      if (part.dimensions[i] != 0 && part.dimensions[i] != whole.dimensions[i]) return false;
    return true;
  }

  // The operation that writes an operand, if it has this type and so many inputs.
  const Operation* producer(uint32_t index, OperationType type, size_t inputs) const {
    const Lifetime lifetime = operand(index).lifetime;
    if (producers_[index] == kNone ||
        (lifetime != Lifetime::kTemporary && lifetime != Lifetime::kSubgraphOutput))
      return nullptr;
    const Operation& operation = subgraph_.operations[producers_[index]];
    const bool fits = operation.type == type && operation.inputs.size() == inputs &&
                      operation.outputs.size() == 1;
    return fits ? &operation : nullptr;
  }

  // An integer of which RESHAPE or EXPAND_DIMS makes a list of one, or the list itself.
  uint32_t elementOf(uint32_t list) const {
    for (const OperationType type : {OperationType::kReshape, OperationType::kExpandDims}) {
      const Operation* const operation = producer(list, type, 2);
      if (operation != nullptr && isInteger(operation->inputs[0])) return operation->inputs[0];
    }
    return list;
  }

  // Whether one operand is the other plus 1.
  bool isNext(uint32_t next, uint32_t number) const {
    const Operation* const sum = producer(next, OperationType::kAdd, 3);
    if (sum == nullptr || !isScalar(sum->inputs[2], 0) || !isInteger(next)) return false;
    const uint32_t a = sum->inputs[0];
    const uint32_t b = sum->inputs[1];
    return (a == number && isOne(b)) || (b == number && isOne(a));
  }
  bool isOne(uint32_t index) const {
    if (!isInteger(index)) return false;
    const auto values = integersOf(index);
    return values && values->front() == 1;
  }

  // An INT32 tensor of one element.
  bool isInteger(uint32_t index) const {
    const Operand& found = operand(index);
    return found.type == OperandType::kTensorInt32 &&
           (found.isRankZeroTensor || found.dimensions == Dimensions{1});
  }
  bool isScalar(uint32_t index, int32_t value) const {
    const Operand& found = operand(index);
    const uint8_t* const bytes = builder_.model().constantData(found);
    return found.type == OperandType::kInt32 && bytes != nullptr &&
           found.location.length == sizeof(value) && std::memcmp(bytes, &value, sizeof(value)) == 0;
  }
  bool isList(uint32_t index) const { return operand(index).dimensions.size() == 1; }
  bool areZeros(uint32_t index, size_t count) const {
    const auto values = integersOf(index);
    return values && isList(index) && values->size() == count &&
           std::ranges::count(*values, 0) == std::ssize(*values);
  }
  // Whether sizes from dimension `first` of the data on take all, except in dimension 0.
  bool takesAll(uint32_t sizes, uint32_t data, size_t first) const {
    const Dimensions& whole = operand(data).dimensions;
    const auto values = integersOf(sizes);
    if (!values || !isList(sizes) || values->size() != whole.size() - first) return false;
    for (size_t i = std::max<size_t>(first, 1); i < whole.size(); ++i) {
      const int32_t size = (*values)[i - first];
      if (size != -1 && (size <= 0 || static_cast<uint32_t>(size) != whole[i])) return false;
    }
    return true;
  }
  // The values of an INT32 constant; nothing for any other operand, or one without elements.
  std::optional<std::vector<int32_t>> integersOf(uint32_t index) const {
    return integersOf(operand(index));
  }
  std::optional<std::vector<int32_t>> integersOf(const Operand& found) const {
    const uint8_t* const bytes = builder_.model().constantData(found);
    if (found.type != OperandType::kTensorInt32 || bytes == nullptr || found.location.length == 0 ||
        found.location.length > kMostIntegers * sizeof(int32_t))
      return std::nullopt;
    std::vector<int32_t> values(found.location.length / sizeof(int32_t));
    std::memcpy(values.data(), bytes, values.size() * sizeof(int32_t));
    return values;
  }

  // Makes an operation the update. Returns the operation that makes the update's begin.
  Operation replace(uint32_t index, const RowUpdate& update) {
    Operand begin;
    begin.type = OperandType::kTensorInt32;
    begin.dimensions = {static_cast<uint32_t>(operand(update.data).dimensions.size())};
    const uint32_t begins = add(std::move(begin));
    if (isRow_ == kNone) {
      Operand flag;
      flag.type = OperandType::kBool;
      flag.lifetime = Lifetime::kConstantCopy;
      flag.location = builder_.copyUncharged(std::array<uint8_t, 1>{1});
      isRow_ = add(std::move(flag));
    }
    Operation& operation = subgraph_.operations[index];
    for (const uint32_t input : operation.inputs) --reads_[input];
    operation.type = OperationType::kDynamicUpdateSlice;
    operation.inputs = {update.data, update.row, begins, isRow_};
    Operation join{.type = OperationType::kConcatenation,
                   .inputs = {update.number, update.zeros, update.axis},
                   .outputs = {begins},
                   .name = {}};
    for (const auto* inputs : {&operation.inputs, &join.inputs})
      for (const uint32_t input : *inputs) ++reads_[input];
    return join;
  }

  // Whether nobody reads the results of an operation, which then reads nothing either.
  bool isUnread(uint32_t index) {
    const Operation& operation = subgraph_.operations[index];
    if (std::ranges::any_of(operation.outputs,
                            [&](uint32_t output) { return reads_[output] != 0; }))
      return false;
    for (const uint32_t input : operation.inputs) --reads_[input];
    return true;
  }

  // Each replaces operands and operations that were charged.
  uint32_t add(Operand added) {
    subgraph_.operands.push_back(std::move(added));
    reads_.push_back(0);
    producers_.push_back(kNone);
    return static_cast<uint32_t>(subgraph_.operands.size() - 1);
  }

  // More than any rank.
  static constexpr uint64_t kMostIntegers = 64;

  ModelBuilder& builder_;
  graph::Subgraph& subgraph_;
  std::vector<uint32_t> producers_;  // by operand
  std::vector<size_t> reads_;
  std::set<uint32_t> counters_;
  uint32_t isRow_ = kNone;
};

// What refers to a subgraph.
struct References {
  size_t count = 0;
  // Of the loop of which it is the body, if there is one: where it lies, and its inputs.
  size_t outer = 0;
  std::vector<uint32_t> loopInputs;
};

std::vector<References> referencesOf(const graph::Model& model) {
  std::vector<References> found(model.subgraphs.size());
  for (size_t g = 0; g < model.subgraphs.size(); ++g) {
    const graph::Subgraph& outer = model.subgraphs[g];
    for (const Operand& operand : outer.operands)
      if (operand.lifetime == Lifetime::kSubgraph) ++found[operand.subgraphIndex].count;
    for (const Operation& operation : outer.operations) {
      if (operation.type != OperationType::kWhile) continue;
      const Operand& body = outer.operands[operation.inputs[ops::kWhileBody]];
      found[body.subgraphIndex].outer = g;
      found[body.subgraphIndex].loopInputs = operation.inputs;
    }
  }
  return found;
}

// Whether a subgraph may have what is looked for.
bool joinsThree(const graph::Subgraph& subgraph) {
  return std::ranges::any_of(subgraph.operations, [](const Operation& operation) {
    constexpr size_t kInputs = 4;
    return operation.type == OperationType::kConcatenation && operation.inputs.size() == kInputs;
  });
}

}  // namespace

void writeRowUpdates(ModelBuilder& builder, graph::Model* model) {
  if (std::ranges::none_of(model->subgraphs, joinsThree)) return;
  const std::vector<References> references = referencesOf(*model);
  for (size_t g = 0; g < model->subgraphs.size(); ++g) {
    if (!joinsThree(model->subgraphs[g])) continue;
    RowUpdates updates(builder, &model->subgraphs[g]);
    const References& to = references[g];
    if (to.count == 1) updates.findCounters(model->subgraphs[to.outer], to.loopInputs);
    updates.write();
  }
}

}  // namespace hearth::tflite
