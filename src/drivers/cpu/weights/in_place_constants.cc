// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/in_place_constants.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hearth::cpu {
namespace {

// Larger constants are packed or are tables.
constexpr uint64_t kSmall = uint64_t{64} << 10;
// The first look-ups bring in most of a smaller table anyway.
constexpr uint64_t kLargeTable = uint64_t{8} << 20;
// Constants that lie closer together than this are read faster in one piece.
constexpr uintptr_t kGap = uintptr_t{16} << 10;

struct Range {
  uintptr_t begin;
  uintptr_t end;
};

// The bytes of a constant in a read-only file mapping; empty for other operands.
Range fileRange(const graph::Model& model, const graph::Operand& operand) {
  if (operand.lifetime != graph::Lifetime::kConstantReference || operand.location.length == 0)
    return {};
  const memory::Pool& pool = *model.pools[operand.location.pool];
  if (pool.kind() != memory::PoolKind::kMmapFd || pool.writable()) return {};
  const auto begin = reinterpret_cast<uintptr_t>(pool.data()) + operand.location.offset;
  return {begin, begin + operand.location.length};
}

void advise(Range range, int advice) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = range.begin / page * page;
  ::madvise(reinterpret_cast<void*>(begin), range.end - begin, advice);
}

size_t sizeOf(Range range) {
  return range.end - range.begin;
}

// The position of the input whose rows the operation looks up; negative for other operations.
int tableInput(graph::OperationType type) {
  switch (type) {
    case graph::OperationType::kEmbeddingLookup:
      return 1;
    case graph::OperationType::kHashtableLookup:
      return 2;
    case graph::OperationType::kGather:
      return 0;
    default:
      return -1;
  }
}

std::vector<Range> tables(const graph::Model& model) {
  std::vector<Range> ranges;
  for (const graph::Operation& operation : model.main().operations)
    if (const int input = tableInput(operation.type); input >= 0)
      ranges.push_back(
          fileRange(model, model.main().operands[operation.inputs[static_cast<size_t>(input)]]));
  return ranges;
}

}  // namespace

std::vector<graph::DataLocation> tablesOnlyLookedUp(const graph::Model& model) {
  const graph::Subgraph& main = model.main();
  std::vector<bool> isTable(main.operands.size());
  std::vector<bool> isRead(main.operands.size());  // otherwise than by look-ups
  for (const graph::Operation& operation : main.operations)
    for (size_t i = 0; i < operation.inputs.size(); ++i)
      (static_cast<int>(i) == tableInput(operation.type) ? isTable : isRead)[operation.inputs[i]] =
          true;
  std::vector<graph::DataLocation> tables;
  std::vector<graph::DataLocation> others;
  for (const graph::Subgraph& subgraph : model.subgraphs)
    for (size_t i = 0; i < subgraph.operands.size(); ++i) {
      const graph::Operand& operand = subgraph.operands[i];
      if (operand.lifetime != graph::Lifetime::kConstantReference) continue;
      const bool isOnlyTable = &subgraph == &main && isTable[i] && !isRead[i];
      (isOnlyTable && operand.location.length >= kLargeTable ? tables : others)
          .push_back(operand.location);
    }
  // Operands may share bytes.
  std::erase_if(tables, [&](const graph::DataLocation& table) {
    return std::ranges::any_of(others, [&](const graph::DataLocation& other) {
      return other.pool == table.pool && other.offset < table.offset + table.length &&
             table.offset < other.offset + other.length;
    });
  });
  return tables;
}

void expectLookups(const graph::Model& model) {
  for (const Range& table : tables(model))
    if (sizeOf(table) >= kLargeTable) advise(table, MADV_RANDOM);
}

void readSmallConstantsAhead(const graph::Model& model) {
  std::vector<Range> ranges;
  for (const Range& table : tables(model))
    if (sizeOf(table) < kLargeTable) ranges.push_back(table);
  for (const graph::Operand& operand : model.main().operands)
    if (const Range range = fileRange(model, operand); sizeOf(range) <= kSmall)
      ranges.push_back(range);
  std::erase_if(ranges, [](const Range& range) { return sizeOf(range) == 0; });
  std::ranges::sort(ranges, {}, &Range::begin);
  for (size_t i = 0; i < ranges.size();) {
    Range merged = ranges[i++];
    for (; i < ranges.size() && ranges[i].begin <= merged.end + kGap; ++i)
      merged.end = std::max(merged.end, ranges[i].end);
    advise(merged, MADV_WILLNEED);
  }
}

}  // namespace hearth::cpu
