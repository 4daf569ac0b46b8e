// SPDX-License-Identifier: Apache-2.0
#include "llm/tool_calls.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "llm/chat_template.h"

namespace hearth::llm {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";
constexpr size_t kMaxSchemaBytes = size_t{16} << 20;

// A family is known by what its templates tell the model to write.
struct Family {
  std::string_view sign;
  std::string_view otherSign;  // as well
  std::string_view unlike;     // and not this one; empty = none
  ToolFormat format;
};
constexpr std::array kFamilies = {
    // Hermes, Qwen 2.5 and 3, SmolLM 3.
    Family{.sign = "<tool_call>",
           .otherSign = "arguments",
           .unlike = "<function=",
           .format = {.name = "hermes",
                      .begin = "<tool_call>",
                      .end = "</tool_call>",
                      .opening = "<tool_call>\n",
                      .arguments = "arguments"}},
    // Mistral.
    Family{.sign = "[TOOL_CALLS]",
           .otherSign = "arguments",
           .unlike = "[ARGS]",
           .format = {.name = "mistral",
                      .begin = "[TOOL_CALLS]",
                      .opening = "[TOOL_CALLS]",
                      .arguments = "arguments",
                      .isList = true}},
    // Llama 3.1 and 3.2.
    Family{.sign = "\"parameters\": ",
           .otherSign = "<|start_header_id|>",
           .format = {.name = "llama", .arguments = "parameters"}},
};

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kSpaces), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kSpaces) + 1);
}

const TemplateValue* memberOf(const TemplateValue& value, std::string_view name) {
  const DictionaryValue* const dictionary = value.asDictionary();
  return dictionary != nullptr ? dictionary->find(name) : nullptr;
}

const std::string* nameOfTool(const TemplateValue& tool) {
  const TemplateValue* const function = memberOf(tool, "function");
  const TemplateValue* const name = function != nullptr ? memberOf(*function, "name") : nullptr;
  return name != nullptr ? name->asText() : nullptr;
}

// The call that a value is, of one of these tools.
std::optional<ToolCall> callOf(const TemplateValue& value, const ToolFormat& format,
                               const std::vector<std::string>& names) {
  const TemplateValue* const name = memberOf(value, "name");
  const TemplateValue* const arguments = memberOf(value, format.arguments);
  if (name == nullptr || name->asText() == nullptr || arguments == nullptr) return std::nullopt;
  if (!std::ranges::contains(names, *name->asText())) return std::nullopt;
  // Where nothing stands around a call, anything more says that it is none.
  if (format.begin.empty() && value.asDictionary()->items.size() != 2) return std::nullopt;
  if (const std::string* const text = arguments->asText()) {
    const auto parsed = templateValueOfJson(*text);
    if (!parsed || parsed->asDictionary() == nullptr) return std::nullopt;
    return ToolCall{.name = *name->asText(), .arguments = *text};
  }
  if (arguments->asDictionary() == nullptr) return std::nullopt;
  auto json = toJson(*arguments, {}, kMaxSchemaBytes);
  if (!json) return std::nullopt;
  return ToolCall{.name = *name->asText(), .arguments = *std::move(json)};
}

// All calls of a text, or none.
std::vector<ToolCall> callsOf(std::string_view body, const ToolFormat& format,
                              const std::vector<std::string>& names) {
  const auto value = templateValueOfJson(trimmed(body));
  if (!value) return {};
  const ListValue* const list = value->asList();
  const std::vector<TemplateValue> one = {*value};
  std::vector<ToolCall> calls;
  for (const TemplateValue& item : list != nullptr ? list->items : one) {
    auto call = callOf(item, format, names);
    if (!call) return {};
    calls.push_back(*std::move(call));
  }
  return calls;
}

// What the keys of an object in a schema are.
enum class Keys { kWords, kNames };

