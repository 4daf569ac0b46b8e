// SPDX-License-Identifier: Apache-2.0
// The `.litertlm` or `.task` file of a language model: its tokenizer and what it says about itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/executor_metadata.h"
#include "llm/llm_metadata.h"
#include "llm/tokenizer.h"
#include "llm/tokenizer_tables.h"

namespace hearth::llm {

struct ModelFile {
  std::string path;
  std::string part;  // the name of the model that decodes
  // Of models that make its inputs of the numbers of tokens; mostly none.
  std::vector<std::string> embedders;
  LlmMetadata metadata;
  ExecutorMetadata executor;
  std::optional<Tokenizer> tokenizer;    // absent where the file has none
  std::optional<cache::TableKey> table;  // the tokenizer's in the weight store, if it is there
};

// Reads metadata and tokenizer; the model's weights are not touched. `tokenizerPath` names a
// file for readTokenizerFile() in place of the file's own tokenizer, empty = none. Errors: those of
// hearth_container_describe; kUnsupported for a file that is neither, or that has a
// tokenizer of a kind that is not supported; kBadData.
Result<ModelFile> readModelFile(const std::string& path, const std::string& tokenizerPath,
                                const TokenizerTables& tables = {});

// Reads a `tokenizer.json` or the model of SentencePiece. Errors: kNotFound, kIo, and those of
// Tokenizer::fromJson and fromSentencePiece.
Result<Tokenizer> readTokenizerFile(const std::string& path, const TokenizerTables& tables = {});

// Unpacks a section of the type HF_Tokenizer_Zlib: the size of a `tokenizer.json`, 8 bytes in
// little-endian order, and a zlib stream of it. Error: kBadData.
Result<std::string> unpackTokenizer(std::span<const uint8_t> section);

}  // namespace hearth::llm
