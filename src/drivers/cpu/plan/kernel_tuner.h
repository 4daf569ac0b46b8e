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

// Measures ordinary executions of a plan to find which kernel of each node is the fastest on this
// machine, and whether on all threads or on one. Successive executions run different candidates, so
// that a change of the machine's speed affects all of them; medians are compared. The choice as a
// whole has to be faster than the first kernels before it takes effect. Thread-safe.
class KernelTuner {
 public:
  // Nanoseconds.
  using Time = uint64_t;

  // How many executions are measured, and which gain that many can tell from noise.
  struct Rounds {
    unsigned node;     // executions with each candidate; odd, as the next, for the medians
    unsigned whole;    // executions with the first kernels, and as many with the choice
    double wholeGain;  // fraction of the time by which the choice has to be faster
  };

  // How much is measured.
  struct Effort {
    // Measuring begins after this many executions, or when executions have taken this long: it does
    // not pay for a model that is used less.
    unsigned firstRuns = 24;
    Time firstTime = 1'500'000'000;
    Rounds rounds = {9, 15, 0.005};
    // Executions longer than this have fewer rounds, since users notice each one. Fewer rounds show
    // only gains that are larger than the machine's noise.
    Time longExecution = 200'000'000;
    Rounds longRounds = {3, 5, 0.02};
    // Nodes that take longer than this on all threads are not tried on one: users would notice.
    Time mostSerial = 60'000;
  };

  // `threads` is the number of threads that the plan runs on. The plan outlives this object.
  KernelTuner(const Plan& plan, size_t threads) : KernelTuner(plan, threads, Effort()) {}
  KernelTuner(const Plan& plan, size_t threads, const Effort& effort);

  // One measured execution: how its nodes run, and how long each of them took.
  struct Trial {
    KernelChoices choices;
    std::vector<Time> times;  // by node; the caller fills them in
    unsigned candidate = 0;
    bool isWhole = false;
  };
  // State of the plan's other kernels.
  enum class Others { kInTheMaking, kThere, kRefused };

  // The trial that the next execution makes; none when it runs unmeasured. Nothing is measured
  // while the other kernels are being built, because building them takes a processor.
  std::optional<Trial> begin(Others others);
  // Takes the times of a trial that no other execution is known to have disturbed.
  void end(const Trial& trial);
  // Takes the time of an execution for which begin() returned no trial.
  void endUnmeasured(Time time);

  // Whether the unmeasured first executions are over; from then on the other kernels are needed.
  bool isMeasuring() const;

  // The result; none before all is measured. It changes no node where the first kernels are the
  // fastest.
  std::optional<MeasuredChoices> result() const;

 private:
  // The ways in which a node can run.
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
  Time quickest_ = UINT64_MAX;  // shortest execution with the first kernels in Phase::kQuick
  enum class Phase { kFirstRuns, kQuick, kNodes, kWhole, kDone } phase_ = Phase::kFirstRuns;
  std::vector<unsigned> turns_;  // candidates that executions try in turn
  size_t turn_ = 0;
  // By node and candidate: whether the node tries the candidate, and the times measured.
  std::vector<std::array<bool, kCandidates>> isTried_;
  std::vector<std::array<std::vector<Time>, kCandidates>> times_;
  std::array<std::vector<Time>, 2> wholeTimes_;
  KernelChoices chosen_;
  MeasuredChoices result_;
};

}  // namespace hearth::cpu
