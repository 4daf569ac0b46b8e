// SPDX-License-Identifier: Apache-2.0
// Expressions of templates.
#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <limits>

#include "llm/template_evaluator.h"
#include "llm/template_functions.h"
#include "llm/template_objects.h"
#include "llm/template_text.h"

namespace hearth::llm {
namespace {

constexpr uint32_t kMostEvaluations = 400;
constexpr int64_t kMostRange = 100'000;
constexpr int64_t kMostRepeats = 1 << 20;

std::unexpected<Error> wrongOperands(const std::string& name, const TemplateValue& left,
                                     const TemplateValue& right) {
  return fail(ErrorCode::kBadData, "The chat template computes {} {} {}.", left.kindName(), name,
              right.kindName());
}

int64_t integerOf(const TemplateValue& value) {
  return value.asInteger() != nullptr ? *value.asInteger() : value.isTrue() ? 1 : 0;
}

// Integers, as Python computes them; nothing where the result has more than 64 bits.
std::optional<int64_t> integerResult(const std::string& name, int64_t left, int64_t right) {
  int64_t made = 0;
  if (name == "+" && !__builtin_add_overflow(left, right, &made)) return made;
  if (name == "-" && !__builtin_sub_overflow(left, right, &made)) return made;
  if (name == "*" && !__builtin_mul_overflow(left, right, &made)) return made;
  if ((name == "//" || name == "%") && !(right == -1)) {
    const int64_t quotient = left / right;
    const int64_t remainder = left % right;
    const bool isDown = remainder != 0 && (remainder < 0) != (right < 0);
    return name == "//" ? quotient - (isDown ? 1 : 0) : remainder + (isDown ? right : 0);
  }
  if (name == "%") return 0;
  if (name == "//" && !__builtin_sub_overflow(int64_t{0}, left, &made)) return made;
  if (name == "**" && right >= 0) {
    made = 1;
    for (int64_t i = 0; i < right; ++i) {
      if (left == 0 || left == 1) return right == 0 ? 1 : left;
      if (left == -1) return right % 2 == 0 ? 1 : -1;
      if (__builtin_mul_overflow(made, left, &made)) return std::nullopt;
    }
    return made;
  }
  return std::nullopt;
}

Result<TemplateValue> arithmetic(const std::string& name, const TemplateValue& left,
                                 const TemplateValue& right) {
  const bool divides = name == "/" || name == "//" || name == "%";
  if (divides && right.toNumber() == 0)
    return fail(ErrorCode::kBadData, "The chat template divides by zero.");
  const double one = left.toNumber();
  const double other = right.toNumber();
  if (name == "/") return TemplateValue(one / other);
  if (left.asFloat() == nullptr && right.asFloat() == nullptr &&
      !(name == "**" && integerOf(right) < 0)) {
    const auto made = integerResult(name, integerOf(left), integerOf(right));
    if (made) return TemplateValue(*made);
    return fail(ErrorCode::kBadData, "The chat template computes a number of more than 64 bits.");
  }
  if (name == "+") return TemplateValue(one + other);
  if (name == "-") return TemplateValue(one - other);
  if (name == "*") return TemplateValue(one * other);
  if (name == "**") return TemplateValue(std::pow(one, other));
  if (name == "//") return TemplateValue(std::floor(one / other));
  return TemplateValue(one - std::floor(one / other) * other);
}

// A string or list, several times.
Result<TemplateValue> repeat(const TemplateValue& value, int64_t count, TemplateBudget* budget) {
  count = std::max<int64_t>(count, 0);
  if (count > kMostRepeats)
    return fail(ErrorCode::kBadData, "The chat template repeats a value {} times.", count);
  const auto times = static_cast<uint64_t>(count);
  if (const auto* const text = value.asText()) {
    HEARTH_TRY(budget->allocate(times * text->size()));
    HEARTH_TRY(budget->spend(1 + times * (1 + text->size() / 8)));
    std::string made;
    for (uint64_t i = 0; i < times; ++i) made += *text;
    return TemplateValue(std::move(made));
  }
  const std::vector<TemplateValue>& items = value.asList()->items;
  HEARTH_TRY(budget->spend(1 + times * (1 + items.size())));
  HEARTH_TRY(budget->allocate(times * items.size() * sizeof(TemplateValue)));
  std::vector<TemplateValue> made;
  for (uint64_t i = 0; i < times; ++i) made.insert(made.end(), items.begin(), items.end());
  return budget->list(std::move(made), value.asList()->isTuple);
}

// "%s and %d" % values: of Python's formats only these.
Result<TemplateValue> formatted(const std::string& format, const TemplateValue& values,
                                TemplateBudget* budget) {
  std::vector<TemplateValue> items = {values};
  if (values.asList() != nullptr && values.asList()->isTuple) {
    HEARTH_ASSIGN(items, itemsOf(values, budget));
  }
  std::string made;
  size_t next = 0;
  HEARTH_TRY(budget->allocate(format.size()));
  HEARTH_TRY(budget->spend(1 + format.size()));
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      made.push_back(format[i]);
      continue;
    }
    const char kind = ++i < format.size() ? format[i] : ' ';
    if (kind == '%') {
      made.push_back('%');
      continue;
    }
    if ((kind != 's' && kind != 'd') || next == items.size())
      return fail(ErrorCode::kUnsupported,
                  "The chat template formats values in a way that is not supported.");
    HEARTH_ASSIGN(const std::string text, textOfValue(items[next++], budget));
    made += text;
  }
  return TemplateValue(std::move(made));
}

