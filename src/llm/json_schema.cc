// SPDX-License-Identifier: Apache-2.0
#include "llm/json_schema.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "llm/chat_template.h"
#include "llm/number_automaton.h"
#include "llm/schema_conformance.h"
#include "llm/schema_conjunction.h"
#include "llm/schema_exclusion.h"
#include "llm/schema_formats.h"
#include "llm/schema_pattern.h"
#include "llm/template_value.h"

namespace hearth::llm {
namespace {

using Kind = JsonSchema::Kind;
using Node = JsonSchema::Node;

constexpr size_t kMaxLiteralBytes = size_t{1} << 20;
constexpr size_t kMaxChoices = size_t{1} << 18;
constexpr size_t kMaxVisits = size_t{1} << 24;  // while choices are looked for
// Larger counts are no limits in practice, and would be a state of the automaton each.
constexpr int64_t kMaxCount = 100'000;
constexpr uint32_t kMaxNested = 128;
constexpr std::string_view kHere = "The schema";

}  // namespace

// Makes nodes of a schema.
class JsonSchemaReader {
 public:
  explicit JsonSchemaReader(TemplateValue schema) : document_(std::move(schema)) {
    schema_.nodes_.push_back({.kind = Kind::kString});  // kAnyString
  }

  Result<JsonSchema> read() {
    HEARTH_ASSIGN(schema_.root_, reference("#"));
    // Places that others refer to are read here and not where they are found, since a chain of
    // references may be long.
    while (!unread_.empty()) {
      const auto [node, pointer] = std::move(unread_.back());
      unread_.pop_back();
      HEARTH_ASSIGN(const TemplateValue value, find(pointer));
      HEARTH_ASSIGN(const uint32_t made, read(value));
      schema_.nodes_[node].choices.push_back(made);
    }
    HEARTH_TRY(resolveChoices());
    HEARTH_TRY(checkExclusions());
    findDepths();
    if (schema_.nodes_[schema_.root_].depth > JsonSchema::kMaxDepth)
      return fail(
          ErrorCode::kBadData,
          "{} has no value: what it requires excludes itself, contains itself, or nests more "
          "than {} deep.",
          kHere, JsonSchema::kMaxDepth);
    return std::move(schema_);
  }

 private:
  using Dictionary = DictionaryValue;
  using Words = SchemaConjunction::Words;

  Result<uint32_t> add(Node node) {
    if (schema_.nodes_.size() == JsonSchema::kMaxNodes)
      return fail(ErrorCode::kUnsupported, "{} has more than {} parts.", kHere,
                  JsonSchema::kMaxNodes);
    schema_.nodes_.push_back(std::move(node));
    return static_cast<uint32_t>(schema_.nodes_.size() - 1);
  }

  Result<uint32_t> addLiterals(std::vector<std::string> literals) {
    return add({.kind = Kind::kLiterals, .literals = std::move(literals)});
  }

  // The node of a place in the document, which is read later.
  Result<uint32_t> reference(const std::string& pointer) {
    const auto found = references_.find(pointer);
    if (found != references_.end()) return found->second;
    HEARTH_ASSIGN(const uint32_t node, add({.kind = Kind::kAnyOf}));
    references_.emplace(pointer, node);
    unread_.emplace_back(node, pointer);
    return node;
  }

  // RFC 6901, behind a '#'.
  Result<TemplateValue> find(const std::string& pointer) {
    const auto unknown = [&] {
      return fail(ErrorCode::kUnsupported, "{} has the $ref '{}', which is no place in it.", kHere,
                  pointer);
    };
    std::string_view rest(pointer);
    if (!rest.starts_with('#')) return unknown();
    rest.remove_prefix(1);
    TemplateValue value = document_;
    while (!rest.empty()) {
      if (!rest.starts_with('/')) return unknown();
      rest.remove_prefix(1);
      const size_t end = std::min(rest.find('/'), rest.size());
      std::string name;
      for (size_t i = 0; i < end; ++i) {
        const bool isEscape = rest[i] == '~' && i + 1 < end;
        name += isEscape ? (rest[++i] == '1' ? '/' : '~') : rest[i];
      }
      rest.remove_prefix(end);
      const TemplateValue* next = nullptr;
      if (const Dictionary* const dictionary = value.asDictionary()) {
        next = dictionary->find(name);
        steps_ += name.size() + dictionary->items.size();
      } else if (const ListValue* const list = value.asList()) {
        size_t index = 0;
        const auto read = std::from_chars(name.data(), name.data() + name.size(), index);
        if (read.ec == std::errc() && read.ptr == name.data() + name.size() &&
            index < list->items.size())
          next = &list->items[index];
      }
      if (next == nullptr) return unknown();
      value = TemplateValue(*next);
    }
    return value;
  }

