// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/sha256.h"
#include "cache/object/object_file.h"

namespace hearth::cache {

// Adds a value to the hash that becomes a key.
template <typename T>
void addToKey(base::Sha256& hash, const T& value) {
  static_assert(std::has_unique_object_representations_v<T>);
  hash.update(&value, sizeof value);
}

// The mounting does not count: the same file may be mounted twice.
inline void addToKey(base::Sha256& hash, const FileGeneration& file) {
  for (const uint64_t value : {file.device, file.inode, file.size}) addToKey(hash, value);
  for (const int64_t value : {file.modified, file.changed}) addToKey(hash, value);
}

}  // namespace hearth::cache
