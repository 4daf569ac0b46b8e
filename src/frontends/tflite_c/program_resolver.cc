// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/program_resolver.h"

#include <algorithm>

#include "frontends/tflite/model_file.h"
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
  // What Hearth knows, it computes.
  if (isCustom && tflite::isKnownCustomOperation(source.customName)) return std::nullopt;
  const auto isFor = [&](const AddedOperator& added) {
    if (isCustom || added.custom.isCustom)
      return isCustom && added.custom.isCustom && added.custom.customName == source.customName;
    return added.custom.builtinCode == source.code && source.version >= added.first &&
           source.version <= added.last;
  };
  // The last one counts.
  const auto found = std::find_if(added_.rbegin(), added_.rend(), isFor);
  return found == added_.rend() ? std::nullopt : usable(found->custom);
}

}  // namespace hearth::tflite_c
