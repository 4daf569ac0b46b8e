// SPDX-License-Identifier: Apache-2.0
#include "ipc/landlock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "base/format.h"
#include "ipc/sandbox_test_util.h"

namespace hearth::ipc {
namespace {

int opened(const std::string& path, int flags) {
  return ::open(path.c_str(), flags | O_CLOEXEC, 0600);
}

// A folder of each kind, and one that no rule names.
class LandlockTest : public testing::Test {
 protected:
  void SetUp() override {
    HEARTH_SKIP_SANDBOX();
    if (Landlock::version() == 0) GTEST_SKIP() << "The kernel has no Landlock.";
    for (const TestFolder* const folder : {&writable_, &readable_, &other_}) {
      std::ofstream(folder->path("file")) << "text";
      ASSERT_EQ(::mkdir(folder->path("inner").c_str(), 0700), 0);
    }
  }

  // Imposes `rules` on a child before it calls `run`.
  void inside(const FileRules& rules, const std::function<void(Findings&)>& run) {
    expectWellInChild([&] {
      const Result<Landlock> landlock = Landlock::prepare(rules);
      if (!landlock) return landlock.error().toString();
      Findings findings;
      errno = Landlock::restrictThread(landlock->fd());
      findings.works("Landlock::restrictThread", errno == 0 ? 0 : -1);
      run(findings);
      return findings.text();
    });
  }
  FileRules rules() const {
    return {.readWrite = {writable_.path()}, .readOnly = {readable_.path()}};
  }

  const TestFolder writable_;
  const TestFolder readable_;
  const TestFolder other_;
};

TEST_F(LandlockTest, AWritableFolderServesAStore) {
  inside(rules(), [&](Findings& findings) {
    const auto path = [&](const char* name) {
      return writable_.path(name);
    };
    const int made = opened(path("new"), O_RDWR | O_CREAT | O_EXCL);
    findings.works("making a file", made);
    findings.works("writing", ::pwrite(made, "abc", 3, 0));
    findings.works("fsync", ::fsync(made));
    findings.works("renaming", ::rename(path("new").c_str(), path("file").c_str()));
    findings.works("mkdir", ::mkdir(path("deep").c_str(), 0700));
    if (Landlock::version() >= 2)
      findings.works("moving", ::rename(path("file").c_str(), path("deep/file").c_str()));
    const int nameless = opened(path("deep"), O_RDWR | O_TMPFILE);
    findings.works("making a file without name", nameless);
    const std::string link = base::formatText("/proc/self/fd/{}", nameless);
    findings.works("naming it", ::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, path("named").c_str(),
                                         AT_SYMLINK_FOLLOW));
    findings.works("emptying", opened(path("named"), O_WRONLY | O_TRUNC));
    findings.works("ftruncate", ::ftruncate(nameless, 100));
    findings.works("listing", opened(path("deep"), O_RDONLY | O_DIRECTORY));
    findings.works("unlink", ::unlink(path("named").c_str()));
    findings.works("rmdir", ::rmdir(path("inner").c_str()));
    struct flock lock{.l_type = F_WRLCK, .l_whence = SEEK_SET};
    findings.works("an OFD lock", ::fcntl(made, F_OFD_SETLK, &lock));
  });
}

TEST_F(LandlockTest, AReadableFolderIsNotChanged) {
  inside(rules(), [&](Findings& findings) {
    const auto path = [&](const char* name) {
      return readable_.path(name);
    };
    findings.works("reading", opened(path("file"), O_RDONLY));
    findings.works("listing", opened(path(""), O_RDONLY | O_DIRECTORY));
    findings.fails("opening to write", opened(path("file"), O_WRONLY));
    findings.fails("making a file", opened(path("new"), O_WRONLY | O_CREAT));
    findings.fails("unlink", ::unlink(path("file").c_str()));
    findings.fails("rmdir", ::rmdir(path("inner").c_str()));
    findings.fails("mkdir", ::mkdir(path("deep").c_str(), 0700));
    findings.fails("renaming", ::rename(path("file").c_str(), path("new").c_str()));
    if (Landlock::version() >= 3) {
      findings.fails("emptying", opened(path("file"), O_RDONLY | O_TRUNC));
      findings.fails("truncate", ::truncate(path("file").c_str(), 0));
    }
    const int moved = ::rename(path("file").c_str(), writable_.path("moved").c_str());
    findings.fails("moving a file out", moved, errno == EXDEV ? EXDEV : EACCES);
    const int linked = ::link(path("file").c_str(), writable_.path("linked").c_str());
    findings.fails("linking a file", linked, errno == EXDEV ? EXDEV : EACCES);
  });
}

TEST_F(LandlockTest, NothingElseIsOpened) {
  inside(rules(), [&](Findings& findings) {
    const auto path = [&](const char* name) {
      return other_.path(name);
    };
    findings.fails("reading", opened(path("file"), O_RDONLY));
    findings.fails("writing", opened(path("file"), O_WRONLY));
    findings.fails("making a file", opened(path("new"), O_WRONLY | O_CREAT));
    findings.fails("unlink", ::unlink(path("file").c_str()));
    findings.fails("listing", opened(path(""), O_RDONLY | O_DIRECTORY));
    findings.fails("/etc/passwd", opened("/etc/passwd", O_RDONLY));
    findings.fails("/dev/null", opened("/dev/null", O_RDWR));
    const std::string name = std::filesystem::path(path("")).filename().string();
    const std::string around = writable_.path("inner/../../" + name + "/file");
    findings.fails("another way to it", opened(around, O_RDONLY));
    findings.fails("executing", ::execl("/bin/false", "false", nullptr));
  });
}

TEST_F(LandlockTest, NoOtherKindOfFileIsMade) {
  inside(rules(), [&](Findings& findings) {
    const std::string path = writable_.path("special");
    findings.fails("symlink", ::symlink("/etc/passwd", path.c_str()));
    findings.fails("mkfifo", ::mkfifo(path.c_str(), 0600));
    sockaddr_un address{.sun_family = AF_UNIX};
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    findings.fails("bind", ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address));
  });
}

