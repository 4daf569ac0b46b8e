// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/in_place_constants.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"

namespace hearth::cpu {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

struct Constant {
  uint64_t offset;
  uint64_t length;
};
constexpr Constant kFactors = {100, 5000};
constexpr Constant kTable = {4 * kMiB, 2 * kMiB};
constexpr Constant kWeights = {8 * kMiB, 16 * kMiB};
constexpr Constant kEmbedding = {26 * kMiB, 12 * kMiB};

// A model whose constants lie in a file that is not in the page cache.
class InPlaceConstantsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = std::filesystem::temp_directory_path() / "hearth-constants-XXXXXX";
    const base::Descriptor file(::mkstemp(path.data()));
    ASSERT_TRUE(file.valid());
    ::unlink(path.c_str());
    const std::vector<uint8_t> bytes(40 * kMiB, 1);
    ASSERT_EQ(::pwrite(file.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    ASSERT_EQ(::fsync(file.get()), 0);
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    const auto pool =
        memory::Pool::ofFile(file.get(), 0, bytes.size(), memory::Mapping::Access::kReadOnly);
    ASSERT_TRUE(pool);
    model_.pools = {*pool};
    model_.subgraphs.resize(1);
    for (const Constant& constant : {kFactors, kTable, kWeights, kEmbedding}) {
      graph::Operand operand;
      operand.lifetime = graph::Lifetime::kConstantReference;
      operand.location = {.pool = 0, .offset = constant.offset, .length = constant.length};
      model_.main().operands.push_back(operand);
    }
    model_.main().operands.emplace_back();  // a temporary operand
    const uint32_t temporary = 4;
    model_.main().operations = {
        {graph::OperationType::kMul, {temporary, 0}, {temporary}, ""},
        {graph::OperationType::kGather, {1, temporary, temporary}, {temporary}, ""},
        {graph::OperationType::kFullyConnected, {temporary, 2}, {temporary}, ""},
        {graph::OperationType::kEmbeddingLookup, {temporary, 3}, {temporary}, ""},
    };
    if (resident({0, bytes.size()}) != 0)
      GTEST_SKIP() << "The folder for temporary files is not on a disk.";
  }

  // Number of pages of the constant that are in memory.
  size_t resident(const Constant& constant) const {
    std::vector<unsigned char> pages(pagesOf(constant));
    uint8_t* const begin = const_cast<uint8_t*>(model_.pools[0]->data()) + constant.offset;
    const auto address = reinterpret_cast<uintptr_t>(begin) / page_ * page_;
    EXPECT_EQ(::mincore(reinterpret_cast<void*>(address), pages.size() * page_, pages.data()), 0);
    return static_cast<size_t>(
        std::ranges::count_if(pages, [](auto one) { return (one & 1) != 0; }));
  }
  size_t pagesOf(const Constant& constant) const {
    return (constant.offset % page_ + constant.length + page_ - 1) / page_;
  }
  // The kernel reads in the background, so this waits for the pages.
  bool comesIn(const Constant& constant) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (resident(constant) < pagesOf(constant)) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  const size_t page_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  graph::Model model_;
};

TEST_F(InPlaceConstantsTest, SmallOnesComeAheadAndWeightsDoNot) {
  readSmallConstantsAhead(model_);
  EXPECT_TRUE(comesIn(kFactors));
  EXPECT_TRUE(comesIn(kTable));
  EXPECT_LT(resident(kWeights), pagesOf(kWeights) / 16);
  EXPECT_LT(resident(kEmbedding), pagesOf(kEmbedding) / 16);
}

TEST_F(InPlaceConstantsTest, ARowOfALargeTableComesAlone) {
  expectLookups(model_);
  const volatile uint8_t* const table = model_.pools[0]->data() + kEmbedding.offset;
  EXPECT_EQ(table[5 * kMiB], 1);
  EXPECT_GE(resident(kEmbedding), 1);
  EXPECT_LT(resident(kEmbedding), pagesOf(kEmbedding) / 16);
}

// Tables that only look-ups read.
class LookUpTablesTest : public testing::Test {
 protected:
  LookUpTablesTest() {
    model_.subgraphs.resize(2);
    for (const Constant& constant : {kTable, kWeights, kEmbedding})
      model_.main().operands.push_back(constantAt(constant));
    model_.main().operands.emplace_back();
    model_.main().operations = {
        {graph::OperationType::kGather, {0, kTemporary, kTemporary}, {kTemporary}, ""},
        {graph::OperationType::kFullyConnected, {kTemporary, 1}, {kTemporary}, ""},
        {graph::OperationType::kEmbeddingLookup, {kTemporary, 2}, {kTemporary}, ""},
    };
  }
  static graph::Operand constantAt(const Constant& constant) {
    graph::Operand operand;
    operand.lifetime = graph::Lifetime::kConstantReference;
    operand.location = {.pool = 0, .offset = constant.offset, .length = constant.length};
    return operand;
  }

  static constexpr uint32_t kTemporary = 3;
  graph::Model model_;
};

TEST_F(LookUpTablesTest, LargeOnesAreFound) {
  const std::vector<graph::DataLocation> tables = tablesOnlyLookedUp(model_);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].offset, kEmbedding.offset);
  EXPECT_EQ(tables[0].length, kEmbedding.length);
}

TEST_F(LookUpTablesTest, AnotherReaderOfTheBytesCounts) {
  graph::Model tied = model_;
  tied.main().operations.push_back(
      {graph::OperationType::kFullyConnected, {kTemporary, 2}, {kTemporary}, ""});
  EXPECT_TRUE(tablesOnlyLookedUp(tied).empty());
  // The indices of a look-up are no table.
  graph::Model indices = model_;
  indices.main().operations.push_back(
      {graph::OperationType::kEmbeddingLookup, {2, kTemporary}, {kTemporary}, ""});
  EXPECT_TRUE(tablesOnlyLookedUp(indices).empty());
  // Another operand, of this subgraph or another, has some of the bytes.
  for (const size_t subgraph : {size_t{0}, size_t{1}}) {
    graph::Model shared = model_;
    shared.subgraphs[subgraph].operands.push_back(
        constantAt({kEmbedding.offset + kEmbedding.length - 1, 2}));
    EXPECT_TRUE(tablesOnlyLookedUp(shared).empty());
    shared.subgraphs[subgraph].operands.back().location.offset += 1;
    EXPECT_EQ(tablesOnlyLookedUp(shared).size(), 1u);
    shared.subgraphs[subgraph].operands.back().location = {
        .pool = 1, .offset = kEmbedding.offset, .length = kEmbedding.length};
    EXPECT_EQ(tablesOnlyLookedUp(shared).size(), 1u);
  }
}

TEST_F(InPlaceConstantsTest, MemoryThatIsNotOfAFileIsUnchanged) {
  const std::vector<uint8_t> bytes(40 * kMiB, 7);
  model_.pools = {memory::Pool::borrowed(bytes.data(), bytes.size())};
  expectLookups(model_);
  readSmallConstantsAhead(model_);
  EXPECT_EQ(std::ranges::count(bytes, 7), static_cast<std::ptrdiff_t>(bytes.size()));
}

}  // namespace
}  // namespace hearth::cpu
