// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/kept_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/descriptor.h"

namespace hearth::drivers::delegate {
namespace {

// The bytes begin with this number and the number of files; each file with the sizes of its name
// and of its content, then both. Numbers are in the machine's order: another one has another key.
constexpr uint32_t kFormat = 0x31464b48;  // "HKF1"
constexpr size_t kMostName = 1024;

struct FileHead {
  uint64_t nameSize = 0;
  uint64_t size = 0;
};

void append(std::vector<uint8_t>* to, const void* data, size_t size) {
  const auto* const bytes = static_cast<const uint8_t*>(data);
  to->insert(to->end(), bytes, bytes + size);
}

// Takes numbers and pieces from the front of bytes.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : left_(bytes) {}

  template <typename T>
  bool number(T* value) {
    if (left_.size() < sizeof *value) return false;
    std::memcpy(value, left_.data(), sizeof *value);
    left_ = left_.subspan(sizeof *value);
    return true;
  }
  bool piece(uint64_t size, std::span<const uint8_t>* piece) {
    if (size > left_.size()) return false;
    *piece = left_.first(static_cast<size_t>(size));
    left_ = left_.subspan(static_cast<size_t>(size));
    return true;
  }
  bool isAtEnd() const { return left_.empty(); }

 private:
  std::span<const uint8_t> left_;
};

// Whether the name leads to a file inside the folder that it is relative to.
bool staysInside(std::string_view name) {
  if (name.empty() || name.size() > kMostName || name.contains('\0')) return false;
  while (true) {
    const size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

std::unexpected<Error> failed(const std::error_code& error, const std::string& path) {
  return std::unexpected(base::errnoError(error.value(), "Reading the delegate's cache " + path));
}

// The names of the files, sorted.
Result<std::vector<std::string>> namesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(folder, error);
  for (; !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error)) {
    const std::filesystem::file_status status = it->symlink_status(error);
    if (error) break;
    if (std::filesystem::is_directory(status)) continue;
    const std::string name = it->path().lexically_relative(folder).string();
    if (!std::filesystem::is_regular_file(status))
      return fail(ErrorCode::kUnsupported, "{} in the delegate's cache is neither file nor folder.",
                  name);
    if (names.size() >= kMostKeptFiles || !staysInside(name))
      return fail(ErrorCode::kUnsupported,
                  "The delegate's cache has more than {} files, or names of more than {} bytes.",
                  kMostKeptFiles, kMostName);
    names.push_back(name);
  }
  if (error) return failed(error, folder);
  std::ranges::sort(names);
  return names;
}

Status appendFile(const std::string& path, uint64_t most, std::vector<uint8_t>* to) {
  HEARTH_ASSIGN(const base::Descriptor file, base::Descriptor::open(path, O_RDONLY | O_NOFOLLOW));
  constexpr size_t kPiece = 256 << 10;
  while (true) {
    const size_t before = to->size();
    to->resize(before + kPiece);
    ssize_t count = ::read(file.get(), to->data() + before, kPiece);
    while (count < 0 && errno == EINTR) count = ::read(file.get(), to->data() + before, kPiece);
    if (count < 0) return std::unexpected(base::errnoError(errno, "Reading " + path));
    to->resize(before + static_cast<size_t>(count));
    if (count == 0) return {};
    if (to->size() > most)
      return fail(ErrorCode::kUnsupported, "The delegate's cache has more than {} bytes.", most);
  }
}

Status writeFile(const std::string& path, std::span<const uint8_t> bytes) {
  HEARTH_ASSIGN(const base::Descriptor file,
                base::Descriptor::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(base::errnoError(errno, "Writing " + path));
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

}  // namespace

Result<std::vector<uint8_t>> packFiles(const std::string& folder, uint64_t most) {
  HEARTH_ASSIGN(const std::vector<std::string> names, namesIn(folder));
  std::vector<uint8_t> packed;
  if (names.empty()) return packed;
  const auto count = static_cast<uint32_t>(names.size());
  append(&packed, &kFormat, sizeof kFormat);
  append(&packed, &count, sizeof count);
  for (const std::string& name : names) {
    FileHead head{.nameSize = name.size()};
    const size_t place = packed.size();
    append(&packed, &head, sizeof head);
    append(&packed, name.data(), name.size());
    const size_t begin = packed.size();
    HEARTH_TRY(appendFile(folder + '/' + name, most, &packed));
    head.size = packed.size() - begin;
    std::memcpy(packed.data() + place, &head, sizeof head);
  }
  return packed;
}

Result<std::vector<KeptFile>> readKeptFiles(std::span<const uint8_t> packed) {
  Reader reader(packed);
  uint32_t format = 0;
  uint32_t count = 0;
  if (!reader.number(&format) || !reader.number(&count) || format != kFormat)
    return fail(ErrorCode::kBadData, "These are no kept files.");
  if (count == 0 || count > kMostKeptFiles)
    return fail(ErrorCode::kBadData, "{} kept files are none, or more than {}.", count,
                kMostKeptFiles);
  std::vector<KeptFile> files;
  for (uint32_t i = 0; i < count; ++i) {
    FileHead head;
    std::span<const uint8_t> name;
    KeptFile file;
    if (!reader.number(&head) || !reader.piece(head.nameSize, &name) ||
        !reader.piece(head.size, &file.bytes))
      return fail(ErrorCode::kBadData, "Kept file {} ends behind the end.", i);
    file.name = {reinterpret_cast<const char*>(name.data()), name.size()};
    if (!staysInside(file.name) || (!files.empty() && file.name <= files.back().name))
      return fail(ErrorCode::kBadData, "The name of kept file {} is not valid here.", i);
    files.push_back(file);
  }
  if (!reader.isAtEnd()) return fail(ErrorCode::kBadData, "Bytes follow the last kept file.");
  return files;
}

Status unpackFiles(std::span<const uint8_t> packed, const std::string& folder) {
  HEARTH_ASSIGN(const std::vector<KeptFile> files, readKeptFiles(packed));
  for (const KeptFile& file : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / file.name;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) return failed(error, path.parent_path().string());
    HEARTH_TRY(writeFile(path.string(), file.bytes));
  }
  return {};
}

}  // namespace hearth::drivers::delegate
