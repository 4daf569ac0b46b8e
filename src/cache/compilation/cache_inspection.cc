// SPDX-License-Identifier: Apache-2.0
#include "cache/compilation/cache_inspection.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/format.h"
#include "cache/compilation/cache_files.h"

namespace hearth::cache {
namespace {

CacheInspection found(CacheFinding finding, std::string reason) {
  return {finding, std::move(reason), std::nullopt};
}

// The row with this content, preferably of this build and of this user.
const KnownContent* rowOf(const std::vector<KnownContent>& rows, const CachedContent& content,
                          const base::Sha256Digest& build) {
  const KnownContent* best = nullptr;
  int bestWorth = -1;
  for (const KnownContent& row : rows) {
    if (!(row.content == content)) continue;
    const int worth = 2 * (row.owner.build == build) + (row.owner.uid == ::geteuid());
    if (worth > bestWorth) best = &row;
    bestWorth = std::max(bestWorth, worth);
  }
  return best;
}

}  // namespace

const char* cacheFindingName(CacheFinding finding) {
  switch (finding) {
    case CacheFinding::kVerified:
      return "verified";
    case CacheFinding::kEmpty:
      return "empty";
    case CacheFinding::kNoMap:
      return "no-map";
    case CacheFinding::kUnknown:
      return "unknown";
    case CacheFinding::kOtherKey:
      return "other-key";
    case CacheFinding::kWrongSize:
      return "wrong-size";
    case CacheFinding::kWrongBytes:
      return "wrong-bytes";
    case CacheFinding::kUnreadable:
      return "unreadable";
  }
  return "unreadable";
}

CacheInspection inspectCacheFiles(MappingManager& map, const base::Sha256Digest& token,
                                  const base::Sha256Digest& preferredBuild, int modelFile,
                                  int dataFile) {
  struct stat model;
  struct stat data;
  if (::fstat(modelFile, &model) != 0 || ::fstat(dataFile, &data) != 0 || !S_ISREG(model.st_mode) ||
      !S_ISREG(data.st_mode))
    return found(CacheFinding::kUnreadable, "A cache file is no regular file.");
  const auto modelBytes = static_cast<uint64_t>(model.st_size);
  const auto dataBytes = static_cast<uint64_t>(data.st_size);
  if (modelBytes == 0 && dataBytes == 0)
    return found(CacheFinding::kEmpty, "The cache files are empty: nothing was saved into them.");
  const auto under = map.findUnder(token);
  if (!under) return found(CacheFinding::kNoMap, under.error().toString());
  const auto sized = map.findSized(modelBytes, dataBytes);
  if (!sized) return found(CacheFinding::kNoMap, sized.error().toString());
  // Files of a size that was never written are not read.
  if (!sized->empty()) {
    const auto content = contentOfFiles(modelFile, dataFile);
    if (!content) return found(CacheFinding::kUnreadable, content.error().toString());
    if (const KnownContent* const row = rowOf(*under, *content, preferredBuild))
      return {CacheFinding::kVerified, "", *row};
    if (const KnownContent* const row = rowOf(*sized, *content, preferredBuild))
      return {CacheFinding::kOtherKey,
              "The cache files were written under another key, for another token, device, "
              "preference or part of a model.",
              *row};
  }
  if (under->empty())
    return found(CacheFinding::kUnknown, "Nothing is known to be cached under this key.");
  if (std::ranges::none_of(*under, [&](const KnownContent& row) {
        return row.content.modelBytes == modelBytes && row.content.dataBytes == dataBytes;
      }))
    return found(CacheFinding::kWrongSize,
                 base::formatText("The cache files have {} and {} bytes; {} and {} were written.",
                                  modelBytes, dataBytes, under->front().content.modelBytes,
                                  under->front().content.dataBytes));
  return found(CacheFinding::kWrongBytes, "The cache files are not what was written into them.");
}

}  // namespace hearth::cache