bool isData(std::string_view word) {
  return word == "const" || word == "enum" || word == "default" || word == "examples";
}
bool isOfNames(std::string_view word) {
  return word == "properties" || word == "patternProperties" || word == "$defs" ||
         word == "definitions" || word == "dependentSchemas";
}

// A schema whose references to places in itself stay right when it stands at `place`. Values that
// it compares with stay as they are.
Result<TemplateValue> movedTo(const TemplateValue& schema, const std::string& place,
                              Keys keys = Keys::kWords) {
  if (const ListValue* const list = schema.asList()) {
    std::vector<TemplateValue> items;
    for (const TemplateValue& item : list->items) {
      HEARTH_ASSIGN(TemplateValue made, movedTo(item, place));
      items.push_back(std::move(made));
    }
    return TemplateValue::list(std::move(items));
  }
  const DictionaryValue* const dictionary = schema.asDictionary();
  if (dictionary == nullptr) return schema;
  std::vector<std::pair<std::string, TemplateValue>> items;
  for (const auto& [key, item] : dictionary->items) {
    const std::string* const text = item.asText();
    const bool isWord = keys == Keys::kWords;
    if (isWord && key == "$ref" && text != nullptr && text->starts_with('#')) {
      items.emplace_back(key, TemplateValue(place + text->substr(1)));
    } else if (isWord && isData(key)) {
      items.emplace_back(key, item);
    } else {
      HEARTH_ASSIGN(TemplateValue made,
                    movedTo(item, place, isWord && isOfNames(key) ? Keys::kNames : Keys::kWords));
      items.emplace_back(key, std::move(made));
    }
  }
  return TemplateValue::dictionary(std::move(items));
}

// How much at the end of a text may be the beginning of `mark`.
size_t begunBytes(std::string_view text, std::string_view mark) {
  for (size_t size = std::min(mark.size() - 1, text.size()); size > 0; --size)
    if (mark.starts_with(text.substr(text.size() - size))) return size;
  return 0;
}

}  // namespace

const ToolFormat* toolFormatOf(std::string_view chatTemplate) {
  for (const Family& family : kFamilies)
    if (chatTemplate.contains(family.sign) && chatTemplate.contains(family.otherSign) &&
        (family.unlike.empty() || !chatTemplate.contains(family.unlike)))
      return &family.format;
  return nullptr;
}

Result<std::vector<std::string>> toolNames(const TemplateValue& tools) {
  std::vector<std::string> names;
  if (tools.isNone()) return names;
  if (tools.asList() == nullptr)
    return fail(ErrorCode::kBadData, "The tools are {} and no list.", tools.kindName());
  for (const TemplateValue& tool : tools.asList()->items) {
    const std::string* const name = nameOfTool(tool);
    if (name == nullptr || name->empty())
      return fail(ErrorCode::kBadData, "Tool {} has no 'function' with a 'name'.",
                  names.size() + 1);
    names.push_back(*name);
  }
  return names;
}

Result<std::string> schemaOfCall(const ToolFormat& format, const TemplateValue& tools,
                                 std::string_view name) {
  HEARTH_ASSIGN(const std::vector<std::string> names, toolNames(tools));
  std::vector<TemplateValue> choices;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!name.empty() && names[i] != name) continue;
    const std::string place =
        base::formatText("#{}/anyOf/{}/properties/{}", format.isList ? "/items" : "",
                         choices.size(), format.arguments);
    const TemplateValue* const own =
        memberOf(*memberOf(tools.asList()->items[i], "function"), "parameters");
    HEARTH_ASSIGN(TemplateValue parameters,
                  own != nullptr ? movedTo(*own, place)
                                 : TemplateValue::dictionary({{"type", TemplateValue("object")}}));
    HEARTH_ASSIGN(TemplateValue constant,
                  TemplateValue::dictionary({{"const", TemplateValue(names[i])}}));
    HEARTH_ASSIGN(TemplateValue properties,
                  TemplateValue::dictionary({{"name", std::move(constant)},
                                             {std::string(format.arguments), parameters}}));
    HEARTH_ASSIGN(TemplateValue required,
                  TemplateValue::list({TemplateValue("name"), TemplateValue(format.arguments)}));
    HEARTH_ASSIGN(TemplateValue call,
                  TemplateValue::dictionary({{"type", TemplateValue("object")},
                                             {"properties", std::move(properties)},
                                             {"required", std::move(required)}}));
    choices.push_back(std::move(call));
  }
  if (choices.empty()) return fail(ErrorCode::kBadData, "There is no tool '{}'.", name);
  HEARTH_ASSIGN(TemplateValue list, TemplateValue::list(std::move(choices)));
  HEARTH_ASSIGN(TemplateValue schema, TemplateValue::dictionary({{"anyOf", std::move(list)}}));
  if (format.isList) {
    HEARTH_ASSIGN(schema, TemplateValue::dictionary({{"type", TemplateValue("array")},
                                                     {"items", std::move(schema)},
                                                     {"minItems", TemplateValue(int64_t{1})},
                                                     {"maxItems", TemplateValue(int64_t{1})}}));
  }
  return toJson(schema, {}, kMaxSchemaBytes);
}

