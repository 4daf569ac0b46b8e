// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/kernel_tuner.h"

#include <gtest/gtest.h>

#include <functional>

namespace hearth::cpu {
namespace {

using Which = KernelChoice::Which;
using Others = KernelTuner::Others;
using Time = KernelTuner::Time;

constexpr KernelChoice kFirstOnAll;
constexpr KernelChoice kFirstOnOne{Which::kFirst, true};
constexpr KernelChoice kOtherOnAll{Which::kOther, false};
constexpr KernelChoice kOtherOnOne{Which::kOther, true};

// A plan of this many nodes; `others` have a second kernel.
Plan planOf(size_t nodes, std::initializer_list<size_t> others) {
  Plan plan;
  plan.nodes.resize(nodes);
  for (const size_t node : others)
    plan.nodes[node].createOther = []() -> Result<std::unique_ptr<Kernel>> {
      return nullptr;
    };
  return plan;
}

// The time that a node takes when it runs as `choice` says.
using Clock = std::function<Time(size_t node, KernelChoice choice, int execution)>;

struct Outcome {
  MeasuredChoices result;
  int executions = 0;
  int unmeasured = 0;
  std::vector<KernelChoices> trials;
  int wholeTrials = 0;
};

// `unmeasured` is the time that an execution without a trial takes.
Outcome tune(KernelTuner* tuner, const Clock& clock, Time unmeasured = 1'000'000) {
  Outcome outcome;
  for (; outcome.executions < 1000; ++outcome.executions) {
    if (const auto result = tuner->result()) {
      outcome.result = *result;
      return outcome;
    }
    auto trial = tuner->begin(Others::kThere);
    if (!trial) {
      ++outcome.unmeasured;
      tuner->endUnmeasured(unmeasured);
      continue;
    }
    for (size_t node = 0; node < trial->times.size(); ++node)
      trial->times[node] = clock(node, trial->choices[node], outcome.executions);
    outcome.trials.push_back(trial->choices);
    outcome.wholeTrials += trial->isWhole ? 1 : 0;
    tuner->end(*trial);
  }
  ADD_FAILURE() << "never done";
  return outcome;
}

TEST(KernelTunerTest, FindsTheFastestOfEachNode) {
  const Plan plan = planOf(4, {1, 2, 3});
  KernelTuner tuner(plan, 4);
  // The fastest by node: first kernel on all threads; other on all; first on one; other on one.
  const auto clock = [](size_t node, KernelChoice choice, int) -> Time {
    static constexpr Time kTimes[4][4] = {{10'000, 20'000, 0, 0},
                                          {30'000, 40'000, 20'000, 25'000},
                                          {9'000, 5'000, 8'000, 7'000},
                                          {9'000, 8'000, 7'000, 6'000}};
    return kTimes[node][(choice.which == Which::kOther ? 2 : 0) + (choice.isSerial ? 1 : 0)];
  };
  const Outcome outcome = tune(&tuner, clock);
  EXPECT_EQ(outcome.result.choices,
            (KernelChoices{kFirstOnAll, kOtherOnAll, kFirstOnOne, kOtherOnOne}));
  EXPECT_EQ(outcome.result.threads, 4u);
  EXPECT_EQ(outcome.result.quickTime, 58'000u);
  EXPECT_EQ(outcome.result.chosenTime, 41'000u);
  EXPECT_EQ(outcome.result.changedNodes(), 3u);
  // A model that is used only briefly is not measured.
  EXPECT_GE(outcome.executions, 24);
  EXPECT_LE(outcome.executions, 150);
}

TEST(KernelTunerTest, LongNodesAreNotTriedOnOneThread) {
  const Plan plan = planOf(2, {});
  KernelTuner tuner(plan, 2);
  const Outcome outcome = tune(&tuner, [](size_t node, KernelChoice choice, int) -> Time {
    return (node == 0 ? 500'000 : 10'000) / (choice.isSerial ? 2 : 1);
  });
  for (const KernelChoices& trial : outcome.trials) EXPECT_EQ(trial[0], kFirstOnAll);
  EXPECT_EQ(outcome.result.choices, (KernelChoices{kFirstOnAll, kFirstOnOne}));
}

TEST(KernelTunerTest, MuchSlowerKernelsAreTriedTwice) {
  const Plan plan = planOf(2, {0, 1});
  KernelTuner tuner(plan, 1);
  const Outcome outcome = tune(&tuner, [](size_t node, KernelChoice choice, int) -> Time {
    const Time time = node == 0 ? 300 : 90;
    return choice.which == Which::kOther ? time : 100;
  });
  size_t slow = 0;
  for (const KernelChoices& trial : outcome.trials) slow += trial[0].which == Which::kOther;
  EXPECT_EQ(slow, 2u);
  EXPECT_EQ(outcome.result.choices, (KernelChoices{kFirstOnAll, kOtherOnAll}));
}

TEST(KernelTunerTest, WithOneThreadOnlyOtherKernelsAreTried) {
  const Plan plan = planOf(2, {1});
  KernelTuner tuner(plan, 1);
  const Outcome outcome = tune(&tuner, [](size_t, KernelChoice choice, int) -> Time {
    EXPECT_FALSE(choice.isSerial);
    return choice.which == Which::kOther ? 50 : 100;
  });
  EXPECT_EQ(outcome.result.choices, (KernelChoices{kFirstOnAll, kOtherOnAll}));
  const Plan plain = planOf(2, {});
  KernelTuner nothing(plain, 1);
  EXPECT_EQ(
      tune(&nothing, [](size_t, KernelChoice, int) -> Time { return 100; }).result.changedNodes(),
      0u);
}

TEST(KernelTunerTest, ASmallGainIsIgnored) {
  const Plan plan = planOf(3, {0, 1, 2});
  KernelTuner tuner(plan, 2);
  const Outcome outcome = tune(&tuner, [](size_t, KernelChoice choice, int) -> Time {
    return choice == kFirstOnAll ? 10'000 : 9'700;
  });
  EXPECT_EQ(outcome.result.changedNodes(), 0u);
}

TEST(KernelTunerTest, AChoiceThatIsNotFasterAsAWholeIsRejected) {
  const Plan plan = planOf(2, {});
  KernelTuner tuner(plan, 2);
  // Each node alone is faster on one thread; both together are not.
  bool isWhole = false;
  Outcome outcome;
  while (!tuner.result()) {
    ASSERT_LT(outcome.executions++, 1000);
    auto trial = tuner.begin(Others::kRefused);
    if (!trial) tuner.endUnmeasured(20'000);
    if (!trial) continue;
    isWhole |= trial->isWhole;
    for (size_t node = 0; node < 2; ++node)
      trial->times[node] = trial->isWhole && trial->candidate == 1 ? 11'000
                           : trial->choices[node].isSerial         ? 5'000
                                                                   : 10'000;
    tuner.end(*trial);
  }
  EXPECT_TRUE(isWhole);
  EXPECT_EQ(tuner.result()->changedNodes(), 0u);
  EXPECT_EQ(tuner.result()->chosenTime, tuner.result()->quickTime);
}

TEST(KernelTunerTest, AMachineThatSlowsDownDoesNotMatter) {
  const Plan plan = planOf(2, {0});
  KernelTuner tuner(plan, 2);
  // Executions take longer and longer, and some take very long.
  const Outcome outcome = tune(&tuner, [](size_t node, KernelChoice choice, int execution) -> Time {
    const Time base = node == 0 && choice.which == Which::kOther ? 8'000 : 10'000;
    const Time time = choice.isSerial ? base * 2 : base;
    return (time + time * static_cast<Time>(execution) / 200) * (execution % 7 == 0 ? 5 : 1);
  });
  EXPECT_EQ(outcome.result.choices, (KernelChoices{kOtherOnAll, kFirstOnAll}));
}

TEST(KernelTunerTest, TheFirstExecutionsAreFewOrShort) {
  const Plan plan = planOf(1, {0});
  const auto unmeasured = [&](Time time) {
    KernelTuner tuner(plan, 1);
    return tune(&tuner, [=](size_t, KernelChoice, int) { return time; }, time).unmeasured;
  };
  EXPECT_EQ(unmeasured(1'000'000), 24);
  EXPECT_EQ(unmeasured(100'000'000), 15);
  EXPECT_EQ(unmeasured(5'000'000'000), 1);
}

// A user does not wait for a hundred inferences that take seconds each.
TEST(KernelTunerTest, LongExecutionsAreMeasuredLessOften) {
  const Plan plan = planOf(4, {1, 2});
  const auto tuned = [&](Time unit) {
    KernelTuner tuner(plan, 2);
    const auto clock = [=](size_t node, KernelChoice choice, int) {
      return unit * (node == 1 && choice.which == Which::kOther ? 20'000 : 30'000);
    };
    return tune(&tuner, clock, unit * 120'000);
  };
  EXPECT_EQ(tuned(10).wholeTrials, 30);
  const Outcome outcome = tuned(50'000);
  EXPECT_EQ(outcome.wholeTrials, 10);
  // One unmeasured execution, three with each kernel, ten as a whole.
  EXPECT_EQ(outcome.executions, 1 + 3 + 3 + 10);
  EXPECT_EQ(outcome.result.choices,
            (KernelChoices{kFirstOnAll, kOtherOnAll, kFirstOnAll, kFirstOnAll}));
}

// One delayed execution among the measured ones does not make the model count as slow.
TEST(KernelTunerTest, TheShortestExecutionDecidesWhetherExecutionsAreLong) {
  const Plan plan = planOf(2, {0, 1});
  KernelTuner tuner(plan, 1);
  const Outcome outcome = tune(&tuner, [](size_t, KernelChoice choice, int execution) -> Time {
    return execution == 24 ? 900'000'000 : choice.which == Which::kOther ? 80'000 : 90'000;
  });
  EXPECT_EQ(outcome.executions, 24 + 9 + 9 + 30);
  EXPECT_EQ(outcome.result.choices, (KernelChoices{kOtherOnAll, kOtherOnAll}));
}

// Number of changed nodes, of two. Each takes 10,000 units with its first kernel, 8,000 in a trial
// of the other one, and `together` when both run the other one.
uint32_t changedNodes(Time unit, Time together) {
  const Plan plan = planOf(2, {0, 1});
  KernelTuner tuner(plan, 1);
  for (int execution = 0; execution < 1000 && !tuner.result(); ++execution) {
    auto trial = tuner.begin(Others::kThere);
    if (!trial) tuner.endUnmeasured(unit * 20'000);
    if (!trial) continue;
    for (size_t node = 0; node < 2; ++node)
      trial->times[node] = unit * (trial->candidate == 0 ? 10'000
                                   : trial->isWhole      ? together
                                                         : 8'000);
    tuner.end(*trial);
  }
  return tuner.result().value().changedNodes();
}

TEST(KernelTunerTest, FewerRoundsAskForALargerGain) {
  EXPECT_EQ(changedNodes(1, 10'000), 0u);
  EXPECT_EQ(changedNodes(1, 9'900), 2u);
  EXPECT_EQ(changedNodes(100'000, 9'900), 0u);
  EXPECT_EQ(changedNodes(100'000, 9'700), 2u);
}

// With long executions, no ten of them are spent on a gain that they could not prove.
TEST(KernelTunerTest, AChoiceWhoseGainCannotBeProvenIsNotTried) {
  const Plan plan = planOf(5, {0});
  const auto wholeTrials = [&](Time unit, Time other) {
    KernelTuner tuner(plan, 1);
    const auto clock = [=](size_t, KernelChoice choice, int) {
      return unit * (choice.which == Which::kOther ? other : 10'000);
    };
    const Outcome outcome = tune(&tuner, clock, unit * 50'000);
    EXPECT_EQ(outcome.result.changedNodes(), outcome.wholeTrials == 0 ? 0u : 1u);
    return outcome.wholeTrials;
  };
  // As a whole these are 1.2 % and 2.4 % faster.
  EXPECT_EQ(wholeTrials(1, 9'400), 30);
  EXPECT_EQ(wholeTrials(100'000, 9'400), 0);
  EXPECT_EQ(wholeTrials(100'000, 8'800), 10);
}

TEST(KernelTunerTest, NodesThatTakeLittleTimeAreNotTried) {
  const Plan plan = planOf(3, {1});
  KernelTuner tuner(plan, 2);
  // The two short nodes take 0.4 % of the time.
  const Outcome outcome = tune(
      &tuner, [](size_t node, KernelChoice, int) -> Time { return node == 0 ? 996'000 : 2'000; });
  for (const KernelChoices& trial : outcome.trials) EXPECT_EQ(trial, KernelChoices(3));
  EXPECT_EQ(outcome.result.changedNodes(), 0u);
}

// A candidate that was given up is not run again while others are measured.
TEST(KernelTunerTest, EveryExecutionThatIsMeasuredCounts) {
  const Plan plan = planOf(1, {0});
  KernelTuner tuner(plan, 2);
  const Outcome outcome = tune(&tuner, [](size_t, KernelChoice choice, int) -> Time {
    return choice.isSerial ? 50'000 : choice.which == Which::kOther ? 20'000 : 30'000;
  });
  EXPECT_EQ(outcome.executions, 24 + 9 + 2 + 9 + 2 + 30);
  EXPECT_EQ(outcome.result.choices, KernelChoices{kOtherOnAll});
}

TEST(KernelTunerTest, OtherKernelsAreWaitedForAndMayBeRefused) {
  const Plan plan = planOf(2, {0, 1});
  KernelTuner tuner(plan, 1);
  EXPECT_FALSE(tuner.isMeasuring());
  // Building kernels takes a processor, so times would be unreliable.
  for (int i = 0; i < 500; ++i) {
    EXPECT_FALSE(tuner.result());
    EXPECT_FALSE(tuner.begin(Others::kInTheMaking));
    tuner.endUnmeasured(200);
  }
  EXPECT_TRUE(tuner.isMeasuring());
  while (const auto trial = tuner.begin(Others::kRefused)) {
    EXPECT_EQ(trial->choices, KernelChoices(2));
    tuner.end(*trial);
  }
  ASSERT_TRUE(tuner.result());
  EXPECT_EQ(tuner.result()->changedNodes(), 0u);
}

TEST(KernelTunerTest, APlanWithoutNodesIsDone) {
  const Plan plan;
  KernelTuner tuner(plan, 2);
  EXPECT_FALSE(tuner.begin(Others::kRefused));
  EXPECT_TRUE(tuner.result());
}

TEST(MeasuredChoicesTest, ComeBackAsTheyWere) {
  MeasuredChoices measured;
  measured.threads = 2;
  measured.choices.resize(1000);
  measured.choices[0] = kFirstOnOne;
  measured.choices[500] = kOtherOnAll;
  measured.choices[999] = kOtherOnOne;
  measured.quickTime = 123'456;
  measured.chosenTime = 100'000;
  const std::vector<uint8_t> bytes = measured.encoded();
  // Each start reads the facts of the store, so they have to be small.
  EXPECT_LT(bytes.size(), 64u);
  EXPECT_EQ(MeasuredChoices::parse(bytes, 1000), measured);
  EXPECT_EQ(measured.changedNodes(), 3u);
}

TEST(MeasuredChoicesTest, WrongBytesAreNone) {
  MeasuredChoices measured;
  measured.threads = 2;
  measured.choices = {kFirstOnAll, kOtherOnOne};
  const std::vector<uint8_t> bytes = measured.encoded();
  EXPECT_TRUE(MeasuredChoices::parse(bytes, 2));
  EXPECT_FALSE(MeasuredChoices::parse(bytes, 3));
  EXPECT_FALSE(MeasuredChoices::parse({}, 0));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(MeasuredChoices::parse(std::span(bytes).first(size), 2)) << size;
  std::vector<uint8_t> longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(MeasuredChoices::parse(longer, 2));
  // A node beyond the plan.
  std::vector<uint8_t> beyond = bytes;
  beyond[bytes.size() - 4] = 0xFF;
  EXPECT_FALSE(MeasuredChoices::parse(beyond, 2));
  std::vector<uint8_t> newer = bytes;
  ++newer[0];
  EXPECT_FALSE(MeasuredChoices::parse(newer, 2));
}

}  // namespace
}  // namespace hearth::cpu
