// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/subgraph_builder.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "frontends/tflite/reader/tensor_operand.h"
#include "frontends/tflite/reader/text.h"
#include "frontends/tflite/translators/constant_values.h"
#include "frontends/tflite/translators/operator_view.h"
#include "frontends/tflite/translators/run_once.h"
#include "frontends/tflite/translators/translators.h"
#include "frontends/tflite/translators/unsaid_shapes.h"
#include "memory/packed_strings.h"

namespace hearth::tflite {

using graph::Lifetime;
using graph::OperandType;
using graph::OperationType;

namespace {

// For tensors that are no dense constants.
Status refuseTwoBits(const schema::Tensor& tensor, const std::string& name) {
  if (tensor.type() != schema::TensorType::INT2) return {};
  return fail(ErrorCode::kUnsupported,
              "The tensor \"{}\" of type INT2 is no dense constant, which is not supported.", name);
}

}  // namespace

SubgraphBuilder::SubgraphBuilder(ModelBuilder& model, const schema::SubGraph& source,
                                 size_t sourceIndex, bool isMain)
    : OperandBuilder(model), isMain_(isMain), outermost_{&source, sourceIndex, {}} {}

Result<graph::Subgraph> SubgraphBuilder::build() {
  const size_t tensors = source().tensors() == nullptr ? 0 : source().tensors()->size();
  HEARTH_TRY(model_.charge(tensors * sizeof(int64_t)));
  scope_->operandOfTensor.assign(tensors, -1);
  result_.name = cleanText(source().name());
  HEARTH_TRY_CONTEXT(addInputs(), "while reading the inputs of subgraph {}", sourceIndex());
  HEARTH_TRY(translateOperators());
  HEARTH_TRY_CONTEXT(addOutputs(), "while reading the outputs of subgraph {}", sourceIndex());
  HEARTH_TRY_CONTEXT(addVariables(), "while reading the variables of subgraph {}", sourceIndex());
  return std::move(result_);
}

Status SubgraphBuilder::addInputs() {
  if (source().inputs() == nullptr) return {};
  for (const int32_t index : *source().inputs()) {
    HEARTH_ASSIGN(const schema::Tensor* source, tensor(index));
    if (scope_->operandOfTensor[index] >= 0)
      return fail(ErrorCode::kBadData, "The tensor {} is listed twice.", index);
    std::string name = cleanText(source->name());
    HEARTH_TRY(model_.charge(name.size()));
    HEARTH_ASSIGN(graph::Operand operand,
                  makeOperand(*source, name, ShapeSource::kSignature, scaleLists()));
    HEARTH_TRY(refuseTwoBits(*source, name));
    operand.name = std::move(name);
    operand.lifetime = Lifetime::kSubgraphInput;
    HEARTH_ASSIGN(const uint32_t added, addOperand(std::move(operand)));
    scope_->operandOfTensor[index] = added;
    result_.inputs.push_back(added);
  }
  return {};
}

bool SubgraphBuilder::isOutput(int64_t tensor) {
  const auto* const outputs = source().outputs();
  if (scope_->outputs.empty() && outputs != nullptr)
    scope_->outputs.insert(outputs->begin(), outputs->end());
  return scope_->outputs.contains(tensor);
}

Status SubgraphBuilder::translateOperators() {
  const auto* operators = source().operators();
  const size_t count = operators == nullptr ? 0 : operators->size();
  const std::vector<PlannedOperator>* const plan =
      scope_ == &outermost_ ? model_.planOf(sourceIndex()) : nullptr;
  if (plan == nullptr) {
    for (uint32_t i = 0; i < count; ++i) HEARTH_TRY(translateOperator(i));
    return {};
  }
  for (const PlannedOperator& planned : *plan) {
    if (planned.replacement) {
      HEARTH_TRY_CONTEXT(translateReplacement(*this, *planned.replacement),
                         "while translating what the program computes of subgraph {}",
                         sourceIndex());
      continue;
    }
    if (planned.operation >= count)
      return fail(ErrorCode::kBadData, "There is no operation {} in subgraph {}.",
                  planned.operation, sourceIndex());
    HEARTH_TRY(translateOperator(static_cast<uint32_t>(planned.operation)));
  }
  return {};
}

Status SubgraphBuilder::translateOperator(uint32_t i) {
  const schema::Operator& source = *this->source().operators()->Get(i);
  const schema::OperatorCode* code = model_.file().operatorCode(source.opcode_index());
  if (code == nullptr)
    return fail(ErrorCode::kBadData,
                "Operation {} of subgraph {} has the operator code {}, which the model lacks.", i,
                sourceIndex(), source.opcode_index());
  const TranslatorEntry* translator = findTranslator(*code);
  if (translator == nullptr) {
    if (builtinCode(*code) == schema::BuiltinOperator::CUSTOM)
      return fail(ErrorCode::kUnsupported,
                  "Operation {} of subgraph {} is the custom operation \"{}\" version {}, which "
                  "is not known; a program can bring its operator along with "
                  "hearth_custom_operator_register, the command with --custom-operators, "
                  "and a device that computes it names it in its manifest.",
                  i, sourceIndex(), operationName(*code), code->version());
    return fail(ErrorCode::kUnsupported,
                "Operation {} of subgraph {} is {} version {} (builtin code {}), which is not "
                "supported.",
                i, sourceIndex(), operationName(*code), code->version(),
                static_cast<int32_t>(builtinCode(*code)));
  }
  OperatorView view(*this, source);
  HEARTH_TRY_CONTEXT(view.check(), "while reading operation {} ({} version {}) of subgraph {}", i,
                     operationName(*code), code->version(), sourceIndex());
  HEARTH_TRY_CONTEXT(translator->translate(view, translator->type),
                     "while translating operation {} ({} version {}) of subgraph {}", i,
                     operationName(*code), code->version(), sourceIndex());
  return {};
}

Status SubgraphBuilder::addOutputs() {
  std::vector<int32_t> outputs;
  if (source().outputs() != nullptr)
    outputs.assign(source().outputs()->begin(), source().outputs()->end());
  if (isMain_)
    outputs.insert(outputs.end(), model_.moreOutputs().begin(), model_.moreOutputs().end());
  for (const int32_t index : outputs) {
    HEARTH_ASSIGN(uint32_t output, operandOf(index));
    if (operand(output).lifetime != Lifetime::kTemporary) {
      // The output is also an input, a constant, a variable or an earlier output.
      HEARTH_ASSIGN(const uint32_t copy, temporaryLike(output));
      operand(copy).name = operand(output).name;
      HEARTH_TRY(emitCopy(output, copy, operand(copy).name));
      output = copy;
    }
    operand(output).lifetime = Lifetime::kSubgraphOutput;
    result_.outputs.push_back(output);
  }
  return {};
}

Status SubgraphBuilder::addVariables() {
  for (const Variable& variable : variables_) {
    uint32_t last = variable.tensor < 0
                        ? variable.current
                        : static_cast<uint32_t>(scope_->operandOfTensor[variable.tensor]);
    if (operand(last).lifetime != Lifetime::kTemporary) {
      HEARTH_ASSIGN(const uint32_t copy, temporaryLike(last));
      HEARTH_TRY(emitCopy(last, copy, operand(variable.input).name));
      last = copy;
    }
    operand(last).lifetime = Lifetime::kSubgraphOutput;
    const graph::Operand& input = operand(variable.input);
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(input));
    HEARTH_TRY_CONTEXT(model_.charge(bytes), "while taking {} bytes for the variable {}", bytes,
                       graph::describe(input));
    VariablePosition position;
    position.tensor = variable.tensor;
    position.input = static_cast<uint32_t>(result_.inputs.size());
    position.output = static_cast<uint32_t>(result_.outputs.size());
    const bool isByte = graph::elementSize(input.type) == 1;
    position.initialValue.assign(bytes, isByte ? static_cast<uint8_t>(input.zeroPoint) : 0);
    if (!variable.initialValue.empty() && variable.initialValue.size() != bytes)
      return fail(ErrorCode::kBadData, "The variable {} is initialised with {} bytes.",
                  graph::describe(input), variable.initialValue.size());
    if (!variable.initialValue.empty())
      position.initialValue = variable.initialValue;
    else if (!isByte && input.zeroPoint != 0)
      return fail(ErrorCode::kUnsupported, "The variable {} has the zero point {}.",
                  graph::describe(input), input.zeroPoint);
    model_.addVariable(std::move(position));
    result_.inputs.push_back(variable.input);
    result_.outputs.push_back(last);
  }
  return {};
}

