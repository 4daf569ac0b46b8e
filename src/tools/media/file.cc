// SPDX-License-Identifier: Apache-2.0
#include "tools/media/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/descriptor.h"
#include "base/format.h"

namespace hearth::tools {

Result<std::vector<uint8_t>> readFile(const std::string& path, uint64_t limit) {
  HEARTH_ASSIGN(base::Descriptor file, base::Descriptor::open(path, O_RDONLY | O_NONBLOCK));
  struct stat status;
  if (fstat(file.get(), &status) != 0)
    return std::unexpected(base::errnoError(errno, base::formatText("fstat of {}", path)));
  if (!S_ISREG(status.st_mode))
    return fail(ErrorCode::kBadData, "The input {} is not a regular file.", path);
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > limit)
    return fail(ErrorCode::kBadData, "The file {} has {} bytes; at most {} are read.", path, size,
                limit);
  std::vector<uint8_t> bytes(size);
  uint64_t done = 0;
  while (done < size) {
    const ssize_t got = read(file.get(), bytes.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return std::unexpected(base::errnoError(errno, base::formatText("read of {}", path)));
    if (got == 0) return fail(ErrorCode::kIo, "The file {} shrinks while it is read.", path);
    done += static_cast<uint64_t>(got);
  }
  return bytes;
}

Status writeFile(const std::string& path, std::span<const uint8_t> bytes) {
  const std::string temporary = base::formatText("{}.{}.tmp", path, getpid());
  auto file = base::Descriptor::open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0666);
  if (!file) return std::unexpected(std::move(file.error()));
  uint64_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = write(file->get(), bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const int problem = errno;
      unlink(temporary.c_str());
      return std::unexpected(base::errnoError(problem, base::formatText("write of {}", path)));
    }
    done += static_cast<uint64_t>(put);
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const int problem = errno;
    unlink(temporary.c_str());
    return std::unexpected(base::errnoError(problem, base::formatText("rename to {}", path)));
  }
  return {};
}

std::string extensionOf(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  if (!extension.empty()) extension.erase(0, 1);
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(c < 128 ? std::tolower(c) : c); });
  return extension;
}

}  // namespace hearth::tools
