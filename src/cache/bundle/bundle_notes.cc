// SPDX-License-Identifier: Apache-2.0
#include "cache/bundle/bundle_notes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/wall_clock.h"
#include "cache/object/object_file.h"

namespace hearth::cache {
namespace {

struct Stored {
  uint8_t key[32];
  uint8_t digest[32];
  int64_t when;
  uint8_t reserved[24];
  uint8_t checksum[32];  // over all bytes before it
};
static_assert(sizeof(Stored) == BundleNotes::kNoteSize);

base::Sha256Digest checksumOf(const Stored& stored) {
  return base::Sha256::of({reinterpret_cast<const uint8_t*>(&stored), offsetof(Stored, checksum)});
}

}  // namespace

std::array<uint8_t, BundleNotes::kNoteSize> BundleNotes::bytesOf(const Note& note) {
  std::array<uint8_t, kNoteSize> bytes{};
  if (note.when == 0) return bytes;
  Stored stored{.when = note.when};
  std::memcpy(stored.key, note.key.data(), sizeof stored.key);
  std::memcpy(stored.digest, note.digest.data(), sizeof stored.digest);
  const base::Sha256Digest checksum = checksumOf(stored);
  std::memcpy(stored.checksum, checksum.data(), sizeof stored.checksum);
  std::memcpy(bytes.data(), &stored, sizeof stored);
  return bytes;
}

void BundleNotes::read(int fd, uint64_t offset, base::Descriptor writable) {
  const std::lock_guard lock(mutex_);
  notes_ = {};
  file_ = std::move(writable);
  offset_ = offset;
  std::array<Stored, kCount> stored{};
  if (!readAt(fd, stored.data(), kBytes, offset)) return;
  for (size_t i = 0; i < kCount; ++i) {
    const base::Sha256Digest checksum = checksumOf(stored[i]);
    if (std::memcmp(checksum.data(), stored[i].checksum, checksum.size()) != 0) continue;
    std::memcpy(notes_[i].key.data(), stored[i].key, sizeof stored[i].key);
    std::memcpy(notes_[i].digest.data(), stored[i].digest, sizeof stored[i].digest);
    notes_[i].when = stored[i].when;
  }
}

void BundleNotes::attach(base::Descriptor writable, uint64_t offset) {
  const std::lock_guard lock(mutex_);
  file_ = std::move(writable);
  offset_ = offset;
  std::vector<uint8_t> bytes;
  for (const Note& note : notes_) {
    const auto part = bytesOf(note);
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  write(bytes, offset_);
}

void BundleNotes::write(std::span<const uint8_t> bytes, uint64_t offset) const {
  struct stat before;
  if (!file_.valid() || ::fstat(file_.get(), &before) != 0) return;
  // In a file that was cut, the note would turn the lost bytes before it into zeros, which who has
  // them mapped would read without a signal.
  if (before.st_size < static_cast<off_t>(offset + bytes.size())) return;
  if (!writeAt(file_.get(), bytes.data(), bytes.size(), offset)) return;
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, before.st_mtim};
  ::futimens(file_.get(), times);
}

std::optional<BundleNotes::Note> BundleNotes::find(const base::Sha256Digest& key) {
  const std::lock_guard lock(mutex_);
  for (const Note& note : notes_)
    if (note.when != 0 && note.key == key) return note;
  return std::nullopt;
}

void BundleNotes::put(const Note& note) {
  const std::lock_guard lock(mutex_);
  auto place = std::ranges::find_if(
      notes_, [&](const Note& old) { return old.when != 0 && old.key == note.key; });
  // A note from the future, left by a clock that went wrong, would otherwise stay for ever.
  const int64_t time = base::wallClock();
  if (place == notes_.end())
    place = std::ranges::min_element(
        notes_, {}, [&](const Note& old) { return old.when > time ? 0 : old.when; });
  *place = note;
  write(bytesOf(note), offset_ + static_cast<size_t>(place - notes_.begin()) * kNoteSize);
}

bool BundleNotes::isWritable() {
  const std::lock_guard lock(mutex_);
  return file_.valid();
}

std::optional<base::Sha256Digest> BundleNotes::content(const FileIdentity& file, uint64_t offset,
                                                       uint64_t size) {
  const std::optional<Note> note = find(contentKey(file, offset, size));
  if (!note || !isReadWellAfterChange(file, note->when)) return std::nullopt;
  return note->digest;
}

void BundleNotes::rememberContent(const FileIdentity& file, uint64_t offset, uint64_t size,
                                  const base::Sha256Digest& digest, int64_t readAt) {
  put({.key = contentKey(file, offset, size), .digest = digest, .when = readAt});
}

std::optional<base::Sha256Digest> BundleNotes::fact(const base::Sha256Digest& key) {
  const std::optional<Note> note = find(key);
  if (!note || note->digest == base::Sha256Digest{}) return std::nullopt;
  return note->digest;
}

void BundleNotes::rememberFact(const base::Sha256Digest& key, const base::Sha256Digest& value) {
  put({.key = key, .digest = value, .when = base::wallClock()});
}

bool BundleNotes::has(const base::Sha256Digest& key) {
  const std::optional<Note> note = find(key);
  return note && note->digest == base::Sha256Digest{};
}

void BundleNotes::add(const base::Sha256Digest& key) {
  put({.key = key, .when = base::wallClock()});
}

uint64_t BundleNotes::checkedBlocks(const base::Sha256Digest& check) {
  const std::optional<Note> note = find(check);
  if (!note) return 0;
  if (note->digest == base::Sha256Digest{}) return UINT64_MAX;
  uint64_t blocks;
  std::memcpy(&blocks, note->digest.data(), sizeof blocks);
  return blocks;
}

void BundleNotes::rememberCheckedBlocks(const base::Sha256Digest& check, uint64_t blocks,
                                        bool isAll) {
  Note note{.key = check, .when = base::wallClock()};
  if (!isAll) std::memcpy(note.digest.data(), &blocks, sizeof blocks);
  put(note);
}

void BundleNotes::keepContentsOnly() {
  const std::lock_guard lock(mutex_);
  for (Note& note : notes_)
    if (note.digest == base::Sha256Digest{}) note = {};
}

}  // namespace hearth::cache
