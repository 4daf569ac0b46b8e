// SPDX-License-Identifier: Apache-2.0
#include "ops/custom_operator.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/immortal.h"
#include "base/mutex.h"
#include "ops/device_operator.h"
#include "ops/sentencepiece_tokenizer.h"

namespace hearth::ops {
namespace {

// Longest operator name that is read from a model file.
constexpr size_t kMostNameBytes = 1024;

struct Table {
  base::Mutex mutex;
  std::map<std::string, std::unique_ptr<const CustomOperator>, std::less<>> operators;
};

Table& table() {
  static constinit base::Immortal<Table> table;
  return table.get();
}

}  // namespace

Status checkOperatorName(std::string_view name) {
  if (!name.empty() && name.size() <= kMostNameBytes) return {};
  return fail(ErrorCode::kBadData,
              "The name of a custom operator has {} bytes; it must have 1 to {}.", name.size(),
              kMostNameBytes);
}

Status registerCustomOperator(std::unique_ptr<const CustomOperator> custom) {
  const std::string name(custom->name());
  HEARTH_TRY(checkOperatorName(name));
  Table& known = table();
  const std::lock_guard lock(known.mutex);
  if (!known.operators.try_emplace(name, std::move(custom)).second)
    return fail(ErrorCode::kBadData, "The custom operator \"{}\" is registered already.", name);
  return {};
}

const CustomOperator* findCustomOperator(std::string_view name) {
  {
    Table& known = table();
    const std::lock_guard lock(known.mutex);
    const auto found = known.operators.find(name);
    if (found != known.operators.end()) return found->second.get();
  }
  const CustomOperator* const own = sentencepieceTokenizer(name);
  return own != nullptr ? own : findDeviceOperator(name);
}

std::unexpected<Error> unknownCustomOperator(std::string_view name) {
  return fail(ErrorCode::kUnsupported,
              "The custom operator \"{}\" is not known; the program can bring it along with "
              "hearth_custom_operator_register, the command with --custom-operators, and a device "
              "that computes it names it in its manifest.",
              name);
}

std::string operatorName(const graph::Model& model, const graph::Subgraph& subgraph,
                         const graph::Operation& operation) {
  if (operation.type == OperationType::kCustom && !operation.inputs.empty()) {
    const graph::Operand& name = subgraph.operands[operation.inputs[kCustomName]];
    if (const uint8_t* bytes = model.constantData(name))
      return {reinterpret_cast<const char*>(bytes), name.location.length};
  }
  return graph::nameOf(operation.type);
}

bool hasCustomOperations(const graph::Model& model) {
  return std::ranges::any_of(model.main().operations, [](const graph::Operation& operation) {
    return operation.type == OperationType::kCustom;
  });
}

}  // namespace hearth::ops
