// SPDX-License-Identifier: Apache-2.0
// The statements of templates.
#include "llm/template_parser.h"

#include <algorithm>
#include <utility>

#include "llm/template_expression_parser.h"

namespace hearth::llm {
namespace {

using StatementKind = TemplateStatement::Kind;
using TokenKind = TemplateToken::Kind;

constexpr uint32_t kMaxStatementDepth = 50;

class StatementParser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Result<StatementList> parse() {
    HEARTH_ASSIGN(StatementList statements, parseUntil({}));
    if (current().kind != TokenKind::kEnd) return unexpected("this block is not open");
    return statements;
  }

 private:
  using Names = std::vector<std::string_view>;

  bool isEndBlock(const Names& ends) const {
    return current().kind == TokenKind::kBlockBegin && peek().kind == TokenKind::kName &&
           std::ranges::find(ends, peek().text) != ends.end();
  }

  // Statements up to a block with one of these names, which stays; or to the template's end.
  Result<StatementList> parseUntil(const Names& ends) {
    if (++depth_ > kMaxStatementDepth) return unexpected("blocks are nested too deeply");
    StatementList statements;
    while (current().kind != TokenKind::kEnd && !isEndBlock(ends)) {
      const uint32_t line = current().line;
      if (current().kind == TokenKind::kBlockBegin) {
        advance();
        HEARTH_TRY(parseBlock(&statements));
      } else if (current().kind == TokenKind::kPrintBegin) {
        advance();
        TemplateStatement& statement = statements.emplace_back();
        statement.kind = StatementKind::kPrint;
        HEARTH_ASSIGN(statement.expression, parseTuple());
        HEARTH_TRY(expect(TokenKind::kPrintEnd, "the end of the expression is expected"));
      } else {
        statements.emplace_back().text = current().text;
        advance();
      }
      if (!statements.empty()) statements.back().line = line;
    }
    if (!ends.empty() && current().kind == TokenKind::kEnd)
      return unexpected("a block is not closed");
    --depth_;
    return statements;
  }

  // A body, and the tag that ends it: {% endfor %}.
  Result<StatementList> parseBody(std::string_view end) {
    HEARTH_TRY(expectBlockEnd());
    HEARTH_ASSIGN(StatementList body, parseUntil({end}));
    advance();
    advance();
    // {% endmacro name %}
    if (end == "endmacro" && current().kind == TokenKind::kName) advance();
    HEARTH_TRY(expectBlockEnd());
    return body;
  }

  Status expectBlockEnd() {
    return expect(TokenKind::kBlockEnd, "the end of the block is expected");
  }

  Status parseBlock(StatementList* statements) {
    HEARTH_ASSIGN(const std::string name, expectName());
    if (name == "generation") {
      // What a model is trained on: the text is that of the body.
      TemplateStatement& scope = statements->emplace_back();
      scope.kind = StatementKind::kScope;
      HEARTH_ASSIGN(scope.body, parseBody("endgeneration"));
      return {};
    }
    TemplateStatement statement;
    if (name == "if") {
      HEARTH_TRY(parseIf(&statement));
    } else if (name == "for") {
      HEARTH_TRY(parseFor(&statement));
    } else if (name == "set") {
      HEARTH_TRY(parseSet(&statement));
    } else if (name == "macro") {
      HEARTH_TRY(parseMacro(&statement));
    } else if (name == "call") {
      HEARTH_TRY(parseCall(&statement));
    } else if (name == "filter") {
      statement.kind = StatementKind::kFilterBlock;
      HEARTH_ASSIGN(statement.expression, parseFilterChain());
      HEARTH_ASSIGN(statement.body, parseBody("endfilter"));
    } else if (name == "break" || name == "continue") {
      if (loops_ == 0) return unexpected("no loop is open");
      statement.kind = name == "break" ? StatementKind::kBreak : StatementKind::kContinue;
      HEARTH_TRY(expectBlockEnd());
    } else {
      return fail(ErrorCode::kUnsupported,
                  "The chat template has the block {} in line {}, which is not supported.", name,
                  current().line);
    }
    statements->push_back(std::move(statement));
    return {};
  }

  Status parseIf(TemplateStatement* statement) {
    statement->kind = StatementKind::kIf;
    for (;;) {
      auto& branch = statement->branches.emplace_back();
      HEARTH_ASSIGN(branch.first, parseTuple());
      HEARTH_TRY(expectBlockEnd());
      HEARTH_ASSIGN(branch.second, parseUntil({"elif", "else", "endif"}));
      advance();
      HEARTH_ASSIGN(const std::string name, expectName());
      if (name == "elif") continue;
      if (name == "else") {
        HEARTH_ASSIGN(StatementList body, parseBody("endif"));
        statement->branches.emplace_back(nullptr, std::move(body));
        return {};
      }
      return expectBlockEnd();
    }
  }

