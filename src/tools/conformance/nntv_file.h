// SPDX-License-Identifier: Apache-2.0
// Reader of conformance vectors (*.nntv): NNAPI operation tests, little endian, records unaligned.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "memory/pool.h"

namespace hearth::conformance {

enum CaseFlag : uint32_t {
  kRelaxed = 1,
  kExpectFailure = 2,
  kInfiniteLoop = 4,
  kDynamicOutputShape = 8,
  kQuantCoupling = 16,
  kDeviceMemory = 32,
  kMultinomial = 64,
};

struct CaseOperand {
  std::string name;
  graph::OperandType type{};
  graph::Lifetime lifetime{};
  bool isIgnored = false;
  graph::Dimensions dimensions;
  float scale = 0.0f;
  int32_t zeroPoint = 0;
  int32_t subgraph = -1;  // index of the referenced subgraph, the main one not counted
  graph::PerChannelQuantization perChannel;
  std::span<const uint8_t> data;  // inside the file; empty also for an omitted input
};

struct CaseSubgraph {
  std::string name;
  std::vector<CaseOperand> operands;
  std::vector<graph::Operation> operations;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
};

// The tolerance of one type of output: |actual - expected| <= absolute + relative * |expected|.
struct Tolerance {
  float absolute = 0.0f;
  float relative = 0.0f;
};

struct Case {
  std::string name;
  std::string spec;
  uint32_t flags = 0;
  float multinomialTolerance = 0.0f;
  // float32 float16 int32 quant8Asymm quant8AsymmSigned quant8Symm quant16Asymm quant16Symm.
  std::array<Tolerance, 8> tolerances{};
  std::vector<CaseSubgraph> subgraphs;  // [0] is the main one
};

// A file of cases. It must outlive the cases, whose data point into it. Immutable, thread-safe.
class NntvFile {
 public:
  // kBadData for a header or index that does not fit the file.
  static Result<NntvFile> open(const std::string& path);
  static Result<NntvFile> parse(memory::PoolRef bytes);

  size_t caseCount() const { return offsets_.size(); }
  // kBadData for a record that reaches past the end of the file or is too large.
  Result<Case> readCase(size_t index) const;

 private:
  memory::PoolRef bytes_;
  std::vector<uint64_t> offsets_;
};

}  // namespace hearth::conformance
