// SPDX-License-Identifier: Apache-2.0
#include "base/trace.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace hearth::base {
namespace {

using nlohmann::json;

// What a process does that begins with this variable.
void traceByVariable(const std::string& file) {
  setenv("HEARTH_TRACE", file.c_str(), 1);
  internal::traceState = -1;
}

class TraceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "trace_test_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    setTraceFile("");
    std::filesystem::remove_all(folder_);
  }
  std::string path(const char* name) const { return folder_ + "/" + name; }

  static std::string textOf(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Throws, which fails the test, if the file is not valid JSON.
  static json eventsOf(const std::string& path) { return json::parse(textOf(path)); }

  static size_t count(const json& events, const std::string& name) {
    size_t found = 0;
    for (const json& event : events) found += event["name"] == name;
    return found;
  }

  // Runs `body` in a forked child and returns its wait status.
  template <typename Body>
  static int inChild(Body body) {
    const pid_t child = fork();
    if (child == 0) {
      body();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }

  std::string folder_;
};

TEST_F(TraceTest, ASpanIsACompleteEvent) {
  ASSERT_TRUE(setTraceFile(path("a.json")));
  {
    TraceSpan span("test", "a \"quoted\"\n\\name");
  }
  traceCounter("test", "bytes", -5);
  setTraceFile("");
  const json events = eventsOf(path("a.json"));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["ph"], "M");
  EXPECT_EQ(events[1]["name"], "a \"quoted\"\n\\name");
  EXPECT_EQ(events[1]["cat"], "test");
  EXPECT_EQ(events[1]["ph"], "X");
  EXPECT_EQ(events[1]["pid"], getpid());
  EXPECT_GE(events[1]["dur"].get<double>(), 0);
  EXPECT_GT(events[1]["ts"].get<double>(), 0);
  EXPECT_EQ(events[2]["args"]["value"], -5);
}

TEST_F(TraceTest, NothingIsWrittenWhenOff) {
  setTraceFile("");
  EXPECT_FALSE(traceEnabled());
  {
    TraceSpan span("test", "unseen");
  }
  ASSERT_TRUE(setTraceFile(path("b.json")));
  setTraceFile("");
  EXPECT_EQ(eventsOf(path("b.json")).size(), 1u);
}

TEST_F(TraceTest, SpansOfSeveralThreadsAreAllThere) {
  ASSERT_TRUE(setTraceFile(path("c.json")));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([] {
        for (int n = 0; n < 100; ++n) TraceSpan span("test", "work");
      });
  }
  setTraceFile("");
  EXPECT_EQ(count(eventsOf(path("c.json")), "work"), 400u);
}

TEST_F(TraceTest, AFileThatCannotBeMadeTurnsTracingOff) {
  EXPECT_FALSE(setTraceFile(path("missing/d.json")));
  EXPECT_FALSE(traceEnabled());
}

TEST_F(TraceTest, TheVariableNamesTheFileAndExitClosesTheArray) {
  const std::string file = path("e.json");
  const int status = inChild([&] {
    traceByVariable(file);
    {
      TraceSpan span("test", "in child");
    }
    std::exit(0);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(count(eventsOf(file), "in child"), 1u);
}

TEST_F(TraceTest, AKilledProcessLeavesAllButTheBracket) {
  const std::string file = path("f.json");
  const int status = inChild([&] {
    setTraceFile(file);
    {
      TraceSpan span("test", "before the end");
    }
    raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  const std::string text = textOf(file);
  EXPECT_FALSE(json::accept(text));
  EXPECT_EQ(count(json::parse(text + "]"), "before the end"), 1u);
}

TEST_F(TraceTest, AForkedChildWritesToItsOwnFileOrNone) {
  ASSERT_TRUE(setTraceFile(path("g.json")));
  EXPECT_EQ(inChild([] { TraceSpan span("test", "child"); }), 0);
  {
    TraceSpan span("test", "parent");
  }
  setTraceFile("");
  EXPECT_EQ(count(eventsOf(path("g.json")), "child"), 0u);
  EXPECT_EQ(count(eventsOf(path("g.json")), "parent"), 1u);

  ASSERT_TRUE(setTraceFile(path("h-%p.json")));
  EXPECT_EQ(inChild([] {
              {
                TraceSpan span("test", "child");
              }
              setTraceFile("");
            }),
            0);
  setTraceFile("");
  size_t files = 0, children = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (!entry.path().filename().string().starts_with("h-")) continue;
    ++files;
    children += count(eventsOf(entry.path()), "child");
  }
  EXPECT_EQ(files, 2u);
  EXPECT_EQ(children, 1u);
}

// A driver's library has a copy of this code, with state of its own.
TEST_F(TraceTest, LibrariesOfOneProcessShareTheFile) {
  const std::string file = path("i.json");
  const int status = inChild([&] {
    traceByVariable(file);
    {
      TraceSpan span("test", "program");
    }
    void* module = dlopen(HEARTH_TRACE_TEST_MODULE, RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) _exit(2);
    const auto trace = reinterpret_cast<void (*)(const char*)>(dlsym(module, "traceFromModule"));
    if (trace == nullptr) _exit(3);
    trace("module");
    {
      TraceSpan span("test", "program");
    }
    trace("module");
    std::exit(0);
  });
  EXPECT_EQ(status, 0);
  const json events = eventsOf(file);
  EXPECT_EQ(count(events, "program"), 2u);
  EXPECT_EQ(count(events, "module"), 2u);
}

TEST_F(TraceTest, ProcessesAtTheSameTimeShareTheFile) {
  const std::string file = path("j.json");
  int ready[2], go[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(go), 0);
  constexpr int kChildren = 4;
  std::vector<pid_t> children;
  for (int i = 0; i < kChildren; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    close(go[1]);
    char byte = 0;
    if (!setTraceFile(file) || write(ready[1], &byte, 1) != 1) _exit(2);
    // Waits until the parent closes the other end.
    if (read(go[0], &byte, 1) != 0) _exit(3);
    for (int n = 0; n < 50; ++n) TraceSpan span("test", "child");
    setTraceFile("");
    _exit(0);
  }
  char byte = 0;
  for (int i = 0; i < kChildren; ++i) ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(go[1]);
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  for (const int end : {ready[0], ready[1], go[0]}) close(end);
  EXPECT_EQ(count(eventsOf(file), "child"), kChildren * 50u);
}

TEST_F(TraceTest, AnOldTraceIsReplaced) {
  const std::string file = path("k.json");
  std::ofstream(file) << "[\n{\"name\":\"old\"}\n]\n" << std::string(10000, ' ');
  ASSERT_TRUE(setTraceFile(file));
  setTraceFile("");
  EXPECT_EQ(count(eventsOf(file), "old"), 0u);
}

}  // namespace
}  // namespace hearth::base
