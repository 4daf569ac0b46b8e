// SPDX-License-Identifier: Apache-2.0
#include "llm/template_expression_parser.h"

#include <algorithm>
#include <utility>

namespace hearth::llm {
namespace {

using ExpressionKind = TemplateExpression::Kind;
using TokenKind = TemplateToken::Kind;

std::vector<ExpressionPointer> childrenOf(ExpressionPointer first, ExpressionPointer second = {},
                                          ExpressionPointer third = {}) {
  std::vector<ExpressionPointer> children;
  children.push_back(std::move(first));
  if (second) children.push_back(std::move(second));
  if (third) children.push_back(std::move(third));
  return children;
}

}  // namespace

bool ExpressionParser::takeOperator(std::string_view text) {
  if (!isOperator(text)) return false;
  advance();
  return true;
}

bool ExpressionParser::takeName(std::string_view text) {
  if (!isName(text)) return false;
  advance();
  return true;
}

Status ExpressionParser::expect(TemplateToken::Kind kind, std::string_view problem) {
  if (current().kind != kind) return unexpected(problem);
  advance();
  return {};
}

Result<std::string> ExpressionParser::expectName() {
  if (current().kind != TokenKind::kName) return unexpected("a name is expected");
  std::string name = current().text;
  advance();
  return name;
}

std::unexpected<Error> ExpressionParser::unexpected(std::string_view problem) const {
  return fail(ErrorCode::kBadData, "The chat template is wrong in line {}: {}.", current().line,
              problem);
}

// Expressions are evaluated and freed by recursion, so that their depth has a limit.
Status ExpressionParser::measure(TemplateExpression* expression) const {
  uint32_t depth = 0;
  for (const ExpressionPointer& child : expression->children)
    if (child) depth = std::max(depth, child->depth);
  for (const auto& [name, child] : expression->named) depth = std::max(depth, child->depth);
  expression->depth = depth + 1;
  if (expression->depth > kMaxDepth) return unexpected("an expression is nested too deeply");
  return {};
}

Result<ExpressionPointer> ExpressionParser::make(TemplateExpression::Kind kind, std::string name,
                                                 std::vector<ExpressionPointer> children) {
  auto made = std::make_unique<TemplateExpression>();
  made->kind = kind;
  made->name = std::move(name);
  made->children = std::move(children);
  made->line = current().line;
  HEARTH_TRY(measure(made.get()));
  return made;
}

Result<ExpressionPointer> ExpressionParser::parseTuple(bool hasConditional) {
  HEARTH_ASSIGN(ExpressionPointer first, parseExpression(hasConditional));
  if (!isOperator(",")) return first;
  std::vector<ExpressionPointer> items = childrenOf(std::move(first));
  while (takeOperator(",")) {
    if (current().kind == TokenKind::kBlockEnd || current().kind == TokenKind::kPrintEnd ||
        isOperator(")"))
      break;
    HEARTH_ASSIGN(ExpressionPointer item, parseExpression(hasConditional));
    items.push_back(std::move(item));
  }
  return make(ExpressionKind::kTuple, "", std::move(items));
}

Result<ExpressionPointer> ExpressionParser::parseExpression(bool hasConditional) {
  if (++nesting_ > kMaxDepth) return unexpected("an expression is nested too deeply");
  HEARTH_ASSIGN(ExpressionPointer value, parseOr());
  while (hasConditional && takeName("if")) {
    HEARTH_ASSIGN(ExpressionPointer condition, parseOr());
    ExpressionPointer other;
    if (takeName("else")) {
      HEARTH_ASSIGN(other, parseExpression());
    }
    HEARTH_ASSIGN(value,
                  make(ExpressionKind::kConditional, "",
                       childrenOf(std::move(value), std::move(condition), std::move(other))));
  }
  --nesting_;
  return value;
}

Result<ExpressionPointer> ExpressionParser::parseBinary(
    Parse operand, const std::vector<std::string_view>& words) {
  HEARTH_ASSIGN(ExpressionPointer left, (this->*operand)());
  for (;;) {
    const auto word = std::ranges::find_if(
        words, [&](std::string_view text) { return isOperator(text) || isName(text); });
    if (word == words.end()) return left;
    advance();
    HEARTH_ASSIGN(ExpressionPointer right, (this->*operand)());
    HEARTH_ASSIGN(left, make(ExpressionKind::kBinary, std::string(*word),
                             childrenOf(std::move(left), std::move(right))));
  }
}

Result<ExpressionPointer> ExpressionParser::parseOr() {
  return parseBinary(&ExpressionParser::parseAnd, {"or"});
}

Result<ExpressionPointer> ExpressionParser::parseAnd() {
  return parseBinary(&ExpressionParser::parseNot, {"and"});
}

Result<ExpressionPointer> ExpressionParser::parseNot() {
  uint32_t count = 0;
  while (takeName("not")) ++count;
  HEARTH_ASSIGN(ExpressionPointer value, parseComparison());
  for (; count > 0; --count) {
    HEARTH_ASSIGN(value, make(ExpressionKind::kUnary, "not", childrenOf(std::move(value))));
  }
  return value;
}

// The comparison that comes next; empty where there is none.
std::string ExpressionParser::takeComparison() {
  for (const std::string_view word : {"==", "!=", "<", "<=", ">", ">="})
    if (takeOperator(word)) return std::string(word);
  if (takeName("in")) return "in";
  if (isName("not") && peek().kind == TokenKind::kName && peek().text == "in") {
    advance();
    advance();
    return "not in";
  }
  return "";
}

Result<ExpressionPointer> ExpressionParser::parseComparison() {
  HEARTH_ASSIGN(ExpressionPointer first, parseSum());
  std::vector<std::string> names;
  std::vector<ExpressionPointer> operands = childrenOf(std::move(first));
  for (;;) {
    std::string name = takeComparison();
    if (name.empty()) break;
    names.push_back(std::move(name));
    HEARTH_ASSIGN(ExpressionPointer next, parseSum());
    operands.push_back(std::move(next));
  }
  if (names.empty()) return std::move(operands[0]);
  HEARTH_ASSIGN(ExpressionPointer made, make(ExpressionKind::kComparison, "", std::move(operands)));
  made->names = std::move(names);
  return made;
}

Result<ExpressionPointer> ExpressionParser::parseSum() {
  return parseBinary(&ExpressionParser::parseConcatenation, {"+", "-"});
}

Result<ExpressionPointer> ExpressionParser::parseConcatenation() {
  return parseBinary(&ExpressionParser::parseProduct, {"~"});
}

Result<ExpressionPointer> ExpressionParser::parseProduct() {
  return parseBinary(&ExpressionParser::parsePower, {"*", "/", "//", "%"});
}

Result<ExpressionPointer> ExpressionParser::parsePower() {
  return parseBinary(&ExpressionParser::parseUnary, {"**"});
}

Result<ExpressionPointer> ExpressionParser::parseUnary() {
  return parseSigned(true);
}

Result<ExpressionPointer> ExpressionParser::parseSigned(bool hasFilters) {
  std::string signs;
  while (isOperator("-") || isOperator("+")) {
    signs += current().text;
    advance();
  }
  HEARTH_ASSIGN(ExpressionPointer value, parsePrimary());
  HEARTH_ASSIGN(value, parsePostfix(std::move(value)));
  for (; !signs.empty(); signs.pop_back()) {
    HEARTH_ASSIGN(value, make(ExpressionKind::kUnary, std::string(1, signs.back()),
                              childrenOf(std::move(value))));
  }
  if (!hasFilters) return value;
  return parseFilters(std::move(value));
}

Result<ExpressionPointer> ExpressionParser::parsePrimary() {
  const TemplateToken& token = current();
  HEARTH_ASSIGN(ExpressionPointer made, make(ExpressionKind::kLiteral, "", {}));
  switch (token.kind) {
    case TokenKind::kString: {
      std::string text;
      for (; current().kind == TokenKind::kString; advance()) text += current().text;
      made->value = TemplateValue(std::move(text));
      return made;
    }
    case TokenKind::kInteger:
      made->value = TemplateValue(token.integer);
      break;
    case TokenKind::kFloat:
      made->value = TemplateValue(token.number);
      break;
    case TokenKind::kName:
      if (token.text == "true" || token.text == "True") {
        made->value = TemplateValue(true);
      } else if (token.text == "false" || token.text == "False") {
        made->value = TemplateValue(false);
      } else if (token.text != "none" && token.text != "None") {
        made->kind = ExpressionKind::kName;
        made->name = token.text;
      }
      break;
    default:
      return parseBracket();
  }
  advance();
  return made;
}

Result<ExpressionPointer> ExpressionParser::parseBracket() {
  if (takeOperator("[")) return parseList();
  if (takeOperator("{")) return parseDictionary();
  if (!takeOperator("(")) return unexpected("an expression is expected");
  if (takeOperator(")")) return make(ExpressionKind::kTuple, "", {});
  HEARTH_ASSIGN(ExpressionPointer value, parseTuple());
  if (!takeOperator(")")) return unexpected("a bracket is not closed");
  return value;
}

Result<ExpressionPointer> ExpressionParser::parseList() {
  std::vector<ExpressionPointer> items;
  while (!takeOperator("]")) {
    if (!items.empty() && !takeOperator(",")) return unexpected("a comma is expected");
    if (takeOperator("]")) break;
    HEARTH_ASSIGN(ExpressionPointer item, parseExpression());
    items.push_back(std::move(item));
  }
  return make(ExpressionKind::kList, "", std::move(items));
}

Result<ExpressionPointer> ExpressionParser::parseDictionary() {
  std::vector<ExpressionPointer> items;
  while (!takeOperator("}")) {
    if (!items.empty() && !takeOperator(",")) return unexpected("a comma is expected");
    if (takeOperator("}")) break;
    HEARTH_ASSIGN(ExpressionPointer key, parseExpression());
    if (!takeOperator(":")) return unexpected("a colon is expected");
    HEARTH_ASSIGN(ExpressionPointer value, parseExpression());
    items.push_back(std::move(key));
    items.push_back(std::move(value));
  }
  return make(ExpressionKind::kDictionary, "", std::move(items));
}

// Arguments behind the bracket that opens them, up to the one that closes them.
Status ExpressionParser::parseArguments(TemplateExpression* call) {
  bool isFirst = true;
  while (!takeOperator(")")) {
    if (!isFirst && !takeOperator(",")) return unexpected("a comma is expected");
    if (takeOperator(")")) break;
    isFirst = false;
    if (isOperator("*") || isOperator("**"))
      return unexpected("arguments from a list are not supported");
    if (current().kind == TokenKind::kName && peek().kind == TokenKind::kOperator &&
        peek().text == "=") {
      std::string name = current().text;
      advance();
      advance();
      HEARTH_ASSIGN(ExpressionPointer value, parseExpression());
      call->named.emplace_back(std::move(name), std::move(value));
      continue;
    }
    if (!call->named.empty()) return unexpected("an argument without a name follows one with one");
    HEARTH_ASSIGN(ExpressionPointer value, parseExpression());
    call->children.push_back(std::move(value));
  }
  return measure(call);
}

Result<ExpressionPointer> ExpressionParser::parseSubscript(ExpressionPointer value) {
  std::vector<ExpressionPointer> parts;
  bool isSlice = false;
  for (;;) {
    ExpressionPointer part;
    if (!isOperator(":") && !isOperator("]")) {
      HEARTH_ASSIGN(part, parseExpression());
    }
    parts.push_back(std::move(part));
    if (!takeOperator(":")) break;
    isSlice = true;
  }
  if (!takeOperator("]") || parts.size() > 3) return unexpected("a bracket is not closed");
  if (!isSlice && !parts[0]) return unexpected("an expression is expected");
  parts.insert(parts.begin(), std::move(value));
  if (isSlice) parts.resize(4);
  return make(isSlice ? ExpressionKind::kSlice : ExpressionKind::kItem, "", std::move(parts));
}

Result<ExpressionPointer> ExpressionParser::parsePostfix(ExpressionPointer value) {
  for (;;) {
    if (takeOperator(".")) {
      if (current().kind == TokenKind::kInteger) {
        HEARTH_ASSIGN(ExpressionPointer key, make(ExpressionKind::kLiteral, "", {}));
        key->value = TemplateValue(current().integer);
        advance();
        HEARTH_ASSIGN(
            value, make(ExpressionKind::kItem, "", childrenOf(std::move(value), std::move(key))));
        continue;
      }
      HEARTH_ASSIGN(std::string name, expectName());
      HEARTH_ASSIGN(
          value, make(ExpressionKind::kAttribute, std::move(name), childrenOf(std::move(value))));
    } else if (takeOperator("[")) {
      HEARTH_ASSIGN(value, parseSubscript(std::move(value)));
    } else if (takeOperator("(")) {
      HEARTH_ASSIGN(value, make(ExpressionKind::kCall, "", childrenOf(std::move(value))));
      HEARTH_TRY(parseArguments(value.get()));
    } else {
      return value;
    }
  }
}

Result<ExpressionPointer> ExpressionParser::parseFilters(ExpressionPointer value) {
  for (;;) {
    if (takeOperator("|")) {
      HEARTH_ASSIGN(value, parseFilter(std::move(value)));
    } else if (takeName("is")) {
      HEARTH_ASSIGN(value, parseTest(std::move(value)));
    } else if (takeOperator("(")) {
      HEARTH_ASSIGN(value, make(ExpressionKind::kCall, "", childrenOf(std::move(value))));
      HEARTH_TRY(parseArguments(value.get()));
    } else {
      return value;
    }
  }
}

// A filter behind its bar; `value` is null in a filter block.
Result<ExpressionPointer> ExpressionParser::parseFilter(ExpressionPointer value) {
  HEARTH_ASSIGN(std::string name, expectName());
  HEARTH_ASSIGN(ExpressionPointer made,
                make(ExpressionKind::kFilter, std::move(name), childrenOf(std::move(value))));
  if (takeOperator("(")) HEARTH_TRY(parseArguments(made.get()));
  return made;
}

Result<ExpressionPointer> ExpressionParser::parseFilterChain() {
  HEARTH_ASSIGN(ExpressionPointer value, parseFilter(nullptr));
  while (takeOperator("|")) {
    HEARTH_ASSIGN(value, parseFilter(std::move(value)));
  }
  return value;
}

Result<ExpressionPointer> ExpressionParser::parseTest(ExpressionPointer value) {
  const bool isNegated = takeName("not");
  HEARTH_ASSIGN(std::string name, expectName());
  HEARTH_ASSIGN(ExpressionPointer made,
                make(ExpressionKind::kTest, std::move(name), childrenOf(std::move(value))));
  made->isNegated = isNegated;
  const TemplateToken& next = current();
  if (takeOperator("(")) {
    HEARTH_TRY(parseArguments(made.get()));
  } else if (next.kind == TokenKind::kString || next.kind == TokenKind::kInteger ||
             next.kind == TokenKind::kFloat || isOperator("[") || isOperator("{") ||
             (next.kind == TokenKind::kName && next.text != "else" && next.text != "or" &&
              next.text != "and" && next.text != "is" && next.text != "if" && next.text != "not" &&
              next.text != "in")) {
    HEARTH_ASSIGN(ExpressionPointer argument, parsePrimary());
    HEARTH_ASSIGN(argument, parsePostfix(std::move(argument)));
    made->children.push_back(std::move(argument));
    HEARTH_TRY(measure(made.get()));
  }
  return made;
}

}  // namespace hearth::llm
