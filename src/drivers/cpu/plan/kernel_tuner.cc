// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/kernel_tuner.h"

#include <algorithm>
#include <numeric>

namespace hearth::cpu {
namespace {

enum Candidate : unsigned { kFirstOnAll, kFirstOnOne, kOtherOnAll };

// A candidate that is slower by this fraction in its first executions is given up, because it slows
// those executions down.
constexpr double kHopelessLoss = 0.2;
constexpr size_t kHopelessRuns = 2;

// A candidate has to be faster by this fraction to replace the first kernel. (Rounds::wholeGain is
// the fraction for the choice as a whole.)
constexpr double kNodeGain = 0.05;

KernelTuner::Time median(std::vector<KernelTuner::Time> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

KernelTuner::Time sum(const std::vector<KernelTuner::Time>& times) {
  return std::accumulate(times.begin(), times.end(), KernelTuner::Time{0});
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

const KernelTuner::Rounds& KernelTuner::rounds() const {
  return quickest_ > effort_.longExecution ? effort_.longRounds : effort_.rounds;
}

// Whether a candidate has been measured often enough on all nodes that try it.
bool KernelTuner::isEnough(unsigned candidate) const {
  for (size_t node = 0; node < times_.size(); ++node)
    if (isTried_[node][candidate] && times_[node][candidate].size() < rounds().node) return false;
  return true;
}

// Decides which nodes try which candidates, once the times of the first kernels are roughly known.
void KernelTuner::startNodes(bool hasOthers) {
  std::vector<Time> first;
  for (const auto& times : times_) first.push_back(median(times[kFirstOnAll]));
  const double worth = rounds().wholeGain * static_cast<double>(sum(first));
  turns_.push_back(kFirstOnAll);
  for (unsigned candidate = kFirstOnOne; candidate < kCandidates; ++candidate) {
    const KernelChoice choice = choiceOfCandidate(candidate);
    Time tried = 0;
    for (size_t node = 0; node < times_.size(); ++node) {
      const bool isThere = choice.which == KernelChoice::Which::kFirst ||
                           (hasOthers && plan_.nodes[node].createOther != nullptr);
      const bool isShort = first[node] <= effort_.mostSerial;
      isTried_[node][candidate] = isThere && (!choice.isSerial || (threads_ > 1 && isShort));
      if (isTried_[node][candidate]) tried += first[node];
    }
    // Only if the gain would count even if these nodes took no time at all.
    if (static_cast<double>(tried) > worth)
      turns_.push_back(candidate);
    else
      for (auto& node : isTried_) node[candidate] = false;
  }
  phase_ = turns_.size() > 1 ? Phase::kNodes : Phase::kDone;
}

std::optional<KernelTuner::Trial> KernelTuner::begin(Others others) {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::kQuick && others != Others::kInTheMaking &&
      times_[0][kFirstOnAll].size() > rounds().node / 2)
    startNodes(others == Others::kThere);
  if (phase_ == Phase::kFirstRuns || phase_ == Phase::kDone) return std::nullopt;
  if (phase_ == Phase::kQuick && others == Others::kInTheMaking) return std::nullopt;
  Trial trial;
  trial.times.resize(times_.size());
  trial.choices.resize(times_.size());
  if (phase_ == Phase::kWhole) {
    trial.isWhole = true;
    trial.candidate = static_cast<unsigned>(turn_++ % 2);
    if (trial.candidate == 1) trial.choices = chosen_;
  } else if (phase_ == Phase::kNodes) {
    // This ends: when all candidates have enough measurements, the phase is over.
    do trial.candidate = turns_[turn_++ % turns_.size()];
    while (isEnough(trial.candidate));
    for (size_t node = 0; node < times_.size(); ++node)
      if (isTried_[node][trial.candidate]) trial.choices[node] = choiceOfCandidate(trial.candidate);
  }
  return trial;
}

void KernelTuner::end(const Trial& trial) {
  const std::lock_guard lock(mutex_);
  if (trial.isWhole != (phase_ == Phase::kWhole) || phase_ == Phase::kDone) return;
  if (trial.isWhole) {
    wholeTimes_[trial.candidate].push_back(sum(trial.times));
    if (wholeTimes_[0].size() >= rounds().whole && wholeTimes_[1].size() >= rounds().whole) judge();
    return;
  }
  if (phase_ == Phase::kQuick) quickest_ = std::min(quickest_, sum(trial.times));
  for (size_t node = 0; node < times_.size(); ++node) {
    std::vector<Time>& times = times_[node][trial.candidate];
    if (isTried_[node][trial.candidate] && times.size() < rounds().node)
      times.push_back(trial.times[node]);
    if (trial.candidate != kFirstOnAll && times.size() == kHopelessRuns &&
        isSlowerBy(kHopelessLoss, std::ranges::min(times), median(times_[node][kFirstOnAll]))) {
      isTried_[node][trial.candidate] = false;
      times.clear();
    }
  }
  if (phase_ == Phase::kNodes &&
      std::ranges::all_of(turns_, [this](unsigned candidate) { return isEnough(candidate); }))
    choose();
}

void KernelTuner::endUnmeasured(Time time) {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::kFirstRuns) return;
  firstTime_ += time;
  if (++firstRuns_ >= effort_.firstRuns || firstTime_ >= effort_.firstTime) phase_ = Phase::kQuick;
}

bool KernelTuner::isMeasuring() const {
  const std::lock_guard lock(mutex_);
  return phase_ != Phase::kFirstRuns;
}

void KernelTuner::choose() {
  chosen_.assign(times_.size(), {});
  Time whole = 0;
  Time gained = 0;
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
    whole += first;
    gained += first - best;
  }
  // A gain that judge() would reject is not measured as a whole.
  phase_ = isFasterBy(rounds().wholeGain, whole - gained, whole) ? Phase::kWhole : Phase::kDone;
  turn_ = 0;
}

void KernelTuner::judge() {
  result_.quickTime = median(wholeTimes_[0]);
  result_.chosenTime = median(wholeTimes_[1]);
  if (isFasterBy(rounds().wholeGain, result_.chosenTime, result_.quickTime)) {
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
