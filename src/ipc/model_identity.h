// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "base/descriptor.h"
#include "base/sha256.h"
#include "cache/identity/content_memory.h"
#include "driver.capnp.h"
#include "hal/device.h"

namespace hearth::ipc {

// What a client wants prepared and how, as a digest: of the graph and the constants in it, of which
// files it names, and of all options but the deadline. Two preparations of the same identity give
// models that compute the same, as long as the files are unchanged.
class ModelIdentity {
 public:
  // Of a request that nobody can change any more. Nothing where its descriptors cannot be read, or
  // no proof can be had that the bytes behind them stay the same: memory that is not sealed, a file
  // that changed just now.
  // `options` and `token` are those that count, and need not be the client's own. The descriptors
  // stay open as long as this exists.
  static std::optional<ModelIdentity> ofModel(schema::Model::Reader model,
                                              const hal::PrepareOptions& options,
                                              const std::vector<base::Descriptor>& descriptors);
  static std::optional<ModelIdentity> ofCache(schema::CacheFiles::Reader files,
                                              const hal::CacheToken& token,
                                              const hal::PrepareOptions& options,
                                              const std::vector<base::Descriptor>& descriptors);

  const base::Sha256Digest& digest() const { return digest_; }
  // Whether the files are what they were when this was made.
  bool isUnchanged() const;

 private:
  class Maker;

  base::Sha256Digest digest_{};
  std::vector<cache::ContentSource> files_;
};

}  // namespace hearth::ipc
