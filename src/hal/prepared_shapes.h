// SPDX-License-Identifier: Apache-2.0
// What a driver has prepared of a model with unknown dimensions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "graph/model.h"

namespace hearth::hal {

// Complete dimensions of a model's inputs, of which each has what is prepared for it. Where there
// are too many, the one not used for the longest time is dropped; the first one made stays, since
// others may use its constants. `Prepared` is cheap to copy, as a shared_ptr is. Thread-safe.
template <typename Prepared>
class PreparedShapes {
 public:
  using Shapes = std::vector<graph::Dimensions>;

  // Keeps what is prepared for `limit` tuples of shapes, 1 or more.
  explicit PreparedShapes(size_t limit) : limit_(limit) {}

  // None for shapes of which nothing is kept.
  std::optional<Prepared> find(const Shapes& shapes) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(members_, shapes, &Member::shapes);
    if (found == members_.end()) return std::nullopt;
    Prepared prepared = found->prepared;
    if (found != members_.begin() && found + 1 != members_.end())
      std::rotate(found, found + 1, members_.end());
    return prepared;
  }

  // Keeps it. Returns what another thread has prepared for the same shapes meanwhile, or it.
  Prepared keep(const Shapes& shapes, Prepared prepared) {
    Prepared dropped;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    if (const auto other = std::ranges::find(members_, shapes, &Member::shapes);
        other != members_.end()) {
      dropped = std::move(prepared);
      return other->prepared;
    }
    if (members_.size() == limit_) {
      const auto last = members_.begin() + (members_.size() > 1 ? 1 : 0);
      dropped = std::move(last->prepared);
      members_.erase(last);
    }
    members_.push_back({shapes, std::move(prepared)});
    return members_.back().prepared;
  }

  // Remembers why nothing can be prepared for these shapes; of the last ones only.
  void refuse(const Shapes& shapes, const Error& reason) {
    const std::lock_guard lock(mutex_);
    if (refused_.size() == kRefused) refused_.erase(refused_.begin());
    refused_.push_back({shapes, reason});
  }
  std::optional<Error> refusal(const Shapes& shapes) const {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(refused_, shapes, &Refused::shapes);
    return found == refused_.end() ? std::nullopt : std::optional(found->reason);
  }
  std::optional<Error> lastRefusal() const {
    const std::lock_guard lock(mutex_);
    return refused_.empty() ? std::nullopt : std::optional(refused_.back().reason);
  }

  // For how many shapes something is kept.
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return members_.size();
  }
  // All that is kept, with its shapes.
  std::vector<std::pair<Shapes, Prepared>> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<Shapes, Prepared>> all;
    for (const Member& member : members_) all.emplace_back(member.shapes, member.prepared);
    return all;
  }
  // What was prepared first.
  std::optional<Prepared> first() const {
    const std::lock_guard lock(mutex_);
    return members_.empty() ? std::nullopt : std::optional(members_.front().prepared);
  }

 private:
  static constexpr size_t kRefused = 8;

  struct Member {
    Shapes shapes;
    Prepared prepared;
  };
  struct Refused {
    Shapes shapes;
    Error reason;
  };

  const size_t limit_;
  mutable base::Mutex mutex_;
  std::vector<Member> members_;   // the first one made, then the others, the last used at the end
  std::vector<Refused> refused_;  // the last one at the end
};

}  // namespace hearth::hal
