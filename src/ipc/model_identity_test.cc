// SPDX-License-Identifier: Apache-2.0
#include "ipc/model_identity.h"

#include <capnp/message.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/wall_clock.h"
#include "ipc/testing/sealed_memory.h"

namespace hearth::ipc {
namespace {

constexpr size_t kBytes = 4096;
constexpr int64_t kSecond = 1'000'000'000;

// A request for a model with one pool, in the first of its descriptors, and two names.
class ModelIdentityTest : public testing::Test {
 protected:
  ModelIdentityTest() {
    descriptors_.push_back(sealedMemory(kBytes));
    descriptors_.push_back(sealedMemory(kBytes));
    fill(preparation().initModel());
    auto cache = preparation().initCache();
    cache.initModel(1).set(0, 0);
    cache.initData(1).set(0, 1);
  }

  schema::Preparation::Builder preparation() { return message_->getRoot<schema::Preparation>(); }
  static void fill(schema::Model::Builder model) {
    const std::vector<uint8_t> bytes = {1, 2, 3};
    model.setBytes(kj::arrayPtr(bytes.data(), bytes.size()));
    auto pool = model.initPools(1)[0];
    pool.setOffset(16);
    pool.setSize(64);
    auto names = model.initNames(2);
    names[0].setText("ab");
    names[1].setText("c");
  }
  std::optional<ModelIdentity> ofModel() {
    return ModelIdentity::ofModel(preparation().getModel().asReader(), options_, descriptors_);
  }
  std::optional<ModelIdentity> ofCache() {
    return ModelIdentity::ofCache(preparation().getCache().asReader(), token_, options_,
                                  descriptors_);
  }
  // A file with a name whose facts say that it was changed at `changed`, on a file system that
  // tells all changes.
  base::Descriptor file(int64_t changed) {
    std::string path = std::filesystem::temp_directory_path() / "hearth-identity-XXXXXX";
    base::Descriptor made(::mkostemp(path.data(), O_CLOEXEC));
    EXPECT_EQ(::ftruncate(made.get(), kBytes), 0);
    paths_.push_back(path);
    changed_ = changed;
    cache::changeFileFacts([this](int /*fd*/, cache::FileFacts& facts) {
      constexpr unsigned long kXfs = 0x58465342;
      if (facts.isSealed) return;
      facts.system = kXfs;
      facts.modified = facts.changed = changed_;
    });
    return made;
  }
  void TearDown() override {
    cache::changeFileFacts({});
    for (const std::string& path : paths_) std::filesystem::remove(path);
  }

