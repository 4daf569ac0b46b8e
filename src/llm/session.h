// SPDX-License-Identifier: Apache-2.0
// A text in a language model: its tokens, and what the model has computed of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "hearth/hearth.hpp"
#include "llm/cache_layout.h"
#include "llm/cache_memory.h"
#include "llm/compiled_model.h"
#include "llm/prefix_cache.h"
#include "llm/step_limits.h"
#include "memory/mapping.h"

namespace hearth::llm {

struct SessionOptions {
  // The signature and the shapes are the session's.
  CompileOptions compile;
  // The most tokens that the text may have; 0 = as many as the model has room for.
  size_t context = 0;
};

// Runs the signatures of a model as LiteRT-LM knows them: `decode`, which takes one token and gives
// the scores of the next, and `prefill…` for several at once. Tensors that are input and output are
// the caches, which all signatures share. Used by one thread at a time.
class Session {
 public:
  struct Counts {
    uint64_t prefilled = 0;  // tokens that prefill signatures have computed
    uint64_t decoded = 0;    // and that `decode` has
    uint64_t stored = 0;     // and that the store of prefixes had
    double prefillMs = 0;
    double decodeMs = 0;
  };

  // `context`: the most tokens that the text may have; 0 = as many as the model has room for.
  // Errors: kUnsupported for a model whose inputs are not known, and kOutOfMemory.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const CompiledModel> model,
                                                 size_t context);
  // A session with a text that is a marked beginning as a whole, and whose next token's scores are
  // known: `stored` is what `prefixes` have of these tokens, and the text fits in the context.
  // Until more than that is asked for the model is not there; then `compile` makes it, so all
  // functions that compute have its errors and those of create(), too. A later call tries again.
  using Compile = std::function<Result<std::shared_ptr<const CompiledModel>>()>;
  static std::unique_ptr<Session> createStored(std::shared_ptr<const PrefixCache> prefixes,
                                               StoredScores stored, std::vector<int32_t> tokens,
                                               size_t context, Compile compile);
  // Compiles the signatures for this session alone. Errors: those of CompiledModel::create(), too.
  static Result<std::unique_ptr<Session>> create(Model model, const SessionOptions& options);

  // Another session with the same text, computed as far as this one. Errors: those of create(), and
  // of logits() where this one has scores of the store.
  Result<std::unique_ptr<Session>> fork();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The tokens of the text, computed or not.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  // How many of them are computed, or need not be since the store has them.
  size_t computed() const { return hasGiven() ? given_->tokens : computed_; }
  // The most tokens that it may have.
  size_t context() const { return context_; }
  // The number of different tokens.
  size_t vocabularySize() const { return vocabularySize_; }

  // Error: kResourceExhaustedPersistent when the text gets longer than the context; it stays as it
  // is then. kBadData for a number that is no token.
  Status append(std::span<const int32_t> tokens);
  // Makes the text what these tokens are. What it begins with already is not computed again.
  // Returns how many tokens that is. Errors as of append(), and of logits() where scores came from
  // the store.
  Result<size_t> replace(std::span<const int32_t> tokens);

  // Drops all tokens but the first `count`. Errors: kBadData when there are fewer, and those of
  // logits() where scores came from the store.
  Status rewind(size_t count);

  // Takes marked beginnings from `prefixes`, and keeps them there. The caller has made it for this
  // model. Error: kUnsupported where a device other than hearth-cpu computes, or the caches do not
  // tell where the tokens lie; then nothing is taken or kept.
  Status usePrefixes(std::shared_ptr<const PrefixCache> prefixes);
  // Marks the first `count` tokens as a beginning that other texts have, too. It is computed apart
  // from what follows, which gives the same numbers with a store and without. replace() and
  // rewind() forget the mark when they change these tokens. Error: kBadData when there are fewer.
  Status markPrefix(size_t count);
  // Computes what is not computed yet of the marked beginning. Errors as of logits().
  Status computePrefix(const StepLimits& limits = {});
  // Keeps what was computed of the marked beginning. Does nothing where that was found, is not
  // computed, or where no store is used. Errors: those of cache::PrefixStore::write().
  cache::StoreStatus keepPrefix();

