// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "llm/template_arguments.h"
#include "llm/template_budget.h"
#include "llm/template_syntax.h"
#include "llm/template_value.h"

namespace hearth::llm {

struct NamespaceObject;

// Runs a template's statements once.
class TemplateEvaluator {
 public:
  using Variables = std::vector<std::pair<std::string, TemplateValue>>;

  // `globals` are what the template sees besides Jinja's own functions.
  TemplateEvaluator(Variables globals, TemplateBudget budget);
  ~TemplateEvaluator();
  TemplateEvaluator(const TemplateEvaluator&) = delete;
  TemplateEvaluator& operator=(const TemplateEvaluator&) = delete;

  // The text that the statements make. Errors: kBadData and kUnsupported with a sentence that
  // names the line, as does what the template raises itself.
  Result<std::string> run(const StatementList& statements);

 private:
  enum class Flow { kNext, kBreak, kContinue };
  using Scope = Variables;
  struct Loop;
  struct Macro;

  Result<Flow> execute(const StatementList& statements);
  Result<Flow> execute(const TemplateStatement& statement);
  Result<Flow> executeIf(const TemplateStatement& statement);
  Result<Flow> executeFor(const TemplateStatement& statement);
  Status executeSetBlock(const TemplateStatement& statement);
  Status executeCallBlock(const TemplateStatement& statement);
  Status print(const TemplateValue& value);
  Status append(std::string_view text);
  // Runs a body whose text becomes a value. A loop does not end from within.
  Result<std::string> capture(const StatementList& body);
  Status assign(const TemplateTarget& target, TemplateValue value);
  void set(std::string_view name, TemplateValue value);
  TemplateValue lookUp(const std::string& name) const;

  Result<TemplateValue> evaluate(const TemplateExpression& expression);
  Result<TemplateValue> evaluateHere(const TemplateExpression& expression);
  Result<TemplateValue> evaluateUnary(const TemplateExpression& expression);
  Result<TemplateValue> evaluateBinary(const TemplateExpression& expression);
  Result<TemplateValue> evaluateComparison(const TemplateExpression& expression);
  Result<TemplateValue> evaluateDictionary(const TemplateExpression& expression);
  Result<TemplateValue> evaluateSlice(const TemplateExpression& expression);
  Result<TemplateValue> evaluateCall(const TemplateExpression& expression);
  Result<TemplateValue> evaluateFilter(const TemplateExpression& expression,
                                       const TemplateValue* input);
  Result<TemplateValue> attribute(const TemplateValue& value, const std::string& name);
  Result<TemplateValue> loopAttribute(const Loop& loop, const std::string& name);
  Result<TemplateArguments> argumentsOf(const TemplateExpression& expression);
  Result<TemplateValue> callObject(const TemplateValue& callee, const TemplateArguments& arguments,
                                   const TemplateValue* caller);
  Result<TemplateValue> callMacro(const Macro& macro, const TemplateArguments& arguments,
                                  const TemplateValue* caller);
  Result<TemplateValue> callFunction(const std::string& name, const TemplateArguments& arguments);

  TemplateBudget budget_;
  std::vector<Scope> scopes_;
  std::string output_;
  // All that were made: they can hold each other in circles and in long chains, so that none is
  // freed before all are emptied.
  std::vector<std::shared_ptr<NamespaceObject>> namespaces_;
  uint32_t depth_ = 0;
};

}  // namespace hearth::llm
