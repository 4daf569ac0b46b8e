// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "tools/conformance/case_model.h"

namespace hearth::conformance {

// Compares an output of the same size element by element with the tolerances of the case. kBadData
// names the first element that differs, or the type when its outputs cannot be compared.
Status compareValues(const Case& testCase, const CaseValue& expected,
                     std::span<const uint8_t> actual);

// For RANDOM_MULTINOMIAL: compares the frequency of each class with softmax(logits of the first
// row).
Status compareMultinomial(const Case& testCase, const CaseValue& logits,
                          std::span<const uint8_t> actual);

}  // namespace hearth::conformance
