// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hearth::cpu {

// Preparations that pack take turns: each uses all processors, and each finds what the ones before
// have packed, as when signatures of a language model are compiled at the same time.
class PackingTurn {
 public:
  PackingTurn();  // waits for the turn
  ~PackingTurn();
  PackingTurn(const PackingTurn&) = delete;
  PackingTurn& operator=(const PackingTurn&) = delete;
};

}  // namespace hearth::cpu