TEST_F(LandlockTest, WhatIsOpenStaysSo) {
  const base::Descriptor file = base::Descriptor::open(other_.path("file"), O_RDWR).value();
  const base::Descriptor memory(::memfd_create("landlock-test", MFD_CLOEXEC));
  inside(rules(), [&](Findings& findings) {
    findings.works("writing", ::pwrite(file.get(), "x", 1, 0));
    findings.works("ftruncate", ::ftruncate(file.get(), 2));
    const std::string again = base::formatText("/proc/self/fd/{}", file.get());
    findings.fails("opening it again", opened(again, O_RDONLY));
    // As constants of a model are, to be passed on read-only.
    const std::string memoryAgain = base::formatText("/proc/self/fd/{}", memory.get());
    findings.works("opening memory again", opened(memoryAgain, O_RDONLY));
    findings.works("new memory", ::memfd_create("landlock-test", MFD_CLOEXEC));
  });
}

TEST_F(LandlockTest, RulesNameFilesToo) {
  const FileRules rules{.readWrite = {writable_.path("file")},
                        .readOnly = {readable_.path("file")},
                        .devices = {"/dev/zero"}};
  inside(rules, [&](Findings& findings) {
    findings.works("writing", opened(writable_.path("file"), O_RDWR | O_TRUNC));
    findings.fails("unlink", ::unlink(writable_.path("file").c_str()));
    findings.fails("its neighbour", opened(writable_.path("inner"), O_RDONLY));
    findings.works("reading", opened(readable_.path("file"), O_RDONLY));
    findings.fails("writing what is read-only", opened(readable_.path("file"), O_RDWR));
    findings.works("a device", opened("/dev/zero", O_RDWR));
    findings.fails("another device", opened("/dev/null", O_RDWR));
  });
}

TEST_F(LandlockTest, ForbidsNewPrivileges) {
  inside({}, [&](Findings& findings) {
    findings.holds("PR_GET_NO_NEW_PRIVS is 1", ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    findings.fails("reading", opened(readable_.path("file"), O_RDONLY));
  });
}

TEST_F(LandlockTest, APathThatDoesNotExistIsNamed) {
  for (const bool isWritable : {false, true}) {
    FileRules rules;
    (isWritable ? rules.readWrite : rules.readOnly).push_back(other_.path("missing"));
    const Result<Landlock> landlock = Landlock::prepare(rules);
    ASSERT_FALSE(landlock);
    EXPECT_EQ(landlock.error().code(), ErrorCode::kNotFound);
    EXPECT_NE(landlock.error().message().find(other_.path("missing")), std::string::npos);
  }
}

}  // namespace
}  // namespace hearth::ipc
