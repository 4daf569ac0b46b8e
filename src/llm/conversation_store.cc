// SPDX-License-Identifier: Apache-2.0
#include "llm/conversation_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/crash_point.h"
#include "base/env.h"
#include "base/fault.h"
#include "base/format.h"
#include "base/sha256.h"
#include "base/wall_clock.h"
#include "cache/object/file_use.h"
#include "cache/object/object_file.h"
#include "cache/store/user_folder.h"

namespace hearth::llm {
namespace {

namespace sys = base::sys;

constexpr std::string_view kSuffix = ".json";
// Neither ends like a conversation.
constexpr char kTemporary[] = "tmp";
constexpr char kLocks[] = "locks";
// Who writes a file may not have locked it yet.
constexpr int64_t kLeftOver = int64_t{60} * 1'000'000'000;

std::string fileOf(const std::string& name) {
  return name + std::string(kSuffix);
}

Error errorOf(const cache::StoreFailure& failure) {
  return {failure.reason == cache::StoreReason::kAbsent ? ErrorCode::kNotFound : ErrorCode::kIo,
          failure.message};
}

bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

// The byte of the file of locks that stands for a name.
off_t lockByteOf(const std::string& name) {
  const base::Sha256Digest digest =
      base::Sha256::of({reinterpret_cast<const uint8_t*>(name.data()), name.size()});
  uint64_t byte = 0;
  std::memcpy(&byte, digest.data(), sizeof byte);
  return static_cast<off_t>(byte >> 2);
}

// What killed processes have begun to write holds somebody's text.
void removeLeftOvers(int temporary) {
  for (const std::string& name : cache::namesIn(temporary, "")) {
    const auto file = cache::openObject(temporary, name);
    if (file && !cache::isLocked(file->descriptor.get()) &&
        base::wallClock() - file->generation.modified > kLeftOver)
      (void)cache::removeFile(temporary, name);
  }
}

}  // namespace

bool ConversationStore::isName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && name.front() != '.' &&
         std::ranges::all_of(name, isNameCharacter);
}

std::string ConversationStore::standardFolder() {
  return cache::userFolder(base::Env::kStateHome, ".local/state", "hearth/conversations");
}

Result<ConversationStore> ConversationStore::open(std::string path, Access access) {
  if (path.empty())
    return fail(ErrorCode::kBadState,
                "There is no folder for conversations: neither XDG_STATE_HOME nor HOME names one.");
  const bool isWritten = access == Access::kWrite;
  if (isWritten)
    if (const auto made = cache::makeParents(path); !made)
      return std::unexpected(errorOf(made.error()));
  auto folder = cache::openFolder(AT_FDCWD, path, isWritten);
  if (folder) return ConversationStore(std::move(path), *std::move(folder));
  if (!isWritten && folder.error().reason == cache::StoreReason::kGone)
    return ConversationStore(std::move(path), base::Descriptor());
  return std::unexpected(errorOf(folder.error()));
}

std::vector<std::string> ConversationStore::names() const {
  if (!folder_.valid()) return {};
  std::vector<std::string> names = cache::namesIn(folder_.get(), kSuffix);
  std::erase_if(names, [](const std::string& name) { return !isName(name); });
  std::ranges::sort(names);
  return names;
}

bool ConversationStore::contains(const std::string& name) const {
  struct stat status;
  return folder_.valid() &&
         ::fstatat(folder_.get(), fileOf(name).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<base::Descriptor> ConversationStore::lock(const std::string& name) const {
  base::Descriptor file = cache::openTrusted(folder_.get(), kLocks, O_RDWR | O_CREAT);
  if (!file.valid())
    return fail(ErrorCode::kIo, "The file {}/{} cannot be opened for writing.", path_, kLocks);
  struct flock byte{};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = lockByteOf(name);
  byte.l_len = 1;
  if (::fcntl(file.get(), F_OFD_SETLK, &byte) != 0 && (errno == EAGAIN || errno == EACCES))
    return fail(ErrorCode::kBadState, "Another process has the conversation {} open.", name);
  return file;
}

Result<SavedConversation> ConversationStore::read(const std::string& name) const {
  if (!contains(name))
    return fail(ErrorCode::kNotFound, "There is no conversation {} in {}.", name, path_);
  const auto text = [&]() -> cache::StoreResult<std::string> {
    HEARTH_ASSIGN(const cache::ObjectFile file, cache::openObject(folder_.get(), fileOf(name)));
    // Of a larger one, enough to be refused.
    std::string bytes(std::min<uint64_t>(file.generation.size, SavedConversation::kMaxBytes + 1),
                      '\0');
    HEARTH_TRY(cache::readAt(file.descriptor.get(), bytes.data(), bytes.size(), 0));
    return bytes;
  }();
  if (!text)
    return fail(ErrorCode::kIo, "The conversation {} in {} cannot be read: {}", name, path_,
                text.error().message);
  auto saved = SavedConversation::ofJson(*text);
  if (!saved)
    return fail(saved.error().code(), "The conversation {}/{} cannot be read: {}", path_,
                fileOf(name), saved.error().message());
  return saved;
}

Status ConversationStore::write(const std::string& name,
                                const SavedConversation& conversation) const {
  const auto text = conversation.toJson();
  if (!text)
    return fail(text.error().code(), "The conversation {} cannot be saved. {}", name,
                text.error().message());
  if (const Status written = replace(name, *text); !written)
    return fail(ErrorCode::kIo, "The conversation {} cannot be saved in {}: {}", name, path_,
                written.error().message());
  return {};
}

Status ConversationStore::replace(const std::string& name, std::string_view text) const {
  const auto replaced = [&]() -> cache::StoreStatus {
    HEARTH_ASSIGN(const base::Descriptor temporary,
                  cache::openFolder(folder_.get(), kTemporary, true));
    removeLeftOvers(temporary.get());
    HEARTH_ASSIGN(cache::TempObject file, cache::TempObject::create(temporary.get()));
    HEARTH_TRY(cache::writeAt(file.fd(), text.data(), text.size(), 0));
    HEARTH_CRASH_POINT("conversation.after_write");
    // Unlike objects of the weight store, these may be edited.
    if (::fchmod(file.fd(), 0600) != 0)
      return cache::storeErrno(errno, "Setting the mode of the file");
    if (cache::retried([&] { return sys::fsync(file.fd()); }) != 0)
      return cache::storeErrno(errno, "Syncing the file");
    HEARTH_CRASH_POINT("conversation.after_sync");
    HEARTH_TRY(file.placeAt(folder_.get(), fileOf(name)));
    if (cache::retried([&] { return sys::fsync(folder_.get()); }) != 0)
      return cache::storeErrno(errno, "Syncing the folder");
    return {};
  }();
  if (!replaced) return std::unexpected(errorOf(replaced.error()));
  return {};
}

Status ConversationStore::remove(const std::string& name) const {
  if (!contains(name))
    return fail(ErrorCode::kNotFound, "There is no conversation {} in {}.", name, path_);
  if (const auto removed = cache::removeFile(folder_.get(), fileOf(name)); !removed)
    return std::unexpected(errorOf(removed.error()));
  const auto temporary = cache::openFolder(folder_.get(), kTemporary, false);
  if (temporary) removeLeftOvers(temporary->get());
  return {};
}

ConversationStore::Facts ConversationStore::facts(const std::string& name) const {
  struct stat status;
  if (!folder_.valid() ||
      ::fstatat(folder_.get(), fileOf(name).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return {};
  return {.bytes = static_cast<uint64_t>(status.st_size),
          .changed = base::toNanoseconds(status.st_mtim)};
}

}  // namespace hearth::llm
