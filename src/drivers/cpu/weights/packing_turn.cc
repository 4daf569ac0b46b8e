// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/packing_turn.h"

#include <memory>
#include <mutex>

#include "base/fork_gate.h"
#include "base/immortal.h"

namespace hearth::cpu {
namespace {

std::mutex& packing() {
  // Held too long for a fork to wait for it, so a forked child makes it anew: no thread of the
  // child holds it.
  static constinit base::Immortal<std::mutex> turn;
  return turn.get([] {
    base::ForkGate::atFork({.afterInChild = [] {
      std::construct_at(&packing());
    }});
    return std::mutex();
  });
}

}  // namespace

PackingTurn::PackingTurn() {
  packing().lock();
}

PackingTurn::~PackingTurn() {
  packing().unlock();
}

}  // namespace hearth::cpu
