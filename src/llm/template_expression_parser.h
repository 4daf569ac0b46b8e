// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/template_lexer.h"
#include "llm/template_syntax.h"

namespace hearth::llm {

// Parses the expressions of a template by recursive descent, in Jinja's order of precedence.
class ExpressionParser {
 public:
  static constexpr uint32_t kMaxDepth = 100;

  explicit ExpressionParser(std::vector<TemplateToken> tokens) : tokens_(std::move(tokens)) {}

 protected:
  const TemplateToken& current() const { return tokens_[at_]; }
  const TemplateToken& peek() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void advance() { at_ = std::min(at_ + 1, tokens_.size() - 1); }
  bool isOperator(std::string_view text) const {
    return current().kind == TemplateToken::Kind::kOperator && current().text == text;
  }
  bool isName(std::string_view text) const {
    return current().kind == TemplateToken::Kind::kName && current().text == text;
  }
  bool takeOperator(std::string_view text);
  bool takeName(std::string_view text);
  Status expect(TemplateToken::Kind kind, std::string_view problem);
  Result<std::string> expectName();
  std::unexpected<Error> unexpected(std::string_view problem) const;

  // One expression, or several with commas between them, which make a tuple.
  Result<ExpressionPointer> parseTuple(bool hasConditional = true);
  Result<ExpressionPointer> parseExpression(bool hasConditional = true);
  // Filters without the value: of {% filter … %} and {% set x | … %}.
  Result<ExpressionPointer> parseFilterChain();

 private:
  using Parse = Result<ExpressionPointer> (ExpressionParser::*)();

  Result<ExpressionPointer> make(TemplateExpression::Kind kind, std::string name,
                                 std::vector<ExpressionPointer> children);
  Result<ExpressionPointer> parseOr();
  Result<ExpressionPointer> parseAnd();
  Result<ExpressionPointer> parseNot();
  Result<ExpressionPointer> parseComparison();
  Result<ExpressionPointer> parseSum();
  Result<ExpressionPointer> parseConcatenation();
  Result<ExpressionPointer> parseProduct();
  Result<ExpressionPointer> parsePower();
  Result<ExpressionPointer> parseUnary();
  Result<ExpressionPointer> parseSigned(bool hasFilters);
  Result<ExpressionPointer> parseBinary(Parse operand, const std::vector<std::string_view>& words);
  Result<ExpressionPointer> parsePrimary();
  Result<ExpressionPointer> parseBracket();
  Result<ExpressionPointer> parseList();
  Result<ExpressionPointer> parseDictionary();
  Result<ExpressionPointer> parsePostfix(ExpressionPointer value);
  Result<ExpressionPointer> parseFilters(ExpressionPointer value);
  Result<ExpressionPointer> parseFilter(ExpressionPointer value);
  Result<ExpressionPointer> parseTest(ExpressionPointer value);
  Result<ExpressionPointer> parseSubscript(ExpressionPointer value);
  Status parseArguments(TemplateExpression* call);
  Status measure(TemplateExpression* expression) const;
  std::string takeComparison();

  std::vector<TemplateToken> tokens_;
  size_t at_ = 0;
  uint32_t nesting_ = 0;
};

}  // namespace hearth::llm