  Status parseFor(TemplateStatement* statement) {
    statement->kind = StatementKind::kFor;
    HEARTH_ASSIGN(statement->target, parseTarget(false));
    if (!takeName("in")) return unexpected("in is expected");
    HEARTH_ASSIGN(statement->expression, parseTuple(false));
    if (takeName("if")) {
      HEARTH_ASSIGN(statement->condition, parseExpression());
    }
    if (takeName("recursive"))
      return fail(ErrorCode::kUnsupported, "The chat template has a recursive loop in line {}.",
                  current().line);
    HEARTH_TRY(expectBlockEnd());
    ++loops_;
    HEARTH_ASSIGN(statement->body, parseUntil({"else", "endfor"}));
    --loops_;
    advance();
    HEARTH_ASSIGN(const std::string name, expectName());
    if (name == "else") {
      HEARTH_ASSIGN(statement->otherwise, parseBody("endfor"));
      return {};
    }
    return expectBlockEnd();
  }

  Result<TemplateTarget> parseTarget(bool hasAttributes) {
    TemplateTarget target;
    const bool isBracketed = takeOperator("(");
    HEARTH_ASSIGN(target.name, expectName());
    if (hasAttributes && takeOperator(".")) {
      HEARTH_ASSIGN(target.attribute, expectName());
      return target;
    }
    if (isOperator(",")) target.names.push_back(std::exchange(target.name, {}));
    while (takeOperator(",")) {
      if (current().kind != TokenKind::kName || current().text == "in") break;
      HEARTH_ASSIGN(std::string name, expectName());
      target.names.push_back(std::move(name));
    }
    if (isBracketed && !takeOperator(")")) return unexpected("a bracket is not closed");
    return target;
  }

  Status parseSet(TemplateStatement* statement) {
    HEARTH_ASSIGN(statement->target, parseTarget(true));
    if (takeOperator("=")) {
      statement->kind = StatementKind::kSet;
      HEARTH_ASSIGN(statement->expression, parseTuple());
      return expectBlockEnd();
    }
    statement->kind = StatementKind::kSetBlock;
    if (takeOperator("|")) {
      HEARTH_ASSIGN(statement->expression, parseFilterChain());
    }
    HEARTH_ASSIGN(statement->body, parseBody("endset"));
    return {};
  }

  // Parameters in brackets.
  Status parseParameters(TemplateMacro* macro) {
    while (!takeOperator(")")) {
      if (!macro->parameters.empty() && !takeOperator(","))
        return unexpected("a comma is expected");
      HEARTH_ASSIGN(std::string name, expectName());
      macro->parameters.push_back(std::move(name));
      if (takeOperator("=")) {
        HEARTH_ASSIGN(ExpressionPointer value, parseExpression());
        macro->defaults.push_back(std::move(value));
      } else if (!macro->defaults.empty()) {
        return unexpected("a parameter without a default follows one that has one");
      }
    }
    return {};
  }

  // A macro's body is outside of the loops around it.
  Result<StatementList> parseMacroBody(std::string_view end) {
    const uint32_t loops = std::exchange(loops_, 0);
    HEARTH_ASSIGN(StatementList body, parseBody(end));
    loops_ = loops;
    return body;
  }

  Status parseMacro(TemplateStatement* statement) {
    statement->kind = StatementKind::kMacro;
    auto macro = std::make_shared<TemplateMacro>();
    HEARTH_ASSIGN(macro->name, expectName());
    if (!takeOperator("(")) return unexpected("a bracket is expected");
    HEARTH_TRY(parseParameters(macro.get()));
    HEARTH_ASSIGN(StatementList body, parseMacroBody("endmacro"));
    macro->body = std::make_shared<const StatementList>(std::move(body));
    statement->macro = std::move(macro);
    return {};
  }

  Status parseCall(TemplateStatement* statement) {
    statement->kind = StatementKind::kCallBlock;
    auto macro = std::make_shared<TemplateMacro>();
    macro->name = "caller";
    if (takeOperator("(")) HEARTH_TRY(parseParameters(macro.get()));
    HEARTH_ASSIGN(statement->expression, parseExpression());
    if (statement->expression->kind != TemplateExpression::Kind::kCall)
      return unexpected("a call is expected");
    HEARTH_ASSIGN(StatementList body, parseMacroBody("endcall"));
    macro->body = std::make_shared<const StatementList>(std::move(body));
    statement->macro = std::move(macro);
    return {};
  }

  uint32_t depth_ = 0;
  uint32_t loops_ = 0;
};

}  // namespace

Result<StatementList> parseTemplate(std::string_view source) {
  HEARTH_ASSIGN(std::vector<TemplateToken> tokens, readTemplateTokens(source));
  return StatementParser(std::move(tokens)).parse();
}

}  // namespace hearth::llm
