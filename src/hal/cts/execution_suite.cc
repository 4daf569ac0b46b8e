// SPDX-License-Identifier: Apache-2.0
// Valid and invalid requests to models of known shapes.
#include <algorithm>
#include <thread>

#include "hal/cts/device_fixture.h"

namespace hearth::hal::cts {
namespace {

class HalExecution : public DeviceFixture {};
HEARTH_CTS_SUITE(HalExecution);

std::vector<float> counted(size_t count, float first = 0.0f) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

// (a + b) * a - b, the result of chainModel().
std::vector<float> chainResult(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> result(a.size());
  for (size_t i = 0; i < a.size(); ++i) result[i] = (a[i] + b[i]) * a[i] - b[i];
  return result;
}

TEST_P(HalExecution, ComputesAndReportsShapes) {
  HEARTH_CTS_PREPARE(prepared, chainModel({3, 7}));
  auto a = counted(21), b = counted(21, 5);
  std::vector<float> out(21, -1.0f);
  const ExecutionResult result =
      computeOnce(*prepared, {{argumentFor(a), argumentFor(b)}, {argumentFor(out)}});
  ASSERT_TRUE(result.status) << result.status.error().toString();
  EXPECT_EQ(out, chainResult(a, b));
  ASSERT_EQ(result.outputShapes.size(), 1u);
  EXPECT_EQ(result.outputShapes[0].dimensions, graph::Dimensions({3, 7}));
  EXPECT_TRUE(result.outputShapes[0].isSufficient);
}

TEST_P(HalExecution, RepeatsWithNewValuesInTheSameMemory) {
  HEARTH_CTS_PREPARE(prepared, chainModel({3, 7}));
  std::vector<float> a(21), b(21), out(21);
  auto execution =
      prepared->createExecution({{argumentFor(a), argumentFor(b)}, {argumentFor(out)}});
  ASSERT_TRUE(execution) << execution.error().toString();
  for (int round = 0; round < 5; ++round) {
    const auto nextA = counted(21, static_cast<float>(round));
    const auto nextB = counted(21, static_cast<float>(-round));
    std::copy(nextA.begin(), nextA.end(), a.begin());
    std::copy(nextB.begin(), nextB.end(), b.begin());
    std::fill(out.begin(), out.end(), -1.0f);
    const ExecutionResult result = (*execution)->compute({});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_EQ(out, chainResult(nextA, nextB));
  }
}

TEST_P(HalExecution, EightThreadsAtOnce) {
  HEARTH_CTS_PREPARE(prepared, chainModel({13, 17}));
  constexpr int kThreads = 8;
  constexpr int kRounds = 20;
  std::vector<std::string> failures(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int round = 0; round < kRounds && failures[t].empty(); ++round) {
          auto a = counted(13 * 17, static_cast<float>(t));
          auto b = counted(13 * 17, static_cast<float>(round));
          std::vector<float> out(13 * 17);
          const ExecutionResult result =
              computeOnce(*prepared, {{argumentFor(a), argumentFor(b)}, {argumentFor(out)}});
          if (!result.status)
            failures[t] = result.status.error().toString();
          else if (out != chainResult(a, b))
            failures[t] = "wrong result";
        }
      });
  }
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST_P(HalExecution, ExecutionKeepsAllThatItNeeds) {
  std::unique_ptr<Execution> execution;
  auto a = counted(21), b = counted(21, 2);
  std::vector<float> out(21);
  {
    HEARTH_CTS_PREPARE(prepared, chainModel({3, 7}));
    auto created =
        prepared->createExecution({{argumentFor(a), argumentFor(b)}, {argumentFor(out)}});
    ASSERT_TRUE(created) << created.error().toString();
    execution = std::move(*created);
  }
  const ExecutionResult result = execution->compute({});
  ASSERT_TRUE(result.status) << result.status.error().toString();
  EXPECT_EQ(out, chainResult(a, b));
}

TEST_P(HalExecution, PoolArgumentsAtAnyOffset) {
  HEARTH_CTS_PREPARE(prepared, chainModel({3, 7}));
  auto a = counted(21), b = counted(21, 3);
  for (size_t offset : {0, 4, 64, 1, 3, 4093}) {
    auto pool = memory::Pool::anonymous(3 * 84 + offset);
    ASSERT_TRUE(pool);
    uint8_t* bytes = (*pool)->mutableData();
    std::memcpy(bytes + offset, a.data(), 84);
    std::memcpy(bytes + offset + 84, b.data(), 84);
    const ExecutionResult result = computeOnce(
        *prepared, {{poolArgument(*pool, offset, 84), poolArgument(*pool, offset + 84, 84)},
                    {poolArgument(*pool, offset + 168, 84)}});
    ASSERT_TRUE(result.status) << offset << ": " << result.status.error().toString();
    std::vector<float> out(21);
    std::memcpy(out.data(), bytes + offset + 168, 84);
    EXPECT_EQ(out, chainResult(a, b)) << offset;
  }
}

