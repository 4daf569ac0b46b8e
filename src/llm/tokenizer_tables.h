// SPDX-License-Identifier: Apache-2.0
// The tables of tokenizers in the weight store: one process makes a table, all others map it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cache/identity/content_memory.h"
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

  using Bytes = std::vector<uint8_t>;
  // The bytes of a tokenizer's file, or of the section of a model that has it.
  using Read = std::function<Result<Bytes>()>;
  // The table of a tokenizer's file.
  using Make = std::function<Result<Bytes>(std::span<const uint8_t> file)>;

  struct Found {
    Tokenizer tokenizer;
    std::optional<cache::TableKey> table;  // that the store has; absent where it has none
  };
  // The tokenizer whose file, of a type that `kind` names, is `source`: from the store, or from the
  // table that `make` returns, which is kept. The file is only read where nothing proves that it is
  // one whose content is known. Errors: those of `read`, `make` and Tokenizer::fromTable().
  Result<Found> tokenizer(std::string_view kind, const cache::ContentSource& source,
                          const Read& read, const Make& make) const;

 private:
  Result<Found> stored(const cache::TableKey& key) const;

  std::shared_ptr<const cache::TableStore> store_;  // null = none
};

}  // namespace hearth::llm
