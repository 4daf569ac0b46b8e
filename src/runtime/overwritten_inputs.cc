// SPDX-License-Identifier: Apache-2.0
#include "runtime/overwritten_inputs.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "hal/joined_memories.h"
#include "hal/request_check.h"

namespace hearth::runtime {
namespace {

// Where an argument lies; null where that is no memory of this process, or a driver refuses it.
const uint8_t* dataOf(const hal::Argument& argument) {
  if (argument.kind == hal::Argument::Kind::kPointer)
    return static_cast<const uint8_t*>(argument.pointer);
  if (argument.kind != hal::Argument::Kind::kPool) return nullptr;
  return hal::addressOf(argument, true).value_or(nullptr);
}

struct Range {
  const uint8_t* begin = nullptr;
  const uint8_t* end = nullptr;  // as begin where there is nothing
};

std::vector<Range> rangesOf(const std::vector<hal::Argument>& arguments) {
  std::vector<Range> ranges;
  for (const hal::Argument& argument : arguments) {
    const uint8_t* const data = dataOf(argument);
    ranges.push_back({data, data != nullptr ? data + argument.length : nullptr});
  }
  return ranges;
}

bool overlap(const Range& a, const Range& b) {
  return a.begin != a.end && b.begin != b.end && std::less<>()(a.begin, b.end) &&
         std::less<>()(b.begin, a.end);
}

// Where the arguments of a request lie, with memories of one file joined.
struct Places {
  std::vector<Range> inputs, outputs;
};

Result<Places> placesOf(const hal::Request& request) {
  HEARTH_ASSIGN(const std::optional<hal::Request> joined, hal::joinMemories(request));
  return Places{rangesOf(joined ? joined->inputs : request.inputs),
                rangesOf(joined ? joined->outputs : request.outputs)};
}

}  // namespace

Result<bool> overwritesInputs(const hal::Request& request) {
  HEARTH_ASSIGN(const Places places, placesOf(request));
  return std::ranges::any_of(places.inputs, [&](const Range& input) {
    return std::ranges::any_of(places.outputs,
                               [&](const Range& output) { return overlap(input, output); });
  });
}

Result<OverwrittenInputs> OverwrittenInputs::take(
    hal::Request* request, const std::function<bool(size_t, size_t)>& isRead) {
  OverwrittenInputs taken;
  HEARTH_ASSIGN(const Places places, placesOf(*request));
  const auto& [inputs, outputs] = places;
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool isOverwritten = false;
    for (size_t o = 0; o < outputs.size(); ++o)
      isOverwritten |= overlap(inputs[i], outputs[o]) && isRead(i, o);
    if (!isOverwritten) continue;
    hal::Argument& input = request->inputs[i];
    HEARTH_ASSIGN(const memory::PoolRef own, memory::Pool::anonymous(input.length));
    taken.inputs_.push_back({input, own});
    input.kind = hal::Argument::Kind::kPool;
    input.pool = own;
    input.offset = 0;
  }
  return taken;
}

uint64_t OverwrittenInputs::copy() const {
  uint64_t bytes = 0;
  for (const auto& [from, to] : inputs_) {
    std::memcpy(to->mutableData(), dataOf(from), from.length);
    bytes += from.length;
  }
  return bytes;
}

}  // namespace hearth::runtime
