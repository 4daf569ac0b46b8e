// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "base/sha256.h"
#include "cache/identity/content_memory.h"
#include "graph/model.h"

namespace hearth::drivers::delegate {

// Digests of whole models: their structure and the bytes of their pools. Thread-safe.
class ModelDigests {
 public:
  // Digests of files are remembered in `memory`; null: in this process only.
  explicit ModelDigests(std::shared_ptr<cache::ContentMemory> memory);

  // Models with equal digests compute the same. The model is valid. A pool in a file is read only
  // when its digest is not remembered. Errors: kBadData, kIo of reading.
  Result<base::Sha256Digest> of(const graph::Model& model) const;

 private:
  const std::shared_ptr<cache::ContentMemory> memory_;
};

}  // namespace hearth::drivers::delegate
