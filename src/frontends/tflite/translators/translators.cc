// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/translators.h"

#include <algorithm>
#include <vector>

#include "base/immortal.h"

namespace hearth::tflite {

const TranslatorEntry* findTranslator(schema::BuiltinOperator code) {
  static constinit base::Immortal<std::vector<TranslatorEntry>> sorted;
  const std::vector<TranslatorEntry>& all = sorted.get([] {
    std::vector<TranslatorEntry> entries;
    for (const auto family :
         {compositeTranslators(), controlFlowTranslators(), convTranslators(),
          elementwiseTranslators(), lookupTranslators(), quantizationTranslators(),
          recurrentTranslators(), reduceTranslators(), resizeTranslators(), shapeTranslators()})
      entries.insert(entries.end(), family.begin(), family.end());
    std::ranges::sort(entries, {}, &TranslatorEntry::code);
    return entries;
  });
  const auto found = std::ranges::lower_bound(all, code, {}, &TranslatorEntry::code);
  return found != all.end() && found->code == code ? &*found : nullptr;
}

}  // namespace hearth::tflite
