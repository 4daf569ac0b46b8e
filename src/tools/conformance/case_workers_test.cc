// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/case_workers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>

#include "hal/testing/stub_devices.h"

namespace hearth::conformance {
namespace {

// A device whose second call kills its process, and whose third call hangs.
class UnreliableDevice final : public hal::StubDevice {
 public:
  UnreliableDevice() : StubDevice("unreliable") {}
  Result<std::vector<hal::OperationSupport>> supportedOperations(const graph::Model&) override {
    ++calls_;
    if (calls_ == 2) ::raise(SIGKILL);
    if (calls_ == 3) ::pause();
    return fail(ErrorCode::kUnsupported, "This is call {}.", calls_);
  }

 private:
  int calls_ = 0;
};

// A file of cases with an empty graph.
std::vector<uint8_t> emptyCases(uint64_t count) {
  std::vector<uint8_t> bytes(64);
  std::memcpy(bytes.data(), "NNTVEC01", 8);
  std::memcpy(bytes.data() + 8, &count, 8);
  const uint64_t record = bytes.size();
  // Three empty texts, no variations, numbers, tolerances, one graph of five empty lists.
  bytes.resize(record + 4 * (3 + 1 + 3 + 1 + 18) + 4 + 20);
  const uint32_t one = 1;
  std::memcpy(bytes.data() + bytes.size() - 24, &one, 4);
  const uint64_t index = bytes.size();
  std::memcpy(bytes.data() + 16, &index, 8);
  bytes.resize(index + count * 8);
  for (uint64_t i = 0; i < count; ++i) std::memcpy(bytes.data() + index + 8 * i, &record, 8);
  return bytes;
}

std::vector<CaseResult> runUnreliable(size_t count, WorkerOptions options) {
  const std::vector<uint8_t> bytes = emptyCases(count);
  const auto file = NntvFile::parse(memory::Pool::borrowed(bytes.data(), bytes.size()));
  EXPECT_TRUE(file) << file.error().toString();
  std::vector<CaseTask> tasks;
  for (size_t i = 0; i < count; ++i) tasks.push_back({&*file, i});
  const DeviceFactory factory{"unreliable", [] {
                                return std::make_shared<UnreliableDevice>();
                              }};
  const auto results = runInWorkers(factory, tasks, options, {});
  EXPECT_TRUE(results) << results.error().toString();
  return results ? *results : std::vector<CaseResult>();
}

TEST(CaseWorkers, AProcessThatDiesCostsOneCase) {
  const auto results = runUnreliable(7, {.processes = 1, .chunkSize = 100});
  ASSERT_EQ(results.size(), 7u);
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_FALSE(results[i].hasPassed);
    // Each new process counts from one and dies at its second case.
    const bool isLost = i % 2 == 1;
    EXPECT_NE(results[i].message.find(isLost ? "signal 9" : "This is call 1"), std::string::npos)
        << i << ": " << results[i].message;
  }
}

TEST(CaseWorkers, ChunksRunInProcessesOfTheirOwn) {
  const auto results = runUnreliable(5, {.processes = 2, .chunkSize = 1});
  ASSERT_EQ(results.size(), 5u);
  for (const CaseResult& result : results)
    EXPECT_NE(result.message.find("This is call 1"), std::string::npos) << result.message;
}

}  // namespace
}  // namespace hearth::conformance
