// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache_file_state.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <charconv>

#include "base/descriptor.h"
#include "cache/object/object_file.h"

namespace hearth::runtime {
namespace {

constexpr size_t kLetters = 2 * sizeof(hal::CacheToken);

}  // namespace

std::string cacheKeyLetters(const hal::CacheToken& key) {
  return cacheFileName("", key, CacheFileKind::kModel, 0).substr(1, kLetters);
}

std::optional<CacheFileName> parseCacheFileName(std::string_view name) {
  if (name.size() < kLetters + 2) return std::nullopt;
  CacheFileName parsed;
  for (size_t i = 0; i < kLetters; ++i) {
    if (name[i] < 'A' || name[i] > 'P') return std::nullopt;
    const auto nibble = static_cast<unsigned>(name[i] - 'A');
    parsed.key[i / 2] |= static_cast<uint8_t>(i % 2 == 0 ? nibble : nibble << 4);
  }
  parsed.kind = static_cast<CacheFileKind>(name[kLetters]);
  if (parsed.kind != CacheFileKind::kModel && parsed.kind != CacheFileKind::kData)
    return std::nullopt;
  const std::string_view digits = name.substr(kLetters + 1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), parsed.index);
  if (error != std::errc() || end != digits.data() + digits.size() ||
      parsed.index >= kMaxCacheFiles || digits != std::to_string(parsed.index))
    return std::nullopt;
  return parsed;
}

CacheFileState stateOfCacheFile(const std::string& folder, const hal::CacheToken& key,
                                CacheFileKind kind, uint32_t index) {
  CacheFileState state{.kind = kind, .index = index};
  const std::string path = cacheFileName(folder, key, kind, index);
  state.name = path.substr(path.rfind('/') + 1);
  struct stat status;
  if (::fstatat(AT_FDCWD, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(status.st_mode))
    return state;
  const auto generation = cache::FileGeneration::of(status);
  state.exists = true;
  state.bytes = generation.size;
  state.modified = generation.modified;
  const base::Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  state.isLocked = file.valid() && cache::isLocked(file.get());
  return state;
}

}  // namespace hearth::runtime
