// SPDX-License-Identifier: Apache-2.0
#include "ipc/user_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "ipc/host.h"
#include "ipc/host_process.h"

namespace hearth::ipc {
namespace {

using testing::HasSubstr;

class UserHostTest : public testing::Test {
 protected:
  UserHostTest() {
    std::filesystem::remove_all(runtime_);
    std::filesystem::create_directories(runtime_);
    ::chmod(runtime_.c_str(), 0700);
    ::setenv("XDG_RUNTIME_DIR", runtime_.c_str(), 1);
  }
  ~UserHostTest() override {
    ::unsetenv("XDG_RUNTIME_DIR");
    std::filesystem::remove_all(runtime_);
  }

  const std::filesystem::path runtime_ =
      std::filesystem::path(testing::TempDir()) / ("hearth-user-" + std::to_string(::getpid()));
  const std::filesystem::path own_ = runtime_ / "hearth";
};

TEST_F(UserHostTest, HostsListenInAFolderThatOnlyTheUserMayEnter) {
  for (int i = 0; i < 2; ++i) {
    const auto folder = userHostFolder();
    ASSERT_TRUE(folder) << folder.error().toString();
    EXPECT_EQ(*folder, own_.string());
    struct stat status{};
    ASSERT_EQ(::stat(own_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
  }
}

TEST_F(UserHostTest, FoldersThatOthersMayUseAreRefused) {
  ASSERT_TRUE(userHostFolder());
  for (const auto& folder : {runtime_, own_})
    for (const mode_t mode : {0710, 0701, 0720, 0777}) {
      ASSERT_EQ(::chmod(folder.c_str(), mode), 0);
      const auto refused = userHostFolder();
      ASSERT_FALSE(refused) << folder << " " << mode;
      EXPECT_EQ(refused.error().code(), ErrorCode::kBadData);
      EXPECT_THAT(refused.error().message(), HasSubstr("Others may use"));
      ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
    }
  // A folder of another user, where this one may give it away.
  if (::chown(own_.c_str(), 12345, static_cast<gid_t>(-1)) == 0) {
    const auto refused = userHostFolder();
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("belongs to the user 12345"));
  }
}

TEST_F(UserHostTest, WithoutAFolderThereIsNone) {
  std::filesystem::remove_all(own_);
  std::ofstream(own_) << "no folder";
  EXPECT_FALSE(userHostFolder());
  for (const char* const value : {"", "relative", "/nowhere/at/all"}) {
    ::setenv("XDG_RUNTIME_DIR", value, 1);
    const auto folder = userHostFolder();
    ASSERT_FALSE(folder) << value;
    EXPECT_EQ(folder.error().code(), ErrorCode::kNotFound);
  }
}

TEST_F(UserHostTest, WhateverMakesAnotherHostHasAnotherSocket) {
  const std::filesystem::path manifest = runtime_ / "driver.json";
  std::ofstream(manifest) << "{}";
  const HostProgram program{"/bin/true", {"--device", "npu"}, {"VK_A=1"}, {manifest.string()}};
  std::set<std::string> sockets;
  const auto isNew = [&](const std::string& device, const HostProgram& of) {
    const std::string socket = userHostSocket("/run/user/7/hearth", device, of);
    EXPECT_THAT(socket, testing::MatchesRegex("/run/user/7/hearth/[a-z0-9-]+\\.sock"));
    EXPECT_LT(socket.size(), 100u);
    return sockets.insert(socket).second;
  };
  EXPECT_TRUE(isNew("npu", program));
  EXPECT_FALSE(isNew("npu", program));
  EXPECT_TRUE(isNew("npu-2", program));
  EXPECT_TRUE(isNew("npu/../" + std::string(200, 'x'), program));
  HostProgram other = program;
  other.program = "/bin/false";
  EXPECT_TRUE(isNew("npu", other));
  other = program;
  other.arguments = {"--device npu"};
  EXPECT_TRUE(isNew("npu", other));
  other = program;
  other.variables = {"VK_A=2"};
  EXPECT_TRUE(isNew("npu", other));
  // What the host does is another thing, too, with another value of one of Hearth's variables, but
  // not of those that are about this program.
  ::setenv("HEARTH_VULKAN_DEVICE", "one", 1);
  EXPECT_TRUE(isNew("npu", program));
  ::unsetenv("HEARTH_VULKAN_DEVICE");
  for (const char* const name : {"HEARTH_REPORT", "HEARTH_DRIVER_PATH", "HEARTH_DRIVER_HOSTS",
                                 "NOTIFY_SOCKET", "XDG_RUNTIME_DIR"}) {
    ::setenv(name, "/x", 1);
    EXPECT_FALSE(isNew("npu", program)) << name;
    ::unsetenv(name);
  }
  std::ofstream(manifest) << "{\"name\": \"npu\"}";
  EXPECT_TRUE(isNew("npu", program));
}

TEST_F(UserHostTest, AProgramThatCannotBeStartedIsAnError) {
  const std::string socket = *userHostFolder() + "/npu.sock";
  const auto missing = joinUserHost(socket, {"/nowhere/hearth", {}, {}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  // Nobody listens at what is left.
  EXPECT_FALSE(joinHost(socket));
  const std::string longPath = *userHostFolder() + "/" + std::string(100, 'x');
  EXPECT_FALSE(joinUserHost(longPath, {"/bin/true", {}, {}}));
}

TEST_F(UserHostTest, AHostThatIsForgottenIsReplaced) {
  const std::string socket = *userHostFolder() + "/npu.sock";
  const auto first = listenAt(socket);
  ASSERT_TRUE(first) << first.error().toString();
  EXPECT_TRUE(joinHost(socket));
  EXPECT_FALSE(listenAt(socket));
  forgetUserHost(socket);
  EXPECT_FALSE(joinHost(socket));
  EXPECT_TRUE(listenAt(socket));
}

}  // namespace
}  // namespace hearth::ipc
