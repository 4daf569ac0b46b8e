// SPDX-License-Identifier: Apache-2.0
#include "llm/cache_tensors.h"

#include <algorithm>

namespace hearth::llm {
Result<CacheTensors> CacheTensors::of(std::span<const StateBuffer> buffers) {
  CacheTensors tensors;
  const auto add = [](std::map<std::string, std::string>* names, const std::string& name,
                      const std::string& cache) -> Status {
    if (name.empty()) return {};
    const auto [found, isNew] = names->emplace(name, cache);
    if (isNew || found->second == cache) return {};
    return fail(ErrorCode::kBadData, "The file says of the tensor {} that it is two caches.", name);
  };
  for (const StateBuffer& buffer : buffers) {
    const std::string& name = buffer.decodeInput.empty() ? buffer.prefillInput : buffer.decodeInput;
    if (name.empty()) continue;
    if (!tensors.caches_.emplace(name, Cache{buffer.type, buffer.sequenceAxis}).second)
      return fail(ErrorCode::kBadData, "The file names the cache {} twice.", name);
    for (const std::string* const input : {&buffer.prefillInput, &buffer.decodeInput})
      HEARTH_TRY(add(&tensors.inputs_, *input, name));
    for (const std::string* const output : {&buffer.prefillOutput, &buffer.decodeOutput})
      HEARTH_TRY(add(&tensors.outputs_, *output, name));
  }
  return tensors;
}

std::string CacheTensors::ofInput(const std::string& input, bool isOutputToo) const {
  if (const auto found = inputs_.find(input); found != inputs_.end()) return found->second;
  return isOutputToo ? input : std::string();
}

std::string CacheTensors::ofOutput(const std::string& output, bool isInputToo) const {
  if (const auto found = outputs_.find(output); found != outputs_.end()) return found->second;
  return isInputToo ? output : std::string();
}

std::optional<size_t> CacheTensors::axisOf(const TensorInfo& cache) const {
  const auto found = caches_.find(cache.name);
  return found == caches_.end() ? std::nullopt : found->second.axis;
}

Result<size_t> CacheTensors::capacityOf(std::span<const TensorInfo> caches, size_t capacity) const {
  // Of a cache with its tokens along the last axis nobody knows how it is laid out.
  const auto isCertain = [&](const TensorInfo& cache) {
    const std::optional<size_t> axis = axisOf(cache);
    return axis && *axis + 1 < cache.dimensions.size();
  };
  if (capacity == 0)
    for (const TensorInfo& cache : caches)
      if (isCertain(cache)) capacity = std::max<size_t>(capacity, cache.dimensions[*axisOf(cache)]);
  for (const TensorInfo& cache : caches) {
    const auto found = caches_.find(cache.name);
    if (found == caches_.end()) continue;
    if (found->second.type == StateBuffer::Type::kLinearAttention)
      return fail(ErrorCode::kUnsupported,
                  "The cache {} is that of linear attention, which is not supported.", cache.name);
    const std::optional<size_t> axis = found->second.axis;
    if (axis && !cache.dimensions.empty() && *axis >= cache.dimensions.size())
      return fail(
          ErrorCode::kBadData,
          "The file says that the tokens of the cache {} lie along axis {}; it has {} axes.",
          cache.name, *axis, cache.dimensions.size());
    if (isCertain(cache) && cache.dimensions[*axis] < capacity)
      return fail(
          ErrorCode::kUnsupported,
          "The cache {} has room for {} tokens of {}: it overwrites the earlier ones, which "
          "is not supported.",
          cache.name, cache.dimensions[*axis], capacity);
  }
  return capacity;
}

Result<size_t> CacheTensors::tokenAxis(const TensorInfo& cache, size_t capacity) const {
  const std::vector<uint32_t>& shape = cache.dimensions;
  const std::optional<size_t> axis = axisOf(cache);
  if (axis && *axis + 1 < shape.size() && shape[*axis] == capacity) return *axis;
  if (std::ranges::count(shape, capacity) == 1) {
    const auto found = static_cast<size_t>(std::ranges::find(shape, capacity) - shape.begin());
    // The last two may have been exchanged.
    if (!axis || *axis == found || (*axis + 1 == shape.size() && found + 2 == shape.size()))
      return found;
  }
  return fail(ErrorCode::kUnsupported,
              "The cache {} has not one axis of {} tokens, as long as the context.", cache.name,
              capacity);
}

}  // namespace hearth::llm
