// SPDX-License-Identifier: Apache-2.0
// How each node of an execution graph runs, where there is more than one way.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hearth::cpu {

// Which of its kernels a node runs, and on how many threads. Results differ only by the order in
// which floats are added.
struct KernelChoice {
  enum class Which : uint8_t {
    kFirst,  // Node::create
    kOther,  // Node::createOther
    kNone,   // no kernel is built
  };
  Which which = Which::kFirst;
  bool isSerial = false;  // on the calling thread alone
  bool operator==(const KernelChoice&) const = default;
};

// By node. Nodes beyond the end run their first kernel on all threads.
using KernelChoices = std::vector<KernelChoice>;

inline KernelChoice choiceOf(const KernelChoices& choices, size_t node) {
  return node < choices.size() ? choices[node] : KernelChoice();
}

// The choices that were measured for a plan, in the form that is kept for later processes. Value
// type.
struct MeasuredChoices {
  uint32_t threads = 0;  // number of threads that the plan runs on
  KernelChoices choices;
  // Nanoseconds of one execution with the first kernels, and with these choices.
  uint64_t quickTime = 0;
  uint64_t chosenTime = 0;

  std::vector<uint8_t> encoded() const;
  // None for malformed bytes, and for those of a plan with another number of nodes.
  static std::optional<MeasuredChoices> parse(std::span<const uint8_t> bytes, size_t nodeCount);
  // Number of nodes that do not run as in the first stage.
  uint32_t changedNodes() const;
  bool operator==(const MeasuredChoices&) const = default;
};

}  // namespace hearth::cpu