struct SliceBounds {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t step = 1;
};

// As Python's slice.indices().
SliceBounds boundsOf(const TemplateValue& begin, const TemplateValue& end, int64_t step,
                     int64_t count) {
  const int64_t least = step < 0 ? -1 : 0;
  const int64_t most = step < 0 ? count - 1 : count;
  const auto place = [&](const TemplateValue& value, int64_t otherwise) {
    if (value.asInteger() == nullptr) return otherwise;
    const int64_t number = *value.asInteger();
    return std::clamp(number < 0 ? number + count : number, least, most);
  };
  return {place(begin, step < 0 ? most : 0), place(end, step < 0 ? -1 : count), step};
}

}  // namespace

Result<TemplateValue> TemplateEvaluator::evaluate(const TemplateExpression& expression) {
  if (++depth_ > kMostEvaluations)
    return fail(ErrorCode::kBadData,
                "The chat template calls macros within each other too deeply.");
  HEARTH_TRY(budget_.spend(1 + scopes_.size() / 8));
  auto value = evaluateHere(expression);
  --depth_;
  return value;
}

Result<TemplateValue> TemplateEvaluator::evaluateHere(const TemplateExpression& expression) {
  using Kind = TemplateExpression::Kind;
  const auto child = [&](size_t i) {
    return evaluate(*expression.children[i]);
  };
  switch (expression.kind) {
    case Kind::kLiteral:
      return expression.value;
    case Kind::kName:
      return lookUp(expression.name);
    case Kind::kList:
    case Kind::kTuple: {
      std::vector<TemplateValue> items;
      for (size_t i = 0; i < expression.children.size(); ++i) {
        HEARTH_ASSIGN(TemplateValue item, child(i));
        items.push_back(std::move(item));
      }
      return budget_.list(std::move(items), expression.kind == Kind::kTuple);
    }
    case Kind::kDictionary:
      return evaluateDictionary(expression);
    case Kind::kUnary:
      return evaluateUnary(expression);
    case Kind::kBinary:
      return evaluateBinary(expression);
    case Kind::kComparison:
      return evaluateComparison(expression);
    case Kind::kConditional: {
      HEARTH_ASSIGN(const TemplateValue condition, child(1));
      if (condition.isTrue()) return child(0);
      if (expression.children.size() < 3)
        return TemplateValue::undefined("a condition without else");
      return child(2);
    }
    case Kind::kAttribute: {
      HEARTH_ASSIGN(const TemplateValue value, child(0));
      return attribute(value, expression.name);
    }
    case Kind::kItem: {
      HEARTH_ASSIGN(const TemplateValue value, child(0));
      HEARTH_ASSIGN(const TemplateValue key, child(1));
      if (value.asObject() != nullptr && key.asText() != nullptr)
        return attribute(value, *key.asText());
      return itemOf(value, key, &budget_);
    }
    case Kind::kSlice:
      return evaluateSlice(expression);
    case Kind::kCall:
      return evaluateCall(expression);
    case Kind::kFilter:
      return evaluateFilter(expression, nullptr);
    case Kind::kTest: {
      HEARTH_ASSIGN(const TemplateValue value, child(0));
      HEARTH_ASSIGN(const TemplateArguments arguments, argumentsOf(expression));
      HEARTH_ASSIGN(const bool isTrue,
                    applyTemplateTest(expression.name, value, arguments, &budget_));
      return TemplateValue(isTrue != expression.isNegated);
    }
  }
  return TemplateValue();
}

