// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/library_cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/log.h"
#include "drivers/delegate/kept_files.h"

namespace hearth::drivers::delegate {
namespace {

namespace fs = std::filesystem;

// Of one model's cache: a part of what the store keeps of this kind.
constexpr uint64_t kMostBytes = uint64_t{128} << 20;

// In a working folder while its delegate prepares with what was restored: the key.
constexpr char kTrial[] = "/trial";

bool lock(const base::Descriptor& folder) {
  int result = 0;
  do {
    result = ::flock(folder.get(), LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

// Whether the path still leads to the open folder.
bool isThere(const std::string& path, const base::Descriptor& folder) {
  struct stat at, opened;
  return ::lstat(path.c_str(), &at) == 0 && ::fstat(folder.get(), &opened) == 0 &&
         at.st_ino == opened.st_ino && at.st_dev == opened.st_dev;
}

// An abandoned folder cannot be removed, or a file in it: it is tried again at the next start.
void removeFolder(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) base::logInfo("The folder {} cannot be removed: {}.", path, error.message());
}

}  // namespace

WorkingCache::~WorkingCache() {
  if (lock_.valid()) removeFolder(folder_);
}

Status WorkingCache::make() {
  std::error_code error;
  fs::create_directories(owner_.folder_, error);
  fs::permissions(owner_.folder_, fs::perms::owner_all, error);
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    std::string path = owner_.folder_ + "/XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return std::unexpected(base::errnoError(errno, "Making a folder in " + owner_.folder_));
    HEARTH_ASSIGN(base::Descriptor folder, base::Descriptor::open(path, O_RDONLY | O_DIRECTORY));
    // Until it is locked, another process takes it for an abandoned one.
    if (!lock(folder) || !isThere(path, folder)) continue;
    folder_ = std::move(path);
    lock_ = std::move(folder);
    if (::mkdir(files().c_str(), S_IRWXU) != 0)
      return std::unexpected(base::errnoError(errno, "Making the folder " + files()));
    return {};
  }
  return fail(ErrorCode::kIo, "No folder in {} can be locked.", owner_.folder_);
}

void WorkingCache::restore() {
  const auto kept = owner_.store_->read(key_);
  if (!kept) return;
  const std::span<const uint8_t> bytes(kept->data(), kept->size());
  std::ofstream trial(folder_ + kTrial);
  trial << key_.hex() << std::flush;
  const Status unpacked =
      trial ? unpackFiles(bytes, files()) : fail(ErrorCode::kIo, "No file can be written there.");
  if (unpacked) {
    restored_ = {bytes.size(), base::Sha256::of(bytes)};
    return;
  }
  base::logInfo("A delegate's cache is not restored. {}", unpacked.error().toString());
  removeFolder(files());
  static_cast<void>(::mkdir(files().c_str(), S_IRWXU));
}

DelegateOptions WorkingCache::addTo(DelegateOptions options) const {
  const CacheOption& option = owner_.option_;
  const auto set = [&](const std::string& name, std::string value) {
    std::erase_if(options, [&](const auto& each) { return each.first == name; });
    options.emplace_back(name, std::move(value));
  };
  set(option.option, option.isFolder ? files() : files() + "/cache");
  if (!option.tokenOption.empty()) set(option.tokenOption, key_.hex());
  std::ranges::sort(options);
  return options;
}

Result<bool> WorkingCache::keep() {
  std::error_code error;
  fs::remove(folder_ + kTrial, error);
  HEARTH_ASSIGN(const std::vector<uint8_t> packed, packFiles(files(), kMostBytes));
  if (packed.empty()) return false;
  if (restored_.bytes == packed.size() && restored_.digest == base::Sha256::of(packed)) return true;
  if (const auto written = owner_.store_->write(key_, packed); !written)
    return fail(ErrorCode::kIo, "{}", written.error().message);
  return false;
}

void WorkingCache::discard() const {
  if (restored_.bytes != 0) owner_.store_->remove(key_);
}

void LibraryCache::removeAbandoned() const {
  std::error_code error;
  for (fs::directory_iterator it(folder_, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string path = it->path().string();
    const auto folder = base::Descriptor::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!folder || !lock(*folder) || !isThere(path, *folder)) continue;
    std::string text;
    std::ifstream(path + kTrial) >> text;
    if (const auto key = cache::TableKey::fromHex(text)) {
      base::logInfo("A process ended while a delegate tried its cache, which is removed.");
      store_->remove(*key);
    }
    removeFolder(path);
  }
}

Result<std::unique_ptr<WorkingCache>> LibraryCache::take(const base::Sha256Digest& key) const {
  removeAbandoned();
  std::unique_ptr<WorkingCache> made(new WorkingCache(*this, key));
  HEARTH_TRY(made->make());
  made->restore();
  return made;
}

}  // namespace hearth::drivers::delegate
