// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/plan_keys.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "graph/model_digest.h"

namespace hearth::cpu {
namespace {

template <typename Key>
Key keyOf(std::string_view kind, std::initializer_list<base::Sha256Digest> parts) {
  base::Sha256 hash;
  hash.update(kind.data(), kind.size());
  for (const base::Sha256Digest& part : parts) hash.update(part);
  return {hash.finish()};
}

base::Sha256Digest digestOf(const hal::PrepareOptions& options) {
  const auto preference = static_cast<uint8_t>(options.preference);
  return base::Sha256::of({&preference, 1});
}

// Smaller constants are rather shapes and parameters than weights.
constexpr uint64_t kLeastWeights = 1024;

// Of the types and sizes of the constants, in whatever order.
base::Sha256Digest digestOfConstants(const graph::Model& model) {
  std::vector<std::pair<graph::OperandType, uint64_t>> constants;
  for (const graph::Subgraph& subgraph : model.subgraphs)
    for (const graph::Operand& operand : subgraph.operands)
      if (operand.isConstant() && operand.location.length >= kLeastWeights)
        constants.emplace_back(operand.type, operand.location.length);
  std::ranges::sort(constants);
  base::Sha256 hash;
  for (const auto& [type, bytes] : constants) {
    hash.update(&type, sizeof type);
    hash.update(&bytes, sizeof bytes);
  }
  return hash.finish();
}

}  // namespace

PlanKeys::PlanKeys(const graph::Model& model, const hal::PrepareOptions& options,
                   const BuildIdentity& build, unsigned threads)
    : model_(&model),
      build_(&build),
      fingerprint_(build.fingerprint()),
      structure_(graph::structureDigest(model)),
      options_(digestOf(options)),
      graph_(keyOf<cache::PlanKey>("hearth-cpu graph", {structure_, options_}).bytes),
      threads_(threads) {}

cache::PlanKey PlanKeys::plan(const base::Sha256Digest& content) const {
  return keyOf<cache::PlanKey>("hearth-cpu plan", {graph_, fingerprint_, content});
}

cache::PlanKey PlanKeys::bundle(const base::Sha256Digest& content) const {
  return keyOf<cache::PlanKey>("hearth-cpu bundle", {fingerprint_, content});
}

cache::PlanKey PlanKeys::record() const {
  return keyOf<cache::PlanKey>("hearth-cpu record", {structure_});
}

cache::PlanKey PlanKeys::packings() const {
  return keyOf<cache::PlanKey>("hearth-cpu packings", {digestOfConstants(*model_), fingerprint_});
}

PlanOrigin PlanKeys::origin(const base::Sha256Digest& content) const {
  return {*build_, options_, content};
}

cache::SegmentKey PlanKeys::buildLock() const {
  return keyOf<cache::SegmentKey>("hearth-cpu build", {structure_, options_, fingerprint_});
}

std::string PlanKeys::fact(std::string_view kind) const {
  std::string key(kind);
  key += '\0';
  key.append(graph_.begin(), graph_.end());
  key.append(fingerprint_.begin(), fingerprint_.end());
  return key + std::to_string(threads_);
}

}  // namespace hearth::cpu
