// SPDX-License-Identifier: Apache-2.0
// Runs what restricts a process in a child.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/format.h"

#if defined(__SANITIZE_THREAD__)
#define HEARTH_SKIP_SANDBOX()                                                                 \
  GTEST_SKIP() << "The thread sanitizer allows no threads in a child of a threaded process, " \
                  "and delays the signals by which threads are restricted."
#else
#define HEARTH_SKIP_SANDBOX() static_cast<void>(0)
#endif

namespace hearth::ipc {

// Whether the kernel filters system calls.
inline bool hasCallFilters() {
  return ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

// What became of a child.
struct ChildEnd {
  std::string text;  // what `run` returned
  int status;        // as waitpid() tells it
};

// Calls `run` in a forked child, which ends then.
inline ChildEnd inChild(const std::function<std::string()>& run) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  EXPECT_GE(child, 0);
  if (child == 0) {
    const std::string text = run();
    const bool isWritten =
        ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(isWritten ? 0 : 1);
  }
  ::close(ends[1]);
  const base::Descriptor pipe(ends[0]);
  ChildEnd end{"", -1};
  std::array<char, 4096> buffer;
  for (ssize_t count; (count = ::read(pipe.get(), buffer.data(), buffer.size())) > 0;)
    end.text.append(buffer.data(), static_cast<size_t>(count));
  EXPECT_EQ(::waitpid(child, &end.status, 0), child);
  return end;
}

// For a `run` that says with an empty text that all is well.
inline void expectWellInChild(const std::function<std::string()>& run) {
  const ChildEnd end = inChild(run);
  EXPECT_EQ(end.text, "");
  EXPECT_TRUE(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0) << end.status;
}

// Collects what is not as it should be.
class Findings {
 public:
  // `result` is what a call that has to succeed returned.
  void works(const char* what, int64_t result) {
    if (result < 0) text_ += base::formatText("{} fails: {}. ", what, std::strerror(errno));
  }
  // `result` is what a call that has to fail with `error` returned.
  void fails(const char* what, int64_t result, int error = EACCES) {
    if (result >= 0) {
      text_ += base::formatText("{} works. ", what);
    } else if (errno != error) {
      text_ += base::formatText("{} fails with {}. ", what, std::strerror(errno));
    }
  }
  void holds(const char* what, bool does) {
    if (!does) text_ += base::formatText("Not so: {}. ", what);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// A folder that is removed in the end.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hearth-sandbox-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~TestFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  // Of the folder, or of what is in it.
  std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }

 private:
  std::string path_;
};

}  // namespace hearth::ipc
