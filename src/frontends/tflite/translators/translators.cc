// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/translators.h"

#include <algorithm>
#include <vector>

#include "base/immortal.h"
#include "frontends/tflite/reader/text.h"

namespace hearth::tflite {

const TranslatorEntry* findTranslator(schema::BuiltinOperator code) {
  static constinit base::Immortal<std::vector<TranslatorEntry>> sorted;
  const std::vector<TranslatorEntry>& all = sorted.get([] {
    std::vector<TranslatorEntry> entries;
    for (const auto family :
         {complexTranslators(), compositeTranslators(), controlFlowTranslators(), convTranslators(),
          detectionTranslators(), elementwiseTranslators(), hashtableTranslators(),
          lookupTranslators(), quantizationTranslators(), randomTranslators(),
          recurrentTranslators(), reduceTranslators(), resizeTranslators(), shapeTranslators()})
      entries.insert(entries.end(), family.begin(), family.end());
    std::ranges::sort(entries, {}, &TranslatorEntry::code);
    return entries;
  });
  const auto found = std::ranges::lower_bound(all, code, {}, &TranslatorEntry::code);
  return found != all.end() && found->code == code ? &*found : nullptr;
}

std::span<const CustomTranslatorEntry> customTranslators() {
  static constinit base::Immortal<std::vector<CustomTranslatorEntry>> all;
  return all.get([] {
    std::vector<CustomTranslatorEntry> entries;
    for (const auto family :
         {audioTranslators(), detectionCustomTranslators(), landmarkTranslators(),
          mediapipeTranslators(), textTranslators(), transformationTranslators()})
      entries.insert(entries.end(), family.begin(), family.end());
    return entries;
  });
}

const TranslatorEntry* findTranslator(const schema::OperatorCode& code) {
  if (builtinCode(code) != schema::BuiltinOperator::CUSTOM)
    return findTranslator(builtinCode(code));
  if (code.custom_code() == nullptr) return nullptr;
  const std::string_view name = code.custom_code()->string_view();
  const auto found = std::ranges::find(customTranslators(), name, &CustomTranslatorEntry::name);
  return found == customTranslators().end() ? registeredTranslator(name) : &found->translator;
}

}  // namespace hearth::tflite
