// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernel_tuner.h"

#include <algorithm>
#include <numeric>

namespace hearth::cpu {
namespace {

constexpr size_t kFirstOnAll = 0;
constexpr size_t kFirstOnOne = 1;
constexpr size_t kOtherOnAll = 2;

// A candidate that is so much slower, as a part of the time, in its first executions is given up:
// each of them takes longer for it.
constexpr double kHopelessLoss = 0.2;
constexpr size_t kHopelessRuns = 2;

// A candidate has to be so much faster, as a part of the time, before it replaces the first one.
constexpr double kNodeGain = 0.05;
constexpr double kWholeGain = 0.005;

KernelTuner::Time median(std::vector<KernelTuner::Time> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

bool isFasterBy(double gain, KernelTuner::Time time, KernelTuner::Time than) {
  return static_cast<double>(time) < static_cast<double>(than) * (1 - gain);
}

bool isSlowerBy(double loss, KernelTuner::Time time, KernelTuner::Time than) {
  return static_cast<double>(time) > static_cast<double>(than) * (1 + loss);
}

}  // namespace

KernelTuner::KernelTuner(const Plan& plan, size_t threads, const Effort& effort)
    : plan_(plan),
      threads_(threads),
      effort_(effort),
      isTried_(plan.nodes.size()),
      times_(plan.nodes.size()) {
  for (auto& tried : isTried_) tried[kFirstOnAll] = true;
  result_.threads = static_cast<uint32_t>(threads);
  result_.choices.resize(plan.nodes.size());
  if (plan.nodes.empty()) phase_ = Phase::kDone;
}

KernelChoice KernelTuner::choiceOfCandidate(size_t candidate) {
  return {candidate >= kOtherOnAll ? KernelChoice::Which::kOther : KernelChoice::Which::kFirst,
          candidate % 2 == 1};
}

// When the first kernels' times are roughly known.
void KernelTuner::startNodes(bool hasOthers) {
  std::array<bool, kCandidates> isAnyTried = {true};
  for (size_t node = 0; node < times_.size(); ++node) {
    const bool isShort = median(times_[node][kFirstOnAll]) <= effort_.mostSerial;
    for (size_t candidate = kFirstOnOne; candidate < kCandidates; ++candidate) {
      const KernelChoice choice = choiceOfCandidate(candidate);
      const bool isThere = choice.which == KernelChoice::Which::kFirst ||
                           (hasOthers && plan_.nodes[node].createOther != nullptr);
      isTried_[node][candidate] = isThere && (!choice.isSerial || (threads_ > 1 && isShort));
      isAnyTried[candidate] |= isTried_[node][candidate];
    }
  }
  for (unsigned candidate = 0; candidate < kCandidates; ++candidate)
    if (isAnyTried[candidate]) turns_.push_back(candidate);
  phase_ = turns_.size() > 1 ? Phase::kNodes : Phase::kDone;
}

std::optional<KernelTuner::Trial> KernelTuner::begin(Others others) {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::kFirstRuns && runs_++ >= effort_.firstRuns) phase_ = Phase::kQuick;
  if (phase_ == Phase::kQuick && others != Others::kInTheMaking &&
      times_[0][kFirstOnAll].size() > effort_.nodeRounds / 2)
    startNodes(others == Others::kThere);
  if (phase_ == Phase::kFirstRuns || phase_ == Phase::kDone) return std::nullopt;
  Trial trial;
  trial.times.resize(times_.size());
  trial.choices.resize(times_.size());
  if (phase_ == Phase::kWhole) {
    trial.isWhole = true;
    trial.candidate = static_cast<unsigned>(turn_++ % 2);
    if (trial.candidate == 1) trial.choices = chosen_;
  } else if (phase_ == Phase::kNodes) {
    trial.candidate = turns_[turn_++ % turns_.size()];
    for (size_t node = 0; node < times_.size(); ++node)
      if (isTried_[node][trial.candidate]) trial.choices[node] = choiceOfCandidate(trial.candidate);
  }
  return trial;
}

void KernelTuner::end(const Trial& trial) {
  const std::lock_guard lock(mutex_);
  if (trial.isWhole != (phase_ == Phase::kWhole) || phase_ == Phase::kDone) return;
  if (trial.isWhole) {
    wholeTimes_[trial.candidate].push_back(
        std::accumulate(trial.times.begin(), trial.times.end(), Time{0}));
    if (wholeTimes_[0].size() >= effort_.wholeRounds &&
        wholeTimes_[1].size() >= effort_.wholeRounds)
      judge();
    return;
  }
  bool isEnough = phase_ == Phase::kNodes;
  for (size_t node = 0; node < times_.size(); ++node) {
    std::vector<Time>& times = times_[node][trial.candidate];
    if (isTried_[node][trial.candidate] && times.size() < effort_.nodeRounds)
      times.push_back(trial.times[node]);
    if (trial.candidate != kFirstOnAll && times.size() == kHopelessRuns &&
        isSlowerBy(kHopelessLoss, std::ranges::min(times), median(times_[node][kFirstOnAll]))) {
      isTried_[node][trial.candidate] = false;
      times.clear();
    }
    for (const unsigned candidate : turns_)
      isEnough &=
          !isTried_[node][candidate] || times_[node][candidate].size() >= effort_.nodeRounds;
  }
  if (isEnough) choose();
}

void KernelTuner::choose() {
  chosen_.assign(times_.size(), {});
  for (size_t node = 0; node < times_.size(); ++node) {
    const Time first = median(times_[node][kFirstOnAll]);
    Time best = first;
    for (size_t candidate = kFirstOnOne; candidate < kCandidates; ++candidate) {
      if (times_[node][candidate].empty()) continue;
      const Time time = median(times_[node][candidate]);
      if (!isFasterBy(kNodeGain, time, first) || time >= best) continue;
      best = time;
      chosen_[node] = choiceOfCandidate(candidate);
    }
  }
  const bool isAsFirst = std::ranges::all_of(
      chosen_, [](const KernelChoice& choice) { return choice == KernelChoice(); });
  phase_ = isAsFirst ? Phase::kDone : Phase::kWhole;
  turn_ = 0;
}

void KernelTuner::judge() {
  result_.quickTime = median(wholeTimes_[0]);
  result_.chosenTime = median(wholeTimes_[1]);
  if (isFasterBy(kWholeGain, result_.chosenTime, result_.quickTime)) {
    result_.choices = chosen_;
  } else {
    result_.chosenTime = result_.quickTime;
  }
  phase_ = Phase::kDone;
}

std::optional<MeasuredChoices> KernelTuner::result() const {
  const std::lock_guard lock(mutex_);
  return phase_ == Phase::kDone ? std::optional(result_) : std::nullopt;
}

}  // namespace hearth::cpu
