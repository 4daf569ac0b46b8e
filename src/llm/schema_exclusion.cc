// SPDX-License-Identifier: Apache-2.0
#include "llm/schema_exclusion.h"

#include <algorithm>
#include <string_view>

#include "llm/chat_template.h"
#include "llm/template_value.h"

namespace hearth::llm {
namespace {

using Kind = JsonSchema::Kind;

constexpr size_t kMaxVisits = size_t{1} << 20;
// How far properties of properties are looked at.
constexpr uint32_t kMaxDepth = 8;

// The types of JSON; numbers are one.
enum class Type { kObject, kArray, kString, kNumber, kBool, kNull };

Type typeOfText(std::string_view text) {
  switch (text.front()) {
    case '{':
      return Type::kObject;
    case '[':
      return Type::kArray;
    case '"':
      return Type::kString;
    case 't':
    case 'f':
      return Type::kBool;
    case 'n':
      return Type::kNull;
    default:
      return Type::kNumber;
  }
}

Type typeOf(Kind kind) {
  switch (kind) {
    case Kind::kObject:
      return Type::kObject;
    case Kind::kArray:
      return Type::kArray;
    case Kind::kString:
      return Type::kString;
    default:
      return Type::kNumber;
  }
}

// Whether two texts that toJson() has made may be of one value.
bool maybeSameValue(const std::string& one, const std::string& other) {
  if (typeOfText(one) != typeOfText(other)) return false;
  switch (typeOfText(one)) {
    case Type::kObject:
    case Type::kArray:
      return true;
    case Type::kNumber: {
      const auto left = templateValueOfJson(one);
      const auto right = templateValueOfJson(other);
      return !left || !right || areEqual(*left, *right);
    }
    default:
      return one == other;
  }
}

const JsonSchema::Property* propertyOf(const JsonSchema::Node& node, const std::string& key) {
  const auto found = std::ranges::find(node.properties, key, &JsonSchema::Property::key);
  return found != node.properties.end() ? &*found : nullptr;
}

}  // namespace

Result<std::optional<std::pair<size_t, size_t>>> SchemaExclusion::overlap(
    std::span<const uint32_t> nodes) {
  for (size_t i = 0; i < nodes.size(); ++i)
    for (size_t j = i + 1; j < nodes.size(); ++j) {
      // What is generated of each must not conform to the other.
      const bool isExcluded = excludes(nodes[i], nodes[j], 0) && excludes(nodes[j], nodes[i], 0);
      if (visits_ > kMaxVisits)
        return fail(ErrorCode::kUnsupported,
                    "The schema has 'oneOf' of too many schemas to compare them.");
      if (!isExcluded) return std::pair(i, j);
    }
  return std::nullopt;
}

// Whether no text that is generated of `one` conforms to `other`.
bool SchemaExclusion::excludes(uint32_t one, uint32_t other, uint32_t depth) {
  if (depth > kMaxDepth) return false;
  for (const uint32_t left : nodes_[one].choices)
    for (const uint32_t right : nodes_[other].choices) {
      if (++visits_ > kMaxVisits) return false;
      if (!kindsExclude(nodes_[left], nodes_[right], depth)) return false;
    }
  return true;
}

bool SchemaExclusion::kindsExclude(const Node& one, const Node& other, uint32_t depth) {
  if (one.kind == Kind::kLiterals && other.kind == Kind::kLiterals) {
    visits_ += one.literals.size() * other.literals.size();
    return visits_ <= kMaxVisits && std::ranges::none_of(one.literals, [&](const auto& literal) {
             return std::ranges::any_of(
                 other.literals, [&](const auto& text) { return maybeSameValue(literal, text); });
           });
  }
  if (one.kind == Kind::kLiterals || other.kind == Kind::kLiterals) {
    const bool isFirst = one.kind == Kind::kLiterals;
    const Type type = typeOf(isFirst ? other.kind : one.kind);
    return std::ranges::none_of(isFirst ? one.literals : other.literals,
                                [&](const auto& literal) { return typeOfText(literal) == type; });
  }
  if (typeOf(one.kind) != typeOf(other.kind)) return true;
  if (one.kind == Kind::kObject) return objectsExclude(one, other, depth);
  const bool isCounted = one.kind == Kind::kArray || one.kind == Kind::kString;
  if (isCounted && (one.most < other.least || other.most < one.least)) return true;
  return one.kind == Kind::kArray && one.least > 0 && excludes(one.items, other.items, depth + 1);
}

bool SchemaExclusion::objectsExclude(const Node& one, const Node& other, uint32_t depth) {
  for (const JsonSchema::Property& property : other.properties) {
    const JsonSchema::Property* const own = propertyOf(one, property.key);
    if (own == nullptr) {
      if (property.isRequired && !one.hasAnyKeys) return true;
      continue;
    }
    if ((property.isRequired || own->isRequired) && excludes(own->value, property.value, depth + 1))
      return true;
  }
  return other.isClosed && std::ranges::any_of(one.properties, [&](const auto& property) {
           return property.isRequired && propertyOf(other, property.key) == nullptr;
         });
}

}  // namespace hearth::llm
