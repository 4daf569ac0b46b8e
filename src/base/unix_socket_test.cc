// SPDX-License-Identifier: Apache-2.0
#include "base/unix_socket.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace hearth::base {
namespace {

class UnixSocketTest : public testing::Test {
 protected:
  UnixSocketTest() {
    std::string name = std::filesystem::temp_directory_path() / "hearth-socket-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) folder_ = name;
  }
  ~UnixSocketTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ / "a.sock"; }
  size_t files() const {
    const std::filesystem::directory_iterator all(folder_);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }
  static bool connects(const std::string& path, int type) {
    sockaddr_un address{};
    const auto size = socketAddress(path, &address);
    const Descriptor socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    return size && ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), *size) == 0;
  }

  std::filesystem::path folder_;
};

TEST_F(UnixSocketTest, ListensWhereNobodyElseDoes) {
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    {
      const auto first = listenAt(path(), {.type = type, .mode = 0600});
      ASSERT_TRUE(first) << first.error().toString();
      EXPECT_EQ(std::filesystem::status(path()).permissions(), std::filesystem::perms(0600));
      EXPECT_TRUE(connects(path(), type));
      const auto second = listenAt(path(), {.type = type});
      ASSERT_FALSE(second);
      EXPECT_EQ(second.error().code(), ErrorCode::kBadState);
      // One of the other type cannot be asked, and is somebody's.
      EXPECT_FALSE(listenAt(path(), {.type = type == SOCK_STREAM ? SOCK_SEQPACKET : SOCK_STREAM}));
      EXPECT_TRUE(connects(path(), type));
    }
    EXPECT_FALSE(connects(path(), type));
    const auto next = listenAt(path(), {.type = type});
    ASSERT_TRUE(next) << next.error().toString();
    EXPECT_TRUE(connects(path(), type));
    EXPECT_EQ(files(), 1u) << "Nothing is left beside the socket.";
    std::filesystem::remove(path());
  }
}

TEST_F(UnixSocketTest, OtherFilesAreNotReplaced) {
  std::ofstream(path()) << "text";
  const auto listening = listenAt(path(), {});
  ASSERT_FALSE(listening);
  EXPECT_EQ(listening.error().code(), ErrorCode::kBadData);
  EXPECT_EQ(std::filesystem::file_size(path()), 4u);
  EXPECT_EQ(files(), 1u);
  EXPECT_FALSE(listenAt(folder_ / "none" / "a.sock", {}));
  EXPECT_FALSE(listenAt(std::string(200, 'x'), {}));
  EXPECT_FALSE(listenAt("", {}));
}

// Whoever sees the path can connect, also while the socket of one that ended is replaced.
TEST_F(UnixSocketTest, AppearsWhenItListens) {
  for (int i = 0; i < 50; ++i) {
    std::atomic<bool> refused = false;
    std::jthread client([&] {
      while (!std::filesystem::exists(path())) std::this_thread::yield();
      refused = !connects(path(), SOCK_SEQPACKET);
    });
    const auto listening = listenAt(path(), {.type = SOCK_SEQPACKET});
    ASSERT_TRUE(listening) << listening.error().toString();
    client.join();
    EXPECT_FALSE(refused);
    std::filesystem::remove(path());
  }
}

TEST_F(UnixSocketTest, OneOfSeveralWins) {
  for (int i = 0; i < 50; ++i) {
    // Left by one that ended.
    ASSERT_TRUE(listenAt(path(), {.type = SOCK_SEQPACKET}));
    std::array<Descriptor, 4> listening;
    {
      std::vector<std::jthread> starting;
      for (Descriptor& each : listening)
        starting.emplace_back([&] {
          if (auto made = listenAt(path(), {.type = SOCK_SEQPACKET})) each = std::move(*made);
        });
    }
    const auto winners = std::ranges::count_if(listening, &Descriptor::valid);
    ASSERT_EQ(winners, 1);
    EXPECT_TRUE(connects(path(), SOCK_SEQPACKET));
    EXPECT_EQ(files(), 1u);
    std::filesystem::remove(path());
  }
}

}  // namespace
}  // namespace hearth::base