  // A value of any kind; made once.
  Result<uint32_t> any() {
    if (any_) return *any_;
    HEARTH_ASSIGN(const uint32_t node, add({.kind = Kind::kAnyOf}));
    any_ = node;
    std::vector<uint32_t> choices;
    for (const std::string_view type : {"object", "array", "string", "number", "boolean", "null"}) {
      HEARTH_ASSIGN(const uint32_t choice, read(type, Dictionary()));
      choices.push_back(choice);
    }
    schema_.nodes_[node].choices = std::move(choices);
    return node;
  }

  Result<uint32_t> read(const TemplateValue& value) {
    return nested([&] { return readSchema(value); });
  }
  Result<uint32_t> read(SchemaConjunction all) {
    return nested([&] { return readConjunction(std::move(all)); });
  }

  // What schemas say together may contain itself without an end.
  template <typename Read>
  Result<uint32_t> nested(const Read& read) {
    if (depth_ == kMaxNested)
      return fail(ErrorCode::kUnsupported, "{} nests more than {} deep.", kHere, kMaxNested);
    ++depth_;
    auto made = read();
    --depth_;
    return made;
  }

  Result<uint32_t> readSchema(const TemplateValue& value) {
    if (const bool* const truth = value.asBool()) return *truth ? any() : never();
    const Dictionary* schema = value.asDictionary();
    if (schema == nullptr)
      return fail(ErrorCode::kBadData, "{} has {} where an object is needed.", kHere,
                  value.kindName());
    // Schemas that refer to each other are read later, one after the other.
    if (isAlone(*schema, "$ref") && schema->find("$ref")->asText() != nullptr)
      return reference(*schema->find("$ref")->asText());
    constexpr std::array kJoining = {"$ref", "anyOf", "oneOf", "allOf"};
    if (std::ranges::none_of(kJoining, [&](auto word) { return schema->find(word) != nullptr; }))
      return readWords(*schema);
    // Made once, so that it may contain itself.
    if (const auto found = joined_.find(schema); found != joined_.end())
      return found->second.second;
    HEARTH_ASSIGN(const uint32_t node, never());
    joined_.emplace(schema, std::pair(value, node));
    HEARTH_ASSIGN(const uint32_t made, readJoined(value));
    schema_.nodes_[node].choices.push_back(made);
    return node;
  }

  Result<uint32_t> readJoined(const TemplateValue& value) {
    const Dictionary& schema = *value.asDictionary();
    const TemplateValue* const all = isAlone(schema, "allOf") ? schema.find("allOf") : nullptr;
    if (all != nullptr && all->asList() != nullptr && all->asList()->items.size() == 1)
      return read(all->asList()->items[0]);
    SchemaConjunction conjunction;
    HEARTH_TRY(add(value, &conjunction));
    return read(std::move(conjunction));
  }

  Result<uint32_t> never() { return add({.kind = Kind::kAnyOf}); }

  // Whether the schema has this word, and no other that does more than describe.
  static bool isAlone(const Dictionary& schema, std::string_view word) {
    return schema.find(word) != nullptr && std::ranges::all_of(schema.items, [&](const auto& item) {
             return item.first == word || describes(item.first);
           });
  }

  Status add(const TemplateValue& schema, SchemaConjunction* all) {
    return all->add(schema, [this](const std::string& place) { return find(place); }, &steps_);
  }

