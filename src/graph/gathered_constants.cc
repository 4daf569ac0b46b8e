// SPDX-License-Identifier: Apache-2.0
#include "graph/gathered_constants.h"

#include <map>
#include <tuple>
#include <utility>

namespace hearth::graph {
namespace {

constexpr uint64_t kAlignment = 64;

uint64_t aligned(uint64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

GatheredConstants gatherConstants(const Model& source) {
  static constexpr uint8_t kZeros[kAlignment] = {};
  GatheredConstants made;
  made.model = source;
  std::map<std::tuple<uint32_t, uint64_t, uint64_t>, uint64_t> offsets;
  for (Subgraph& subgraph : made.model.subgraphs)
    for (Operand& operand : subgraph.operands) {
      if (operand.lifetime != Lifetime::kConstantReference) continue;
      DataLocation& place = operand.location;
      const auto [known, isNew] =
          offsets.try_emplace({place.pool, place.offset, place.length}, made.bytes);
      if (isNew) {
        const uint8_t* const data = source.pools[place.pool]->data() + place.offset;
        made.pieces.emplace_back(data, place.length);
        made.pieces.emplace_back(kZeros, aligned(place.length) - place.length);
        made.bytes += aligned(place.length);
      }
      place.pool = 0;
      place.offset = known->second;
    }
  made.model.pools.clear();
  return made;
}

memory::PoolRef poolOf(std::shared_ptr<const memory::Mapping> data, uint64_t bytes) {
  memory::PoolRef pool = memory::Pool::borrowed(data->data(), bytes);
  const memory::Pool* const address = pool.get();
  auto both = std::make_shared<std::pair<std::shared_ptr<const memory::Mapping>, memory::PoolRef>>(
      std::move(data), std::move(pool));
  return memory::PoolRef(std::move(both), address);
}

}  // namespace hearth::graph
