// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/mapped_files.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <utility>

#include "base/format.h"
#include "base/log.h"

namespace hearth::delegate {
namespace {

constexpr char kMaps[] = "/proc/self/maps";

// Removes the word that ends before `end` from the text and returns it.
std::string_view takeWord(std::string_view* text, char end) {
  const size_t length = std::min(text->find(end), text->size());
  const std::string_view word = text->substr(0, length);
  text->remove_prefix(std::min(length + 1, text->size()));
  return word;
}

bool readNumber(std::string_view word, int base, uint64_t* value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *value, base);
  return error == std::errc() && end == word.data() + word.size();
}

// The text of a file of /proc, whose size is unknown before it is read; empty when it cannot be
// read.
std::string readText(const char* path) {
  std::string text;
  auto file = base::Descriptor::open(path, O_RDONLY);
  if (!file) return text;
  std::array<char, 16384> block;
  while (true) {
    const ssize_t count = ::read(file->get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(block.data(), static_cast<size_t>(count));
  }
}

// Whether this is the path of a file that has not been removed.
bool isPath(std::string_view name) {
  return name.starts_with('/') && !name.ends_with(" (deleted)");
}

std::optional<FileMapping> parseMapping(std::string_view line) {
  FileMapping mapping;
  uint64_t begin = 0;
  uint64_t end = 0;
  if (!readNumber(takeWord(&line, '-'), 16, &begin) || !readNumber(takeWord(&line, ' '), 16, &end))
    return std::nullopt;
  mapping.begin = begin;
  mapping.end = end;
  const std::string_view rights = takeWord(&line, ' ');
  // The bytes of a mapping that can be written may differ from those of the file.
  if (rights.size() != 4 || rights[0] != 'r' || rights[1] != '-') return std::nullopt;
  if (!readNumber(takeWord(&line, ' '), 16, &mapping.offset)) return std::nullopt;
  mapping.device = takeWord(&line, ' ');
  if (!readNumber(takeWord(&line, ' '), 10, &mapping.inode) || mapping.inode == 0)
    return std::nullopt;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (!isPath(line)) return std::nullopt;
  mapping.path = line;
  return mapping;
}

// Asks the kernel for the mapping at an address, which takes a microsecond where the list of all
// takes a tenth of a millisecond; a mapping of what parseMappings() leaves out gets no path. False
// where the kernel does not answer. `maps` keeps the file that is asked.
bool askKernel([[maybe_unused]] base::Descriptor* maps, [[maybe_unused]] uintptr_t address,
               [[maybe_unused]] std::optional<FileMapping>* mapping) {
#ifdef PROCMAP_QUERY
  if (!maps->valid()) {
    auto file = base::Descriptor::open(kMaps, O_RDONLY);
    if (!file) return false;
    *maps = std::move(*file);
  }
  std::array<char, PATH_MAX> name{};
  procmap_query query{};
  query.size = sizeof(query);
  query.query_addr = address;
  query.vma_name_addr = reinterpret_cast<uintptr_t>(name.data());
  query.vma_name_size = name.size();
  if (::ioctl(maps->get(), PROCMAP_QUERY, &query) != 0) return errno == ENOENT;
  mapping->emplace();
  (*mapping)->begin = query.vma_start;
  (*mapping)->end = query.vma_end;
  constexpr uint64_t kRights = PROCMAP_QUERY_VMA_READABLE | PROCMAP_QUERY_VMA_WRITABLE;
  const bool isReadOnly = (query.vma_flags & kRights) == PROCMAP_QUERY_VMA_READABLE;
  name.back() = 0;
  if (!isReadOnly || query.inode == 0 || query.vma_name_size == 0 || !isPath(name.data()))
    return true;
  (*mapping)->offset = query.vma_offset;
  (*mapping)->device = base::formatText("{:02x}:{:02x}", query.dev_major, query.dev_minor);
  (*mapping)->inode = query.inode;
  (*mapping)->path = name.data();
  return true;
#else
  return false;
#endif
}

}  // namespace

std::vector<FileMapping> parseMappings(std::string_view text) {
  std::vector<FileMapping> mappings;
  while (!text.empty())
    if (auto mapping = parseMapping(takeWord(&text, '\n'))) mappings.push_back(std::move(*mapping));
  return mappings;
}

std::optional<FileMapping> MappedFiles::lookUp(uintptr_t address) {
  if (asksKernel_) {
    std::optional<FileMapping> mapping;
    if (askKernel(&maps_, address, &mapping)) return mapping;
    asksKernel_ = false;
  }
  mappings_ = parseMappings(readText(kMaps));
  const FileMapping* const found = known(address);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

const FileMapping* MappedFiles::known(uintptr_t address) const {
  const auto found = std::ranges::find_if(mappings_, [address](const FileMapping& mapping) {
    return mapping.begin <= address && address < mapping.end;
  });
  return found == mappings_.end() ? nullptr : &*found;
}

const FileMapping* MappedFiles::mappingOf(const void* data, size_t size) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  const FileMapping* mapping = known(address);
  // The list, once read, has all.
  if (mapping == nullptr && (asksKernel_ || mappings_.empty())) {
    std::optional<FileMapping> found = lookUp(address);
    if (found && asksKernel_) mappings_.push_back(std::move(*found));
    mapping = known(address);
  }
  const bool isFile = mapping != nullptr && !mapping->path.empty();
  return isFile && size <= mapping->end - address ? mapping : nullptr;
}

memory::PoolRef MappedFiles::poolOf(FileMapping mapping) {
  for (const File& file : files_)
    if (file.device == mapping.device && file.inode == mapping.inode) return file.pool;
  File file{mapping.device, mapping.inode, nullptr};
  auto pool = memory::Pool::openFile(mapping.path);
  if (pool) {
    // Whether the path still leads to the file that is mapped: a mapping of our own then shows the
    // same device and inode in the same place, whatever the file system reports elsewhere.
    const auto own = lookUp(reinterpret_cast<uintptr_t>((*pool)->data()));
    if (own && own->device == file.device && own->inode == file.inode) file.pool = std::move(*pool);
  }
  if (file.pool == nullptr)
    base::logInfo(
        "The mapped file {} is copied: it cannot be opened, or its path leads to another file.",
        mapping.path);
  else
    paths_.push_back(std::move(mapping.path));
  files_.push_back(std::move(file));
  return files_.back().pool;
}

std::optional<ConstantPlace> MappedFiles::find(const void* data, size_t size) {
  const FileMapping* const mapping = mappingOf(data, size);
  if (mapping == nullptr) return std::nullopt;
  const uint64_t offset = mapping->offset + (reinterpret_cast<uintptr_t>(data) - mapping->begin);
  const memory::PoolRef pool = poolOf(*mapping);
  if (pool == nullptr || !pool->contains(offset, size)) return std::nullopt;
  return ConstantPlace{pool, offset, size};
}

const memory::Pool* MappedFiles::fileAt(const void* data) const {
  const FileMapping* const mapping = known(reinterpret_cast<uintptr_t>(data));
  if (mapping == nullptr || mapping->path.empty()) return nullptr;
  const auto file = std::ranges::find_if(files_, [&](const File& known) {
    return known.device == mapping->device && known.inode == mapping->inode;
  });
  return file == files_.end() ? nullptr : file->pool.get();
}

}  // namespace hearth::delegate
