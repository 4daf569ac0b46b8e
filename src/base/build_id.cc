// SPDX-License-Identifier: Apache-2.0
#include "base/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstring>

namespace hearth::base {
namespace {

struct BuildNote {
  uintptr_t address = 0;
  std::span<const uint8_t> id;
};

int findBuildNote(dl_phdr_info* info, size_t, void* data) {
  auto* wanted = static_cast<BuildNote*>(data);
  bool isOurs = false;
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && wanted->address >= begin &&
        wanted->address - begin < header.p_memsz)
      isOurs = true;
  }
  if (!isOurs) return 0;
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const uint8_t*>(info->dlpi_addr + header.p_vaddr);
    size_t left = header.p_memsz;
    ElfW(Nhdr) note;
    while (left >= sizeof note) {
      std::memcpy(&note, at, sizeof note);
      const size_t name = (size_t{note.n_namesz} + 3) / 4 * 4;
      const size_t size = sizeof note + name + (size_t{note.n_descsz} + 3) / 4 * 4;
      if (size > left) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(at + sizeof note, "GNU", 4) == 0)
        wanted->id = {at + sizeof note + name, note.n_descsz};
      at += size;
      left -= size;
    }
  }
  return 1;
}

}  // namespace

std::span<const uint8_t> buildIdOf(const void* code) {
  BuildNote note;
  note.address = reinterpret_cast<uintptr_t>(code);
  ::dl_iterate_phdr(findBuildNote, &note);
  return note.id;
}

}  // namespace hearth::base
