// SPDX-License-Identifier: Apache-2.0
#include "ops/kv_layout.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "graph/validated_model.h"
#include "ops/operation.h"
#include "ops/transpose.h"

namespace hearth::ops {
namespace {

using graph::Dimensions;
using graph::Lifetime;
using graph::Operand;
using graph::OperandType;
using graph::Operation;
using graph::OperationType;

constexpr size_t kRightMatrix = 1;
constexpr size_t kIsRightTransposed = 3;  // of BATCH_MATMUL's inputs

// The same order, with the last two entries exchanged.
template <typename T>
std::vector<T> exchanged(std::vector<T> list) {
  std::swap(list[list.size() - 2], list[list.size() - 1]);
  return list;
}

class Exchanger {
 public:
  Exchanger(graph::Model model, size_t pairs)
      : model_(std::move(model)),
        main_(model_.main()),
        inserted_(main_.operations.size() + 1),
        uses_(main_.operands.size()),
        producers_(main_.operands.size()) {
    // A list that doubles would be half empty as long as the model lives.
    constexpr size_t kMostAddedForPair = 5;
    constexpr size_t kMostAddedOnce = 8;
    main_.operands.reserve(main_.operands.size() + kMostAddedForPair * pairs + kMostAddedOnce);
    for (uint32_t n = 0; n < main_.operations.size(); ++n) {
      const Operation& operation = main_.operations[n];
      for (size_t i = 0; i < operation.inputs.size(); ++i)
        uses_[operation.inputs[i]].push_back({n, i});
      for (const uint32_t output : operation.outputs) producers_[output] = n;
    }
  }

  // True if the pair's axes are exchanged now.
  Result<bool> exchange(const CachePair& pair) {
    const uint32_t cache = main_.inputs[pair.input];
    const uint32_t grown = main_.outputs[pair.output];
    const std::optional<uint32_t> update = findUpdate(cache, grown);
    if (!update) return false;
    std::vector<uint32_t> inputs = main_.operations[*update].inputs;
    HEARTH_ASSIGN(inputs[1], exchangedUpdate(*update, inputs[1]));
    inputs[2] = exchangedBegin(inputs[2]);
    main_.operations[*update].inputs = std::move(inputs);
    for (const uint32_t operand : {cache, grown})
      main_.operands[operand].dimensions = exchanged(main_.operands[operand].dimensions);
    for (const Use& use : uses_[grown]) {
      std::vector<uint32_t>& arguments = main_.operations[use.operation].inputs;
      arguments.resize(std::max(arguments.size(), kIsRightTransposed + 1), flag(false));
      arguments[kIsRightTransposed] = flag(!isSet(arguments[kIsRightTransposed]));
    }
    return true;
  }

  // With the operations that were added. Errors of the validation.
  Result<std::shared_ptr<const graph::Model>> finish() {
    std::vector<Operation> all;
    for (size_t n = 0; n < inserted_.size(); ++n) {
      std::ranges::move(inserted_[n], std::back_inserter(all));
      if (n < main_.operations.size()) all.push_back(std::move(main_.operations[n]));
    }
    main_.operations = std::move(all);
    // Runtime and driver would each check a model that is not known to be valid.
    return graph::ValidatedModel::of(std::move(model_));
  }

 private:
  struct Use {
    uint32_t operation = 0;
    size_t input = 0;
  };

  bool isOutput(uint32_t operand) const {
    return std::ranges::find(main_.outputs, operand) != main_.outputs.end();
  }

  // The operation that makes `grown` of `cache`, if both can be exchanged.
  std::optional<uint32_t> findUpdate(uint32_t cache, uint32_t grown) const {
    const Operand& data = main_.operands[cache];
    const size_t rank = data.dimensions.size();
    if (rank < 2 || data.dimensions != main_.operands[grown].dimensions ||
        data.lifetime != Lifetime::kSubgraphInput || elementSize(data) == 0 ||
        !data.perChannel.scales.empty() || uses_[cache].size() != 1 ||
        std::ranges::count(main_.inputs, cache) != 1 ||
        std::ranges::count(main_.outputs, grown) != 1)
      return std::nullopt;
    const auto [operation, position] = uses_[cache].front();
    const Operation& update = main_.operations[operation];
    constexpr size_t kUpdateInputs = 3;  // rows have a fourth
    if (!isValid(update, OperationType::kDynamicUpdateSlice) || position != 0 ||
        update.inputs.size() != kUpdateInputs || update.outputs != std::vector<uint32_t>{grown})
      return std::nullopt;
    const Dimensions& part = main_.operands[update.inputs[1]].dimensions;
    const Dimensions& begin = main_.operands[update.inputs[2]].dimensions;
    if (part.size() != rank || begin != Dimensions{static_cast<uint32_t>(rank)} ||
        !std::equal(part.begin(), part.end() - 1, data.dimensions.begin()) || part.back() == 0 ||
        part.back() >= data.dimensions.back() || std::ranges::contains(part, 0u))
      return std::nullopt;
    const bool isMultiplied = std::ranges::all_of(uses_[grown], [&](const Use& use) {
      const Operation& reader = main_.operations[use.operation];
      return isValid(reader, OperationType::kBatchMatmul) && use.input == kRightMatrix &&
             (reader.inputs.size() <= kIsRightTransposed ||
              isConstantOrOmitted(reader.inputs[kIsRightTransposed]));
    });
    return isMultiplied ? std::optional(operation) : std::nullopt;
  }