Result<const schema::Tensor*> SubgraphBuilder::tensor(int64_t index) const {
  const schema::Tensor* found = model_.file().tensor(source(), index);
  if (found == nullptr)
    return fail(ErrorCode::kBadData, "The tensor {} does not exist, the subgraph has {}.", index,
                scope_->operandOfTensor.size());
  return found;
}

Result<uint32_t> SubgraphBuilder::operandOf(int64_t index) {
  HEARTH_ASSIGN(const schema::Tensor* source, tensor(index));
  if (scope_->operandOfTensor[index] < 0) {
    HEARTH_ASSIGN(scope_->operandOfTensor[index], createOperand(index, *source));
  }
  return static_cast<uint32_t>(scope_->operandOfTensor[index]);
}

Result<uint32_t> SubgraphBuilder::createOperand(int64_t index, const schema::Tensor& tensor) {
  std::string name = cleanText(tensor.name());
  HEARTH_TRY(model_.charge(name.size()));
  if (tensor.external_buffer() != 0)
    return fail(
        ErrorCode::kUnsupported,
        "The tensor \"{}\" keeps its value outside the model, in another file or in another "
        "part of its container, which is not supported.",
        name);
  auto range = model_.file().buffer(tensor.buffer());
  if (!range)
    return std::unexpected(
        std::move(range.error())
            .addContext(base::formatText("while reading the tensor \"{}\"", name)));
  const bool hasValue = range->has_value() && !tensor.is_variable();
  const ShapeSource shape =
      hasValue || tensor.is_variable() ? ShapeSource::kFile : ShapeSource::kSignature;
  HEARTH_ASSIGN(graph::Operand operand, makeOperand(tensor, name, shape, scaleLists()));
  if (operand.type == OperandType::kTensorString && hasValue) {
    if (tensor.sparsity() != nullptr)
      return fail(ErrorCode::kUnsupported, "The sparse tensor \"{}\" is of strings.", name);
    operand.name = std::move(name);
    return addStringConstant(**range, std::move(operand));
  }
  if (operand.type == OperandType::kTensorString && tensor.is_variable())
    return fail(ErrorCode::kUnsupported,
                "The variable \"{}\" is of strings, which no run keeps for the next.", name);
  if (!hasValue || tensor.sparsity() != nullptr) HEARTH_TRY(refuseTwoBits(tensor, name));
  if (hasValue) HEARTH_TRY(setValue(model_, tensor, **range, name, &operand));
  operand.name = std::move(name);
  if (tensor.is_variable()) {
    if (!isMain_ || scope_->depth > 0)
      return fail(ErrorCode::kUnsupported,
                  "The variable \"{}\" belongs to a subgraph that an operation calls, which is not "
                  "supported.",
                  operand.name);
    if (!graph::isFullySpecified(operand))
      return fail(ErrorCode::kBadData, "The variable {} has unknown dimensions.",
                  graph::describe(operand));
    operand.lifetime = Lifetime::kSubgraphInput;
    HEARTH_ASSIGN(const uint32_t added, addOperand(std::move(operand)));
    variables_.push_back({index, added, added, {}});
    return added;
  }
  const bool isRankUnsaid = operand.isRankZeroTensor && !hasValue && !tensor.has_rank();
  HEARTH_ASSIGN(const uint32_t added, addOperand(std::move(operand)));
  if (isRankUnsaid) unsaidRanks_.insert(added);
  return added;
}

