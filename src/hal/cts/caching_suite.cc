// SPDX-License-Identifier: Apache-2.0
// Compilation caching: what drivers write to cache files, and which files they accept.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "hal/cts/device_fixture.h"

namespace hearth::hal::cts {
namespace {

class HalCaching : public DeviceFixture {
 protected:
  // The driver keeps what it remembers besides the files in a folder of this test.
  HalCaching() {
    std::string pattern = std::filesystem::temp_directory_path() / "hearth-hal-cts-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("XDG_STATE_HOME", folder_.c_str(), 1);
  }
  ~HalCaching() override {
    ::unsetenv("XDG_STATE_HOME");
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void SetUp() override {
    DeviceFixture::SetUp();
    const auto counts = device().numberOfCacheFilesNeeded();
    ASSERT_TRUE(counts) << counts.error().toString();
    counts_ = *counts;
    makeFiles();
  }

  // Makes new, empty files.
  void makeFiles() {
    model_.clear();
    data_.clear();
    for (uint32_t i = 0; i < counts_.model; ++i)
      model_.emplace_back(::memfd_create("model", MFD_CLOEXEC));
    for (uint32_t i = 0; i < counts_.data; ++i)
      data_.emplace_back(::memfd_create("data", MFD_CLOEXEC));
  }
  bool isCaching() const { return counts_.model != 0 || counts_.data != 0; }

  Cache cache(uint8_t token = 1) const {
    Cache cache;
    cache.token = {token};
    for (const base::Descriptor& file : model_) cache.modelFiles.push_back(*file.duplicate());
    for (const base::Descriptor& file : data_) cache.dataFiles.push_back(*file.duplicate());
    return cache;
  }
  Result<std::shared_ptr<PreparedModel>> save(uint8_t token = 1) {
    return device().prepareModel(std::make_shared<const graph::Model>(addModel({2, 3})), {},
                                 cache(token));
  }
  Result<std::shared_ptr<PreparedModel>> restore(Cache files) {
    return device().prepareModelFromCache({}, std::move(files));
  }
  static std::vector<float> sumOf(PreparedModel& prepared) {
    std::vector<float> a = {1, 2, 3, 4, 5, 6};
    std::vector<float> sum(6);
    Request request;
    request.inputs = {argumentFor(a), argumentFor(a)};
    request.outputs = {argumentFor(sum)};
    const ExecutionResult result = computeOnce(prepared, std::move(request));
    EXPECT_TRUE(result.status) << result.status.error().toString();
    return sum;
  }

  std::filesystem::path folder_;
  CacheFileCounts counts_;
  std::vector<base::Descriptor> model_;
  std::vector<base::Descriptor> data_;
};
HEARTH_CTS_SUITE(HalCaching);

TEST_P(HalCaching, RestoresWhatItSaved) {
  const auto saved = save();
  if (!saved && saved.error().code() == ErrorCode::kUnsupported)
    GTEST_SKIP() << "The model is not supported.";
  ASSERT_TRUE(saved) << saved.error().toString();
  const auto restored = restore(cache());
  ASSERT_EQ(restored.has_value(), isCaching());
  const std::vector<float> expected = {2, 4, 6, 8, 10, 12};
  EXPECT_EQ(sumOf(**saved), expected);
  if (restored) {
    EXPECT_EQ(sumOf(**restored), expected);
  }
}

TEST_P(HalCaching, RefusesEverythingElse) {
  EXPECT_FALSE(restore(cache())) << "empty files";
  if (!save() || !isCaching()) return;
  EXPECT_FALSE(restore(cache(2))) << "another token";
  EXPECT_FALSE(restore({})) << "no files";
  Cache more = cache();
  more.modelFiles.emplace_back(::memfd_create("more", MFD_CLOEXEC));
  EXPECT_FALSE(restore(std::move(more))) << "too many files";
  for (const auto* files : {&model_, &data_})
    for (const base::Descriptor& file : *files) {
      const uint64_t size = file.size().value_or(0);
      ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(size + 1)), 0);
      EXPECT_FALSE(restore(cache())) << "a file that has grown";
      ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(size)), 0);
      EXPECT_TRUE(restore(cache()));
    }
}

TEST_P(HalCaching, ProblemsWithFilesAreNoErrors) {
  if (!save()) GTEST_SKIP() << "The model is not supported.";
  // Closed descriptors, and too few of them.
  const auto prepare = [&](Cache files) {
    return device().prepareModel(std::make_shared<const graph::Model>(addModel({2, 3})), {},
                                 std::move(files));
  };
  Cache closed = cache();
  for (auto* files : {&closed.modelFiles, &closed.dataFiles})
    for (base::Descriptor& file : *files) file.reset();
  EXPECT_TRUE(prepare(std::move(closed)));
  Cache fewer = cache();
  fewer.dataFiles.clear();
  EXPECT_TRUE(prepare(std::move(fewer)));
}

}  // namespace
}  // namespace hearth::hal::cts