Result<TemplateValue> TemplateEvaluator::evaluateDictionary(const TemplateExpression& expression) {
  std::vector<std::pair<std::string, TemplateValue>> items;
  for (size_t i = 0; i + 1 < expression.children.size(); i += 2) {
    HEARTH_ASSIGN(const TemplateValue key, evaluate(*expression.children[i]));
    HEARTH_ASSIGN(TemplateValue value, evaluate(*expression.children[i + 1]));
    if (key.asText() == nullptr)
      return fail(ErrorCode::kUnsupported, "The chat template has a dictionary with the key of {}.",
                  key.kindName());
    HEARTH_TRY(budget_.allocate(sizeof(items[0]) + key.asText()->size()));
    items.emplace_back(*key.asText(), std::move(value));
  }
  return TemplateValue::dictionary(std::move(items));
}

Result<TemplateValue> TemplateEvaluator::evaluateUnary(const TemplateExpression& expression) {
  HEARTH_ASSIGN(const TemplateValue value, evaluate(*expression.children[0]));
  if (expression.name == "not") return TemplateValue(!value.isTrue());
  return arithmetic(expression.name, TemplateValue(int64_t{0}), value);
}

Result<TemplateValue> TemplateEvaluator::evaluateBinary(const TemplateExpression& expression) {
  const std::string& name = expression.name;
  HEARTH_ASSIGN(TemplateValue left, evaluate(*expression.children[0]));
  if (name == "and" || name == "or") {
    if (left.isTrue() == (name == "or")) return left;
    return evaluate(*expression.children[1]);
  }
  HEARTH_ASSIGN(const TemplateValue right, evaluate(*expression.children[1]));
  const bool isText = left.asText() != nullptr && right.asText() != nullptr;
  if (name == "~" || (name == "+" && isText)) {
    HEARTH_ASSIGN(std::string made, textOfValue(left, &budget_));
    HEARTH_ASSIGN(const std::string other, textOfValue(right, &budget_));
    made += other;
    return TemplateValue(std::move(made));
  }
  if (left.isNumber() && right.isNumber()) return arithmetic(name, left, right);
  if (name == "+" && left.asList() != nullptr && right.asList() != nullptr &&
      left.asList()->isTuple == right.asList()->isTuple) {
    HEARTH_ASSIGN(std::vector<TemplateValue> items, itemsOf(left, &budget_));
    HEARTH_ASSIGN(const std::vector<TemplateValue> others, itemsOf(right, &budget_));
    items.insert(items.end(), others.begin(), others.end());
    return budget_.list(std::move(items), left.asList()->isTuple);
  }
  const auto isSequence = [](const TemplateValue& value) {
    return value.asText() != nullptr || value.asList() != nullptr;
  };
  if (name == "*" && isSequence(left) && right.asInteger() != nullptr)
    return repeat(left, *right.asInteger(), &budget_);
  if (name == "*" && isSequence(right) && left.asInteger() != nullptr)
    return repeat(right, *left.asInteger(), &budget_);
  if (name == "%" && left.asText() != nullptr) return formatted(*left.asText(), right, &budget_);
  return wrongOperands(name, left, right);
}

Result<TemplateValue> TemplateEvaluator::evaluateComparison(const TemplateExpression& expression) {
  HEARTH_ASSIGN(TemplateValue left, evaluate(*expression.children[0]));
  for (size_t i = 0; i < expression.names.size(); ++i) {
    const std::string& name = expression.names[i];
    HEARTH_ASSIGN(TemplateValue right, evaluate(*expression.children[i + 1]));
    bool isTrue = false;
    if (name == "==" || name == "!=") {
      HEARTH_ASSIGN(const bool isEqual, areEqualValues(left, right, &budget_));
      isTrue = isEqual == (name == "==");
    } else if (name == "in" || name == "not in") {
      HEARTH_ASSIGN(const bool isIn, isInValue(left, right, &budget_));
      isTrue = isIn == (name == "in");
    } else {
      HEARTH_ASSIGN(const int order, compareValues(left, right, &budget_));
      isTrue = name == "<"    ? order < 0
               : name == "<=" ? order <= 0
               : name == ">"  ? order > 0
                              : order >= 0;
    }
    if (!isTrue) return TemplateValue(false);
    left = std::move(right);
  }
  return TemplateValue(true);
}