Result<uint32_t> SubgraphBuilder::addStringConstant(const BufferRange& range,
                                                    graph::Operand operand) {
  const auto packed = memory::PackedStrings::of(model_.file().bytes(range));
  if (!packed)
    return std::unexpected(
        Error(packed.error())
            .addContext(base::formatText("while reading the tensor \"{}\"", operand.name)));
  HEARTH_ASSIGN(const uint64_t count, graph::elementCount(operand));
  if (count != packed->count())
    return fail(ErrorCode::kBadData, "The constant tensor \"{}\" of the shape {} has {} strings.",
                operand.name, graph::describeDimensions(operand.dimensions), packed->count());
  graph::Operand bytes;
  bytes.type = OperandType::kTensorQuant8Asymm;
  bytes.scale = 1.0f;
  bytes.dimensions = {static_cast<uint32_t>(range.length)};
  HEARTH_TRY(setDenseValue(model_, range, operand.name, &bytes));
  HEARTH_ASSIGN(const uint32_t buffer, addOperand(std::move(bytes)));
  std::vector<uint32_t> inputs = {buffer};
  if (!operand.dimensions.empty()) {
    const std::vector<int32_t> shape(operand.dimensions.begin(), operand.dimensions.end());
    HEARTH_ASSIGN(const uint32_t dimensions, intTensor(shape));
    inputs.push_back(dimensions);
  }
  HEARTH_ASSIGN(const uint32_t added, addOperand(std::move(operand)));
  HEARTH_TRY(append({OperationType::kStringConstant, std::move(inputs), {added}, {}}));
  return added;
}

