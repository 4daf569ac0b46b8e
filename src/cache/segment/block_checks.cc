// SPDX-License-Identifier: Apache-2.0
#include "cache/segment/block_checks.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "base/fork_gate.h"

namespace hearth::cache {
namespace {

// How many blocks lie between two positions that are remembered; remembering costs less than one
// block.
constexpr uint64_t kRememberedBlocks = 32;

// A wrong verdict has its effect inside the ForkGate: a child inherits the check or the effect. A
// right one may sync files, for which no fork is to wait.
void end(BlockCheck& check, const StoreStatus& status) {
  std::optional<base::ForkGate::Inside> inside;
  if (!status) inside.emplace();
  if (!check.isOver.exchange(true)) check.end(status);
}

// One name for a set of checks, whatever their order.
base::Sha256Digest idOf(std::vector<base::Sha256Digest> ids) {
  std::ranges::sort(ids);
  base::Sha256 hash;
  hash.update("all of these", 12);
  hash.update(ids.data(), ids.size() * sizeof(base::Sha256Digest));
  return hash.finish();
}

}  // namespace

bool BlockChecks::add(std::shared_ptr<BlockCheck> check) {
  const std::lock_guard lock(mutex_);
  checks_.push_back(std::move(check));
  return !std::exchange(isAwaited_, true);
}

bool BlockChecks::inherit(BlockChecks& parent) {
  Checks open = parent.pending();
  if (open.empty()) return false;
  const std::lock_guard lock(mutex_);
  checks_ = std::move(open);
  return !std::exchange(isAwaited_, true);
}

// Forgets the checks that are over, and returns the others.
BlockChecks::Checks BlockChecks::pending() {
  const std::lock_guard lock(mutex_);
  std::erase_if(checks_, [](const auto& check) { return check->isOver.load(); });
  return checks_;
}

// Takes up checks where earlier processes left them.
void BlockChecks::recall(std::span<const std::shared_ptr<BlockCheck>> checks,
                         std::span<const base::Sha256Digest> ids) const {
  const std::vector<uint64_t> known = memory_.recall(ids);
  for (size_t i = 0; i < checks.size(); ++i)
    if (checks[i]->right == 0) checks[i]->right = std::min(known[i], checks[i]->blocks);
}

void BlockChecks::inspect(BlockCheck& check, const std::function<bool()>& mayGoOn,
                          const std::function<void(uint64_t right)>& remember) {
  if (check.isOver) return;
  const uint64_t from = check.right;
  if (from == check.blocks) return end(check, {});
  uint64_t remembered = from;
  bool isEnded = false;
  const auto rememberNew = [&] {
    if (check.right > remembered) remember(check.right);
    remembered = check.right;
  };
  const StoreStatus status = check.run(from, [&](uint64_t block) {
    check.right = block;
    if (block >= remembered + kRememberedBlocks) rememberNew();
    isEnded = !mayGoOn();
    return !isEnded;
  });
  if (status && !isEnded) check.right = check.blocks;
  rememberNew();
  if (!status || check.right == check.blocks) end(check, status);
}

void BlockChecks::runAll(const std::function<bool()>& isStopping) {
  {
    const std::lock_guard lock(mutex_);
    isAwaited_ = false;
  }
  const bool isLasting = memory_.isLasting();
  for (const auto& check : pending()) {
    if (isStopping()) return;
    const base::Sha256Digest id = isLasting ? check->id() : base::Sha256Digest();
    if (isLasting) recall({&check, 1}, {&id, 1});
    inspect(
        *check, [&] { return !isStopping(); },
        [&](uint64_t right) {
          const CheckedBlocks position{id, right, right == check->blocks};
          if (isLasting) memory_.remember({&position, 1});
        });
  }
}

void BlockChecks::runPart(const Limits& limits) {
  const Checks checks = pending();
  if (checks.empty()) return;
  if (!memory_.isLasting()) return sample(checks, limits.sample);
  std::vector<base::Sha256Digest> ids;
  for (const auto& check : checks) ids.push_back(check->id());
  // Asking about each segment would take long where there are hundreds and all are known to be
  // right.
  const base::Sha256Digest all = idOf(ids);
  if (checks.size() > 1 && memory_.recall({&all, 1}).front() == UINT64_MAX) return;
  recall(checks, ids);
  const auto deadline = std::chrono::steady_clock::now() + limits.time;
  uint64_t done = 0;
  const auto mayGoOn = [&] {
    if (done >= limits.most ||
        (done >= limits.least && std::chrono::steady_clock::now() >= deadline))
      return false;
    ++done;
    return true;
  };
  // Written once at the end: each write takes longer than the check of a small segment. Who is
  // killed before has checked in vain.
  std::vector<CheckedBlocks> found;
  size_t over = 0;
  for (; over < checks.size(); ++over) {
    BlockCheck& check = *checks[over];
    inspect(check, mayGoOn,
            [&](uint64_t right) { found.push_back({ids[over], right, right == check.blocks}); });
    if (!check.isOver) break;
  }
  const bool isRight = over == checks.size() && std::ranges::all_of(checks, [](const auto& check) {
                         return check->right == check->blocks;
                       });
  if (isRight && checks.size() > 1) found.push_back({all, checks.size(), true});
  if (!found.empty()) memory_.remember(found);
}

void BlockChecks::sample(const Checks& checks, uint64_t blocks) {
  uint64_t all = 0;
  for (const auto& check : checks) all += check->blocks;
  if (all == 0) return;
  std::minstd_rand random(
      static_cast<uint32_t>(std::chrono::steady_clock::now().time_since_epoch().count() / 1000));
  random.discard(1);
  uint64_t from = std::uniform_int_distribution<uint64_t>(0, all - 1)(random);
  for (const auto& check : checks) {
    if (from >= check->blocks) {
      from -= check->blocks;
      continue;
    }
    const StoreStatus status =
        check->run(std::exchange(from, 0), [&](uint64_t) { return blocks > 0 && blocks-- > 0; });
    if (!status) end(*check, status);
    if (blocks == 0) return;
  }
}

}  // namespace hearth::cache
