// SPDX-License-Identifier: Apache-2.0
#include "api/given_shapes.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/handles.h"
#include "base/format.h"
#include "base/nearest_word.h"
#include "frontends/tflite/other_shapes.h"

namespace hearth::api {
namespace {

using graph::Dimensions;
using tflite::TensorInfo;

// How many names a message lists.
constexpr size_t kMostNames = 20;

std::string namesOf(const std::vector<TensorInfo>& inputs) {
  std::string names;
  for (size_t i = 0; i < inputs.size() && i < kMostNames; ++i)
    names += base::formatText("{}\"{}\"", i == 0 ? "" : ", ", inputs[i].name);
  if (inputs.size() > kMostNames)
    names += base::formatText(" and {} more", inputs.size() - kMostNames);
  return inputs.empty() ? "none" : names;
}

Result<size_t> findInput(const std::vector<TensorInfo>& inputs, std::string_view name) {
  if (name.empty()) {
    if (inputs.size() == 1) return 0;
    return fail(ErrorCode::kNotFound,
                "A shape names no input, and the model has {} inputs; they are: {}.", inputs.size(),
                namesOf(inputs));
  }
  for (const auto member : {&TensorInfo::name, &TensorInfo::tensorName})
    if (const auto found = std::ranges::find(inputs, name, member); found != inputs.end())
      return static_cast<size_t>(found - inputs.begin());
  std::vector<std::string> names;
  for (const TensorInfo& input : inputs) names.push_back(input.name);
  const auto nearest = base::nearestWord(name, names);
  return fail(ErrorCode::kNotFound, "There is no input \"{}\" to give a shape to; there are: {}.{}",
              name, namesOf(inputs),
              nearest ? base::formatText(" Did you mean \"{}\"?", *nearest) : "");
}

Status checkShape(const TensorInfo& input, const Dimensions& given) {
  const std::string text = graph::describeDimensions(given);
  const bool isOfAnyRank = input.dimensions.empty() && !input.isRankZeroTensor;
  if (!isOfAnyRank && given.size() != input.dimensions.size())
    return fail(ErrorCode::kBadData,
                "The shape {} for the input \"{}\" has {} dimension{}; the input has {}, {}.", text,
                input.name, given.size(), given.size() == 1 ? "" : "s", input.dimensions.size(),
                graph::describeDimensions(tflite::declaredShape(input)));
  if (std::ranges::contains(given, 0u))
    return fail(ErrorCode::kBadData,
                "The shape {} for the input \"{}\" has a dimension of 0; each is at least 1.", text,
                input.name);
  graph::Operand sized;
  sized.type = input.type;
  sized.dimensions = given;
  if (!given.empty() && !graph::byteSize(sized))
    return fail(ErrorCode::kBadData, "The shape {} for the input \"{}\" is too large.", text,
                input.name);
  return {};
}

// All shapes of the inputs, given or those of the file.
Result<std::vector<Dimensions>> readShapes(const hearth_compile_options& options,
                                           const std::vector<TensorInfo>& inputs) {
  std::vector<std::optional<Dimensions>> given(inputs.size());
  const auto* next = reinterpret_cast<const std::byte*>(options.shapes);
  const size_t stride = options.shapes->size;
  for (size_t i = 0; i < options.shape_count; ++i, next += stride) {
    hearth_input_shape shape{};
    HEARTH_TRY(readSized(*reinterpret_cast<const hearth_input_shape*>(next),
                         sizeof(hearth_input_shape), "shapes", &shape));
    if (i != 0 && reinterpret_cast<const hearth_input_shape*>(next)->size != stride)
      return fail(ErrorCode::kBadData, "The shapes have different sizes.");
    if (shape.dimensions == nullptr && shape.rank != 0) return nullArgument("dimensions");
    HEARTH_ASSIGN(const size_t input, findInput(inputs, shape.name == nullptr ? "" : shape.name));
    if (given[input])
      return fail(ErrorCode::kBadData, "The input \"{}\" has two shapes.", inputs[input].name);
    const size_t rank = std::min<size_t>(shape.rank, 64);
    given[input].emplace(shape.dimensions, shape.dimensions + rank);
    HEARTH_TRY(checkShape(inputs[input], *given[input]));
  }
  std::vector<Dimensions> shapes;
  for (size_t i = 0; i < inputs.size(); ++i)
    shapes.push_back(given[i] ? *std::move(given[i]) : tflite::declaredShape(inputs[i]));
  return shapes;
}

}  // namespace

Result<bool> giveShapes(const hearth_compile_options& options, tflite::ImportedGraph* graph) {
  HEARTH_ASSIGN(const std::vector<Dimensions> shapes, readShapes(options, graph->inputs));
  bool isAsBefore = true;
  for (size_t i = 0; i < shapes.size(); ++i)
    isAsBefore = isAsBefore && shapes[i] == graph->inputs[i].dimensions;
  if (isAsBefore) return false;
  HEARTH_TRY(tflite::followShapes(shapes, graph));
  return true;
}

}  // namespace hearth::api
