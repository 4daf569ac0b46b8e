// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/mapped_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/descriptor.h"
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
  if (!line.starts_with('/') || line.ends_with(" (deleted)")) return std::nullopt;
  mapping.path = line;
  return mapping;
}

}  // namespace

std::vector<FileMapping> parseMappings(std::string_view text) {
  std::vector<FileMapping> mappings;
  while (!text.empty())
    if (auto mapping = parseMapping(takeWord(&text, '\n'))) mappings.push_back(std::move(*mapping));
  return mappings;
}

void MappedFiles::readMappings() {
  mappings_ = parseMappings(readText(kMaps));
  std::ranges::sort(mappings_, {}, &FileMapping::begin);
  isRead_ = true;
}

const FileMapping* MappedFiles::mappingOf(const void* data, size_t size) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  auto found = std::ranges::upper_bound(mappings_, address, {}, &FileMapping::begin);
  if (found == mappings_.begin()) return nullptr;
  --found;
  const bool isInside = address < found->end && size <= found->end - address;
  return isInside ? &*found : nullptr;
}

memory::PoolRef MappedFiles::poolOf(const FileMapping& mapping) {
  for (const File& file : files_)
    if (file.device == mapping.device && file.inode == mapping.inode) return file.pool;
  File file{mapping.device, mapping.inode, nullptr};
  auto pool = memory::Pool::openFile(mapping.path);
  if (pool) {
    // Whether the path still leads to the file that is mapped: a mapping of our own then shows the
    // same device and inode in the same list, whatever the file system reports elsewhere.
    const std::string text = readText(kMaps);
    for (const FileMapping& own : parseMappings(text)) {
      const auto address = reinterpret_cast<uintptr_t>((*pool)->data());
      if (address < own.begin || address >= own.end) continue;
      if (own.device == file.device && own.inode == file.inode) file.pool = std::move(*pool);
      break;
    }
  }
  if (file.pool != nullptr)
    paths_.push_back(mapping.path);
  else
    base::logInfo(
        "The mapped file {} is copied: it cannot be opened, or its path leads to another file.",
        mapping.path);
  files_.push_back(std::move(file));
  return files_.back().pool;
}

std::optional<ConstantPlace> MappedFiles::find(const void* data, size_t size) {
  if (!isRead_) readMappings();
  const FileMapping* const mapping = mappingOf(data, size);
  if (mapping == nullptr) return std::nullopt;
  const uint64_t offset = mapping->offset + (reinterpret_cast<uintptr_t>(data) - mapping->begin);
  const memory::PoolRef pool = poolOf(*mapping);
  if (pool == nullptr || !pool->contains(offset, size)) return std::nullopt;
  return ConstantPlace{pool, offset, size};
}

}  // namespace hearth::delegate
