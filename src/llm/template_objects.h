// SPDX-License-Identifier: Apache-2.0
// The objects of a template that is run.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "llm/template_evaluator.h"

namespace hearth::llm {

struct NamespaceObject : ObjectValue {
  NamespaceObject() : ObjectValue("Namespace") {}

  TemplateEvaluator::Variables attributes;
};

// One of Jinja's functions, by its name.
struct FunctionObject : ObjectValue {
  using ObjectValue::ObjectValue;
};

// A method of a value.
struct MethodObject : ObjectValue {
  MethodObject(std::string method, TemplateValue value)
      : ObjectValue(std::move(method)), receiver(std::move(value)) {
    depth = receiver.depth() + 1;
  }

  TemplateValue receiver;
};

struct TemplateEvaluator::Macro : ObjectValue {
  explicit Macro(std::shared_ptr<const TemplateMacro> source)
      : ObjectValue("Macro " + source->name), macro(std::move(source)) {}

  std::shared_ptr<const TemplateMacro> macro;
  size_t scopes = 0;  // how many it sees
};

struct TemplateEvaluator::Loop : ObjectValue {
  Loop() : ObjectValue("LoopContext") {}

  std::vector<TemplateValue> items;
  size_t index = 0;
};

}  // namespace hearth::llm
