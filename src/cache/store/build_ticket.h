// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "cache/object/build_lock.h"
#include "cache/segment/segment.h"

namespace hearth::cache {

// The right to build one segment, or the reason not to. Move-only; hold it until the segment is
// published (publishAsync takes it along). A thread that holds one may wait for another only if the
// first segment gets published without that thread.
class BuildTicket {
 public:
  enum class Role {
    kBuild,  // build and publish; others wait for it
    kFound,  // the segment is there
    kAlone,  // build for the caller only: locks do not work here, or the builder makes no progress
  };
  BuildTicket() = default;
  // `guard` is released with the ticket.
  explicit BuildTicket(BuildLock::Hold hold, std::shared_ptr<void> guard = nullptr)
      : role_(Role::kBuild), hold_(std::move(hold)), guard_(std::move(guard)) {}
  explicit BuildTicket(SegmentRef segment) : role_(Role::kFound), segment_(std::move(segment)) {}

  Role role() const { return role_; }
  // Null unless kFound.
  const SegmentRef& segment() const { return segment_; }
  // Lets the next process or thread build.
  void release() {
    guard_.reset();
    hold_.release();
  }

 private:
  Role role_ = Role::kAlone;
  SegmentRef segment_;
  BuildLock::Hold hold_;
  std::shared_ptr<void> guard_;
};

}  // namespace hearth::cache
