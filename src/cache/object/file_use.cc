// SPDX-License-Identifier: Apache-2.0
#include "cache/object/file_use.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <memory>

#include "base/descriptor.h"
#include "base/wall_clock.h"

namespace hearth::cache {
namespace {

constexpr int64_t kNoted = int64_t{3600} * 1'000'000'000;

// Closes the directory, too.
using Directory = std::unique_ptr<DIR, decltype([](DIR* directory) { ::closedir(directory); })>;

}  // namespace

std::vector<std::string> namesIn(int folder, std::string_view suffix) {
  std::vector<std::string> names;
  base::Descriptor copy(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy.valid()) return names;
  const Directory directory(::fdopendir(copy.get()));
  if (directory == nullptr) return names;
  (void)copy.release();
  while (const dirent* const entry = ::readdir(directory.get())) {
    std::string_view name = entry->d_name;
    if (!name.ends_with(suffix)) continue;
    name.remove_suffix(suffix.size());
    names.emplace_back(name);
  }
  return names;
}

int64_t lastUsed(int fd) {
  struct stat status;
  return ::fstat(fd, &status) == 0 ? base::toNanoseconds(status.st_mtim) : 0;
}

void noteUse(int fd) {
  const int64_t age = base::wallClock() - lastUsed(fd);
  // A time in the future would keep the file for ever.
  if (age > kNoted || age < 0) ::futimens(fd, nullptr);
}

}  // namespace hearth::cache
