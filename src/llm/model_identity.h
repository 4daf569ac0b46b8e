// SPDX-License-Identifier: Apache-2.0
// What a model's results depend on: the content of its file, this build, this processor.
#pragma once

#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/sha256.h"
#include "cache/identity/content_memory.h"
#include "cache/prefix/prefix_store.h"

namespace hearth::llm {

// A model's file as it was before the model was loaded. Not thread-safe.
class ModelIdentity {
 public:
  // Errors: kNotFound, kIo.
  static Result<ModelIdentity> of(const std::string& path);

  // A digest of the file's content, which `store` remembers, and of the build of libhearth and the
  // processor that compute. To be called when the model is loaded, or with check() then. Errors:
  // kBadState when the file has changed since of(), kIo.
  Result<base::Sha256Digest> digest(const cache::PrefixStore& store) const;
  // A digest of the file's content alone. Errors as of digest().
  Result<base::Sha256Digest> content(const cache::PrefixStore& store) const;
  // Whether the file is still the one that of() found. Errors as of digest().
  Status check() const;

 private:
  ModelIdentity(std::string path, base::Descriptor file, cache::ContentSource content)
      : path_(std::move(path)), file_(std::move(file)), content_(std::move(content)) {}

  std::string path_;
  base::Descriptor file_;
  cache::ContentSource content_;
};

}  // namespace hearth::llm
