// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/kernel.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <utility>

#include "frontends/delegate/graph_reader.h"

namespace hearth::delegate {
namespace {

// Number of compilations that are kept for shapes that come back; more of small ones, such as those
// of a loop whose tensors grow.
constexpr size_t kFewVariants = 4;
constexpr size_t kManyVariants = 64;
constexpr uint64_t kSmallElements = 16384;

// The runtime frees it with free(); null if there is no memory.
TfLiteIntArray* makeArray(const graph::Dimensions& dimensions) {
  auto* const array = static_cast<TfLiteIntArray*>(
      std::malloc(sizeof(TfLiteIntArray) + dimensions.size() * sizeof(int32_t)));
  if (array == nullptr) return nullptr;
  array->size = static_cast<int32_t>(dimensions.size());
  std::ranges::copy(dimensions, array->data);
  return array;
}

uint64_t elementCount(const graph::Dimensions& dimensions) {
  return std::accumulate(dimensions.begin(), dimensions.end(), uint64_t{1}, std::multiplies<>());
}

Status resize(TfLiteContext* context, int32_t index, const graph::Dimensions& dimensions) {
  TfLiteTensor& tensor = context->tensors[index];
  if (dimensionsOf(tensor) == dimensions) return {};
  TfLiteIntArray* const array = makeArray(dimensions);
  if (array == nullptr)
    return fail(ErrorCode::kOutOfMemory, "There is no memory for the dimensions of tensor {}.",
                index);
  if (context->ResizeTensor(context, &tensor, array) == kTfLiteOk) return {};
  return fail(ErrorCode::kOpFailed, "The runtime does not give tensor {} the shape {}.", index,
              graph::describeDimensions(dimensions));
}

}  // namespace

Kernel::Kernel(PartitionSource source, Settings settings)
    : source_(std::move(source)), settings_(std::move(settings)), arguments_(source_.inputs) {
  for (const auto& [index, tensor] : source_.tensors)
    if (tensor.isVariable) arguments_.push_back(index);
}

Result<std::unique_ptr<Kernel>> Kernel::create(PartitionSource source, Settings settings) {
  std::unique_ptr<Kernel> kernel(new Kernel(std::move(source), std::move(settings)));
  HEARTH_ASSIGN(kernel->translated_, translate(kernel->source_));
  HEARTH_TRY(checkDevices(*kernel->translated_->model, *kernel->settings_.options));
  // Any device may refuse a partition except the reference, which takes everything; so partitions
  // for it can wait until shapes are certain. Some partitions are never prepared, such as
  // decompositions of composites that the delegate took as a whole.
  if (!kernel->settings_.options->compilation.devices.empty())
    HEARTH_TRY(kernel->use(kernel->statedShapes()));
  return kernel;
}

uint64_t Kernel::constantBytes() const {
  uint64_t bytes = 0;
  for (const auto& [index, tensor] : source_.tensors)
    if (tensor.constant) bytes += tensor.constant->length;
  return bytes;
}

Kernel::Shapes Kernel::statedShapes() const {
  Shapes shapes;
  for (const int32_t index : arguments_) shapes.push_back(source_.tensors.at(index).dimensions);
  return shapes;
}

Result<TranslatedPartition> Kernel::translateFor(const Shapes& shapes) {
  auto translated = std::exchange(translated_, std::nullopt);
  if (translated && shapes == statedShapes()) return std::move(*translated);
  for (size_t i = 0; i < arguments_.size(); ++i)
    source_.tensors.at(arguments_[i]).dimensions = shapes[i];
  return translate(source_);
}

Status Kernel::use(const Shapes& shapes) {
  const auto found = std::ranges::find(variants_, shapes, &Variant::shapes);
  if (found != variants_.end()) {
    variants_.splice(variants_.begin(), variants_, found);
    return {};
  }
  HEARTH_ASSIGN(TranslatedPartition translated, translateFor(shapes));
  HEARTH_ASSIGN(CompiledPartition compiled,
                compile(source_, std::move(translated), *settings_.options, settings_.threads,
                        settings_.file));
  const size_t variables = compiled.variables.size();
  variants_.push_front({shapes, std::move(compiled),
                        std::vector<void*>(source_.inputs.size() + variables),
                        std::vector<void*>(source_.outputs.size() + variables)});
  const bool isSmall = std::ranges::all_of(
      shapes, [](const graph::Dimensions& shape) { return elementCount(shape) <= kSmallElements; });
  while (variants_.size() > (isSmall ? kManyVariants : kFewVariants)) variants_.pop_back();
  return {};
}

Status Kernel::prepare(TfLiteContext* context) {
  Shapes shapes;
  for (const int32_t index : arguments_) {
    const auto dimensions = dimensionsOf(context->tensors[index]);
    if (!dimensions)
      return fail(ErrorCode::kBadData, "The tensor {} has a negative dimension.", index);
    shapes.push_back(*dimensions);
  }
  HEARTH_TRY(use(shapes));
  const CompiledPartition& compiled = variants_.front().compiled;
  for (size_t i = 0; i < source_.outputs.size(); ++i)
    HEARTH_TRY(resize(context, source_.outputs[i], compiled.outputDimensions[i]));
  return {};
}

Status Kernel::bind(TfLiteContext* context, int32_t index, size_t position, bool isInput,
                    void** bound) {
  const TfLiteTensor& tensor = context->tensors[index];
  if (tensor.data == *bound && *bound != nullptr) return {};
  hal::Argument argument;
  argument.kind = hal::Argument::Kind::kPointer;
  argument.pointer = tensor.data;
  argument.length = tensor.bytes;
  *bound = nullptr;
  runtime::Execution& execution = *variants_.front().compiled.execution;
  HEARTH_TRY_CONTEXT(isInput ? execution.setInput(position, std::move(argument))
                             : execution.setOutput(position, std::move(argument)),
                     "while binding tensor {}", index);
  *bound = tensor.data;
  return {};
}

Status Kernel::invoke(TfLiteContext* context) {
  Variant& variant = variants_.front();
  const std::vector<int32_t>& variables = variant.compiled.variables;
  const auto bindAll = [&](const std::vector<int32_t>& tensors, bool isInput,
                           std::vector<void*>* bound) -> Status {
    for (size_t i = 0; i < bound->size(); ++i) {
      const int32_t tensor = i < tensors.size() ? tensors[i] : variables[i - tensors.size()];
      HEARTH_TRY(bind(context, tensor, i, isInput, &(*bound)[i]));
    }
    return {};
  };
  HEARTH_TRY(bindAll(source_.inputs, true, &variant.boundInputs));
  HEARTH_TRY(bindAll(source_.outputs, false, &variant.boundOutputs));
  return variant.compiled.execution->compute(base::Deadline());
}

}  // namespace hearth::delegate
