// SPDX-License-Identifier: Apache-2.0
#include "ipc/mailbox_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hearth::ipc {
namespace {

// Nobody adds a seal later, for instance one against writing, which would fail later mappings.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

MailboxPage::MailboxPage(base::Descriptor memory, Layout* layout)
    : memory_(std::move(memory)), layout_(layout) {}

MailboxPage::MailboxPage(MailboxPage&& other) noexcept
    : memory_(std::move(other.memory_)), layout_(std::exchange(other.layout_, nullptr)) {}

MailboxPage& MailboxPage::operator=(MailboxPage&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(layout_, other.layout_);
  return *this;
}

MailboxPage::~MailboxPage() {
  if (layout_ != nullptr) ::munmap(layout_, kSize);
}

Result<MailboxPage> MailboxPage::create() {
  base::Descriptor memory(::memfd_create("hearth-mailbox", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.valid()) return std::unexpected(base::errnoError(errno, "Making a mailbox's page"));
  if (::ftruncate(memory.get(), kSize) != 0 || ::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0)
    return std::unexpected(base::errnoError(errno, "Giving a mailbox's page its size"));
  return open(std::move(memory));
}

Result<MailboxPage> MailboxPage::open(base::Descriptor memory) {
  // Only memory has seals; a file gives an error.
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return fail(ErrorCode::kBadData,
                "The descriptor of a mailbox is no memory that keeps its "
                "size.");
  HEARTH_ASSIGN(const uint64_t size, memory.size());
  if (size != kSize)
    return fail(ErrorCode::kBadData, "The memory of a mailbox has {} bytes in place of {}.", size,
                kSize);
  void* const address = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (address == MAP_FAILED)
    return std::unexpected(base::errnoError(errno, "Mapping a mailbox's page"));
  // The page's bytes, zeros in a new one, are the objects.
  return MailboxPage(std::move(memory), static_cast<Layout*>(address));
}

}  // namespace hearth::ipc
