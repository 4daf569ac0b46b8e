// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the weight store.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "cache/folder/weight_store.h"

namespace hearth::cache {

// A new folder, which the destructor removes.
class TempFolder {
 public:
  enum class Place {
    kDisk,
    kMemory,  // where syncing takes no time, if such a place exists
  };
  explicit TempFolder(Place place = Place::kDisk) {
    const std::filesystem::path memory = "/dev/shm";
    const bool isMemory = place == Place::kMemory && ::access(memory.c_str(), W_OK | X_OK) == 0;
    std::string pattern =
        (isMemory ? memory : std::filesystem::temp_directory_path()) / "hearth-store-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline SegmentKey segmentKey(uint64_t number) {
  return {base::Sha256::of({reinterpret_cast<const uint8_t*>(&number), sizeof number})};
}
inline PlanKey planKey(uint64_t number) {
  return {segmentKey(number + 1'000'000).bytes};
}

// Bytes that differ for each number and position.
inline std::vector<uint8_t> payload(uint64_t number, size_t size) {
  std::vector<uint8_t> bytes(size);
  uint64_t state = number * 0x9E3779B97F4A7C15u + 1;
  for (uint8_t& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<uint8_t>(state >> 56);
  }
  return bytes;
}

// Removes a folder that background threads may still be writing to.
inline void removeFolder(const std::filesystem::path& path) {
  std::error_code again;
  do {
    std::filesystem::remove_all(path, again);
  } while (again && std::filesystem::exists(path));
}

inline bool equal(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return std::ranges::equal(a, b);
}

inline std::vector<uint8_t> readFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Overwrites a file in place; an object is made writable first.
inline void writeFile(const std::filesystem::path& path, std::span<const uint8_t> bytes) {
  if (std::filesystem::is_regular_file(path))
    std::filesystem::permissions(path, std::filesystem::perms(0600));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// Runs `work` in a forked child, whose exit status is the result.
template <typename Work>
pid_t startChild(Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  return child;
}
inline int waitForChild(pid_t child) {
  int status = -1;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}
// Forks a process that exits with the result of `body`, or is killed after this many seconds, and
// returns how it ended.
inline int inChild(const std::function<int()>& body, unsigned seconds = 120) {
  const pid_t child = ::fork();
  EXPECT_GE(child, 0);
  if (child == 0) {
    ::alarm(seconds);
    ::_exit(body());
  }
  return waitForChild(child);
}
inline bool wasKilled(int status) {
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}
inline bool succeeded(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// A process that holds the lock of an SQLite file, as one that was stopped during a transaction.
class LockHolder {
 public:
  explicit LockHolder(const std::filesystem::path& file) {
    int ready[2];
    if (::pipe(ready) != 0) return;
    child_ = startChild([&] {
      const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
      struct flock lock{};
      lock.l_type = F_WRLCK;
      lock.l_whence = SEEK_SET;
      lock.l_start = 0x40000000;  // SQLite's lock bytes
      lock.l_len = 512;
      const char isHeld = fd >= 0 && ::fcntl(fd, F_SETLK, &lock) == 0 ? 1 : 0;
      if (::write(ready[1], &isHeld, 1) != 1) return 1;
      while (true) ::pause();
      return 0;
    });
    char isHeld = 0;
    EXPECT_TRUE(::read(ready[0], &isHeld, 1) == 1 && isHeld == 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~LockHolder() {
    ::kill(child_, SIGKILL);
    waitForChild(child_);
  }
  LockHolder(const LockHolder&) = delete;
  LockHolder& operator=(const LockHolder&) = delete;

 private:
  pid_t child_ = -1;
};

// A test with a store in a folder of its own, which can be opened and closed several times.
class StoreTest : public testing::Test {
 protected:
  explicit StoreTest(TempFolder::Place place = TempFolder::Place::kDisk) : folder_(place) {}
  StoreOptions options() const { return {.path = root().string(), .maxBytes = uint64_t{1} << 40}; }
  std::filesystem::path root() const { return folder_.path() / "store"; }
  std::filesystem::path segmentPath(const SegmentKey& key, bool durable = true) const {
    return root() / "segments" / StoreFolder::segmentPath(key, durable);
  }
  std::filesystem::path planPath(const PlanKey& key) const {
    return root() / "plans" / StoreFolder::planName(key);
  }
  static std::shared_ptr<WeightStore> open(const StoreOptions& options) {
    auto store = WeightStore::open(options);
    if (!store) {
      ADD_FAILURE() << store.error().message;
      return nullptr;
    }
    return *store;
  }
  std::shared_ptr<WeightStore> open() const { return open(options()); }

  TempFolder folder_;
};

}  // namespace hearth::cache
