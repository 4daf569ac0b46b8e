// SPDX-License-Identifier: Apache-2.0
#include "tflite_abi/node_partition.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>

namespace hearth::tflite_abi {
namespace {

// For each node those that have to run before it, by position in the plan.
std::vector<std::vector<size_t>> dependencies(const std::vector<PlannedNode>& plan) {
  std::map<int32_t, size_t> makers;  // of tensors
  std::map<int32_t, size_t> lastOfState;
  std::optional<size_t> lastEffect;
  std::vector<std::vector<size_t>> needs(plan.size());
  for (size_t i = 0; i < plan.size(); ++i) {
    for (const int32_t input : plan[i].inputs)
      if (const auto maker = makers.find(input); maker != makers.end())
        needs[i].push_back(maker->second);
    for (const int32_t state : plan[i].states) {
      if (const auto last = lastOfState.find(state); last != lastOfState.end())
        needs[i].push_back(last->second);
      lastOfState[state] = i;
    }
    if (plan[i].hasSideEffects) {
      if (lastEffect) needs[i].push_back(*lastEffect);
      lastEffect = i;
    }
    for (const int32_t output : plan[i].outputs) makers[output] = i;
  }
  return needs;
}

// The nodes that read each tensor, by position in the plan.
std::map<int32_t, std::vector<size_t>> readersOf(const std::vector<PlannedNode>& plan) {
  std::map<int32_t, std::vector<size_t>> readers;
  for (size_t i = 0; i < plan.size(); ++i)
    for (const int32_t input : plan[i].inputs) readers[input].push_back(i);
  return readers;
}

// The tensors that a subset reads from elsewhere, and those of its own that others read.
void findEdges(const std::vector<PlannedNode>& plan, const std::vector<size_t>& members,
               const std::map<int32_t, std::vector<size_t>>& readers,
               const std::set<int32_t>& results, NodeSubset* subset) {
  std::set<int32_t> made;
  std::set<int32_t> read;
  const std::set<size_t> inside(members.begin(), members.end());
  for (const size_t member : members) {
    for (const int32_t input : plan[member].inputs)
      if (input >= 0 && !made.contains(input)) read.insert(input);
    made.insert(plan[member].outputs.begin(), plan[member].outputs.end());
  }
  const auto isNeeded = [&](int32_t tensor) {
    const auto found = readers.find(tensor);
    return results.contains(tensor) ||
           (found != readers.end() && std::ranges::any_of(found->second, [&](size_t reader) {
              return !inside.contains(reader);
            }));
  };
  subset->inputs.assign(read.begin(), read.end());
  std::ranges::copy_if(made, std::back_inserter(subset->outputs), isNeeded);
}

}  // namespace

std::vector<NodeSubset> partitionNodes(const std::vector<PlannedNode>& plan,
                                       const std::set<int32_t>& taken,
                                       const std::vector<int32_t>& results) {
  const std::vector<std::vector<size_t>> needs = dependencies(plan);
  const std::map<int32_t, std::vector<size_t>> readers = readersOf(plan);
  const std::set<int32_t> resultSet(results.begin(), results.end());
  std::vector<bool> isPlaced(plan.size(), false);
  std::vector<NodeSubset> subsets;
  for (size_t placed = 0; placed < plan.size();) {
    NodeSubset subset;
    std::vector<size_t> members;
    // What a node needs lies before it in the plan, so one pass finds all that can follow.
    for (size_t i = 0; i < plan.size(); ++i) {
      const bool isTaken = taken.contains(plan[i].index);
      const bool isOfKind = members.empty() || subset.isTaken == isTaken;
      if (isPlaced[i] || !isOfKind ||
          !std::ranges::all_of(needs[i], [&](size_t need) { return isPlaced[need]; }))
        continue;
      subset.isTaken = isTaken;
      isPlaced[i] = true;
      members.push_back(i);
      subset.nodes.push_back(plan[i].index);
    }
    placed += members.size();
    findEdges(plan, members, readers, resultSet, &subset);
    subsets.push_back(std::move(subset));
  }
  return subsets;
}

}  // namespace hearth::tflite_abi
