// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/sha256.h"
#include "drivers/delegate/claims.h"
#include "drivers/delegate/delegate_device.h"
#include "drivers/delegate/library_cache.h"
#include "drivers/delegate/model_digests.h"
#include "drivers/delegate/vendor_library.h"

namespace hearth::drivers::delegate {

// What all models of a device have in common: the library, and what is remembered of it from start
// to start. Thread-safe; VendorLibrary says who may call into the library.
class DeviceContext {
 public:
  // Loads the library. Errors: those of VendorLibrary::load(). Without a store that can be used,
  // everything is remembered in this process only.
  static Result<std::shared_ptr<DeviceContext>> create(DeviceSettings settings);

  const DeviceSettings& settings() const { return settings_; }
  VendorLibrary& library() const { return *library_; }
  Claims& claims() { return *claims_; }
  // The library's own cache; null where the manifest names none or there is no store.
  const LibraryCache* cache() const { return cache_ ? &*cache_ : nullptr; }

  // A digest of the kind, the library with the code that it needs, its options, and the model.
  // Errors of reading the model.
  Result<base::Sha256Digest> keyOf(std::string_view kind, const graph::Model& model) const;

 private:
  DeviceContext(DeviceSettings settings, std::shared_ptr<VendorLibrary> library);
  void openStore();

  const DeviceSettings settings_;
  const std::shared_ptr<VendorLibrary> library_;
  base::Sha256Digest identity_{};
  std::optional<ModelDigests> digests_;
  std::optional<Claims> claims_;
  std::optional<LibraryCache> cache_;
};

}  // namespace hearth::drivers::delegate
