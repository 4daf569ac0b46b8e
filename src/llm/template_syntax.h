// SPDX-License-Identifier: Apache-2.0
// What a chat template is made of: expressions and statements.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "llm/template_value.h"

namespace hearth::llm {

struct TemplateExpression;
using ExpressionPointer = std::unique_ptr<TemplateExpression>;

struct TemplateExpression {
  enum class Kind {
    kLiteral,      // value
    kName,         // name
    kList,         // children
    kTuple,        // children
    kDictionary,   // children: key, value, key, value, …
    kUnary,        // name: "-", "+" or "not"; one child
    kBinary,       // name: the operator, "and" and "or" among them; two children
    kComparison,   // names: the operators between the children
    kConditional,  // children: value, condition, and the other value or nothing
    kAttribute,    // name; one child
    kItem,         // children: object, key
    kSlice,        // children: object, then begin, end and step, each of which may be null
    kCall,         // children: callee, arguments
    kFilter,       // name; children: value (null in a filter block), arguments
    kTest,         // name; children: value, arguments; isNegated
  };

  Kind kind = Kind::kLiteral;
  std::string name;
  TemplateValue value;
  std::vector<ExpressionPointer> children;
  std::vector<std::string> names;
  // Arguments by name of a call, a filter or a test.
  std::vector<std::pair<std::string, ExpressionPointer>> named;
  bool isNegated = false;
  uint32_t depth = 1;  // how deeply children nest, with this
  uint32_t line = 1;
};

struct TemplateStatement;
using StatementList = std::vector<TemplateStatement>;

// Names that values are assigned to: one, an attribute of a namespace, or several in brackets.
struct TemplateTarget {
  std::string name;
  std::string attribute;
  std::vector<std::string> names;  // in place of `name`
};

struct TemplateMacro {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPointer> defaults;  // of the last parameters
  std::shared_ptr<const StatementList> body;
};

struct TemplateStatement {
  enum class Kind {
    kText,         // text
    kPrint,        // expression
    kIf,           // branches: conditions (null = else) and bodies
    kFor,          // target, expression, condition or null, body, otherwise
    kSet,          // target, expression
    kSetBlock,     // target, body, expression: a filter or null
    kMacro,        // macro
    kCallBlock,    // macro, expression: the call
    kFilterBlock,  // expression: the filter; body
    kBreak,
    kContinue,
    kScope,  // body
  };

  Kind kind = Kind::kText;
  std::string text;
  ExpressionPointer expression;
  ExpressionPointer condition;
  TemplateTarget target;
  StatementList body;
  StatementList otherwise;
  std::vector<std::pair<ExpressionPointer, StatementList>> branches;
  std::shared_ptr<const TemplateMacro> macro;
  uint32_t line = 1;
};

}  // namespace hearth::llm
