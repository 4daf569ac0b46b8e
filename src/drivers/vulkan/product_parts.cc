// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/product_parts.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cache/store/store_facts.h"
#include "drivers/vulkan/compilation_cache/model_cache.h"
#include "drivers/vulkan/plan/products.h"

namespace hearth::vulkan {
namespace {

// The fact has a line for each class: the class, a space, and the choice.
constexpr char kPartsFact[] = "vulkan-gpu parts of products";

}  // namespace

void ProductParts::recall(const GpuFacts& facts) {
  if (std::exchange(hasRecalled_, true) || !openStore_) return;
  const auto build = buildAndGpu(facts);
  if (!build) return;
  key_ = std::string(kPartsFact) + '\0';
  key_.append(build->begin(), build->end());
  store_ = openStore_();
  if (store_ == nullptr) return;
  const auto bytes = store_->recall(key_).value_or(std::vector<uint8_t>());
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t space = line.rfind(' ');
    if (space == std::string_view::npos) continue;
    uint32_t choice = 0;
    const char* const end = line.data() + line.size();
    const auto [stop, error] = std::from_chars(line.data() + space + 1, end, choice);
    if (error == std::errc() && stop == end && choice < kParts.size())
      choices_.insert_or_assign(std::string(line.substr(0, space)), choice);
  }
}

std::optional<uint32_t> ProductParts::find(const GpuFacts& facts, const std::string& productClass) {
  const std::lock_guard lock(mutex_);
  recall(facts);
  const auto known = choices_.find(productClass);
  if (known == choices_.end()) return std::nullopt;
  return known->second;
}

void ProductParts::keep(const GpuFacts& facts, const std::string& productClass, uint32_t choice) {
  const std::lock_guard lock(mutex_);
  recall(facts);
  choices_.insert_or_assign(productClass, choice);
  if (store_ == nullptr) return;
  cache::Fact fact{key_, {}};
  for (const auto& [name, known] : choices_) {
    const std::string line = name + ' ' + std::to_string(known) + '\n';
    // More than a store takes are known to this process only.
    if (fact.value.size() + line.size() > cache::kFactLimits.maxValueBytes) break;
    fact.value.insert(fact.value.end(), line.begin(), line.end());
  }
  store_->afterPublishing([weak = std::weak_ptr(store_), fact = std::move(fact)] {
    if (const auto store = weak.lock()) store->remember({&fact, 1});
  });
}

void ProductParts::flush() {
  std::shared_ptr<cache::SegmentStore> store;
  {
    const std::lock_guard lock(mutex_);
    store = store_;
  }
  if (store != nullptr) store->flush();
}

}  // namespace hearth::vulkan
