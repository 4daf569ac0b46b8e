// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/program_resolver.h"

#include "tflite_abi/context.h"

namespace hearth::tflite_c {
namespace {

constexpr int32_t kCustomOperation = 32;

std::optional<TfLiteOperator> usable(TfLiteOperator found) {
  if (!found.hasInvoke()) return std::nullopt;
  return found;
}

}  // namespace

std::optional<TfLiteOperator> ProgramResolver::find(const tflite::FileOperator& source) const {
  const bool isCustom = source.code == kCustomOperation;
  const char* const name = source.customName.c_str();
  const TfLiteOperator* opaque = nullptr;
  if (isCustom && functions_.findCustomOperator != nullptr)
    opaque = functions_.findCustomOperator(functions_.user, name, source.version);
  else if (!isCustom && functions_.findBuiltinOperator != nullptr)
    opaque = functions_.findBuiltinOperator(functions_.user, source.code, source.version);
  if (opaque != nullptr) return usable(*opaque);
  const TfLiteRegistration* structure = nullptr;
  if (isCustom && functions_.findCustom != nullptr)
    structure = functions_.findCustom(functions_.user, name, source.version);
  else if (!isCustom && functions_.findBuiltin != nullptr)
    structure = functions_.findBuiltin(functions_.user, source.code, source.version);
  if (structure != nullptr) return usable(tflite_abi::operatorOf(*structure));
  if (isCustom) return std::nullopt;
  // The last one counts.
  for (auto added = added_.rbegin(); added != added_.rend(); ++added)
    if (added->custom.builtinCode == source.code && source.version >= added->first &&
        source.version <= added->last)
      return usable(added->custom);
  return std::nullopt;
}

}  // namespace hearth::tflite_c
