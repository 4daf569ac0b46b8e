// SPDX-License-Identifier: Apache-2.0
// Makes a model, its inputs and its expected outputs from a conformance case.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "tools/conformance/nntv_file.h"

namespace hearth::conformance {

// A way to run a case.
enum class Variant {
  kAsIs,
  kDynamicOutputShape,  // no dimension of an output of the main graph is known
  kSigned,              // QUANT8_ASYMM becomes QUANT8_ASYMM_SIGNED, values and zero points - 128
};

const char* nameOf(Variant variant);

// The variants that the flags of a case ask for, kAsIs first.
std::vector<Variant> variantsOf(const Case& testCase);

// An expected output or an input; `data` is empty for an omitted input or an empty output.
struct CaseValue {
  graph::OperandType type{};
  graph::Dimensions dimensions;
  bool isIgnored = false;
  std::vector<uint8_t> data;
};

struct CaseModel {
  std::shared_ptr<const graph::Model> model;
  std::vector<CaseValue> inputs;
  std::vector<CaseValue> outputs;
};

// Sorts operations into run order, but does not validate the model. kBadData for indices outside
// the case or a cycle.
Result<CaseModel> buildModel(const Case& testCase, Variant variant);

}  // namespace hearth::conformance
