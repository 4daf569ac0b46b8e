// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "cache/identity/content_memory.h"
#include "drivers/cpu/plan/converted_constant.h"
#include "drivers/cpu/plan/plan.h"
#include "drivers/cpu/plan/widened_subgraph.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "graph/model.h"
#include "ops/operation.h"

namespace hearth::cpu {

// The constants of one subgraph of a model as its execution graph uses them: the bytes that nodes
// read or pack, copies of those that cannot be used where they are, and names of what is packed.
// Operands are indices in the subgraph. Used by one thread. The model and `weights` must
// outlive this; `weights` may be null.
class PlanConstants {
 public:
  // `widened` is that of the subgraph; null: it is planned as it is.
  PlanConstants(const graph::Model& model, PackedWeights* weights, uint32_t subgraph = 0,
                const WidenedSubgraph* widened = nullptr);

  // Record that an operand is the result of an operation on constants, without a node for it.
  // `context` is that of the operation, with known shapes. setConverted(): it is computed where it
  // is read or packed, and cannot fail. setComputed(): it is computed now and kept; false if that
  // fails. setView(): it has the bytes of `source`, a constant.
  void setConverted(uint32_t operand, const ops::OperationContext& context);
  bool setComputed(uint32_t operand, const ops::OperationContext& context);
  void setView(uint32_t operand, uint32_t source) { views_[operand] = baseOf(source); }
  // Whether `bytes` more of results may be kept for readers that do not pack them; counts them if
  // so. Results are limited, because constants may be small where their results are large.
  bool takeRoom(uint64_t bytes);
  // Null for operands that are not converted constants.
  const ConvertedConstantRef& converted(uint32_t operand) const {
    return converted_[baseOf(operand)];
  }
  // Whether the operand is a constant or the result of operations on constants.
  bool isWeight(uint32_t operand) const {
    const uint32_t base = baseOf(operand);
    return subgraph_.operands[base].isConstant() || converted_[base] != nullptr;
  }
  // Whether elements() of the operand computes nothing.
  bool hasElements(uint32_t operand) const {
    const uint32_t base = baseOf(operand);
    return subgraph_.operands[base].isConstant() || computed_[base] != nullptr;
  }

  // Bytes that nodes read element by element: aligned, with kReadSlack readable bytes behind them.
  // Those of a large converted constant are kept in the store. Null for an operand that is no
  // constant.
  const uint8_t* elements(uint32_t operand);
  // Bytes of a constant that a node packs at `place`: in place, or a copy where packing would read
  // past readable memory. Not to be read when the place is packed already. Null for a float32
  // result of operations on constants, unless it is computed: layers pack converted().
  const uint8_t* weightData(uint32_t operand, WeightPlace place);
  // The same for kernels that pack at each start: a warm start takes these bytes from the segment
  // store and not from the model. Of a converted constant this is the result.
  Result<const uint8_t*> rawData(uint32_t operand);
  // weightData(), or rawData() of a converted constant; for biases, which are small.
  Result<const uint8_t*> biasData(uint32_t operand, WeightPlace place);

  // Names what an operation of this type packs, for PackedWeights::create(): by `parameters`, by
  // the types and quantisation of `operands` (UINT32_MAX: an omitted one), and by file and offset
  // of those that are constants (by their bytes if the model holds a copy). No other model has a
  // name of constants in a file that may change without a trace. Null when a constant lies in
  // memory without a file, when packing is forbidden, or when all places are preset.
  std::shared_ptr<const base::Sha256Digest> packingSource(graph::OperationType type,
                                                          std::span<const uint32_t> operands,
                                                          std::span<const uint64_t> parameters);

  // Lets the pages of a constant be released once the node has packed it, where the constant lies
  // in a read-only file mapping of ours.
  void releaseAfterPacking(Node* node, uint32_t operand) const;
  // These pages; none where they cannot be released.
  std::span<const uint8_t> releasable(uint32_t operand) const;

  // The copies, which must outlive the execution graph.
  std::vector<std::unique_ptr<uint8_t[]>> takeCopies() { return std::move(copies_); }

 private:
  // What an operand adds to the name of a packing, and to what the packing is made from.
  struct OperandSource {
    base::Sha256Digest name{};
    PackingSource content;
  };
  std::optional<OperandSource> operandSource(uint32_t operand);
  // packingSource() of a constant that is kept as it is.
  std::shared_ptr<const base::Sha256Digest> constantSource(uint32_t operand);
  // The operand whose bytes a view has; other operands are their own.
  uint32_t baseOf(uint32_t operand) const {
    return views_[operand] == UINT32_MAX ? operand : views_[operand];
  }
  ConvertedConstantRef makeConverted(const ops::OperationContext& context) const;
  // Where a constant is kept as it is.
  WeightPlace placeOf(uint32_t operand) const;
  // Whether the kReadSlack bytes behind a constant are readable in place.
  bool hasReadableTail(const graph::Operand& operand) const;
  // Memory for this many bytes and kReadSlack more.
  uint8_t* addCopy(uint64_t bytes);
  const uint8_t* copyOf(const graph::Operand& operand, const uint8_t* data);

  const graph::Model& model_;
  const WidenedSubgraph* const widened_;
  const graph::Subgraph& subgraph_;
  uint32_t firstOperand_ = 0;  // how many operands the subgraphs before this one have
  PackedWeights* const weights_;
  std::vector<ConvertedConstantRef> converted_;                   // by operand
  std::vector<const uint8_t*> computed_;                          // by operand
  std::vector<uint32_t> views_;                                   // by operand: UINT32_MAX: none
  std::vector<std::optional<cache::ContentSource>> poolSources_;  // by pool, where needed
  std::map<uint32_t, std::optional<OperandSource>> operandSources_;
  uint64_t takenBytes_ = 0;  // by takeRoom()
  const uint64_t number_;    // another one for each object of the process
  std::vector<std::unique_ptr<uint8_t[]>> copies_;
};

}  // namespace hearth::cpu