Result<TemplateValue> TemplateEvaluator::evaluateSlice(const TemplateExpression& expression) {
  HEARTH_ASSIGN(const TemplateValue value, evaluate(*expression.children[0]));
  std::array<TemplateValue, 3> parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!expression.children[i + 1]) continue;
    HEARTH_ASSIGN(parts[i], evaluate(*expression.children[i + 1]));
    if (!parts[i].isNone() && parts[i].asInteger() == nullptr)
      return fail(ErrorCode::kBadData, "The chat template slices by {}.", parts[i].kindName());
  }
  const int64_t step = parts[2].asInteger() != nullptr ? *parts[2].asInteger() : 1;
  if (step == 0 || step == std::numeric_limits<int64_t>::min())
    return fail(ErrorCode::kBadData, "The chat template slices with the step {}.", step);
  if (const auto* const text = value.asText(); text != nullptr && step == 1) {
    HEARTH_TRY(budget_.spend(1 + text->size() / 8));
    const SliceBounds bounds = boundsOf(parts[0], parts[1], 1, lengthOfText(*text));
    return budget_.text(std::string(partOfText(*text, bounds.begin, bounds.end)));
  }
  if (value.asText() == nullptr && value.asList() == nullptr)
    return fail(ErrorCode::kBadData, "The chat template slices {}.", value.kindName());
  HEARTH_ASSIGN(const std::vector<TemplateValue> items, itemsOf(value, &budget_));
  const SliceBounds bounds = boundsOf(parts[0], parts[1], step, static_cast<int64_t>(items.size()));
  std::vector<TemplateValue> kept;
  for (int64_t i = bounds.begin; step > 0 ? i < bounds.end : i > bounds.end;) {
    kept.push_back(items[static_cast<size_t>(i)]);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  if (value.asList() != nullptr) return budget_.list(std::move(kept), value.asList()->isTuple);
  std::string made;
  for (const TemplateValue& item : kept) made += *item.asText();
  return budget_.text(std::move(made));
}

Result<TemplateArguments> TemplateEvaluator::argumentsOf(const TemplateExpression& expression) {
  TemplateArguments arguments;
  for (size_t i = 1; i < expression.children.size(); ++i) {
    HEARTH_ASSIGN(TemplateValue value, evaluate(*expression.children[i]));
    arguments.positional.push_back(std::move(value));
  }
  for (const auto& [name, argument] : expression.named) {
    HEARTH_ASSIGN(TemplateValue value, evaluate(*argument));
    arguments.named.emplace_back(name, std::move(value));
  }
  return arguments;
}

Result<TemplateValue> TemplateEvaluator::evaluateCall(const TemplateExpression& expression) {
  HEARTH_ASSIGN(const TemplateValue callee, evaluate(*expression.children[0]));
  HEARTH_ASSIGN(const TemplateArguments arguments, argumentsOf(expression));
  return callObject(callee, arguments, nullptr);
}

Result<TemplateValue> TemplateEvaluator::evaluateFilter(const TemplateExpression& expression,
                                                        const TemplateValue* input) {
  TemplateValue value;
  if (!expression.children[0]) {
    if (input != nullptr) value = *input;
  } else if (input != nullptr) {
    // One of several filters of a block.
    HEARTH_ASSIGN(value, evaluateFilter(*expression.children[0], input));
  } else {
    HEARTH_ASSIGN(value, evaluate(*expression.children[0]));
  }
  HEARTH_ASSIGN(const TemplateArguments arguments, argumentsOf(expression));
  return applyTemplateFilter(expression.name, value, arguments, &budget_);
}

Result<TemplateValue> TemplateEvaluator::loopAttribute(const Loop& loop, const std::string& name) {
  const size_t count = loop.items.size();
  const auto number = [](size_t value) {
    return TemplateValue(static_cast<int64_t>(value));
  };
  if (name == "index") return number(loop.index + 1);
  if (name == "index0") return number(loop.index);
  if (name == "revindex") return number(count - loop.index);
  if (name == "revindex0") return number(count - loop.index - 1);
  if (name == "first") return TemplateValue(loop.index == 0);
  if (name == "last") return TemplateValue(loop.index + 1 == count);
  if (name == "length") return number(count);
  if (name == "previtem")
    return loop.index > 0 ? loop.items[loop.index - 1] : TemplateValue::undefined(name);
  if (name == "nextitem")
    return loop.index + 1 < count ? loop.items[loop.index + 1] : TemplateValue::undefined(name);
  if (name == "cycle") {
    return TemplateValue(
        TemplateValue::Object(std::make_shared<MethodObject>("cycle", number(loop.index))));
  }
  return fail(ErrorCode::kUnsupported,
              "The chat template has loop.{} of a loop, which is not supported.", name);
}

