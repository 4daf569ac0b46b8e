// SPDX-License-Identifier: Apache-2.0
#include "cache/identity/content_memory.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/wall_clock.h"
#include "cache/identity/content_hash.h"
#include "cache/identity/key_hash.h"

namespace hearth::cache {

Result<FileIdentity> FileIdentity::of(int fd) {
  HEARTH_ASSIGN(const FileFacts facts, FileFacts::of(fd, "", true));
  const ChangeProof proof = proofOf(facts);
  FileIdentity identity{.proof = proof, .scope = scopeOf(facts, proof)};
  identity.generation.size = facts.size;
  // Only the content counts, wherever the file is.
  if (proof == ChangeProof::kContent) return identity;
  identity.generation = FileGeneration::of(facts);
  identity.born = facts.born;
  return identity;
}

base::Sha256Digest contentKey(const FileIdentity& file, uint64_t offset, uint64_t size) {
  base::Sha256 hash;
  hash.update("content 2", 9);
  addToKey(hash, file.generation);
  addToKey(hash, file.born);
  addToKey(hash, file.proof);
  addToKey(hash, file.scope);
  addToKey(hash, offset);
  addToKey(hash, size);
  return hash.finish();
}

bool isReadWellAfterChange(const FileIdentity& file, int64_t readAt) {
  if (file.proof == ChangeProof::kNone || file.proof == ChangeProof::kSeal) return false;
  if (file.proof == ChangeProof::kContent) return true;
  const int64_t lastChange = std::max(file.generation.modified, file.generation.changed);
  // Both numbers come from files, so their difference may not fit into a signed number.
  return readAt > lastChange && static_cast<uint64_t>(readAt) - static_cast<uint64_t>(lastChange) >=
                                    racyWindow(file.proof);
}

ContentSource ContentSource::of(int fd, uint64_t offset, uint64_t size, bool mayBeWritten,
                                std::vector<ContentGap> gaps) {
  ContentSource source;
  source.fd_ = fd;
  source.offset_ = offset;
  source.size_ = size;
  source.gaps_ = std::move(gaps);
  source.seenAt_ = base::fileClock();
  auto file = FileIdentity::of(fd);
  if (!file || file->proof == ChangeProof::kNone) return source;
  const uint64_t bytes = file->generation.size;
  const bool isInside = offset <= bytes && size <= bytes - offset;
  if (isInside && (!mayBeWritten || file->proof == ChangeProof::kSeal)) source.file_ = *file;
  return source;
}

FileIdentity ContentSource::remembered() const {
  FileIdentity identity = *file_;
  if (gaps_.empty()) return identity;
  base::Sha256 hash;
  hash.update("content with gaps", 17);
  addToKey(hash, identity.scope);
  for (const ContentGap& gap : gaps_) {
    addToKey(hash, gap.offset);
    addToKey(hash, gap.size);
  }
  identity.scope = hash.finish();
  return identity;
}

bool ContentSource::tellsChanges() const {
  return file_ && (file_->proof == ChangeProof::kSeal || isReadWellAfterChange(*file_, seenAt_));
}

bool ContentSource::isUnchanged() const {
  if (!tellsChanges()) return false;
  const auto now = FileIdentity::of(fd_);
  return now && *now == *file_;
}

void rememberHash(const ContentSource& source, const base::Sha256Digest& digest,
                  ContentMemory& memory) {
  if (source.isUnchanged() && source.file()->proof != ChangeProof::kSeal)
    memory.rememberContent(source.remembered(), source.offset(), source.size(), digest,
                           source.seenAt());
}

std::optional<base::Sha256Digest> recalledHash(const ContentSource& source, ContentMemory* memory) {
  if (memory == nullptr || source.file() == nullptr || source.file()->proof == ChangeProof::kSeal)
    return std::nullopt;
  return memory->content(source.remembered(), source.offset(), source.size());
}

Result<base::Sha256Digest> rememberedHash(const ContentSource& source, unsigned threads,
                                          ContentMemory* memory, std::atomic<uint64_t>& hashed,
                                          std::optional<ContentTags>* tags) {
  if (const auto digest = recalledHash(source, memory)) return *digest;
  const auto key = memory != nullptr ? memory->makeTagKey() : std::nullopt;
  ContentTags made;
  HEARTH_ASSIGN(
      const base::Sha256Digest digest,
      hashContent(source.fd(), source.offset(), source.size(), threads, key, &made, source.gaps()));
  hashed.fetch_add(countedBytes(source.size(), source.gaps()), std::memory_order_relaxed);
  if (key) memory->nameContent(made.name(), digest);
  if (key && tags != nullptr) *tags = std::move(made);
  if (memory != nullptr) rememberHash(source, digest, *memory);
  return digest;
}

}  // namespace hearth::cache
