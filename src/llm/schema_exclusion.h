// SPDX-License-Identifier: Apache-2.0
// Whether schemas exclude each other, which `oneOf` needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "llm/json_schema.h"

namespace hearth::llm {

// Looks at the nodes of a schema whose choices are resolved.
class SchemaExclusion {
 public:
  explicit SchemaExclusion(std::span<const JsonSchema::Node> nodes) : nodes_(nodes) {}

  // Two of these nodes, by their place, of which a text may conform to both; no value where none
  // does for certain. Error: kUnsupported where that is too much work to find out.
  Result<std::optional<std::pair<size_t, size_t>>> overlap(std::span<const uint32_t> nodes);

 private:
  using Node = JsonSchema::Node;

  bool excludes(uint32_t one, uint32_t other, uint32_t depth);
  bool kindsExclude(const Node& one, const Node& other, uint32_t depth);
  bool objectsExclude(const Node& one, const Node& other, uint32_t depth);

  const std::span<const JsonSchema::Node> nodes_;
  size_t visits_ = 0;
};

}  // namespace hearth::llm
