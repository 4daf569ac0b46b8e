// SPDX-License-Identifier: Apache-2.0
// Memory that code deep inside allocates counts for whoever it works for: a host lets a driver
// compute for a client, and the client may use so much.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"

namespace hearth::memory {

// How much may be allocated for somebody. Thread-safe.
class Budget {
 public:
  virtual ~Budget() = default;

  // Takes room for bytes, as long as the result exists; it may outlive the budget. Errors:
  // kResourceExhaustedTransient beyond the limit.
  virtual Result<std::shared_ptr<void>> reserve(uint64_t bytes) = 0;
};

// Makes a budget that of the calling thread, as long as this exists; null is none. Not movable.
class BudgetScope {
 public:
  explicit BudgetScope(Budget* budget);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  Budget* const before_;
};

// The budget of the calling thread; null where it has none.
Budget* budgetOfThread();

// Takes room in the budget of the calling thread; null where it has none.
Result<std::shared_ptr<void>> reserveRoom(uint64_t bytes);

}  // namespace hearth::memory
