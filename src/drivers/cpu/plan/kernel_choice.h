// SPDX-License-Identifier: Apache-2.0
// How each node of a plan runs, where there is more than one way.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hearth::cpu {

// Of one node: which of its kernels, and on how many threads. The results are the same, but for
// the order in which floats are added.
struct KernelChoice {
  enum class Which : uint8_t {
    kFirst,  // Node::create
    kOther,  // Node::createOther
    kNone,   // no kernel is made
  };
  Which which = Which::kFirst;
  bool isSerial = false;  // on the calling thread alone
  bool operator==(const KernelChoice&) const = default;
};

// By node. Shorter than the plan: the rest run their first kernel on all threads.
using KernelChoices = std::vector<KernelChoice>;

inline KernelChoice choiceOf(const KernelChoices& choices, size_t node) {
  return node < choices.size() ? choices[node] : KernelChoice();
}

// The choices that were measured for a plan, as later processes find them. Value type.
struct MeasuredChoices {
  uint32_t threads = 0;  // that the plan runs on
  KernelChoices choices;
  // Of one execution, nanoseconds: with the first kernels, and as chosen.
  uint64_t quickTime = 0;
  uint64_t chosenTime = 0;

  std::vector<uint8_t> encoded() const;
  // None for bytes that are not those of a plan with so many nodes.
  static std::optional<MeasuredChoices> parse(std::span<const uint8_t> bytes, size_t nodeCount);
  // Nodes that do not run as in the first stage.
  uint32_t changedNodes() const;
  bool operator==(const MeasuredChoices&) const = default;
};

}  // namespace hearth::cpu
