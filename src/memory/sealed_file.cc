// SPDX-License-Identifier: Apache-2.0
#include "memory/sealed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/file_size_signal.h"
#include "base/format.h"

namespace hearth::memory {

Result<base::Descriptor> sealedFile(std::span<const std::span<const uint8_t>> pieces) {
  // The limit on file sizes applies to files in memory, too.
  const base::FileSizeSignalOff signalOff;
  base::Descriptor file(::memfd_create("hearth-constants", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return std::unexpected(base::errnoError(errno, "Creating sealed memory"));
  for (std::span<const uint8_t> rest : pieces)
    while (!rest.empty()) {
      const ssize_t written = ::write(file.get(), rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return std::unexpected(base::errnoError(errno, "Writing sealed memory"));
      rest = rest.subspan(static_cast<size_t>(written));
    }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return std::unexpected(base::errnoError(errno, "Sealing memory"));
  // Kernels before 6.7 map sealed memory only through a read-only descriptor.
  if (auto readable =
          base::Descriptor::open(base::formatText("/proc/self/fd/{}", file.get()), O_RDONLY))
    return readable;
  return file;
}

}  // namespace hearth::memory
