// SPDX-License-Identifier: Apache-2.0
#include "base/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/format.h"

namespace hearth::base {

Result<Descriptor> Descriptor::open(const std::string& path, int flags, unsigned mode) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return std::unexpected(errnoError(errno, base::formatText("Opening {}", path)));
  return Descriptor(fd);
}

void Descriptor::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<Descriptor> Descriptor::duplicate() const {
  const int copy = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return std::unexpected(errnoError(errno, "Duplicating a descriptor"));
  return Descriptor(copy);
}

Result<uint64_t> Descriptor::size() const {
  struct stat status;
  if (::fstat(fd_, &status) != 0)
    return std::unexpected(errnoError(errno, "Reading a descriptor's size"));
  return static_cast<uint64_t>(status.st_size);
}

}  // namespace hearth::base
