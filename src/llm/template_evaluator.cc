// SPDX-License-Identifier: Apache-2.0
// Statements of templates, and what they are run with.
#include "llm/template_evaluator.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "base/format.h"
#include "llm/template_functions.h"
#include "llm/template_objects.h"

namespace hearth::llm {
namespace {

// Statements and expressions that are being evaluated within each other, which the stack has room
// for, with sanitizers, too.
constexpr uint32_t kMostFrames = 400;

std::unexpected<Error> atLine(Error error, uint32_t line) {
  if (error.context().empty())
    return std::unexpected(
        std::move(error).addContext(base::formatText("in line {} of the chat template", line)));
  return std::unexpected(std::move(error));
}

}  // namespace

TemplateEvaluator::TemplateEvaluator(Variables globals, TemplateBudget budget) : budget_(budget) {
  scopes_.push_back(std::move(globals));
  scopes_.emplace_back();
}

TemplateEvaluator::~TemplateEvaluator() {
  for (const auto& space : namespaces_) space->attributes.clear();
}

Result<std::string> TemplateEvaluator::run(const StatementList& statements) {
  HEARTH_TRY(execute(statements));
  return std::move(output_);
}

Status TemplateEvaluator::append(std::string_view text) {
  HEARTH_TRY(budget_.allocate(text.size()));
  output_ += text;
  return {};
}

Status TemplateEvaluator::print(const TemplateValue& value) {
  if (value.isUndefined()) return {};
  HEARTH_ASSIGN(const std::string text, textOfValue(value, &budget_));
  return append(text);
}

Result<std::string> TemplateEvaluator::capture(const StatementList& body) {
  std::string outer = std::exchange(output_, {});
  auto flow = execute(body);
  std::string made = std::exchange(output_, std::move(outer));
  if (!flow) return std::unexpected(std::move(flow.error()));
  return made;
}

void TemplateEvaluator::set(std::string_view name, TemplateValue value) {
  Scope& scope = scopes_.back();
  const auto found = std::ranges::find(scope, name, &Scope::value_type::first);
  if (found != scope.end())
    found->second = std::move(value);
  else
    scope.emplace_back(name, std::move(value));
}

TemplateValue TemplateEvaluator::lookUp(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = std::ranges::find(*scope, name, &Scope::value_type::first);
    if (found != scope->end()) return found->second;
  }
  constexpr std::array<std::string_view, 5> kFunctions = {"range", "namespace", "dict",
                                                          "raise_exception", "strftime_now"};
  if (std::ranges::find(kFunctions, name) != kFunctions.end())
    return TemplateValue(TemplateValue::Object(std::make_shared<FunctionObject>(name)));
  return TemplateValue::undefined(name);
}

Status TemplateEvaluator::assign(const TemplateTarget& target, TemplateValue value) {
  if (!target.names.empty()) {
    HEARTH_ASSIGN(std::vector<TemplateValue> items, itemsOf(value, &budget_));
    if (items.size() != target.names.size())
      return fail(ErrorCode::kBadData, "The chat template assigns {} values to {} names.",
                  items.size(), target.names.size());
    for (size_t i = 0; i < items.size(); ++i) set(target.names[i], std::move(items[i]));
    return {};
  }
  if (target.attribute.empty()) {
    set(target.name, std::move(value));
    return {};
  }
  const TemplateValue object = lookUp(target.name);
  auto* const space = dynamic_cast<NamespaceObject*>(object.asObject().get());
  if (space == nullptr)
    return fail(ErrorCode::kBadData,
                "The chat template sets an attribute of {}, not of a namespace.",
                object.kindName());
  HEARTH_TRY(budget_.allocate(sizeof(Scope::value_type)));
  const auto found =
      std::ranges::find(space->attributes, target.attribute, &Variables::value_type::first);
  if (found != space->attributes.end())
    found->second = std::move(value);
  else
    space->attributes.emplace_back(target.attribute, std::move(value));
  return {};
}

Result<TemplateEvaluator::Flow> TemplateEvaluator::execute(const StatementList& statements) {
  if (++depth_ > kMostFrames)
    return fail(ErrorCode::kBadData,
                "The chat template calls macros within each other too deeply.");
  for (const TemplateStatement& statement : statements) {
    HEARTH_TRY(budget_.spend(1 + scopes_.size() / 8));
    auto flow = execute(statement);
    if (!flow) return atLine(std::move(flow.error()), statement.line);
    if (*flow != Flow::kNext) {
      --depth_;
      return *flow;
    }
  }
  --depth_;
  return Flow::kNext;
}