Status SubgraphBuilder::addHandle(int64_t tensor, std::string resource) {
  if (!isMain_ || scope_->depth > 0)
    return fail(ErrorCode::kUnsupported,
                "The resource \"{}\" belongs to a subgraph that an operation calls, which is not "
                "supported.",
                resource);
  HEARTH_TRY(model_.charge(sizeof(Variable) + resource.size()));
  scope_->resourceOfTensor.insert_or_assign(tensor, std::move(resource));
  return {};
}

Result<std::string> SubgraphBuilder::resourceOf(int64_t handle) const {
  const auto found = scope_->resourceOfTensor.find(handle);
  if (found == scope_->resourceOfTensor.end())
    return fail(ErrorCode::kBadData, "The tensor {} is no handle of a resource.", handle);
  return found->second;
}

Status SubgraphBuilder::initializeResources(int64_t subgraph) {
  return readRunOnce(*this, subgraph, &initialValues_, &tables_);
}

Status SubgraphBuilder::addTableHandle(int64_t tensor, int32_t id) {
  HEARTH_TRY(model_.charge(sizeof(scope_->tableOfTensor)));
  scope_->tableOfTensor.insert_or_assign(tensor, id);
  return {};
}

Result<int32_t> SubgraphBuilder::tableIdOf(int64_t handle) const {
  const auto found = scope_->tableOfTensor.find(handle);
  if (found == scope_->tableOfTensor.end())
    return fail(ErrorCode::kBadData, "The tensor {} is no handle of a hash table.", handle);
  return found->second;
}

Status SubgraphBuilder::fillTable(int64_t handle, int64_t keys, int64_t values) {
  HEARTH_ASSIGN(const int32_t id, tableIdOf(handle));
  return tables_.fill(*this, id, source(), keys, values);
}

Result<TableOperands> SubgraphBuilder::tableOf(int64_t handle) const {
  HEARTH_ASSIGN(const int32_t id, tableIdOf(handle));
  return tables_.find(id);
}

Result<SubgraphBuilder::Variable*> SubgraphBuilder::useResource(const std::string& name,
                                                                graph::Operand like) {
  if (const auto found = resources_.find(name); found != resources_.end())
    return &variables_[found->second];
  if (like.type == OperandType::kTensorString)
    return fail(ErrorCode::kUnsupported,
                "The resource \"{}\" is of strings, which no run keeps for the next.", name);
  if (!graph::isFullySpecified(like))
    return fail(ErrorCode::kUnsupported, "The resource \"{}\" has unknown dimensions.", name);
  like.lifetime = Lifetime::kSubgraphInput;
  like.location = {};
  like.name = name;
  HEARTH_ASSIGN(const uint32_t input, addOperand(std::move(like)));
  const auto initial = initialValues_.find(name);
  variables_.push_back(
      {-1, input, input,
       initial == initialValues_.end() ? std::vector<uint8_t>() : initial->second});
  resources_.emplace(name, variables_.size() - 1);
  return &variables_.back();
}

Result<uint32_t> SubgraphBuilder::readResource(int64_t handle, int64_t like) {
  HEARTH_ASSIGN(const std::string name, resourceOf(handle));
  HEARTH_ASSIGN(const schema::Tensor* source, tensor(like));
  HEARTH_ASSIGN(graph::Operand operand,
                makeOperand(*source, name, ShapeSource::kFile, scaleLists()));
  HEARTH_ASSIGN(const Variable* variable, useResource(name, std::move(operand)));
  return variable->current;
}

Status SubgraphBuilder::assignResource(int64_t handle, uint32_t value) {
  HEARTH_ASSIGN(const std::string name, resourceOf(handle));
  HEARTH_ASSIGN(Variable * variable, useResource(name, operand(value)));
  const graph::Operand& before = operand(variable->input);
  if (before.type != operand(value).type || before.dimensions != operand(value).dimensions)
    return fail(ErrorCode::kUnsupported, "It assigns {} to the resource {}.",
                graph::describe(operand(value)), graph::describe(before));
  variable->current = value;
  return {};
}

Status SubgraphBuilder::bindTensor(int64_t index, uint32_t value) {
  HEARTH_ASSIGN(const schema::Tensor* source, tensor(index));
  int64_t& known = scope_->operandOfTensor[index];
  if (known < 0 && !source->is_variable()) {
    known = value;
    return {};
  }
  if (known >= 0 && operand(static_cast<uint32_t>(known)).lifetime == Lifetime::kTemporary)
    return emitCopy(value, static_cast<uint32_t>(known), {});
  return fail(ErrorCode::kBadData,
              "It writes tensor {}, which is an input, a constant or a variable.", index);
}

