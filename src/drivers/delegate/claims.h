// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/sha256.h"
#include "cache/table/table_store.h"
#include "hal/device.h"

namespace hearth::drivers::delegate {

// Which operations of a model a delegate takes, with the reasons for the others. It is found out by
// offering the model, for which some libraries compile; so it is remembered. Thread-safe.
class Claims {
 public:
  using Supports = std::vector<hal::OperationSupport>;

  // Null: they are remembered in this process only.
  explicit Claims(std::shared_ptr<const cache::TableStore> store) : store_(std::move(store)) {}

  // The key is a digest of the library, its options and the model, which has so many operations.
  std::optional<Supports> find(const base::Sha256Digest& key, size_t operations);
  // A failure to write is logged only.
  void remember(const base::Sha256Digest& key, const Supports& supports);

 private:
  void keep(const base::Sha256Digest& key, const Supports& supports);

  const std::shared_ptr<const cache::TableStore> store_;
  base::Mutex mutex_;
  std::map<base::Sha256Digest, Supports> known_;
};

// Claims as bytes: a JSON list with the reason of each operation, empty for those that are taken.
std::string encodeClaims(const Claims::Supports& supports);
// kBadData for bytes that encodeClaims() does not write.
Result<Claims::Supports> decodeClaims(std::string_view bytes);

}  // namespace hearth::drivers::delegate