ToolCallReader::ToolCallReader(const ToolFormat& format, std::vector<std::string> names,
                               bool isInside)
    : format_(format),
      names_(std::move(names)),
      place_(isInside               ? Place::kCall
             : format.begin.empty() ? Place::kStart
                                    : Place::kText) {}

// White space between calls, and behind them, is no text.
void ToolCallReader::addText(std::string_view text, Piece* piece) {
  if (hasCalls_ && piece->text.empty()) text = trimmed(text).empty() ? std::string_view() : text;
  piece->text += text;
}

void ToolCallReader::endCall(std::string_view body, std::string_view end, Piece* piece) {
  std::vector<ToolCall> calls = callsOf(body, format_, names_);
  if (calls.empty()) {
    addText(format_.begin, piece);
    addText(body, piece);
    addText(end, piece);
    return;
  }
  hasCalls_ = true;
  std::ranges::move(calls, std::back_inserter(piece->calls));
}

ToolCallReader::Piece ToolCallReader::add(std::string_view text) {
  Piece piece;
  pending_ += text;
  if (place_ == Place::kStart) {
    const size_t begin = pending_.find_first_not_of(kSpaces);
    if (begin == std::string::npos) return piece;
    place_ = pending_[begin] == '{' ? Place::kCall : Place::kText;
  }
  for (;;) {
    if (place_ == Place::kCall) {
      const size_t end = format_.end.empty() ? std::string::npos : pending_.find(format_.end);
      if (end == std::string::npos) return piece;
      endCall(std::string_view(pending_).substr(0, end), format_.end, &piece);
      pending_.erase(0, end + format_.end.size());
      place_ = Place::kText;
      continue;
    }
    const size_t begin = format_.begin.empty() ? std::string::npos : pending_.find(format_.begin);
    if (begin != std::string::npos) {
      const std::string_view before = std::string_view(pending_).substr(0, begin);
      addText(before.substr(0, before.find_last_not_of(kSpaces) + 1), &piece);
      pending_.erase(0, begin + format_.begin.size());
      place_ = Place::kCall;
      continue;
    }
    if (format_.begin.empty()) {
      addText(std::exchange(pending_, {}), &piece);
      return piece;
    }
    // Kept back: what may be the beginning of a call, and white space before it.
    std::string_view certain = pending_;
    certain.remove_suffix(begunBytes(certain, format_.begin));
    certain = certain.substr(0, certain.find_last_not_of(kSpaces) + 1);
    addText(certain, &piece);
    pending_.erase(0, certain.size());
    return piece;
  }
}

ToolCallReader::Piece ToolCallReader::finish() {
  Piece piece;
  const std::string rest = std::exchange(pending_, {});
  if (place_ == Place::kCall)
    endCall(rest, "", &piece);
  else
    addText(rest, &piece);
  return piece;
}

}  // namespace hearth::llm
