// SPDX-License-Identifier: Apache-2.0
#include "llm/conversation_store.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "base/crash_point.h"
#include "base/fault.h"
#include "cache/testing/crash_points.h"
#include "cache/testing/store_test_util.h"

namespace hearth::llm {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Access = ConversationStore::Access;

SavedConversation conversationOf(const std::string& answer) {
  SavedConversation saved{
      .modelName = "model.litertlm", .modelContent = std::string(64, 'a'), .conversation = {}};
  saved.conversation = Conversation::ofJson(R"({
    "tools": [{"type": "function", "function": {"name": "weather"}}],
    "messages": [
      {"role": "system", "content": "Be brief.\n\"é\" \u0001"},
      {"role": "user", "content": "sky?"},
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call00000", "type": "function",
         "function": {"name": "weather", "arguments": {"n": 2, "x": 0.5, "l": [true, null]}}}]},
      {"role": "tool", "name": "weather", "tool_call_id": "call00000", "content": "clear"}]})")
                           .value();
  saved.conversation.messages.push_back({"assistant", answer});
  return saved;
}

class ConversationStoreTest : public testing::Test {
 protected:
  std::string root() const { return (folder_.path() / "state" / "conversations").string(); }
  std::filesystem::path fileOf(const std::string& name) const {
    return std::filesystem::path(root()) / (name + ".json");
  }
  ConversationStore open(Access access = Access::kWrite) const {
    return ConversationStore::open(root(), access).value();
  }
  std::string textOf(const std::string& name) const {
    std::ifstream file(fileOf(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(fileOf(name), std::ios::binary) << text;
  }
  std::string problemOf(const std::string& name) const {
    const auto saved = open().read(name);
    return saved ? "" : saved.error().toString();
  }
  mode_t modeOf(const std::filesystem::path& path) const {
    struct stat status;
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  cache::TempFolder folder_;
};

TEST(ConversationNameTest, IsShortAndNamesNoOtherFile) {
  for (const std::string& name : {std::string("a"), std::string("A.b-c_9"), std::string("-"),
                                  std::string("9.."), std::string(64, 'x')})
    EXPECT_TRUE(ConversationStore::isName(name)) << name;
  for (const char* name : {"", ".", "..", ".a", "a/b", "a b", "é", "a\n"})
    EXPECT_FALSE(ConversationStore::isName(name)) << name;
  EXPECT_FALSE(ConversationStore::isName(std::string(65, 'x')));
  EXPECT_FALSE(ConversationStore::isName(std::string_view("a\0", 2)));
}

TEST_F(ConversationStoreTest, WhatIsWrittenIsRead) {
  const auto store = open();
  EXPECT_THAT(store.names(), IsEmpty());
  const SavedConversation written = conversationOf("It is clear.");
  ASSERT_TRUE(store.write("sky", written));
  ASSERT_TRUE(store.write("a", written));
  EXPECT_THAT(open(Access::kRead).names(), ElementsAre("a", "sky"));
  const SavedConversation read = open(Access::kRead).read("sky").value();
  EXPECT_EQ(read.modelName, "model.litertlm");
  EXPECT_EQ(read.modelContent, written.modelContent);
  ASSERT_EQ(read.conversation.messages.size(), 5u);
  EXPECT_EQ(read.conversation.messages[0].content, "Be brief.\n\"é\" \x01");
  EXPECT_EQ(read.conversation.systemMessages(), 1u);
  // All of it, also what templates see besides, is the same again.
  EXPECT_EQ(read.toJson().value(), written.toJson().value());
  EXPECT_EQ(textOf("sky"), written.toJson().value());
  EXPECT_GT(store.facts("sky").bytes, 500u);
  EXPECT_GT(store.facts("sky").changed, 0);
}

TEST_F(ConversationStoreTest, OnlyTheUserCanReadIt) {
  ASSERT_TRUE(open().write("sky", conversationOf("a")));
  EXPECT_EQ(modeOf(fileOf("sky")), 0600u);
  EXPECT_EQ(modeOf(root()), 0700u);
  EXPECT_EQ(modeOf(std::filesystem::path(root()).parent_path()), 0700u);
}

TEST_F(ConversationStoreTest, AMissingFolderIsEmptyAndNotMade) {
  const auto store = open(Access::kRead);
  EXPECT_THAT(store.names(), IsEmpty());
  EXPECT_FALSE(store.contains("sky"));
  EXPECT_EQ(store.read("sky").error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(store.facts("sky").bytes, 0u);
  EXPECT_FALSE(std::filesystem::exists(root()));
  EXPECT_FALSE(ConversationStore::open("", Access::kRead));
}

TEST_F(ConversationStoreTest, ARemovedOneIsGone) {
  const auto store = open();
  ASSERT_TRUE(store.write("sky", conversationOf("a")));
  ASSERT_TRUE(store.remove("sky"));
  EXPECT_FALSE(store.contains("sky"));
  EXPECT_EQ(store.remove("sky").error().code(), ErrorCode::kNotFound);
}

TEST_F(ConversationStoreTest, OneProcessHasAConversation) {
  const auto store = open();
  {
    const auto first = store.lock("sky");
    ASSERT_TRUE(first);
    EXPECT_THAT(open().lock("sky").error().message(), HasSubstr("Another process"));
    EXPECT_TRUE(open().lock("sea"));
  }
  EXPECT_TRUE(open().lock("sky"));
}

TEST_F(ConversationStoreTest, ADamagedFileIsRefusedAndStays) {
  const auto store = open();
  ASSERT_TRUE(store.write("sky", conversationOf("a")));
  const std::string whole = textOf("sky");
  for (size_t size = 0; size + 1 < whole.size(); size += size < 64 ? 1 : 37) {
    put("cut", whole.substr(0, size));
    EXPECT_THAT(problemOf("cut"), HasSubstr("cut.json")) << size;
    EXPECT_EQ(textOf("cut").size(), size);
  }
  for (size_t at = 0; at < whole.size(); at += 3) {
    std::string wrong = whole;
    wrong[at] = '\xff';
    put("wrong", wrong);
    EXPECT_NE(problemOf("wrong"), "") << at;
  }
  for (const auto& [text, problem] : std::initializer_list<std::pair<const char*, const char*>>{
           {"[]", "no object"},
           {"{}", "version"},
           {R"({"version": "1", "messages": []})", "version"},
           {R"({"version": 2, "messages": []})", "version 2"},
           {R"({"version": 1})", "no JSON array"},
           {R"({"version": 1, "model": 3, "messages": []})", "model"},
           {R"({"version": 1, "messages": {}})", "no JSON array"},
           {R"({"version": 1, "messages": [3]})", "Message 1"},
           {R"({"version": 1, "messages": [{"role": "judge", "content": "a"}]})", "judge"},
           {R"({"version": 1, "messages": [{"role": "user", "content": 3}]})", "content"},
           {R"({"version": 1, "messages": [], "tools": 3})", "tools"}}) {
    put("wrong", text);
    EXPECT_THAT(problemOf("wrong"), HasSubstr(problem)) << text;
  }
  put("deep", std::string(100'000, '['));
  EXPECT_NE(problemOf("deep"), "");
}

TEST_F(ConversationStoreTest, ATooLargeOneIsNeitherReadNorWritten) {
  const auto store = open();
  ASSERT_TRUE(store.write("sky", conversationOf("a")));
  put("large", "");
  std::filesystem::resize_file(fileOf("large"), SavedConversation::kMaxBytes + 1);
  EXPECT_THAT(problemOf("large"), HasSubstr("bytes"));
  const auto large = conversationOf(std::string(SavedConversation::kMaxBytes, 'x'));
  EXPECT_THAT(store.write("sky", large).error().message(), HasSubstr("bytes"));
  EXPECT_TRUE(store.read("sky"));
}

TEST_F(ConversationStoreTest, WhatIsNoFileOfTheUsersIsNotRead) {
  const auto store = open();
  ASSERT_TRUE(store.write("sky", conversationOf("a")));
  std::filesystem::create_symlink(fileOf("sky"), fileOf("link"));
  std::filesystem::create_directory(fileOf("folder"));
  for (const char* name : {"link", "folder"}) EXPECT_NE(problemOf(name), "") << name;
  std::filesystem::permissions(fileOf("sky"), std::filesystem::perms(0666));
  EXPECT_NE(problemOf("sky"), "");
}

TEST(SavedConversationTest, AModelIsKnownByItsContentOrElseItsName) {
  const SavedConversation saved = conversationOf("a");
  EXPECT_TRUE(saved.isOf("renamed", std::string(64, 'a')));
  EXPECT_FALSE(saved.isOf("model.litertlm", std::string(64, 'b')));
  EXPECT_TRUE(saved.isOf("model.litertlm", ""));
  EXPECT_FALSE(saved.isOf("other.litertlm", ""));
}

#ifdef HEARTH_TEST_HOOKS
TEST_F(ConversationStoreTest, AFailedWriteLeavesTheOldOne) {
  const auto store = open();
  ASSERT_TRUE(store.write("sky", conversationOf("old")));
  for (const char* fault :
       {"pwrite:ENOSPC", "pwrite:EIO", "fsync:EIO", "rename:EACCES", "open:EMFILE"}) {
    ASSERT_TRUE(base::sys::injectText(fault));
    EXPECT_THAT(store.write("sky", conversationOf("new")).error().message(),
                HasSubstr("The conversation sky cannot be saved"))
        << fault;
    base::sys::clearFaults();
    EXPECT_EQ(store.read("sky").value().conversation.messages.back().content, "old") << fault;
  }
  ASSERT_TRUE(base::sys::injectText("pwrite:short:1:*,rename:EINTR,fsync:EINTR,open:EINTR"));
  EXPECT_TRUE(store.write("sky", conversationOf("new")));
  base::sys::clearFaults();
  EXPECT_EQ(store.read("sky").value().conversation.messages.back().content, "new");
}

TEST_F(ConversationStoreTest, KilledAtEveryCrashPoint) {
  const auto work = [&] {
    const auto store = ConversationStore::open(root(), Access::kWrite);
    if (!store || !store->lock("sky")) return 1;
    for (const char* answer : {"first", "second"})
      if (!store->write("sky", conversationOf(answer))) return 2;
    return 0;
  };
  int points = 0;
  for (const std::string& point : base::crashPoints()) {
    if (!point.starts_with("object.") && !point.starts_with("conversation.")) continue;
    for (const int pass : {1, 2}) {
      SCOPED_TRACE(point + ":" + std::to_string(pass));
      std::filesystem::remove_all(root());
      const int status = cache::endOfCrashing(point + ":" + std::to_string(pass), work);
      if (cache::wasKilled(status)) ++points;
      const auto store = open();
      if (store.contains("sky")) {
        const auto saved = store.read("sky");
        ASSERT_TRUE(saved) << saved.error().toString();
        EXPECT_THAT(saved->conversation.messages.back().content, AnyOf("first", "second"));
      }
      // What was answered before the kill is there, whatever happened to the next answer.
      EXPECT_TRUE(pass == 1 || store.contains("sky"));
      // The next process can use what is left.
      EXPECT_TRUE(cache::succeeded(cache::waitForChild(cache::startChild(work))));
    }
  }
  EXPECT_GE(points, 10);
}

TEST_F(ConversationStoreTest, WhatAKilledProcessLeftIsRemovedAfterAMinute) {
  const auto work = [&] {
    const auto store = ConversationStore::open(root(), Access::kWrite);
    return store && store->write("sky", conversationOf("first")) ? 0 : 1;
  };
  ASSERT_TRUE(cache::wasKilled(cache::endOfCrashing("conversation.after_write", work)));
  const std::filesystem::path temporary = std::filesystem::path(root()) / "tmp";
  const auto left = [&] {
    return std::distance(std::filesystem::directory_iterator(temporary), {});
  };
  ASSERT_EQ(left(), 1);
  ASSERT_EQ(work(), 0);
  EXPECT_EQ(left(), 1);
  const auto file = std::filesystem::directory_iterator(temporary)->path();
  std::filesystem::last_write_time(
      file, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(2));
  ASSERT_EQ(work(), 0);
  EXPECT_EQ(left(), 0);
}
#endif

}  // namespace
}  // namespace hearth::llm