TEST_P(HalExecution, PointersAtOddAddresses) {
  HEARTH_CTS_PREPARE(prepared, chainModel({3, 7}));
  const auto a = counted(21), b = counted(21, 4);
  std::vector<uint8_t> memory(3 * 128);
  uint8_t* first = memory.data() + 1;
  uint8_t* second = memory.data() + 128 + 2;
  uint8_t* third = memory.data() + 256 + 3;
  std::memcpy(first, a.data(), 84);
  std::memcpy(second, b.data(), 84);
  const ExecutionResult result = computeOnce(
      *prepared,
      {{pointerArgument(first, 84), pointerArgument(second, 84)}, {pointerArgument(third, 84)}});
  ASSERT_TRUE(result.status) << result.status.error().toString();
  std::vector<float> out(21);
  std::memcpy(out.data(), third, 84);
  EXPECT_EQ(out, chainResult(a, b));
}

TEST_P(HalExecution, WrongRequestsAreErrors) {
  HEARTH_CTS_PREPARE(prepared, addModel({2, 3}));
  std::vector<float> memory(64);
  const Argument good = pointerArgument(memory.data(), 24);
  const Argument out = pointerArgument(memory.data() + 32, 24);
  auto pool = memory::Pool::anonymous(100);
  ASSERT_TRUE(pool);
  Argument token;
  token.kind = Argument::Kind::kBuffer;
  token.token = 12345;
  const std::pair<const char*, Request> requests[] = {
      {"no arguments", {}},
      {"one input too few", {{good}, {out}}},
      {"one input too many", {{good, good, good}, {out}}},
      {"no output", {{good, good}, {}}},
      {"one output too many", {{good, good}, {out, out}}},
      {"short input", {{good, pointerArgument(memory.data(), 23)}, {out}}},
      {"long input", {{good, pointerArgument(memory.data(), 28)}, {out}}},
      {"empty input", {{good, pointerArgument(memory.data(), 0)}, {out}}},
      {"short output", {{good, good}, {pointerArgument(memory.data() + 32, 20)}}},
      {"null input", {{good, pointerArgument(nullptr, 24)}, {out}}},
      {"null output", {{good, good}, {pointerArgument(nullptr, 24)}}},
      {"no pool", {{good, poolArgument(nullptr, 0, 24)}, {out}}},
      {"past the pool", {{good, poolArgument(*pool, 80, 24)}, {out}}},
      {"around the end of numbers", {{good, poolArgument(*pool, UINT64_MAX - 3, 24)}, {out}}},
      {"output past the pool", {{good, good}, {poolArgument(*pool, 77, 24)}}},
      {"unknown token", {{good, token}, {out}}},
      {"unknown output token", {{good, good}, {token}}},
      {"other dimensions", {{good, pointerArgument(memory.data(), 24, {3, 2})}, {out}}},
      {"other rank", {{good, pointerArgument(memory.data(), 24, {6})}, {out}}},
      {"other output dimensions",
       {{good, good}, {pointerArgument(memory.data() + 32, 24, {3, 2})}}},
      {"omitted operand", {{good, Argument()}, {out}}},
  };
  for (const auto& [name, request] : requests) {
    const ExecutionResult result = computeOnce(*prepared, request);
    ASSERT_FALSE(result.status) << name;
    EXPECT_EQ(result.status.error().code(), ErrorCode::kBadData)
        << name << ": " << result.status.error().toString();
  }
  // The prepared model still works.
  const ExecutionResult result = computeOnce(*prepared, {{good, good}, {out}});
  EXPECT_TRUE(result.status) << result.status.error().toString();
}

TEST_P(HalExecution, MemoryThatCannotBeMappedIsRefused) {
  HEARTH_CTS_PREPARE(prepared, addModel({2, 3}));
  std::vector<float> memory(64);
  const Argument good = pointerArgument(memory.data(), 24);
  const auto unmapped = memory::Pool::borrowed(nullptr, 4096);
  const auto readOnly = memory::Pool::borrowed(memory.data() + 32, 24);
  for (const Request& request : {Request{{good, poolArgument(unmapped, 0, 24)}, {good}},
                                 Request{{good, good}, {poolArgument(unmapped, 0, 24)}},
                                 Request{{good, good}, {poolArgument(readOnly, 0, 24)}}}) {
    const ExecutionResult result = computeOnce(*prepared, request);
    ASSERT_FALSE(result.status);
    EXPECT_EQ(result.status.error().code(), ErrorCode::kOpFailed)
        << result.status.error().toString();
  }
}

