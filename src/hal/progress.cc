// SPDX-License-Identifier: Apache-2.0
#include "hal/progress.h"

#include <utility>

#include "base/thread_local.h"

namespace hearth::hal {
namespace {

HEARTH_THREAD_LOCAL constinit Progress* told = nullptr;

}  // namespace

ProgressScope::ProgressScope(Progress* progress) : before_(std::exchange(told, progress)) {}

ProgressScope::~ProgressScope() {
  told = before_;
}

Progress* progressOfThread() {
  return told;
}

}  // namespace hearth::hal
