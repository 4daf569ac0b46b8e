// SPDX-License-Identifier: Apache-2.0
// What a model writes to have a function called, as its chat template asks for it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/template_value.h"

namespace hearth::llm {

struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object
};

// How a family of models writes calls: a JSON object with `name` and arguments, or a list of such.
struct ToolFormat {
  std::string_view name;       // for people
  std::string_view begin;      // stands before; empty: an answer is a call as a whole, or none
  std::string_view end;        // stands behind; empty: the answer's end does
  std::string_view opening;    // `begin` as the model writes it before the first brace
  std::string_view arguments;  // the member with them
  bool isList = false;         // whether calls are always in a list
};

// The format that a chat template asks for; null for one that is not known.
const ToolFormat* toolFormatOf(std::string_view chatTemplate);

// A schema (JsonSchema) of one call of one of these tools, which are objects as OpenAI's interface
// has them. `name`: of the only tool that may be called; empty = any. Errors: kBadData for no such
// tool, and values that nest too deeply.
Result<std::string> schemaOfCall(const ToolFormat& format, const TemplateValue& tools,
                                 std::string_view name);

// The names of tools. Error: kBadData for what is no list of functions with names.
Result<std::vector<std::string>> toolNames(const TemplateValue& tools);

// Finds calls in an answer whose text comes piece by piece. What is no call of a known tool for
// certain stays text. Used by one thread at a time.
class ToolCallReader {
 public:
  struct Piece {
    std::string text;  // that is certain to be no part of a call
    std::vector<ToolCall> calls;
  };

  // `isInside`: the text begins behind the format's opening.
  ToolCallReader(const ToolFormat& format, std::vector<std::string> names, bool isInside);

  Piece add(std::string_view text);
  // What is left when no more text comes.
  Piece finish();

 private:
  enum class Place { kStart, kText, kCall };

  void addText(std::string_view text, Piece* piece);
  void endCall(std::string_view body, std::string_view end, Piece* piece);

  const ToolFormat& format_;
  const std::vector<std::string> names_;
  Place place_;
  std::string pending_;
  bool hasCalls_ = false;
};

}  // namespace hearth::llm
