// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "cache/store/store_options.h"

namespace hearth::cache {

// The stores of one kind that this process has open, so that all who open the same one share an
// object. They are few, so they are searched one by one. Not thread-safe.
template <typename Store>
class OpenStores {
 public:
  // The open store of these options; null when there is none.
  std::shared_ptr<Store> find(const StoreOptions& options) {
    std::erase_if(stores_, [](const auto& entry) { return entry.second.expired(); });
    for (const auto& [known, weak] : stores_)
      if (known == options)
        if (std::shared_ptr<Store> store = weak.lock()) return store;
    return nullptr;
  }
  // Does not keep the store alive.
  void add(const StoreOptions& options, const std::shared_ptr<Store>& store) {
    stores_.emplace_back(options, store);
  }

 private:
  std::vector<std::pair<StoreOptions, std::weak_ptr<Store>>> stores_;
};

}  // namespace hearth::cache