  bool isValid(const Operation& operation, OperationType type) const {
    return operation.type == type &&
           findOperation(type)->validate(model_, main_, operation).has_value();
  }
  bool isConstantOrOmitted(uint32_t operand) const {
    const Operand& found = main_.operands[operand];
    return !found.hasValue() || found.isConstant();
  }
  bool isSet(uint32_t operand) const {
    const uint8_t* const value = model_.constantData(main_.operands[operand]);
    return value != nullptr && *value != 0;
  }

  template <typename T>
  uint32_t constant(OperandType type, Dimensions dimensions, const std::vector<T>& values) {
    std::vector<uint8_t>& all = model_.constantBytes;
    all.resize((all.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t));
    Operand operand;
    operand.type = type;
    operand.dimensions = std::move(dimensions);
    operand.lifetime = Lifetime::kConstantCopy;
    operand.location = {0, all.size(), values.size() * sizeof(T)};
    const auto* const first = reinterpret_cast<const uint8_t*>(values.data());
    all.insert(all.end(), first, first + operand.location.length);
    return add(std::move(operand));
  }
  uint32_t integers(const std::vector<int32_t>& values) {
    return constant(OperandType::kTensorInt32, {static_cast<uint32_t>(values.size())}, values);
  }
  uint32_t flag(bool value) {
    std::optional<uint32_t>& made = flags_[value ? 1 : 0];
    if (!made) made = constant(OperandType::kBool, {}, std::vector<uint8_t>(1, value ? 1 : 0));
    return *made;
  }
  uint32_t add(Operand operand) {
    main_.operands.push_back(std::move(operand));
    return static_cast<uint32_t>(main_.operands.size() - 1);
  }

  // What an operation in front of operation `place` makes of a tensor.
  uint32_t insert(size_t place, OperationType type, std::vector<uint32_t> inputs,
                  Dimensions dimensions) {
    Operand made = main_.operands[inputs.front()];
    made.dimensions = std::move(dimensions);
    made.lifetime = Lifetime::kTemporary;
    made.location = {};
    const uint32_t output = add(std::move(made));
    inserted_[place].push_back({type, std::move(inputs), {output}, {}});
    return output;
  }

  // The values that operation `update` writes, with their axes exchanged. A TRANSPOSE that made
  // them makes these instead.
  Result<uint32_t> exchangedUpdate(uint32_t update, uint32_t part) {
    const Dimensions dimensions = exchanged(main_.operands[part].dimensions);
    const std::optional<uint32_t> producer = producers_[part];
    if (producer && isValid(main_.operations[*producer], OperationType::kTranspose) &&
        uses_[part].size() == 1 && !isOutput(part)) {
      Operation& transpose = main_.operations[*producer];
      if (transpose.inputs.size() < 2 || isConstantOrOmitted(transpose.inputs[1])) {
        HEARTH_ASSIGN(const TransposeParameters parameters,
                      parseTranspose(makeContext(model_, main_, transpose)));
        const std::vector<int32_t> permutation(parameters.permutation.begin(),
                                               parameters.permutation.end());
        transpose.inputs = {transpose.inputs[0], integers(exchanged(permutation))};
        main_.operands[part].dimensions = dimensions;
        return part;
      }
    }
    // The values of one token lie in the same order.
    if (dimensions[dimensions.size() - 2] == 1)
      return insert(update, OperationType::kReshape,
                    {part, integers({dimensions.begin(), dimensions.end()})}, dimensions);
    std::vector<int32_t> order(dimensions.size());
    std::iota(order.begin(), order.end(), 0);
    return insert(update, OperationType::kTranspose, {part, integers(exchanged(order))},
                  dimensions);
  }

  // Where an update begins, with the last two numbers exchanged. All caches may begin alike.
  uint32_t exchangedBegin(uint32_t begin) {
    if (const auto found = begins_.find(begin); found != begins_.end()) return found->second;
    const Dimensions dimensions = main_.operands[begin].dimensions;
    std::vector<int32_t> order(dimensions[0]);
    std::iota(order.begin(), order.end(), 0);
    const uint32_t axis = constant(OperandType::kInt32, {}, std::vector<int32_t>{0});
    const size_t place = producers_[begin] ? *producers_[begin] + 1 : 0;
    const uint32_t made = insert(place, OperationType::kGather,
                                 {begin, axis, integers(exchanged(order))}, dimensions);
    begins_.emplace(begin, made);
    return made;
  }

  graph::Model model_;
  graph::Subgraph& main_;
  std::vector<std::vector<Operation>> inserted_;  // by the operation that follows
  // Of the operands of the original.
  std::vector<std::vector<Use>> uses_;
  std::vector<std::optional<uint32_t>> producers_;
  std::map<uint32_t, uint32_t> begins_;  // the exchanged ones by those that were there
  std::array<std::optional<uint32_t>, 2> flags_;
};

}  // namespace

Result<ModelByToken> layOutByToken(graph::Model model, std::span<const CachePair> pairs) {
  ModelByToken made;
  Exchanger exchanger(std::move(model), pairs.size());
  for (const CachePair& pair : pairs) {
    HEARTH_ASSIGN(const bool isExchanged, exchanger.exchange(pair));
    made.isExchanged.push_back(isExchanged);
  }
  HEARTH_ASSIGN(made.model, exchanger.finish());
  return made;
}

}  // namespace hearth::ops
