// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "tflite_abi/operator.h"

namespace hearth::tflite_c {

// Makes the operator the one that computes custom operations of its name in models that are
// imported and compiled from now on, as long as `custom` lives; the last one counts. Does nothing
// for an operation that Hearth computes itself, or for which the process has registered an operator
// of Hearth's. kBadData for an operator without a name or without its functions. Thread-safe.
Status provideOperator(const std::shared_ptr<const TfLiteOperator>& custom);

}  // namespace hearth::tflite_c
