// SPDX-License-Identifier: Apache-2.0
#include "llm/tokenizer_tables.h"

#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/sha256.h"
#include "cache/identity/content_hash.h"
#include "llm/weight_store_options.h"

namespace hearth::llm {
namespace {

// Changes with the form of the tables, and with what is read of a tokenizer's file.
constexpr std::string_view kTokenizerTableKind = "hearth tokenizer 2";

cache::StoreResult<std::shared_ptr<const cache::TableStore>> openTables(
    const CompileOptions& options) {
  HEARTH_ASSIGN(const cache::StoreOptions store, weightStoreOptions(options));
  HEARTH_ASSIGN(const cache::TableStoreOptions tables,
                cache::TableStoreOptions::of(store, cache::TableKind::kTokenizer));
  return cache::TableStore::open(tables);
}

cache::TableKey tableKeyOf(std::string_view kind, const base::Sha256Digest& content) {
  base::Sha256 hash;
  hash.update(kTokenizerTableKind.data(), kTokenizerTableKind.size());
  const char* const version = hearth_version();
  hash.update(version, std::strlen(version) + 1);
  hash.update(kind.data(), kind.size());
  hash.update(content);
  return {hash.finish()};
}

}  // namespace

TokenizerTables TokenizerTables::of(const CompileOptions& options) {
  auto store = openTables(options);
  if (store) return TokenizerTables(*std::move(store));
  base::logDebug("No tables of tokenizers are kept. {}", store.error().message);
  return {};
}

Result<TokenizerTables::Found> TokenizerTables::stored(const cache::TableKey& key) const {
  auto table = store_->read(key);
  if (!table) return fail(ErrorCode::kNotFound, "{}", table.error().message);
  const auto owner = std::make_shared<const memory::Mapping>(*std::move(table));
  HEARTH_ASSIGN(Tokenizer tokenizer, Tokenizer::fromTable({owner->data(), owner->size()}, owner));
  return Found{std::move(tokenizer), key};
}

Result<TokenizerTables::Found> TokenizerTables::tokenizer(std::string_view kind,
                                                          const cache::ContentSource& source,
                                                          const Read& read,
                                                          const Make& make) const {
  if (store_ != nullptr)
    if (const auto content = store_->recalledContent(source))
      if (auto found = stored(tableKeyOf(kind, *content))) return found;
  HEARTH_ASSIGN(const Bytes file, read());
  cache::TableKey key;
  if (store_ != nullptr) {
    const base::Sha256Digest content = cache::hashContent(file);
    store_->rememberContent(source, content);
    key = tableKeyOf(kind, content);
    if (auto found = stored(key)) return found;
  }
  HEARTH_ASSIGN(Bytes table, make(file));
  const auto owner = std::make_shared<const Bytes>(std::move(table));
  HEARTH_ASSIGN(Tokenizer tokenizer, Tokenizer::fromTable(*owner, owner));
  Found made{std::move(tokenizer), std::nullopt};
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
