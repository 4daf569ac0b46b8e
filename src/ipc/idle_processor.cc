// SPDX-License-Identifier: Apache-2.0
#include "ipc/idle_processor.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "base/descriptor.h"

namespace hearth::ipc {

std::optional<uint32_t> runnableThreads(std::string_view text) {
  // Three averages, and then the threads that can run, a slash, and all threads.
  for (int i = 0; i < 3; ++i) {
    const size_t space = text.find(' ');
    if (space == text.npos) return {};
    text.remove_prefix(space + 1);
  }
  const size_t slash = text.find('/');
  if (slash == text.npos) return {};
  uint32_t count = 0;
  const char* const end = text.data() + slash;
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || rest != end) return {};
  return count;
}

bool hasIdleProcessor() {
  const base::Descriptor file(::open("/proc/loadavg", O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return false;
  std::array<char, 128> text{};
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size <= 0) return false;
  const auto runnable = runnableThreads({text.data(), static_cast<size_t>(size)});
  return runnable && *runnable <= ::sysconf(_SC_NPROCESSORS_ONLN);
}

}  // namespace hearth::ipc