TEST_P(HalExecution, OmittedOutputIsHonoured) {
  HEARTH_CTS_PREPARE(prepared, addModel({2, 3}));
  auto a = counted(6), b = counted(6);
  const ExecutionResult result =
      computeOnce(*prepared, {{argumentFor(a), argumentFor(b)}, {Argument()}});
  EXPECT_TRUE(result.status) << result.status.error().toString();
}

TEST_P(HalExecution, PassedDeadlineIsMissed) {
  HEARTH_CTS_PREPARE(prepared, chainModel({3, 7}));
  auto a = counted(21), b = counted(21);
  std::vector<float> out(21);
  const Request request{{argumentFor(a), argumentFor(b)}, {argumentFor(out)}};
  const ExecutionResult missed = computeOnce(*prepared, request, base::Deadline::after(0));
  ASSERT_FALSE(missed.status);
  EXPECT_TRUE(isMissedDeadline(missed.status.error())) << missed.status.error().toString();
  const ExecutionResult met =
      computeOnce(*prepared, request, base::Deadline::after(3'600'000'000'000));
  EXPECT_TRUE(met.status) << met.status.error().toString();
}

TEST_P(HalExecution, InputsAreNotWritten) {
  HEARTH_CTS_PREPARE(prepared, chainModel({3, 7}));
  auto a = counted(21), b = counted(21, 9);
  const auto keptA = a, keptB = b;
  std::vector<float> out(21);
  ASSERT_TRUE(
      computeOnce(*prepared, {{argumentFor(a), argumentFor(b)}, {argumentFor(out)}}).status);
  EXPECT_EQ(a, keptA);
  EXPECT_EQ(b, keptB);
}

TEST_P(HalExecution, OutputsMayLieOverInputs) {
  HEARTH_CTS_PREPARE(prepared, chainModel({3, 7}));
  const std::vector<float> a = counted(21), b = counted(21, 5);
  const std::vector<float> expected = chainResult(a, b);
  // Both inputs are the same memory; the output begins at every distance from it.
  for (size_t at = 0; at <= 63; ++at) {
    std::vector<float> memory(84, -1.0f);
    std::copy(a.begin(), a.end(), memory.begin() + 21);
    std::copy(b.begin(), b.end(), memory.begin() + 42);
    const auto argument = [&](size_t first) {
      Argument made;
      made.kind = Argument::Kind::kPointer;
      made.pointer = memory.data() + first;
      made.length = 21 * sizeof(float);
      return made;
    };
    const ExecutionResult result =
        computeOnce(*prepared, {{argument(21), argument(42)}, {argument(at)}});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), memory.begin() + at)) << at;
  }
}

// As before, but the output is in another memory of the same file.
TEST_P(HalExecution, OutputsMayLieOverInputsInAnotherMemory) {
  HEARTH_CTS_PREPARE(prepared, chainModel({3, 7}));
  const std::vector<float> a = counted(21), b = counted(21, 5);
  const std::vector<float> expected = chainResult(a, b);
  constexpr uint64_t kBytes = 21 * sizeof(float);
  const auto memory = memory::Pool::anonymous(4 * kBytes);
  ASSERT_TRUE(memory);
  for (const uint64_t begin : {uint64_t{0}, uint64_t{20}}) {
    const auto other = memory::Pool::ofFile((*memory)->fd(), begin, 4 * kBytes - begin,
                                            memory::Mapping::Access::kReadWrite);
    ASSERT_TRUE(other) << other.error().toString();
    for (uint64_t at = begin; at <= 3 * kBytes; at += sizeof(float)) {
      std::memcpy((*memory)->mutableData() + kBytes, a.data(), kBytes);
      std::memcpy((*memory)->mutableData() + 2 * kBytes, b.data(), kBytes);
      const ExecutionResult result = computeOnce(
          *prepared,
          {{poolArgument(*memory, kBytes, kBytes), poolArgument(*memory, 2 * kBytes, kBytes)},
           {poolArgument(*other, at - begin, kBytes)}});
      ASSERT_TRUE(result.status) << result.status.error().toString();
      std::vector<float> out(21);
      std::memcpy(out.data(), (*memory)->data() + at, kBytes);
      ASSERT_EQ(out, expected) << at;
    }
  }
}

TEST_P(HalExecution, OneInputUsedTwice) {
  HEARTH_CTS_PREPARE(prepared, addModel({2, 3}));
  auto a = counted(6);
  std::vector<float> out(6);
  ASSERT_TRUE(
      computeOnce(*prepared, {{argumentFor(a), argumentFor(a)}, {argumentFor(out)}}).status);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(out[i], 2 * a[i]);
}

}  // namespace
}  // namespace hearth::hal::cts