  Result<uint32_t> readConjunction(SchemaConjunction all) {
    if (all.isNever()) return never();
    if (all.choices().empty()) {
      HEARTH_ASSIGN(const TemplateValue words, TemplateValue::dictionary(all.words()));
      return readWords(*words.asDictionary(), true);
    }
    const SchemaConjunction::Choices choices = all.takeChoices();
    const bool isJoined = !all.words().empty() || !all.choices().empty();
    Node node{.kind = Kind::kAnyOf};
    for (const TemplateValue& schema : choices.schemas.asList()->items) {
      SchemaConjunction one = all;
      if (isJoined) HEARTH_TRY(add(schema, &one));
      HEARTH_ASSIGN(const uint32_t choice, isJoined ? read(std::move(one)) : read(schema));
      node.choices.push_back(choice);
    }
    if (choices.word == "oneOf") exclusive_.push_back(node.choices);
    return add(std::move(node));
  }

  // A schema without references and choices. `isJoined`: of words of several schemas.
  Result<uint32_t> readWords(const Dictionary& schema, bool isJoined = false) {
    if (schema.find("enum") != nullptr || schema.find("const") != nullptr)
      return readLiterals(schema, isJoined);
    HEARTH_ASSIGN(const std::vector<std::string> types, typesOf(schema));
    HEARTH_TRY(
        checkWords(schema, {"type", "properties", "required", "additionalProperties", "items",
                            "minItems", "maxItems", "minLength", "maxLength", "pattern", "format",
                            "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}));
    if (types.size() == 1) return read(types.front(), schema);
    // Words that are of one type limit that type only.
    Node node{.kind = Kind::kAnyOf};
    if (types.empty()) {
      const bool isLimited = std::ranges::any_of(
          schema.items, [](const auto& item) { return !describes(item.first); });
      if (!isLimited) return any();
      return fail(ErrorCode::kUnsupported, "{} limits a value without saying its `type`.", kHere);
    }
    for (const std::string& type : types) {
      HEARTH_ASSIGN(const uint32_t choice, read(type, schema));
      node.choices.push_back(choice);
    }
    return add(std::move(node));
  }

  // Refuses words that are not among these and do more than describe.
  static Status checkWords(const Dictionary& schema,
                           std::initializer_list<std::string_view> known) {
    for (const auto& [word, value] : schema.items)
      if (!describes(word) && !std::ranges::contains(known, std::string_view(word)))
        return fail(ErrorCode::kUnsupported, "{} has the word '{}', which is not supported.", kHere,
                    word);
    return {};
  }

  static Result<std::vector<std::string>> typesOf(const Dictionary& schema) {
    const TemplateValue* const type = schema.find("type");
    if (type == nullptr) return std::vector<std::string>();
    return schemaTypes(*type);
  }

  // The listed values to which the other words apply as well.
  Result<uint32_t> readLiterals(const Dictionary& schema, bool isJoined) {
    const TemplateValue* const choices = schema.find("enum");
    if (choices != nullptr && choices->asList() == nullptr)
      return fail(ErrorCode::kBadData, "{} has an 'enum' that is no list.", kHere);
    const bool isConstant = choices == nullptr;
    const std::vector<TemplateValue> one =
        isConstant ? std::vector{*schema.find("const")} : std::vector<TemplateValue>();
    Words others = schema.items;
    std::erase_if(others,
                  [&](const auto& item) { return item.first == (isConstant ? "const" : "enum"); });
    HEARTH_ASSIGN(const TemplateValue limits, TemplateValue::dictionary(std::move(others)));
    SchemaConformance conformance([this](const std::string& place) { return find(place); }, &steps_,
                                  &budget_);
    std::vector<std::string> literals;
    for (const TemplateValue& value : isConstant ? one : choices->asList()->items) {
      HEARTH_ASSIGN(const bool isRight, conformance.conforms(value, limits));
      if (!isRight) continue;
      HEARTH_ASSIGN(std::string text, toJson(value, {}, kMaxLiteralBytes));
      literals.push_back(std::move(text));
    }
    if (!literals.empty()) return addLiterals(std::move(literals));
    // Of several schemas another choice may be left.
    if (isJoined) return never();
    return fail(ErrorCode::kBadData,
                "{} has '{}' without a value of its type and within its limits.", kHere,
                isConstant ? "const" : "enum");
  }

  // A value of one type.
  Result<uint32_t> read(std::string_view type, const Dictionary& schema) {
    if (type == "object") return readObject(schema);
    if (type == "boolean") return addLiterals({"true", "false"});
    if (type == "null") return addLiterals({"null"});
    Node node;
    if (type == "array") {
      node.kind = Kind::kArray;
      HEARTH_TRY(readCounts(schema, "minItems", "maxItems", &node));
      const TemplateValue* const items = schema.find("items");
      HEARTH_ASSIGN(node.items, items != nullptr ? read(*items) : any());
    } else if (type == "string") {
      node.kind = Kind::kString;
      HEARTH_TRY(readCounts(schema, "minLength", "maxLength", &node));
      HEARTH_TRY(readPattern(schema, &node));
    } else {
      node.kind = type == "integer" ? Kind::kInteger : Kind::kNumber;
      HEARTH_TRY(readLimits(schema, &node));
    }
    return add(std::move(node));
  }

  // The expression that a string has to match; empty = any string.
  static Result<std::string> expressionOf(const Dictionary& schema) {
    const TemplateValue* const pattern = schema.find("pattern");
    const TemplateValue* const format = schema.find("format");
    if (pattern != nullptr && format != nullptr)
      return fail(ErrorCode::kUnsupported,
                  "{} has 'pattern' beside 'format', which is not supported.", kHere);
    if (pattern == nullptr && format == nullptr) return std::string();
    const std::string* const text = (pattern != nullptr ? pattern : format)->asText();
    if (text == nullptr)
      return fail(ErrorCode::kBadData, "{} has a '{}' that is no text.", kHere,
                  pattern != nullptr ? "pattern" : "format");
    // Every string has the part that is empty.
    if (pattern != nullptr) return text->empty() ? std::string("^") : *text;
    std::string expression = expressionOfFormat(*text);
    if (expression.empty())
      return fail(ErrorCode::kUnsupported, "{} has the 'format' '{}', which is not supported.",
                  kHere, *text);
    return expression;
  }

  Status readPattern(const Dictionary& schema, Node* node) {
    HEARTH_ASSIGN(const std::string expression, expressionOf(schema));
    if (expression.empty()) return {};
    const char* const word = schema.find("pattern") != nullptr ? "pattern" : "format";
    auto text = stringOf(expression, node->least, node->most);
    if (!text)
      return fail(text.error().code(), "{} has a '{}' that cannot be used: {}.", kHere, word,
                  text.error().message());
    if (!*text)
      return fail(ErrorCode::kBadData, "{} has a '{}' that no string of its length has.", kHere,
                  word);
    node->text = std::make_shared<const TextAutomaton>(**std::move(text));
    // The automaton knows them.
    node->least = 0;
    node->most = JsonSchema::kMost;
    return {};
  }

  Result<std::optional<TextAutomaton>> stringOf(std::string_view expression, uint32_t least,
                                                uint32_t most) {
    HEARTH_ASSIGN(CharacterAutomaton automaton, patternAutomaton(expression, &budget_));
    if (least > 0 || most != JsonSchema::kMost) {
      HEARTH_ASSIGN(automaton, withLength(automaton, least, most, &budget_));
    }
    return stringAutomaton(automaton, &budget_);
  }

  Status readLimits(const Dictionary& schema, Node* node) {
    NumberLimits limits{.isInteger = node->kind == Kind::kInteger};
    bool isLimited = false;
    for (const auto& [word, isLeast, isExcluded] :
         {std::tuple("minimum", true, false), std::tuple("exclusiveMinimum", true, true),
          std::tuple("maximum", false, false), std::tuple("exclusiveMaximum", false, true)}) {
      const TemplateValue* const value = schema.find(word);
      if (value == nullptr) continue;
      if (value->asInteger() == nullptr && value->asFloat() == nullptr)
        return fail(ErrorCode::kBadData, "{} has '{}' that is no number.", kHere, word);
      isLimited = true;
      NumberLimit limit = value->asInteger() != nullptr ? NumberLimit::of(*value->asInteger())
                                                        : NumberLimit::of(*value->asFloat());
      limit.isExcluded = isExcluded;
      std::optional<NumberLimit>& kept = isLeast ? limits.least : limits.most;
      // The stricter one counts; of two with the same number that is the one that excludes it.
      const auto order = kept ? limit.compare(*kept) : std::strong_ordering::equal;
      if (order == 0 || (order > 0) == isLeast) kept = std::move(limit);
    }
    if (!isLimited) return {};
    auto text = numberAutomaton(limits, &budget_);
    if (!text)
      return fail(text.error().code(), "{} has limits of a number that cannot be used: {}.", kHere,
                  text.error().message());
    if (!*text)
      return fail(ErrorCode::kBadData,
                  "{} has limits of a number between which there is none of up to {} digits.",
                  kHere,
                  limits.isInteger ? NumberLimits::kMaxWholeDigits : NumberLimits::kMaxDigits);
    node->text = std::make_shared<const TextAutomaton>(**std::move(text));
    return {};
  }

  static Status readCounts(const Dictionary& schema, std::string_view least, std::string_view most,
                           Node* node) {
    for (const auto& [word, count] :
         {std::pair(least, &node->least), std::pair(most, &node->most)}) {
      const TemplateValue* const value = schema.find(word);
      if (value == nullptr) continue;
      const int64_t* const number = value->asInteger();
      if (number == nullptr || *number < 0)
        return fail(ErrorCode::kBadData, "{} has '{}' that is no count.", kHere, word);
      if (*number > kMaxCount)
        return fail(ErrorCode::kUnsupported, "{} has '{}' {}; at most {} is supported.", kHere,
                    word, *number, kMaxCount);
      *count = static_cast<uint32_t>(*number);
    }
    if (node->least > node->most)
      return fail(ErrorCode::kBadData, "{} has '{}' {} above '{}' {}.", kHere, least, node->least,
                  most, node->most);
    return {};
  }

  Result<uint32_t> readObject(const Dictionary& schema) {
    Node node{.kind = Kind::kObject};
    const TemplateValue* const properties = schema.find("properties");
    const TemplateValue* const required = schema.find("required");
    const TemplateValue* const others = schema.find("additionalProperties");
    const bool* const hasOthers = others != nullptr ? others->asBool() : nullptr;
    const bool isClosed = hasOthers != nullptr && !*hasOthers;
    const auto readOthers = [&]() -> Result<uint32_t> {
      return others != nullptr ? read(*others) : any();
    };
    if (properties != nullptr) {
      if (properties->asDictionary() == nullptr)
        return fail(ErrorCode::kBadData, "{} has 'properties' that are no object.", kHere);
      for (const auto& [name, value] : properties->asDictionary()->items) {
        JsonSchema::Property property;
        HEARTH_ASSIGN(property.key, toJson(TemplateValue(name), {}, kMaxLiteralBytes));
        HEARTH_ASSIGN(property.value, read(value));
        node.properties.push_back(std::move(property));
      }
    }
    if (required != nullptr) {
      if (required->asList() == nullptr)
        return fail(ErrorCode::kBadData, "{} has 'required' that is no list.", kHere);
      for (const TemplateValue& name : required->asList()->items) {
        if (name.asText() == nullptr)
          return fail(ErrorCode::kBadData, "{} requires a property that is no text.", kHere);
        HEARTH_ASSIGN(std::string key, toJson(name, {}, kMaxLiteralBytes));
        const auto found = std::ranges::find(node.properties, key, &JsonSchema::Property::key);
        if (found != node.properties.end()) {
          found->isRequired = true;
          continue;
        }
        if (isClosed)
          return fail(ErrorCode::kBadData,
                      "{} requires the property {}, which 'additionalProperties' excludes.", kHere,
                      key);
        HEARTH_ASSIGN(const uint32_t value, readOthers());
        node.properties.push_back({.key = std::move(key), .value = value, .isRequired = true});
      }
    }
    node.isClosed = isClosed;
    node.hasAnyKeys = node.properties.empty() && properties == nullptr && !isClosed;
    if (node.hasAnyKeys) {
      HEARTH_ASSIGN(node.items, readOthers());
    } else if (others != nullptr && hasOthers == nullptr) {
      // Checked, though no such property is generated.
      HEARTH_TRY(readOthers());
    }
    return add(std::move(node));
  }

  // Replaces choices that are choices themselves by theirs.
  Status resolveChoices() {
    size_t visits = 0;
    size_t total = 0;
    std::vector<std::vector<uint32_t>> resolved(schema_.nodes_.size());
    std::vector<uint32_t> visited(schema_.nodes_.size(), JsonSchema::kMost);
    for (uint32_t i = 0; i < schema_.nodes_.size(); ++i) {
      std::vector<uint32_t> open = {i};
      while (!open.empty()) {
        const uint32_t at = open.back();
        open.pop_back();
        if (std::exchange(visited[at], i) == i) continue;
        const Node& node = schema_.nodes_[at];
        visits += 1 + node.choices.size();
        if (visits > kMaxVisits || total > kMaxChoices)
          return fail(ErrorCode::kUnsupported, "{} has more than {} choices.", kHere, kMaxChoices);
        if (node.kind != Kind::kAnyOf) {
          resolved[i].push_back(at);
          ++total;
          continue;
        }
        open.insert(open.end(), node.choices.rbegin(), node.choices.rend());
      }
    }
    for (uint32_t i = 0; i < schema_.nodes_.size(); ++i)
      schema_.nodes_[i].choices = std::move(resolved[i]);
    return {};
  }

  // What is generated of a schema in `oneOf` must not conform to another one there.
  Status checkExclusions() const {
    SchemaExclusion exclusion(schema_.nodes_);
    for (const std::vector<uint32_t>& nodes : exclusive_) {
      HEARTH_ASSIGN(const auto overlap, exclusion.overlap(nodes));
      if (overlap)
        return fail(ErrorCode::kUnsupported,
                    "{} has 'oneOf' whose schemas {} and {} may be right at once; 'anyOf' allows "
                    "that.",
                    kHere, overlap->first + 1, overlap->second + 1);
    }
    return {};
  }

  // The depths that each round finds are the right ones up to the round's number.
  void findDepths() {
    const auto depthOf = [&](uint32_t index) {
      uint32_t depth = JsonSchema::kMaxDepth + 1;
      for (const uint32_t choice : schema_.nodes_[index].choices)
        depth = std::min(depth, schema_.nodes_[choice].depth);
      return depth;
    };
    bool isChanged = true;
    for (uint32_t round = 0; isChanged && round <= JsonSchema::kMaxDepth + 1; ++round) {
      isChanged = false;
      for (Node& node : schema_.nodes_) {
        if (node.kind == Kind::kAnyOf) continue;
        uint32_t depth = 0;
        if (node.kind == Kind::kArray) depth = 1 + (node.least > 0 ? depthOf(node.items) : 0);
        if (node.kind == Kind::kObject) {
          for (const JsonSchema::Property& property : node.properties)
            if (property.isRequired) depth = std::max(depth, depthOf(property.value));
          ++depth;
        }
        depth = std::min(depth, JsonSchema::kMaxDepth + 1);
        isChanged |= std::exchange(node.depth, depth) != depth;
      }
    }
    for (uint32_t i = 0; i < schema_.nodes_.size(); ++i) schema_.nodes_[i].depth = depthOf(i);
  }

  const TemplateValue document_;
  JsonSchema schema_;
  std::map<std::string, uint32_t, std::less<>> references_;
  std::vector<std::pair<uint32_t, std::string>> unread_;
  // With the value itself, which keeps the address alive.
  std::map<const Dictionary*, std::pair<TemplateValue, uint32_t>> joined_;
  std::optional<uint32_t> any_;
  size_t steps_ = 0;  // of SchemaConjunction
  uint32_t depth_ = 0;
  std::vector<std::vector<uint32_t>> exclusive_;  // the nodes of each `oneOf`
  AutomatonBudget budget_;
};

Result<JsonSchema> JsonSchema::parse(std::string_view json) {
  HEARTH_ASSIGN(TemplateValue value, templateValueOfJson(json));
  return JsonSchemaReader(std::move(value)).read();
}

Result<JsonSchema> JsonSchema::anyObject() {
  return parse(R"({"type": "object"})");
}

}  // namespace hearth::llm
