// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "drivers/cpu/kernel_choice.h"
#include "drivers/cpu/plan.h"

namespace hearth::cpu {

// Finds out in ordinary executions of a plan which kernel of each node is the fastest on this
// machine, and on how many threads. Executions take turns with the candidates, so that a machine
// that becomes slower or faster meanwhile is so for all of them; medians are compared. What is
// chosen has to prove itself as a whole before it is in force. Thread-safe.
class KernelTuner {
 public:
  // Nanoseconds.
  using Time = uint64_t;

  // How much is measured.
  struct Effort {
    unsigned firstRuns = 24;    // not measured: a model that runs no longer is not worth it
    unsigned nodeRounds = 9;    // executions with each candidate
    unsigned wholeRounds = 15;  // with each of: the first kernels, what was chosen
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

  // For the next execution; none: it runs as others do.
  std::optional<Trial> begin(Others others);
  // Takes the times of an execution that nothing is known to have disturbed.
  void end(const Trial& trial);

  // What is to be chosen; none before all is measured. Without a choice where the first kernels are
  // the fastest.
  std::optional<MeasuredChoices> result() const;

 private:
  // What a node can be tried with.
  static constexpr size_t kCandidates = 4;  // first or other kernel, on all threads or one
  static KernelChoice choiceOfCandidate(size_t candidate);
  void startNodes(bool hasOthers);
  void choose();
  void judge();

  const Plan& plan_;
  const size_t threads_;
  const Effort effort_;

  mutable std::mutex mutex_;
  unsigned runs_ = 0;
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