  // Its destructor may throw, which one of a test may not.
  const std::unique_ptr<capnp::MallocMessageBuilder> message_ =
      std::make_unique<capnp::MallocMessageBuilder>();
  std::vector<base::Descriptor> descriptors_;
  hal::PrepareOptions options_;
  hal::CacheToken token_{};
  std::vector<std::string> paths_;
  int64_t changed_ = 0;
};

TEST_F(ModelIdentityTest, IsTheSameForTheSameRequest) {
  const auto model = ofModel();
  const auto cached = ofCache();
  ASSERT_TRUE(model && cached);
  EXPECT_NE(model->digest(), cached->digest());
  EXPECT_TRUE(model->isUnchanged());
  options_.deadline = base::Deadline::after(1);
  EXPECT_EQ(ofModel()->digest(), model->digest());
  EXPECT_EQ(ofCache()->digest(), cached->digest());
  // Through other descriptors of the same memories.
  for (base::Descriptor& descriptor : descriptors_) descriptor = *descriptor.duplicate();
  EXPECT_EQ(ofModel()->digest(), model->digest());
  EXPECT_EQ(ofCache()->digest(), cached->digest());
}

TEST_F(ModelIdentityTest, IsAnotherForWhateverDiffers) {
  const std::vector<uint8_t> otherBytes = {1, 2, 4};
  const std::vector<std::function<void()>> changes = {
      [&] { options_.preparation = hal::Preparation::kJustInTime; },
      [&] { options_.preference = hal::Preference::kSustainedSpeed; },
      [&] { options_.priority = hal::Priority::kLow; },
      [&] { options_.threads = 1; },
      [&] { options_.isTuned = true; },
      [&] { options_.maxActivationBytes = 5; },
      [&] { options_.driverOptions["a"] = "bc"; },
      [&] { options_.driverOptions = {{"ab", "c"}}; },
      [&] { descriptors_[0] = sealedMemory(kBytes); },
      [&] { token_[31] = 1; },
      [&] {
        preparation().getModel().setBytes(kj::arrayPtr(otherBytes.data(), otherBytes.size()));
      },
      [&] { preparation().getModel().getPools()[0].setOffset(17); },
      [&] { preparation().getModel().getPools()[0].setSize(63); },
      [&] { preparation().getModel().getPools()[0].setDescriptor(1); },
      [&] {
        preparation().getModel().getNames()[0].setText("a");
        preparation().getModel().getNames()[1].setText("bc");
      },
      [&] { preparation().getModel().getNames()[1].setIndex(1); },
      [&] { preparation().getModel().getNames()[1].setSubgraph(1); },
      [&] { preparation().getModel().getNames()[1].setKind(schema::Name::Kind::OPERATION); },
      [&] { preparation().getCache().getData().set(0, 0); },
  };
  std::set<std::pair<base::Sha256Digest, base::Sha256Digest>> seen;
  seen.emplace(ofModel()->digest(), ofCache()->digest());
  for (const auto& change : changes) {
    change();
    EXPECT_TRUE(seen.emplace(ofModel()->digest(), ofCache()->digest()).second) << seen.size();
  }
}

TEST_F(ModelIdentityTest, IsNoneWhereBytesMayChangeWithoutNotice) {
  ASSERT_TRUE(ofModel());
  preparation().getModel().getPools()[0].setIsWritable(true);
  EXPECT_FALSE(ofModel());
  preparation().getModel().getPools()[0].setIsWritable(false);
  descriptors_[0].reset(::memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(descriptors_[0].get(), kBytes), 0);
  EXPECT_FALSE(ofModel());
  EXPECT_FALSE(ofCache());
  // A range that is not in the file, and descriptors that are not in the message.
  descriptors_[0] = sealedMemory(kBytes);
  ASSERT_TRUE(ofModel());
  preparation().getModel().getPools()[0].setOffset(kBytes);
  EXPECT_FALSE(ofModel());
  preparation().getModel().getPools()[0].setOffset(0);
  for (const uint32_t index : {2u, UINT32_MAX}) {
    preparation().getModel().getPools()[0].setDescriptor(index);
    EXPECT_FALSE(ofModel());
    preparation().getCache().getModel().set(0, static_cast<int32_t>(index));
    EXPECT_FALSE(ofCache());
  }
  // An empty pool is in no file.
  preparation().getModel().getPools()[0].setSize(0);
  EXPECT_TRUE(ofModel());
}

// Else whoever can name a file could compute with weights that it may not read.
TEST_F(ModelIdentityTest, IsNoneOfFilesThatTheClientCannotRead) {
  descriptors_[0] = file(base::fileClock() - 100 * kSecond + 1);
  ASSERT_TRUE(ofModel());
  const base::Descriptor readable = *descriptors_[0].duplicate();
  for (const int flags : {O_PATH, O_WRONLY}) {
    descriptors_[0].reset(::open(paths_[0].c_str(), flags | O_CLOEXEC));
    ASSERT_TRUE(descriptors_[0].valid());
    EXPECT_FALSE(ofModel()) << flags;
    EXPECT_FALSE(ofCache()) << flags;
  }
  descriptors_[0].reset(::open(paths_[0].c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(ofModel());
}

TEST_F(ModelIdentityTest, SeesThatAFileChanges) {
  descriptors_[0] = file(base::fileClock() - 100 * kSecond + 1);
  const auto before = ofModel();
  ASSERT_TRUE(before);
  EXPECT_TRUE(before->isUnchanged());
  changed_ += 5;
  EXPECT_FALSE(before->isUnchanged());
  const auto after = ofModel();
  ASSERT_TRUE(after);
  EXPECT_NE(after->digest(), before->digest());
  // A change of just now may have left an earlier one's time.
  changed_ = base::fileClock() / kSecond * kSecond + 1;
  EXPECT_FALSE(ofModel());
}

}  // namespace
}  // namespace hearth::ipc
