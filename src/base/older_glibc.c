/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that glibc has had since 2.35 and 2.36, for libraries that have to run with 2.34: the
   archives of the C++ library and of GCC's unwinder call them. Each library gets a copy of its own,
   which others do not see (cmake/SelfContained.cmake). */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

/* As in the C++ library's std::random_device. Where the kernel gives no random numbers, nothing
   that would be built on them is safe. */
uint32_t arc4random(void) {
  uint32_t number = 0;
  size_t have = 0;
  while (have < sizeof number) {
    const ssize_t got = getrandom((char*)&number + have, sizeof number - have, 0);
    if (got < 0 && errno != EINTR) abort();
    if (got > 0) have += (size_t)got;
  }
  return number;
}

struct Search {
  uintptr_t address;
  struct dl_find_object* found;
};

static int examine(struct dl_phdr_info* object, size_t size, void* opaque) {
  (void)size;
  const struct Search* const search = opaque;
  const ElfW(Phdr)* frames = NULL;
  const ElfW(Phdr)* segment = NULL;
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (ElfW(Half) i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const header = &object->dlpi_phdr[i];
    const uintptr_t first = object->dlpi_addr + header->p_vaddr;
    const uintptr_t last = first + header->p_memsz;
    if (header->p_type == PT_GNU_EH_FRAME) frames = header;
    if (header->p_type != PT_LOAD) continue;
    if (first < begin) begin = first;
    if (last > end) end = last;
    if (search->address >= first && search->address < last) segment = header;
  }
  if (segment == NULL) return 0;
  /* The object is this one, whether or not it has tables. */
  if (frames == NULL) return -1;
  search->found->dlfo_flags = 0;
  search->found->dlfo_map_start = (void*)begin;
  search->found->dlfo_map_end = (void*)end;
  search->found->dlfo_link_map = NULL; /* not read by the unwinder */
#if DLFO_STRUCT_HAS_EH_DBASE
  search->found->dlfo_eh_dbase = NULL; /* of 32-bit x86 only */
#endif
  search->found->dlfo_eh_frame = (void*)(object->dlpi_addr + frames->p_vaddr);
  return 1;
}

/* Where the object that holds an address has its tables for unwinding; -1 if there are none. */
int _dl_find_object(void* address, struct dl_find_object* result) {
  struct Search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(examine, &search) == 1 ? 0 : -1;
}
