// SPDX-License-Identifier: Apache-2.0
#include "base/exit_work.h"

#include <atomic>

#include "base/env.h"

namespace hearth::base {
namespace {

// Negative until setWorkAtExit is called.
constinit std::atomic<int> decision = -1;

}  // namespace

bool worksAtExit() {
  const int decided = decision.load(std::memory_order_relaxed);
  if (decided >= 0) return decided != 0;
  const Result<std::string> word = envChoice(Env::kAtExit);
  return !word || *word == "write";
}

void setWorkAtExit(bool works) {
  decision.store(works ? 1 : 0, std::memory_order_relaxed);
}

}  // namespace hearth::base
