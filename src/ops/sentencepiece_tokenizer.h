// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ops/custom_operator.h"

namespace hearth::ops {

// SentencePiece's tokenizer as an operator: TFSentencepieceTokenizeOp of tflite-support and
// TFText>FastSentencepieceTokenize of tensorflow-text. Inputs: the model (TENSOR_QUANT8_ASYMM, see
// SentencepieceModel), texts (TENSOR_STRING of any shape), two that only sampling reads, which
// neither library's kernel does, and whether codes of begin and end are added and the codes
// reversed (one BOOL8 each). Outputs: the codes of all texts in a row (TENSOR_INT32), and where
// each text begins and the last one ends (TENSOR_INT32, one more than texts).
//
// Null for any other name. Thread-safe.
const CustomOperator* sentencepieceTokenizer(std::string_view name);

}  // namespace hearth::ops
