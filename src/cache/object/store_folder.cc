// SPDX-License-Identifier: Apache-2.0
#include "cache/object/store_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/format.h"

namespace hearth::cache {
StoreResult<std::shared_ptr<const StoreFolder>> StoreFolder::open(const std::string& path,
                                                                  Access access) {
  // A slash at the end would let the system follow a link in the last component.
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  if (name.empty()) return storeFail(StoreReason::kBadRequest, "The store's path is empty.");
  const bool write = access == Access::kWrite;
  std::shared_ptr<StoreFolder> folder(new StoreFolder);
  folder->path_ = name;
  folder->access_ = access;
  auto root = openFolder(AT_FDCWD, name, false);
  if (!root && root.error().reason == StoreReason::kGone && write) {
    HEARTH_TRY(makeParents(name));
    root = openFolder(AT_FDCWD, name, true);
  }
  if (!root) return std::unexpected(std::move(root.error()));
  folder->root_ = std::move(*root);
  if (write && ::faccessat(folder->root(), ".", W_OK | X_OK, AT_EACCESS) != 0)
    return storeErrno(errno, base::formatText("Asking for leave to write the folder {}", name));
  const std::pair<base::Descriptor*, const char*> parts[] = {{&folder->segments_, "segments"},
                                                             {&folder->plans_, "plans"},
                                                             {&folder->stamps_, "stamps"},
                                                             {&folder->temporary_, "tmp"}};
  for (const auto& [descriptor, part] : parts) {
    auto opened = openFolder(folder->root(), part, write);
    if (opened)
      *descriptor = std::move(*opened);
    else if (write || opened.error().reason != StoreReason::kGone)
      return std::unexpected(std::move(opened.error()));
  }
  return folder;
}

bool StoreFolder::isGone() const {
  struct stat status;
  return ::fstat(root_.get(), &status) != 0 || status.st_nlink == 0;
}

std::string StoreFolder::segmentName(const SegmentKey& key, bool durable) {
  return key.hex().substr(2) + (durable ? ".seg" : ".new");
}

std::string StoreFolder::segmentPath(const SegmentKey& key, bool durable) {
  std::string path = key.hex();
  path.reserve(path.size() + sizeof "/.seg");
  path.insert(2, 1, '/');
  return path += durable ? ".seg" : ".new";
}

StoreResult<base::Descriptor> StoreFolder::openShard(const SegmentKey& key, bool create) const {
  return openFolder(segments(), key.hex().substr(0, 2), create);
}

}  // namespace hearth::cache
