// SPDX-License-Identifier: Apache-2.0
#include "memory/budget.h"

#include <utility>

#include "base/thread_local.h"

namespace hearth::memory {
namespace {

HEARTH_THREAD_LOCAL constinit Budget* ofThread = nullptr;

}  // namespace

BudgetScope::BudgetScope(Budget* budget) : before_(std::exchange(ofThread, budget)) {}

BudgetScope::~BudgetScope() {
  ofThread = before_;
}

Budget* budgetOfThread() {
  return ofThread;
}

Result<std::shared_ptr<void>> reserveRoom(uint64_t bytes) {
  if (ofThread == nullptr) return std::shared_ptr<void>();
  return ofThread->reserve(bytes);
}

}  // namespace hearth::memory
