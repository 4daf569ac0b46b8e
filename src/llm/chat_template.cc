// SPDX-License-Identifier: Apache-2.0
#include "llm/chat_template.h"

#include "base/caught.h"
#include "llm/json_reader.h"
#include "llm/template_evaluator.h"
#include "llm/template_parser.h"

namespace hearth::llm {
namespace {

constexpr size_t kMaxJsonBytes = size_t{64} << 20;

// JsonReader limits how deeply values nest.
Result<TemplateValue> readValue(JsonReader* reader) {
  using Kind = JsonReader::Kind;
  HEARTH_ASSIGN(const Kind kind, reader->peek());
  switch (kind) {
    case Kind::kString: {
      std::string text;
      HEARTH_TRY(reader->readString(&text));
      return TemplateValue(std::move(text));
    }
    case Kind::kBool: {
      HEARTH_ASSIGN(const bool truth, reader->readBool());
      return TemplateValue(truth);
    }
    case Kind::kNull:
      HEARTH_TRY(reader->skip());
      return TemplateValue();
    case Kind::kNumber: {
      const JsonReader before = *reader;
      if (const auto integer = reader->readInteger()) return TemplateValue(*integer);
      *reader = before;
      HEARTH_ASSIGN(const double number, reader->readNumber());
      return TemplateValue(number);
    }
    case Kind::kArray: {
      std::vector<TemplateValue> items;
      HEARTH_TRY(reader->beginArray());
      for (;;) {
        HEARTH_ASSIGN(const bool isThere, reader->nextElement());
        if (!isThere) return TemplateValue::list(std::move(items));
        HEARTH_ASSIGN(TemplateValue item, readValue(reader));
        items.push_back(std::move(item));
      }
    }
    case Kind::kObject:
      break;
  }
  std::vector<std::pair<std::string, TemplateValue>> items;
  std::string key;
  HEARTH_TRY(reader->beginObject());
  for (;;) {
    HEARTH_ASSIGN(const bool isThere, reader->nextKey(&key));
    if (!isThere) return TemplateValue::dictionary(std::move(items));
    HEARTH_ASSIGN(TemplateValue value, readValue(reader));
    items.emplace_back(key, std::move(value));
  }
}

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  HEARTH_ASSIGN(StatementList statements, parseTemplate(source));
  ChatTemplate made;
  made.statements_ = std::make_shared<const StatementList>(std::move(statements));
  return made;
}

Result<std::string> ChatTemplate::render(Variables variables) const {
  uint64_t weight = 0;
  for (const auto& [name, value] : variables) weight += value.weight();
  return base::caught([&] {
    return TemplateEvaluator(std::move(variables), TemplateBudget(weight)).run(*statements_);
  });
}

Result<TemplateValue> templateValueOfJson(std::string_view json) {
  if (json.size() > kMaxJsonBytes)
    return fail(ErrorCode::kBadData, "The JSON text has {} bytes; at most {} are read.",
                json.size(), kMaxJsonBytes);
  JsonReader reader(json);
  HEARTH_ASSIGN(TemplateValue value, readValue(&reader));
  HEARTH_TRY(reader.expectEnd());
  return value;
}

}  // namespace hearth::llm