Result<TemplateValue> TemplateEvaluator::attribute(const TemplateValue& value,
                                                   const std::string& name) {
  if (const auto object = value.asObject()) {
    if (const auto* const loop = dynamic_cast<const Loop*>(object.get()))
      return loopAttribute(*loop, name);
    if (const auto* const space = dynamic_cast<const NamespaceObject*>(object.get())) {
      HEARTH_TRY(budget_.spend(1 + space->attributes.size() / 4));
      const auto found = std::ranges::find(space->attributes, name, &Variables::value_type::first);
      if (found != space->attributes.end()) return found->second;
    }
    return TemplateValue::undefined(name);
  }
  if (value.isUndefined() || value.isNone())
    return fail(ErrorCode::kBadData, "The chat template takes the attribute {} of {}{}.", name,
                value.isUndefined() ? value.asUndefined()->name : std::string(),
                value.isUndefined() ? ", which is not defined" : "none");
  const auto method = [&] {
    return TemplateValue(TemplateValue::Object(std::make_shared<MethodObject>(name, value)));
  };
  if (value.asDictionary() != nullptr) {
    if (isDictionaryMethod(name)) return method();
    return itemOf(value, TemplateValue(name), &budget_);
  }
  if ((value.asText() != nullptr && isTextMethod(name)) ||
      (value.asList() != nullptr && isListMethod(name)))
    return method();
  return TemplateValue::undefined(name);
}

Result<TemplateValue> TemplateEvaluator::callFunction(const std::string& name,
                                                      const TemplateArguments& arguments) {
  if (name == "raise_exception") {
    HEARTH_ASSIGN(const std::string message, arguments.text(0, "message", ""));
    return fail(ErrorCode::kBadData, "The chat template refuses the conversation: {}", message);
  }
  if (name == "namespace" || name == "dict") {
    Variables items;
    if (const TemplateValue* const first = arguments.find(0, "");
        first != nullptr && first->asDictionary() != nullptr) {
      HEARTH_TRY(budget_.look(*first));
      items = first->asDictionary()->items;
    }
    items.insert(items.end(), arguments.named.begin(), arguments.named.end());
    HEARTH_TRY(budget_.allocate(items.size() * sizeof(items[0]) + sizeof(NamespaceObject)));
    if (name == "dict") return TemplateValue::dictionary(std::move(items));
    auto made = std::make_shared<NamespaceObject>();
    made->attributes = std::move(items);
    namespaces_.push_back(made);
    return TemplateValue(TemplateValue::Object(std::move(made)));
  }
  if (name == "range") {
    HEARTH_TRY(arguments.check("range", {"start", "stop", "step"}));
    HEARTH_ASSIGN(int64_t begin, arguments.integer(0, "start", 0));
    HEARTH_ASSIGN(int64_t end, arguments.integer(1, "stop", 0));
    HEARTH_ASSIGN(const int64_t step, arguments.integer(2, "step", 1));
    if (arguments.positional.size() == 1) end = std::exchange(begin, 0);
    if (step == 0) return fail(ErrorCode::kBadData, "The chat template has a range of step 0.");
    std::vector<TemplateValue> items;
    for (int64_t i = begin; step > 0 ? i < end : i > end;) {
      if (static_cast<int64_t>(items.size()) == kMostRange)
        return fail(ErrorCode::kBadData, "The chat template has a range of more than {} numbers.",
                    kMostRange);
      items.emplace_back(i);
      if (__builtin_add_overflow(i, step, &i)) break;
    }
    return budget_.list(std::move(items));
  }
  HEARTH_ASSIGN(const std::string format, arguments.text(0, "format", "%Y-%m-%d"));
  std::array<char, 256> text{};
  const time_t now = time(nullptr);
  struct tm local{};
  localtime_r(&now, &local);
  if (format.size() > 64 || strftime(text.data(), text.size(), format.c_str(), &local) == 0)
    return TemplateValue("");
  return TemplateValue(text.data());
}

}  // namespace hearth::llm
