// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/slow_operations.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <string_view>

#include "base/format.h"
#include "base/immortal.h"
#include "base/log.h"
#include "base/mutex.h"
#include "graph/codes.h"
#include "graph/operation_name.h"

namespace hearth::cpu {
namespace {

// How many operations a warning names; `hearth inspect` names all.
constexpr size_t kMostNamed = 8;

// An operation on fewer bytes takes about a microsecond on any kernel.
constexpr uint64_t kFewBytes = 4096;

// A process that meets more lines than these is warned of the others no more.
constexpr size_t kMostKnown = 1000;

struct KnownLines {
  base::Mutex mutex;
  std::set<std::string> lines;
};

constinit base::Immortal<KnownLines> knownLines;

std::string lineOf(const graph::Subgraph& main, const Node& node) {
  const graph::Operation& operation = main.operations[node.operation];
  std::string text(graph::nameOf(operation.type));
  const std::string& name = graph::operationName(main, operation);
  text +=
      name.empty() ? base::formatText(" {}", node.operation) : base::formatText(" \"{}\"", name);
  std::string types;
  for (size_t i = 0; i < std::min<size_t>(operation.inputs.size(), 2); ++i) {
    const graph::Operand& input = main.operands[operation.inputs[i]];
    if (input.hasValue()) types += (types.empty() ? "" : " and ") + graph::nameOf(input.type);
  }
  return text + base::formatText(" ({}): {}", types, node.whySlow);
}

uint64_t bytesOf(const Plan& plan, const Node& node) {
  uint64_t bytes = 0;
  for (const auto* const list : {&node.inputs, &node.outputs})
    for (const ValueId value : *list) bytes += plan.values[value].bytes;
  return bytes;
}

// Those of the lines that are new to the process, which are not from now on.
std::vector<std::string> newOf(const std::vector<std::string>& lines) {
  KnownLines& known = knownLines.get();
  const std::lock_guard lock(known.mutex);
  std::vector<std::string> found;
  for (const std::string& line : lines)
    if (known.lines.size() < kMostKnown && known.lines.insert(line).second) found.push_back(line);
  return found;
}

}  // namespace

std::vector<std::string> slowOperations(const graph::Model& model, const Plan& plan) {
  std::vector<std::string> lines;
  const Node* last = nullptr;
  for (const Node& node : plan.nodes) {
    if (std::string_view(node.kernel) != "reference" || bytesOf(plan, node) < kFewBytes ||
        (last != nullptr && last->operation == node.operation))
      continue;
    lines.push_back(lineOf(model.main(), node));
    last = &node;
  }
  return lines;
}

void warnOfSlowOperations(const std::vector<std::string>& lines) {
  if (lines.empty() || !base::logEnabled(base::LogLevel::kWarn)) return;
  const std::vector<std::string> found = newOf(lines);
  if (found.empty()) return;
  std::string text;
  for (size_t i = 0; i < std::min(found.size(), kMostNamed); ++i)
    text += (i == 0 ? "" : "; ") + found[i];
  if (found.size() > kMostNamed)
    text +=
        base::formatText("; and {} more, which hearth inspect names", found.size() - kMostNamed);
  base::logWarn("{} of a model's operations run{} on a slow kernel. {}.", found.size(),
                found.size() == 1 ? "s" : "", text);
}

}  // namespace hearth::cpu
