// SPDX-License-Identifier: Apache-2.0
// The canonical model, which every front end builds and every driver reads. Its semantics are
// NNAPI's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/channel_scales.h"
#include "graph/codes.h"
#include "memory/pool.h"

namespace hearth::graph {

// NNAPI's life times of an operand.
enum class Lifetime : uint8_t {
  kTemporary,  // produced and consumed inside the subgraph
  kSubgraphInput,
  kSubgraphOutput,
  kConstantCopy,       // value in Model::constantBytes
  kConstantReference,  // value in one of Model::pools
  kNoValue,            // omitted optional argument
  kSubgraph,           // value is Model::subgraphs[subgraphIndex]; type kModel
};

// The place of a constant's bytes.
struct DataLocation {
  uint32_t pool = 0;  // index into Model::pools; for kConstantReference only
  uint64_t offset = 0;
  uint64_t length = 0;
};

// The scales of a kTensorQuant8SymmPerChannel operand, one for each index of dimension channelDim.
struct PerChannelQuantization {
  uint32_t channelDim = 0;
  ChannelScales scales;
};

using Dimensions = std::vector<uint32_t>;

// One operand. A dimension of 0 is unknown. A non-scalar without dimensions has unknown rank,
// unless `isRankZeroTensor` says that it is a tensor of one element with rank 0, which TFLite has
// and NNAPI lacks.
struct Operand {
  OperandType type = OperandType::kTensorFloat32;
  Dimensions dimensions;
  float scale = 0.0f;
  int32_t zeroPoint = 0;
  PerChannelQuantization perChannel;
  Lifetime lifetime = Lifetime::kTemporary;
  DataLocation location;
  uint32_t subgraphIndex = 0;
  bool isRankZeroTensor = false;
  // Of a type of a driver's extension (Model::extensions), else 0 and empty: the bytes of an
  // element, and what the extension defines for an operand, such as a scale, in a format of its
  // own. A scalar of such a type is a rank-zero tensor.
  uint32_t driverElementSize = 0;
  std::vector<uint8_t> driverData;
  std::string name;  // for people only

  bool isConstant() const {
    return lifetime == Lifetime::kConstantCopy || lifetime == Lifetime::kConstantReference;
  }
  bool hasValue() const { return lifetime != Lifetime::kNoValue; }
};

struct Operation {
  OperationType type = OperationType::kAdd;
  std::vector<uint32_t> inputs;  // indices of operands of the same subgraph
  std::vector<uint32_t> outputs;
  std::string name;  // for people only
};

struct Subgraph {
  std::vector<Operand> operands;
  std::vector<Operation> operations;  // in run order once validate() has passed
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  std::string name;
};

// Marks a ValidatedModel. A copy is another model, without the mark.
class ValidationMark {
 public:
  ValidationMark() = default;
  ValidationMark(const ValidationMark&) {}
  ValidationMark& operator=(const ValidationMark&) {
    isSet_ = false;
    return *this;
  }
  bool isSet() const { return isSet_; }

 private:
  friend class ValidatedModel;
  bool isSet_ = false;
};

// The codes of an extension that a driver brings: those with this prefix.
struct Extension {
  int32_t prefix = 0;  // above kTfliteExtensionPrefix, at most kMaxExtensionPrefix
  std::string name;

  friend bool operator==(const Extension&, const Extension&) = default;
};

// Prefixes are the upper half of a positive int32_t.
inline constexpr int32_t kMaxExtensionPrefix = 0x7fff;

// A model. Value type, except that the pools are shared. By convention immutable once it was given
// to a runtime, and then safe to read from any thread.
struct Model {
  // [0] is the main subgraph; kSubgraph operands refer to the others (IF, WHILE).
  std::vector<Subgraph> subgraphs;
  std::vector<uint8_t> constantBytes;
  std::vector<memory::PoolRef> pools;
  bool relaxFloat32ToFloat16 = false;
  // The extensions of drivers that the model uses; each prefix and each name once. Drivers find the
  // prefix by the name: it is another in each process.
  std::vector<Extension> extensions;
  ValidationMark mark;

  const Subgraph& main() const { return subgraphs.front(); }
  Subgraph& main() { return subgraphs.front(); }

  // The bytes of a constant operand, null for any other; only after validate() has passed.
  const uint8_t* constantData(const Operand& operand) const;

  // The extension of a driver to which a code belongs, or that has the name; null if there is none.
  const Extension* findExtension(int32_t code) const;
  const Extension* findExtension(std::string_view extensionName) const;
};

// Bytes of one element of the operand; 0 for types of less than a byte and for kModel.
inline size_t elementSize(const Operand& operand) {
  return isDriverCode(operand.type) ? operand.driverElementSize : elementSize(operand.type);
}

// The number of elements: the product of the dimensions, 1 for scalars. kBadData when a dimension
// is unknown, or when the product or its size in bytes exceeds 2^32 - 1 for NNAPI types (2^63
// otherwise).
Result<uint64_t> elementCount(const Operand& operand);
// The size in bytes of a fully specified operand; rounded up for types of less than a byte. Errors
// as elementCount().
Result<uint64_t> byteSize(const Operand& operand);
bool isFullySpecified(const Operand& operand);

// "TENSOR_FLOAT32[1,224,224,3]", for messages.
std::string describe(const Operand& operand);
std::string describeDimensions(const Dimensions& dimensions);

// Checks the structure of the whole model: indices, life times, places and sizes of constants
// against the pools, quantisation (finite scales > 0, zero points in range), per-channel
// parameters, graph inputs and outputs; that every operand is written at most once, and before it
// is read; that subgraphs do not refer to each other in cycles. Does not sort: call
// sortIntoRunOrder first if the order is unknown. src/ops checks the signatures of operations.
// kBadData names subgraph, operation or operand.
Status validate(const Model& model);

// Sorts the operations of each subgraph so that each runs after its producers; stable. kBadData
// when there is a cycle or an operand that is read but never written.
Status sortIntoRunOrder(Model* model);

}  // namespace hearth::graph