Result<uint32_t> SubgraphBuilder::blockScalesOf(int64_t index) {
  HEARTH_ASSIGN(const schema::Tensor* source, tensor(index));
  const schema::QuantizationParameters* quantization = source->quantization();
  const schema::BlockwiseQuantization* blocks =
      quantization == nullptr ? nullptr : quantization->details_as_BlockwiseQuantization();
  if (blocks == nullptr) return omitted(OperandType::kTensorFloat16);
  HEARTH_ASSIGN(const uint32_t weights, operandOf(index));
  HEARTH_ASSIGN(const uint32_t scales, operandOf(blocks->scales()));
  const graph::Dimensions& shape = operand(weights).dimensions;
  const int64_t blockSize = blocks->block_size();
  if (shape.size() != 2 || blockSize <= 0 || shape[1] % blockSize != 0 ||
      operand(scales).dimensions !=
          graph::Dimensions{shape[0], static_cast<uint32_t>(shape[1] / blockSize)})
    return fail(ErrorCode::kBadData, "The scales {} of blocks of {} do not fit {}.",
                graph::describe(operand(scales)), blockSize, graph::describe(operand(weights)));
  return scales;
}

Status SubgraphBuilder::bindInputs(Scope* scope, const std::vector<uint32_t>& inputs) {
  const auto* list = scope->source->inputs();
  if ((list == nullptr ? 0 : list->size()) != inputs.size())
    return fail(ErrorCode::kBadData, "It gives {} inputs to subgraph {}, which has {}.",
                inputs.size(), scope->sourceIndex, list == nullptr ? 0 : list->size());
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const int64_t index = list->Get(i);
    if (index < 0 || static_cast<uint64_t>(index) >= scope->operandOfTensor.size() ||
        scope->operandOfTensor[index] >= 0)
      return fail(ErrorCode::kBadData, "The input {} of subgraph {} is tensor {}.", i,
                  scope->sourceIndex, index);
    scope->operandOfTensor[index] = inputs[i];
  }
  return {};
}

Status SubgraphBuilder::inlineSubgraph(int64_t subgraph, const std::vector<uint32_t>& inputs,
                                       const std::vector<int64_t>& outputTensors) {
  constexpr size_t kMaxDepth = 16;
  const schema::SubGraph* called =
      subgraph < 0 ? nullptr : model_.file().subgraph(static_cast<size_t>(subgraph));
  if (called == nullptr || scope_->depth >= kMaxDepth)
    return fail(ErrorCode::kBadData, "It calls subgraph {} of {} at the depth {}; the limit is {}.",
                subgraph, model_.file().subgraphCount(), scope_->depth, kMaxDepth);
  const size_t tensors = called->tensors() == nullptr ? 0 : called->tensors()->size();
  // Calls without operations are charged, too, since nesting multiplies them.
  HEARTH_TRY(model_.charge(sizeof(Scope) + tensors * sizeof(int64_t)));
  const size_t outputs = called->outputs() == nullptr ? 0 : called->outputs()->size();
  if (outputs != outputTensors.size())
    return fail(ErrorCode::kBadData, "It takes {} outputs of subgraph {}, which has {}.",
                outputTensors.size(), subgraph, outputs);
  Scope inner{called, static_cast<size_t>(subgraph), std::vector<int64_t>(tensors, -1),
              scope_->depth + 1};
  HEARTH_TRY(bindInputs(&inner, inputs));
  Scope* const outer = std::exchange(scope_, &inner);
  std::vector<uint32_t> results;
  Status status = translateOperators();
  for (uint32_t i = 0; status && i < outputs; ++i) {
    auto result = operandOf(called->outputs()->Get(i));
    if (result)
      results.push_back(*result);
    else
      status = std::unexpected(std::move(result.error()));
  }
  scope_ = outer;
  HEARTH_TRY(std::move(status));
  for (size_t i = 0; i < outputs; ++i) HEARTH_TRY(bindTensor(outputTensors[i], results[i]));
  return {};
}

Result<uint32_t> SubgraphBuilder::nextValueOf(int64_t index) {
  HEARTH_ASSIGN(const uint32_t current, operandOf(index));
  HEARTH_ASSIGN(const uint32_t next, temporaryLike(current));
  if (isVariable(index)) scope_->operandOfTensor[index] = next;
  return next;
}

