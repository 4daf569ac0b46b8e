// SPDX-License-Identifier: Apache-2.0
// The tables of tokenizers in the weight store: one process makes a table, all others map it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cache/table/table_store.h"
#include "hearth/hearth.hpp"
#include "llm/tokenizer.h"

namespace hearth::llm {

// Immutable; thread-safe.
class TokenizerTables {
 public:
  // Without a store, each tokenizer is made anew.
  TokenizerTables() = default;
  explicit TokenizerTables(std::shared_ptr<const cache::TableStore> store)
      : store_(std::move(store)) {}

  // The tables in the weight store that the options name; none where it cannot be used.
  static TokenizerTables of(const CompileOptions& options);

  // The tokenizer whose file, of a type that `kind` names, has these bytes: from the store, or from
  // the table that `make` returns, which is kept. Errors: those of `make` and of
  // Tokenizer::fromTable().
  Result<Tokenizer> tokenizer(std::string_view kind, std::span<const uint8_t> file,
                              const std::function<Result<std::vector<uint8_t>>()>& make) const;

 private:
  Result<Tokenizer> stored(const cache::TableKey& key) const;

  std::shared_ptr<const cache::TableStore> store_;  // null = none
};

}  // namespace hearth::llm
