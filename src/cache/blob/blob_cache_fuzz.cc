// SPDX-License-Identifier: Apache-2.0
// Parses any bytes as the file of a blob cache, as they are and with the right digest.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/sha256.h"
#include "cache/blob/blob_cache_file.h"

namespace {

using namespace hearth;

void read(const std::vector<uint8_t>& file) {
  const auto blobs = cache::parseBlobCacheFile(file);
  if (!blobs) return;
  // Writing the parsed entries again gives a file of the same size with the same entries.
  const std::vector<uint8_t> again = cache::makeBlobCacheFile(*blobs);
  if (again.size() != file.size() || cache::parseBlobCacheFile(again) != *blobs) std::abort();
  cache::BlobTable table({.maxKeyBytes = 16, .maxValueBytes = 64, .maxBytes = 256}, {});
  for (const auto& [key, blob] : *blobs) table.insert(key, blob);
  table.fit();
  if (table.bytes() > 256) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kSigned = 32;
  constexpr size_t kHead = 64;
  std::vector<uint8_t> file(data, data + size);
  read(file);
  if (size < kHead) return 0;
  base::Sha256 hash;
  hash.update(std::span(file).first(kSigned));
  hash.update(std::span(file).subspan(kHead));
  const base::Sha256Digest digest = hash.finish();
  std::memcpy(file.data() + kSigned, digest.data(), digest.size());
  read(file);
  return 0;
}