bool SubgraphBuilder::isVariable(int64_t index) const {
  const schema::Tensor* found = model_.file().tensor(source(), index);
  return found != nullptr && found->is_variable();
}

Status SubgraphBuilder::initializeVariable(int64_t index, std::vector<uint8_t> value) {
  HEARTH_TRY(tensor(index));
  if (!isVariable(index) || scope_->operandOfTensor[index] >= 0)
    return fail(ErrorCode::kBadData,
                "It initialises tensor {}, which is no variable or is in use already.", index);
  HEARTH_ASSIGN(const uint32_t input, operandOf(index));
  HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(operand(input)));
  if (bytes != value.size())
    return fail(ErrorCode::kBadData, "It initialises {} with {} bytes.",
                graph::describe(operand(input)), value.size());
  variables_.back().initialValue = std::move(value);
  return {};
}

Result<SubgraphBuilder::HiddenState> SubgraphBuilder::addHiddenState(graph::Operand like) {
  if (!isMain_ || scope_->depth > 0)
    return fail(ErrorCode::kUnsupported,
                "It has a state and belongs to a subgraph that an operation calls, which is not "
                "supported.");
  like.lifetime = Lifetime::kSubgraphInput;
  HEARTH_ASSIGN(const uint32_t before, addOperand(std::move(like)));
  HEARTH_ASSIGN(const uint32_t after, temporaryLike(before));
  HEARTH_TRY(model_.charge(sizeof(Variable)));
  variables_.push_back({-1, before, after, {}});
  return HiddenState{before, after};
}

Status SubgraphBuilder::emit(OperationType type, std::vector<uint32_t> inputs,
                             std::vector<uint32_t> outputs, std::string name) {
  const auto hasUnknownRank = [this](uint32_t index) {
    const graph::Operand& source = operand(index);
    return source.lifetime == Lifetime::kTemporary && source.dimensions.empty() &&
           !source.isRankZeroTensor;
  };
  if (std::ranges::any_of(inputs, hasUnknownRank))
    for (const uint32_t output : outputs) forgetUnsaidRank(output);
  graph::Operation operation = {.type = type,
                                .inputs = std::move(inputs),
                                .outputs = std::move(outputs),
                                .name = std::move(name)};
  if (!unsaidRanks_.empty()) {
    setUnsaidShapes(model_.model(), &result_, operation, unsaidRanks_);
    HEARTH_ASSIGN(const bool isConstant, becomesConstant(operation));
    if (isConstant) return {};
  }
  return append(std::move(operation));
}

Status SubgraphBuilder::append(graph::Operation operation) {
  HEARTH_TRY(
      model_.charge(sizeof(graph::Operation) + operation.name.size() +
                    (operation.inputs.size() + operation.outputs.size()) * sizeof(uint32_t)));
  result_.operations.push_back(std::move(operation));
  return {};
}

Result<bool> SubgraphBuilder::becomesConstant(const graph::Operation& operation) {
  const auto isTemporary = [this](uint32_t index) {
    return operand(index).lifetime == Lifetime::kTemporary;
  };
  if (!std::ranges::all_of(operation.outputs, isTemporary)) return false;
  const auto values = computedShape(model_.model(), result_, operation);
  if (!values) return false;
  for (size_t i = 0; i < values->size(); ++i) {
    graph::Operand& output = operand(operation.outputs[i]);
    HEARTH_ASSIGN(output.location, model_.copyConstant((*values)[i]));
    output.lifetime = Lifetime::kConstantCopy;
  }
  return true;
}

Status SubgraphBuilder::emitCopy(uint32_t from, uint32_t to, std::string name) {
  const graph::Operand& source = operand(from);
  // RESHAPE and SQUEEZE take every type, CAST takes every shape.
  if (!graph::isFullySpecified(source))
    return append({OperationType::kCast, {from}, {to}, std::move(name)});
  if (source.isRankZeroTensor) {
    HEARTH_ASSIGN(const uint32_t axes, omitted(OperandType::kTensorInt32));
    return append({OperationType::kSqueeze, {from, axes}, {to}, std::move(name)});
  }
  const std::vector<int32_t> shape(source.dimensions.begin(), source.dimensions.end());
  HEARTH_ASSIGN(const uint32_t dimensions, intTensor(shape));
  return append({OperationType::kReshape, {from, dimensions}, {to}, std::move(name)});
}

}  // namespace hearth::tflite
