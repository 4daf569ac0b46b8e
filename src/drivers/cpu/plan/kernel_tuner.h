// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "drivers/cpu/plan/kernel_choice.h"
#include "drivers/cpu/plan/plan.h"

namespace hearth::cpu {

// Finds out in ordinary executions of a plan which kernel of each node is the fastest on this
// machine, and on how many threads. Executions take turns with the candidates, so that a machine
// that becomes slower or faster meanwhile is so for all of them; medians are compared. What is
// chosen has to prove itself as a whole before it is in force. Thread-safe.
class KernelTuner {
 public:
  // Nanoseconds.
  using Time = uint64_t;

  // How often something is measured, and what that is enough to tell.
  struct Rounds {
    unsigned node;     // executions with each candidate; odd, as the next, for the medians
    unsigned whole;    // with each of: the first kernels, what was chosen
    double wholeGain;  // part of the time by which what was chosen has to be faster
  };

  // How much is measured.
  struct Effort {
    // The first executions are not measured, until there are so many or they have taken so long: a
    // model that runs no longer is not worth it.
    unsigned firstRuns = 24;
    Time firstTime = 1'500'000'000;
    Rounds rounds = {9, 15, 0.005};
    // Where executions are long: each round is felt, and what is gained shows with fewer if it is
    // more than the machine's whims.
    Time longExecution = 200'000'000;
    Rounds longRounds = {3, 5, 0.02};
    // Nodes that take longer on all threads are not tried on one: that would be felt.
    Time mostSerial = 60'000;
  };

  // `threads` that the plan runs on.
  KernelTuner(const Plan& plan, size_t threads) : KernelTuner(plan, threads, Effort()) {}
  KernelTuner(const Plan& plan, size_t threads, const Effort& effort);

  // One execution that is measured: how its nodes run, and how long each took.
  struct Trial {
    KernelChoices choices;
    std::vector<Time> times;  // by node, to be filled in
    unsigned candidate = 0;
    bool isWhole = false;
  };
  // The other kernels of the plan: they are measured from when they are there.
  enum class Others { kInTheMaking, kThere, kRefused };

  // For the next execution; none: it runs as others do. Nothing is measured while other kernels are
  // in the making: that takes a processor.
  std::optional<Trial> begin(Others others);
  // Takes the times of an execution that nothing is known to have disturbed.
  void end(const Trial& trial);
  // Takes the time of an execution for which begin() gave none.
  void endUnmeasured(Time time);

  // Whether the first executions are over: the other kernels are needed from here on.
  bool isMeasuring() const;

  // What is to be chosen; none before all is measured. Without a choice where the first kernels are
  // the fastest.
  std::optional<MeasuredChoices> result() const;

 private:
  // What a node can be tried with.
  static constexpr size_t kCandidates = 4;  // first or other kernel, on all threads or one
  static KernelChoice choiceOfCandidate(size_t candidate);
  const Rounds& rounds() const;
  bool isEnough(unsigned candidate) const;
  void startNodes(bool hasOthers);
  void choose();
  void judge();

  const Plan& plan_;
  const size_t threads_;
  const Effort effort_;

  mutable base::Mutex mutex_;
  unsigned firstRuns_ = 0;
  Time firstTime_ = 0;
  Time quickest_ = UINT64_MAX;  // execution with the first kernels, before others are tried
  enum class Phase { kFirstRuns, kQuick, kNodes, kWhole, kDone } phase_ = Phase::kFirstRuns;
  std::vector<unsigned> turns_;  // candidates that are tried, in turn
  size_t turn_ = 0;
  // By node and candidate: whether it is one for the node, and the times measured.
  std::vector<std::array<bool, kCandidates>> isTried_;
  std::vector<std::array<std::vector<Time>, kCandidates>> times_;
  std::array<std::vector<Time>, 2> wholeTimes_;
  KernelChoices chosen_;
  MeasuredChoices result_;
};

}  // namespace hearth::cpu
