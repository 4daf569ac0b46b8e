// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/run_limits.h"

#include <utility>

#include "base/thread_local.h"

namespace hearth::cpu {
namespace {

HEARTH_THREAD_LOCAL constinit const RunLimits* current = nullptr;

}  // namespace

const RunLimits& RunLimits::ofThread() {
  static const RunLimits standard;
  return current != nullptr ? *current : standard;
}

RunLimitsScope::RunLimitsScope(const RunLimits& limits)
    : before_(std::exchange(current, &limits)) {}

RunLimitsScope::~RunLimitsScope() {
  current = before_;
}

}  // namespace hearth::cpu