Result<TemplateEvaluator::Flow> TemplateEvaluator::execute(const TemplateStatement& statement) {
  using Kind = TemplateStatement::Kind;
  switch (statement.kind) {
    case Kind::kText:
      HEARTH_TRY(append(statement.text));
      break;
    case Kind::kPrint: {
      HEARTH_ASSIGN(const TemplateValue value, evaluate(*statement.expression));
      HEARTH_TRY(print(value));
      break;
    }
    case Kind::kIf:
      return executeIf(statement);
    case Kind::kFor:
      return executeFor(statement);
    case Kind::kSet: {
      HEARTH_ASSIGN(TemplateValue value, evaluate(*statement.expression));
      HEARTH_TRY(assign(statement.target, std::move(value)));
      break;
    }
    case Kind::kSetBlock:
      HEARTH_TRY(executeSetBlock(statement));
      break;
    case Kind::kMacro: {
      auto macro = std::make_shared<Macro>(statement.macro);
      macro->scopes = scopes_.size();
      set(statement.macro->name, TemplateValue(TemplateValue::Object(std::move(macro))));
      break;
    }
    case Kind::kCallBlock:
      HEARTH_TRY(executeCallBlock(statement));
      break;
    case Kind::kFilterBlock: {
      scopes_.emplace_back();
      HEARTH_ASSIGN(std::string text, capture(statement.body));
      scopes_.pop_back();
      const TemplateValue input(std::move(text));
      HEARTH_ASSIGN(const TemplateValue value, evaluateFilter(*statement.expression, &input));
      HEARTH_TRY(print(value));
      break;
    }
    case Kind::kBreak:
      return Flow::kBreak;
    case Kind::kContinue:
      return Flow::kContinue;
    case Kind::kScope:
      return execute(statement.body);
  }
  return Flow::kNext;
}

Result<TemplateEvaluator::Flow> TemplateEvaluator::executeIf(const TemplateStatement& statement) {
  for (const auto& [condition, body] : statement.branches) {
    if (condition) {
      HEARTH_ASSIGN(const TemplateValue value, evaluate(*condition));
      if (!value.isTrue()) continue;
    }
    return execute(body);
  }
  return Flow::kNext;
}

Result<TemplateEvaluator::Flow> TemplateEvaluator::executeFor(const TemplateStatement& statement) {
  HEARTH_ASSIGN(const TemplateValue value, evaluate(*statement.expression));
  auto loop = std::make_shared<Loop>();
  HEARTH_ASSIGN(loop->items, itemsOf(value, &budget_));
  if (statement.condition) {
    std::vector<TemplateValue> kept;
    for (const TemplateValue& item : loop->items) {
      HEARTH_TRY(budget_.spend(1));
      scopes_.emplace_back();
      HEARTH_TRY(assign(statement.target, item));
      HEARTH_ASSIGN(const TemplateValue isKept, evaluate(*statement.condition));
      scopes_.pop_back();
      if (isKept.isTrue()) kept.push_back(item);
    }
    loop->items = std::move(kept);
  }
  for (const TemplateValue& item : loop->items)
    loop->depth = std::max(loop->depth, item.depth() + 1);
  for (loop->index = 0; loop->index < loop->items.size(); ++loop->index) {
    HEARTH_TRY(budget_.spend(1));
    scopes_.emplace_back();
    scopes_.back().emplace_back("loop", TemplateValue(TemplateValue::Object(loop)));
    HEARTH_TRY(assign(statement.target, loop->items[loop->index]));
    HEARTH_ASSIGN(const Flow flow, execute(statement.body));
    scopes_.pop_back();
    if (flow == Flow::kBreak) break;
  }
  if (!loop->items.empty()) return Flow::kNext;
  scopes_.emplace_back();
  HEARTH_ASSIGN(const Flow flow, execute(statement.otherwise));
  scopes_.pop_back();
  return flow;
}

