// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/library_identity.h"

#include <link.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <cstring>

#include "base/wall_clock.h"

namespace hearth::drivers::delegate {
namespace {

void addText(base::Sha256* hash, const char* text) {
  hash->update(text, std::strlen(text) + 1);
}

int addObject(dl_phdr_info* object, size_t /*size*/, void* hash) {
  // The program itself has no name here.
  const bool isProgram = object->dlpi_name == nullptr || object->dlpi_name[0] == '\0';
  const char* const path = isProgram ? "/proc/self/exe" : object->dlpi_name;
  auto* const to = static_cast<base::Sha256*>(hash);
  addText(to, path);
  struct stat status;
  if (::stat(path, &status) != 0) return 0;  // the kernel's own object has no file
  const int64_t facts[] = {status.st_size, base::toNanoseconds(status.st_mtim)};
  to->update(facts, sizeof facts);
  return 0;
}

}  // namespace

base::Sha256Digest identityOfLoadedCode() {
  base::Sha256 hash;
  ::dl_iterate_phdr(addObject, &hash);
  utsname system;
  if (::uname(&system) == 0) {
    addText(&hash, system.release);
    addText(&hash, system.version);
  }
  return hash.finish();
}

}  // namespace hearth::drivers::delegate