  // Computes a part of what is not computed yet, one run of a signature, so that other work can be
  // done in between; the results are the same. Returns whether logits() is left with the last token
  // only. The text has at least one token. Errors as of logits().
  Result<bool> advance(const StepLimits& limits = {});
  // Computes what is not computed yet, and returns the score of each token as the next one. Valid
  // until the next call; the text has at least one token. Where the whole text is marked and the
  // store has its scores, nothing is computed until the text goes on. Errors: those of an
  // execution; kMissedDeadlineTransient when a limit ends the computation: another call goes on
  // with it.
  Result<std::span<const float>> logits(const StepLimits& limits = {});

  const Counts& counts() const { return counts_; }
  // Makes the model where that has not been done yet. Errors: those of create().
  Status makeReady();
  // How the model was made ready: the report of `decode`. To be called when it is.
  StartReport startReport() const;
  std::string startReportJson() const;

 private:
  class Signature;

  // What signatures, which run one after the other, all use. Pages that none of them has used take
  // no memory.
  struct StepMemory {
    memory::Mapping mask;
    memory::Mapping logits;

    // Makes one at least so large, with other memory where that is needed. Error: kOutOfMemory.
    static Status grow(memory::Mapping* mapping, size_t bytes);
  };

  // What the store has of a text that the session's begins with, in place of what the session would
  // have computed of it.
  struct Given {
    StoredScores stored;
    size_t tokens = 0;
    bool isUsed = false;  // logits() has returned the scores, so that the rest is owed
  };

  explicit Session(std::shared_ptr<const CompiledModel> model);
  Status prepare(size_t context);
  // Whether there is a signature of this length, which is made if it can be.
  bool hasLength(size_t length);
  Status compute(size_t begin, size_t count, size_t length, const StepLimits& limits);
  Status computeMarked(size_t end, const StepLimits& limits);
  Status computeUpTo(size_t end, const StepLimits& limits);
  Status computeChunk(const Chunk& chunk, const StepLimits& limits);
  // How the tokens up to `end` are to be computed if all lengths can be had, and with those that
  // can, whose signatures are made.
  std::vector<Chunk> plannedUpTo(size_t end) const;
  std::vector<Chunk> chunksUpTo(size_t end);
  std::span<const float> scores() const;
  void takeStored(size_t end);
  void forgetMark(size_t kept);
  bool hasGiven() const { return given_ && given_->isUsed; }
  // Whether the scores of the text are there now: those in the store.
  bool takeScores();
  // Computes or loads what a text that begins with `given_` would have computed for its scores, so
  // that what follows is computed as it would be without them.
  Status settle(const StepLimits& limits);
  // Settles, or drops, what is given for more than the first `kept` tokens.
  Status settleBeyond(size_t kept);
  // Whether the scores are to be kept, too: those of a marked text that was computed from its
  // start.
  void noteScores();

  std::shared_ptr<const CompiledModel> model_;  // null until `compile_` is called
  Compile compile_;
  CacheMemory caches_;
  StepMemory memory_;
  std::vector<int32_t> tokens_;
  size_t computed_ = 0;     // of tokens_
  bool hasLogits_ = false;  // of the last token
  size_t context_ = 0;
  size_t capacity_ = 0;  // for how many tokens the caches have room; 0 where nothing says it
  size_t vocabularySize_ = 0;
  Counts counts_;
  std::shared_ptr<const PrefixCache> prefixes_;  // null = none
  std::optional<CacheLayout> layout_;            // where there are prefixes
  size_t mark_ = 0;                              // tokens of the marked beginning
  std::vector<PrefixPart> unkept_;               // its parts that the store lacks
  size_t marked_ = 0;                            // what was computed as its beginning,
  cache::PrefixKey markedKey_;                   // and the last part of that
  std::vector<float> unkeptScores_;              // of the token behind it; empty = none
  std::optional<Given> given_;
  std::map<size_t, std::unique_ptr<Signature>> signatures_;  // by length; 1 is `decode`
  std::vector<size_t> lengths_;  // of the others, and of those that may be had
};

}  // namespace hearth::llm
