// SPDX-License-Identifier: Apache-2.0
#include "memory/constant_pool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.h"
#include "base/file_size_signal.h"
#include "base/format.h"
#include "memory/mapping.h"

namespace hearth::memory {
namespace {

Result<PoolRef> sealedPool(size_t size, const std::function<void(uint8_t* bytes)>& fill) {
  // The limit on file sizes applies to files in memory, too.
  const base::FileSizeSignalOff signalOff;
  const base::Descriptor file(::memfd_create("hearth-constants", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid() || ::ftruncate(file.get(), static_cast<off_t>(size)) != 0)
    return std::unexpected(base::errnoError(errno, "Creating constant memory"));
  {
    // Unmapped before sealing, which fails while there is a writable mapping.
    HEARTH_ASSIGN(const Mapping mapping,
                  Mapping::ofFile(file.get(), 0, size, Mapping::Access::kReadWrite));
    fill(mapping.data());
  }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return std::unexpected(base::errnoError(errno, "Sealing constant memory"));
  // Kernels before 6.7 map sealed memory only through a read-only descriptor.
  HEARTH_ASSIGN(const base::Descriptor readable,
                base::Descriptor::open(base::formatText("/proc/self/fd/{}", file.get()), O_RDONLY));
  return Pool::ofFile(readable.get(), 0, size, Mapping::Access::kReadOnly);
}

}  // namespace

Result<PoolRef> constantPool(size_t size, const std::function<void(uint8_t* bytes)>& fill) {
  if (auto sealed = sealedPool(size, fill)) return sealed;
  HEARTH_ASSIGN(const PoolRef pool, Pool::anonymous(size));
  fill(pool->mutableData());
  return pool;
}

}  // namespace hearth::memory
