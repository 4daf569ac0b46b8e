// SPDX-License-Identifier: Apache-2.0
#include "cache/object/boot_id.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/immortal.h"

namespace hearth::cache {

BootId parseBootId(std::string_view text) {
  BootId id{};
  size_t digits = 0;
  for (const char character : text) {
    int value = 0;
    if (character >= '0' && character <= '9')
      value = character - '0';
    else if (character >= 'a' && character <= 'f')
      value = character - 'a' + 10;
    else if (character == '-')
      continue;
    else
      break;
    if (digits == 2 * id.size()) return {};
    id[digits / 2] = static_cast<uint8_t>(id[digits / 2] << 4 | value);
    ++digits;
  }
  return digits == 2 * id.size() ? id : BootId{};
}

const BootId& currentBootId() {
  static constinit base::Immortal<BootId> id;
  return id.get([] {
    const auto file = base::Descriptor::open("/proc/sys/kernel/random/boot_id", O_RDONLY);
    char text[40];
    const ssize_t size = file ? ::read(file->get(), text, sizeof text) : -1;
    return size > 0 ? parseBootId({text, static_cast<size_t>(size)}) : BootId{};
  });
}

}  // namespace hearth::cache
