// SPDX-License-Identifier: Apache-2.0
#include "cache/plan/plan_description.h"

#include <algorithm>
#include <cstring>

namespace hearth::cache {

std::vector<uint8_t> PlanDescription::encoded() const {
  std::vector<uint8_t> bytes;
  if (*this == PlanDescription{}) return bytes;
  const auto append = [&](const void* data, size_t size) {
    const auto* from = static_cast<const uint8_t*>(data);
    bytes.insert(bytes.end(), from, from + size);
  };
  append(&created, sizeof created);
  for (const std::string* text : {&model, &device, &details}) {
    const auto size = static_cast<uint32_t>(std::min(text->size(), kMaxText));
    append(&size, sizeof size);
    append(text->data(), size);
  }
  return bytes;
}

StoreResult<PlanDescription> PlanDescription::parse(std::span<const uint8_t> bytes) {
  PlanDescription description;
  if (bytes.empty()) return description;
  const auto take = [&](void* to, size_t size) {
    if (size > bytes.size()) return false;
    if (size != 0) std::memcpy(to, bytes.data(), size);
    bytes = bytes.subspan(size);
    return true;
  };
  bool isWhole = take(&description.created, sizeof description.created);
  for (std::string* text : {&description.model, &description.device, &description.details}) {
    uint32_t size = 0;
    isWhole = isWhole && take(&size, sizeof size) && size <= kMaxText && size <= bytes.size();
    if (!isWhole) break;
    text->resize(size);
    take(text->data(), size);
  }
  if (!isWhole || !bytes.empty())
    return storeFail(StoreReason::kCorrupt, "The description in a plan file is damaged.");
  return description;
}

}  // namespace hearth::cache
