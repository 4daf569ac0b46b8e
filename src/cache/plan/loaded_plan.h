// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/descriptor.h"
#include "cache/plan/plan_file.h"

namespace hearth::cache {

// A plan in use. While it exists, garbage collection keeps the plan's object and its segments.
// Immutable and thread-safe.
class LoadedPlan {
 public:
  LoadedPlan(PlanContent content, base::Descriptor lock)
      : content_(std::move(content)), lock_(std::move(lock)) {}
  const PlanContent& content() const { return content_; }
  std::span<const uint8_t> bytes() const { return content_.bytes; }
  std::span<const SegmentKey> segments() const { return content_.segments; }
  const PlanDescription& description() const { return content_.description; }
  // The descriptor of the plan's object, for syncing; -1 when the plan has no object of its own.
  // Owned by this.
  int descriptor() const { return lock_.get(); }

 private:
  PlanContent content_;
  base::Descriptor lock_;  // holds a shared lock on the object, if there is one
};

using PlanRef = std::shared_ptr<const LoadedPlan>;

}  // namespace hearth::cache
