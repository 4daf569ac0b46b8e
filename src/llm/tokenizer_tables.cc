// SPDX-License-Identifier: Apache-2.0
#include "llm/tokenizer_tables.h"

#include <cstring>

#include "base/log.h"
#include "base/sha256.h"
#include "llm/weight_store_options.h"

namespace hearth::llm {
namespace {

// Changes with the form of the tables, and with what is read of a tokenizer's file.
constexpr std::string_view kTokenizerTableKind = "hearth tokenizer 1";

cache::StoreResult<std::shared_ptr<const cache::TableStore>> openTables(
    const CompileOptions& options) {
  HEARTH_ASSIGN(const cache::StoreOptions store, weightStoreOptions(options));
  HEARTH_ASSIGN(const cache::TableStoreOptions tables, cache::TableStoreOptions::of(store));
  return cache::TableStore::open(tables);
}

cache::TableKey tableKeyOf(std::string_view kind, std::span<const uint8_t> file) {
  base::Sha256 hash;
  hash.update(kTokenizerTableKind.data(), kTokenizerTableKind.size());
  const char* const version = hearth_version();
  hash.update(version, std::strlen(version) + 1);
  hash.update(kind.data(), kind.size());
  const uint64_t size = file.size();
  hash.update(&size, sizeof size);
  hash.update(file.data(), file.size());
  return {hash.finish()};
}

}  // namespace

TokenizerTables TokenizerTables::of(const CompileOptions& options) {
  auto store = openTables(options);
  if (store) return TokenizerTables(*std::move(store));
  base::logDebug("No tables of tokenizers are kept. {}", store.error().message);
  return {};
}

Result<Tokenizer> TokenizerTables::stored(const cache::TableKey& key) const {
  auto table = store_->read(key);
  if (!table) return fail(ErrorCode::kNotFound, "{}", table.error().message);
  const auto owner = std::make_shared<const memory::Mapping>(*std::move(table));
  return Tokenizer::fromTable({owner->data(), owner->size()}, owner);
}

Result<Tokenizer> TokenizerTables::tokenizer(
    std::string_view kind, std::span<const uint8_t> file,
    const std::function<Result<std::vector<uint8_t>>()>& make) const {
  cache::TableKey key;
  if (store_ != nullptr) {
    key = tableKeyOf(kind, file);
    if (auto found = stored(key)) return found;
  }
  HEARTH_ASSIGN(std::vector<uint8_t> table, make());
  const auto owner = std::make_shared<const std::vector<uint8_t>>(std::move(table));
  HEARTH_ASSIGN(Tokenizer made, Tokenizer::fromTable(*owner, owner));
  if (store_ == nullptr) return made;
  if (const auto kept = store_->write(key, *owner); !kept) {
    base::logInfo("The table of the tokenizer is not kept. {}", kept.error().message);
    return made;
  }
  // This process uses the mapped bytes as well, so that it has none of its own.
  auto found = stored(key);
  return found ? std::move(found) : std::move(made);
}

}  // namespace hearth::llm
