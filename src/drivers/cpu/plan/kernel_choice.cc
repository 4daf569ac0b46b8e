// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/kernel_choice.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace hearth::cpu {
namespace {

constexpr uint32_t kVersion = 1;
enum Flags : uint32_t { kOther = 1, kSerial = 2 };
constexpr uint32_t kBits = 2;  // of the flags

// Only nodes that do not run their first kernel on all threads are listed behind the head.
struct Head {
  uint32_t version;
  uint32_t threads;
  uint32_t nodeCount;
  uint32_t listed;
  uint64_t quickTime;
  uint64_t chosenTime;
};
static_assert(sizeof(Head) == 32 && std::is_trivially_copyable_v<Head>);

}  // namespace

std::vector<uint8_t> MeasuredChoices::encoded() const {
  std::vector<uint32_t> listed;
  for (size_t node = 0; node < choices.size(); ++node) {
    uint32_t flags = 0;
    if (choices[node].which == KernelChoice::Which::kOther) flags |= kOther;
    if (choices[node].isSerial) flags |= kSerial;
    if (flags != 0) listed.push_back(static_cast<uint32_t>(node) << kBits | flags);
  }
  const Head head{kVersion,
                  threads,
                  static_cast<uint32_t>(choices.size()),
                  static_cast<uint32_t>(listed.size()),
                  quickTime,
                  chosenTime};
  std::vector<uint8_t> bytes(sizeof head + listed.size() * sizeof(uint32_t));
  std::memcpy(bytes.data(), &head, sizeof head);
  if (!listed.empty())
    std::memcpy(bytes.data() + sizeof head, listed.data(), listed.size() * sizeof(uint32_t));
  return bytes;
}

uint32_t MeasuredChoices::changedNodes() const {
  return static_cast<uint32_t>(std::ranges::count_if(
      choices, [](const KernelChoice& choice) { return choice != KernelChoice(); }));
}

std::optional<MeasuredChoices> MeasuredChoices::parse(std::span<const uint8_t> bytes,
                                                      size_t nodeCount) {
  Head head;
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.version != kVersion || head.nodeCount != nodeCount || head.listed > nodeCount ||
      bytes.size() != sizeof head + head.listed * sizeof(uint32_t))
    return std::nullopt;
  MeasuredChoices measured;
  measured.threads = head.threads;
  measured.quickTime = head.quickTime;
  measured.chosenTime = head.chosenTime;
  measured.choices.resize(nodeCount);
  for (uint32_t i = 0; i < head.listed; ++i) {
    uint32_t entry;
    std::memcpy(&entry, bytes.data() + sizeof head + i * sizeof entry, sizeof entry);
    const size_t node = entry >> kBits;
    if (node >= nodeCount) return std::nullopt;
    if ((entry & kOther) != 0) measured.choices[node].which = KernelChoice::Which::kOther;
    measured.choices[node].isSerial = (entry & kSerial) != 0;
  }
  return measured;
}

}  // namespace hearth::cpu