Status TemplateEvaluator::executeSetBlock(const TemplateStatement& statement) {
  scopes_.emplace_back();
  HEARTH_ASSIGN(std::string text, capture(statement.body));
  scopes_.pop_back();
  TemplateValue value(std::move(text));
  if (statement.expression) {
    HEARTH_ASSIGN(value, evaluateFilter(*statement.expression, &value));
  }
  return assign(statement.target, std::move(value));
}

Status TemplateEvaluator::executeCallBlock(const TemplateStatement& statement) {
  const TemplateExpression& call = *statement.expression;
  HEARTH_ASSIGN(const TemplateValue callee, evaluate(*call.children[0]));
  HEARTH_ASSIGN(const TemplateArguments arguments, argumentsOf(call));
  auto macro = std::make_shared<Macro>(statement.macro);
  macro->scopes = scopes_.size();
  const TemplateValue caller{TemplateValue::Object(std::move(macro))};
  HEARTH_ASSIGN(const TemplateValue value, callObject(callee, arguments, &caller));
  return print(value);
}

Result<TemplateValue> TemplateEvaluator::callMacro(const Macro& macro,
                                                   const TemplateArguments& arguments,
                                                   const TemplateValue* caller) {
  const TemplateMacro& source = *macro.macro;
  if (arguments.positional.size() > source.parameters.size())
    return fail(ErrorCode::kBadData,
                "The chat template gives the macro {} {} arguments; it has {}.", source.name,
                arguments.positional.size(), source.parameters.size());
  for (const auto& [name, value] : arguments.named)
    if (std::ranges::find(source.parameters, name) == source.parameters.end())
      return fail(ErrorCode::kBadData, "The macro {} of the chat template has no parameter {}.",
                  source.name, name);
  // It sees what was there where it stands, not what is there where it is called.
  const size_t visible = std::min(macro.scopes, scopes_.size());
  std::vector<Scope> hidden(
      std::make_move_iterator(scopes_.begin() + static_cast<ptrdiff_t>(visible)),
      std::make_move_iterator(scopes_.end()));
  scopes_.resize(visible);
  scopes_.emplace_back();
  HEARTH_TRY(budget_.spend(1 + hidden.size() + source.parameters.size()));
  const size_t firstDefault = source.parameters.size() - source.defaults.size();
  for (size_t i = 0; i < source.parameters.size(); ++i) {
    const std::string& name = source.parameters[i];
    const TemplateValue* const given = arguments.find(i, name);
    TemplateValue value = given != nullptr ? *given : TemplateValue::undefined(name);
    if (given == nullptr && i >= firstDefault) {
      HEARTH_ASSIGN(value, evaluate(*source.defaults[i - firstDefault]));
    }
    set(name, std::move(value));
  }
  if (caller != nullptr) set("caller", *caller);
  HEARTH_ASSIGN(std::string text, capture(*source.body));
  scopes_.resize(visible);
  scopes_.insert(scopes_.end(), std::make_move_iterator(hidden.begin()),
                 std::make_move_iterator(hidden.end()));
  return TemplateValue(std::move(text));
}

Result<TemplateValue> TemplateEvaluator::callObject(const TemplateValue& callee,
                                                    const TemplateArguments& arguments,
                                                    const TemplateValue* caller) {
  const TemplateValue::Object object = callee.asObject();
  const auto* const method = dynamic_cast<const MethodObject*>(object.get());
  if (method != nullptr && method->name == "cycle" && method->receiver.asInteger() != nullptr) {
    // loop.cycle: of the arguments the one of this round.
    if (arguments.positional.empty())
      return fail(ErrorCode::kBadData, "The chat template cycles through nothing.");
    return arguments.positional[static_cast<size_t>(*method->receiver.asInteger()) %
                                arguments.positional.size()];
  }
  if (method != nullptr)
    return callTemplateMethod(method->receiver, method->name, arguments, &budget_);
  if (const auto* const function = dynamic_cast<const FunctionObject*>(object.get()))
    return callFunction(function->name, arguments);
  if (const auto* const macro = dynamic_cast<const Macro*>(object.get()))
    return callMacro(*macro, arguments, caller);
  if (callee.isUndefined())
    return fail(ErrorCode::kBadData, "The chat template calls {}, which is not defined.",
                callee.asUndefined()->name);
  return fail(ErrorCode::kBadData, "The chat template calls {}.", callee.kindName());
}

}  // namespace hearth::llm
