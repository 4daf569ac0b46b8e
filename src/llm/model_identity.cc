// SPDX-License-Identifier: Apache-2.0
#include "llm/model_identity.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#if defined(__x86_64__)
#include <sys/platform/x86.h>
#endif

#include <cerrno>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "hearth/hearth.hpp"

namespace hearth::llm {
namespace {

// The parts of a loaded library or program that matter here.
class LoadedModule {
 public:
  explicit LoadedModule(const dl_phdr_info& info) : info_(info) {}

  bool contains(uintptr_t address) const {
    for (size_t i = 0; i < info_.dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info_.dlpi_phdr[i];
      if (header.p_type == PT_LOAD && address - info_.dlpi_addr - header.p_vaddr < header.p_memsz)
        return true;
    }
    return false;
  }
  bool isNamed(std::string_view beginning) const {
    const std::string_view path = info_.dlpi_name;
    return path.substr(path.rfind('/') + 1).starts_with(beginning);
  }
  // What the linker wrote into its notes, with the build identifier among them.
  std::string notes() const {
    std::string notes;
    for (size_t i = 0; i < info_.dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info_.dlpi_phdr[i];
      if (header.p_type == PT_NOTE)
        notes.append(reinterpret_cast<const char*>(info_.dlpi_addr + header.p_vaddr),
                     header.p_memsz);
    }
    return notes;
  }

 private:
  const dl_phdr_info& info_;
};

int addModule(dl_phdr_info* info, size_t /*size*/, void* data) {
  const LoadedModule module(*info);
  // The library's code, wherever it is linked to, and the libraries of kernels beside it. Not the
  // front: the keys of prefixes have all that it gives a model, so the command and Python's module
  // find what the other has kept.
  if (module.contains(reinterpret_cast<uintptr_t>(&hearth_version)) ||
      (module.isNamed("libhearth") && !module.isNamed("libhearth_llm")))
    static_cast<std::set<std::string>*>(data)->insert(module.notes());
  return 0;
}

void addProcessor(base::Sha256* hash) {
  for (const unsigned long kind : {AT_HWCAP, AT_HWCAP2}) {
    const unsigned long bits = getauxval(kind);
    hash->update(&bits, sizeof bits);
  }
#if defined(__x86_64__)
  // The registers as the dynamic linker has read them: CPUID is slow in virtual machines.
  for (const unsigned index : {CPUID_INDEX_1, CPUID_INDEX_7, CPUID_INDEX_80000001,
                               CPUID_INDEX_7_ECX_1, CPUID_INDEX_19, CPUID_INDEX_24_ECX_0}) {
    cpuid_feature leaf = *__x86_get_cpuid_feature_leaf(index);
    // EBX has the number of the processor that the dynamic linker happened to run on.
    if (index == CPUID_INDEX_1)
      leaf.cpuid_array[cpuid_register_index_ebx] = leaf.active_array[cpuid_register_index_ebx] = 0;
    hash->update(leaf.cpuid_array, sizeof leaf.cpuid_array);
    hash->update(leaf.active_array, sizeof leaf.active_array);
  }
  // Features may have been hidden from this process after that.
  const bool features[] = {
      __builtin_cpu_supports("avx2") != 0,    __builtin_cpu_supports("fma") != 0,
      __builtin_cpu_supports("avx512f") != 0, __builtin_cpu_supports("avx512bw") != 0,
      __builtin_cpu_supports("avxvnni") != 0, __builtin_cpu_supports("avx512vnni") != 0,
  };
  hash->update(features, sizeof features);
#endif
}

}  // namespace

Result<ModelIdentity> ModelIdentity::of(const std::string& path) {
  HEARTH_ASSIGN(base::Descriptor file, base::Descriptor::open(path, O_RDONLY | O_NONBLOCK));
  HEARTH_ASSIGN(const uint64_t size, file.size());
  cache::ContentSource content = cache::ContentSource::of(file.get(), 0, size);
  return ModelIdentity(path, std::move(file), std::move(content));
}

Status ModelIdentity::check() const {
  struct stat now;
  struct stat then;
  if (::stat(path_.c_str(), &now) != 0 || ::fstat(file_.get(), &then) != 0)
    return std::unexpected(base::errnoError(errno, base::formatText("stat of {}", path_)));
  if (now.st_dev != then.st_dev || now.st_ino != then.st_ino || !content_.isUnchanged())
    return fail(ErrorCode::kBadState, "The file {} changed while the model was loaded.", path_);
  return {};
}

Result<base::Sha256Digest> ModelIdentity::content(const cache::PrefixStore& store) const {
  HEARTH_ASSIGN(const base::Sha256Digest content, store.contentHash(content_));
  HEARTH_TRY(check());
  return content;
}

Result<base::Sha256Digest> ModelIdentity::digest(const cache::PrefixStore& store) const {
  HEARTH_ASSIGN(const base::Sha256Digest content, this->content(store));
  base::Sha256 hash;
  hash.update(content);
  std::set<std::string> modules;
  ::dl_iterate_phdr(addModule, &modules);
  for (const std::string& notes : modules) hash.update(notes.c_str(), notes.size() + 1);
  addProcessor(&hash);
  return hash.finish();
}

}  // namespace hearth::llm
