// SPDX-License-Identifier: Apache-2.0
#include "llm/session.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "base/log.h"
#include "llm/embedder.h"
#include "llm/prefill_plan.h"
#include "llm/thrown.h"

namespace hearth::llm {
namespace {

using Clock = std::chrono::steady_clock;

// What a mask of numbers has where a token must not be seen: exports use this value.
constexpr float kHidden = -45824.0F;
constexpr size_t kMaxContext = size_t{1} << 24;
constexpr const char* kKeptDevice = "hearth-cpu";

double millisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace

// One signature with the memory of its inputs.
class Session::Signature {
 public:
  Signature(const Compilation& compilation, const std::vector<Compilation>& embedders)
      : compilation_(compilation),
        embedding_(embedders),
        execution_(compilation.createExecution()) {}

  Status bind(const CacheTensors& names, CacheMemory* caches, StepMemory* shared) {
    const std::vector<TensorInfo> inputs = compilation_.inputs();
    const std::vector<TensorInfo> outputs = compilation_.outputs();
    std::set<std::string> written;
    for (const TensorInfo& output : outputs) written.insert(output.name);
    for (size_t i = 0; i < inputs.size(); ++i) {
      TensorInfo input = inputs[i];
      input.name = names.ofInput(input.name, written.contains(input.name));
      if (input.name.empty()) {
        HEARTH_TRY(bindOwn(i, inputs[i]));
        continue;
      }
      HEARTH_ASSIGN(void* const memory, caches->take(input));
      execution_.promisePadding(true);
      execution_.setInput(i, memory, input.byteSize);
      execution_.promisePadding(false);
      hasCache_ = true;
    }
    if (tokens_.empty() && embedders_.empty())
      return fail(ErrorCode::kUnsupported, "The model has no input that takes tokens.");
    // The tokens of an input or of the first embedder; finish() compares the others.
    if (tokens_.empty()) tokens_.resize(embedders_.front()->length());
    std::set<std::string> read;
    for (const TensorInfo& input : inputs) read.insert(input.name);
    for (size_t i = 0; i < outputs.size(); ++i) {
      TensorInfo output = outputs[i];
      output.name = names.ofOutput(output.name, read.contains(output.name));
      if (!output.name.empty()) {
        HEARTH_ASSIGN(void* const memory, caches->take(output));
        execution_.promisePadding(true);
        execution_.setOutput(i, memory, output.byteSize);
        execution_.promisePadding(false);
        continue;
      }
      HEARTH_TRY(bindLogits(i, outputs[i]));
    }
    HEARTH_TRY(StepMemory::grow(&shared->mask, maskBytes_ + maskPadding_));
    return StepMemory::grow(&shared->logits, logitsBytes_);
  }

  size_t length() const { return tokens_.size(); }
  // The number of tokens that the mask has room for; 0 = there is none.
  size_t capacity() const { return capacity_; }
  bool hasLogits() const { return hasLogits_; }
  size_t vocabularySize() const { return vocabularySize_; }
  bool hasCache() const { return hasCache_; }

  // Computes tokens, the first of them at `position`. What the signature takes beyond them is
  // filled up: the caches get entries there that are overwritten before they are seen.
  void run(std::span<const int32_t> tokens, size_t position, const StepLimits& limits) {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      tokens_[i] = i < tokens.size() ? tokens[i] : 0;
      if (i < positions_.size()) positions_[i] = static_cast<int32_t>(position + i);
      const size_t seen = std::min(position + i + 1, capacity_);
      const size_t row = i * capacity_;
      if (numbers_ != nullptr) {
        std::fill_n(numbers_ + row, seen, 0.0F);
        std::fill_n(numbers_ + row + seen, capacity_ - seen, kHidden);
      }
      if (booleans_ != nullptr) {
        std::fill_n(booleans_ + row, seen, uint8_t{1});
        std::fill_n(booleans_ + row + seen, capacity_ - seen, uint8_t{0});
      }
    }
    // Kernels for GPUs read in them which places of the caches are written and where these end;
    // what follows is theirs.
    const std::array<size_t, 3> places = {position, position + tokens.size(),
                                          position + tokens.size()};
    for (size_t i = 0; i < std::min(places.size(), parameters_.size()); ++i)
      parameters_[i] = static_cast<int32_t>(places[i]);
    for (const auto& embedder : embedders_) embedder->run(tokens, limits);
    limits.run(&execution_);
  }

 private:
  // An input that is no cache.
  Status bindOwn(size_t index, const TensorInfo& input) {
    const std::string& name = input.name;
    if (name == "tokens" || name == "token_ids") return bindIds(index, input, &tokens_);
    if (name == "input_pos" || name == "positions") return bindIds(index, input, &positions_);
    if (name == "param_tensor") return bindIds(index, input, &parameters_);
    if (name == "mask" || name == "attn_mask") return bindMask(index, input);
    if (name == "embeddings" || name == "per_layer_embeddings") return bindEmbedder(index, input);
    return fail(ErrorCode::kUnsupported,
                "The model has the input {}, which language models are not known to have.", name);
  }

  Status bindEmbedder(size_t index, const TensorInfo& input) {
    HEARTH_ASSIGN(std::unique_ptr<Embedder> embedder, Embedder::create(embedding_, input));
    execution_.setInput(index, embedder->memory(), input.byteSize);
    embedders_.push_back(std::move(embedder));
    return {};
  }

  // The execution keeps the address of what is bound, which must not move for another input.
  static Status refuseSecond(const TensorInfo& input) {
    return fail(ErrorCode::kUnsupported,
                "The input {} is the second one of its kind; language models have one.",
                input.name);
  }

  Status bindIds(size_t index, const TensorInfo& input, std::vector<int32_t>* ids) {
    if (!ids->empty()) return refuseSecond(input);
    if (input.type != HEARTH_TYPE_INT32 || input.byteSize == 0)
      return fail(ErrorCode::kUnsupported, "The input {} is not a fixed number of int32.",
                  input.name);
    ids->resize(input.byteSize / sizeof(int32_t));
    execution_.setInput(index, *ids);
    return {};
  }

  Status bindMask(size_t index, const TensorInfo& input) {
    if (capacity_ != 0) return refuseSecond(input);
    if (input.byteSize == 0 || input.dimensions.empty() ||
        (input.type != HEARTH_TYPE_FLOAT32 && input.type != HEARTH_TYPE_BOOL))
      return fail(ErrorCode::kUnsupported,
                  "The input {} has a type or shape that is not supported.", input.name);
    capacity_ = input.dimensions.back();
    maskRows_ = input.byteSize / typeSize(input.type) / capacity_;
    hasNumbers_ = input.type == HEARTH_TYPE_FLOAT32;
    maskIndex_ = index;
    maskBytes_ = input.byteSize;
    maskPadding_ = input.padding;
    return {};
  }

  // Scores of the next token.
  Status bindLogits(size_t index, const TensorInfo& output) {
    if (output.type != HEARTH_TYPE_FLOAT32 || output.byteSize == 0 || output.dimensions.empty() ||
        hasLogits_)
      return fail(ErrorCode::kUnsupported,
                  "The model has the output {}, which language models are not known to have.",
                  output.name);
    hasLogits_ = true;
    vocabularySize_ = output.dimensions.back();
    logitsIndex_ = index;
    logitsBytes_ = output.byteSize;
    return {};
  }

 public:
  // Once the memory has its final size, and whether the inputs fit together.
  Status finish(const StepMemory& shared) {
    if (hasLogits_) execution_.setOutput(logitsIndex_, shared.logits.data(), logitsBytes_);
    if (capacity_ != 0) {
      uint8_t* const mask = shared.mask.data();
      execution_.promisePadding(true);
      execution_.setInput(maskIndex_, mask, maskBytes_);
      execution_.promisePadding(false);
      if (hasNumbers_)
        numbers_ = reinterpret_cast<float*>(mask);
      else
        booleans_ = mask;
    }
    for (const auto& embedder : embedders_)
      if (embedder->length() != length())
        return fail(ErrorCode::kUnsupported, "The model takes {} tokens, and embeddings of {}.",
                    length(), embedder->length());
    if ((!positions_.empty() && positions_.size() != length()) ||
        (capacity_ != 0 && maskRows_ != length()))
      return fail(ErrorCode::kUnsupported,
                  "The model takes {} tokens, {} positions and a mask of {} rows.", length(),
                  positions_.size(), maskRows_);
    return {};
  }

 private:
  const Compilation& compilation_;
  const std::vector<Compilation>& embedding_;         // signatures of embedders
  std::vector<std::unique_ptr<Embedder>> embedders_;  // of inputs
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> parameters_;  // the input param_tensor
  float* numbers_ = nullptr;         // the mask, if it is one of numbers,
  uint8_t* booleans_ = nullptr;      // or of booleans
  bool hasNumbers_ = false;
  size_t maskIndex_ = 0;
  size_t maskBytes_ = 0;
  size_t maskPadding_ = 0;
  size_t capacity_ = 0;
  size_t maskRows_ = 0;
  size_t vocabularySize_ = 0;
  size_t logitsIndex_ = 0;
  size_t logitsBytes_ = 0;
  bool hasLogits_ = false;
  bool hasCache_ = false;
  Execution execution_;  // uses the memory above
};

Session::Session(std::shared_ptr<const CompiledModel> model) : model_(std::move(model)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const CompiledModel> model,
                                                 size_t context) {
  std::unique_ptr<Session> session(new Session(std::move(model)));
  HEARTH_TRY(returned([&] { return session->prepare(context); }));
  return session;
}

Result<std::unique_ptr<Session>> Session::create(Model model, const SessionOptions& options) {
  HEARTH_ASSIGN(auto compiled, CompiledModel::create(std::move(model), options.compile));
  return create(std::move(compiled), options.context);
}

Result<std::unique_ptr<Session>> Session::fork() {
  HEARTH_TRY(settle({}));
  HEARTH_ASSIGN(std::unique_ptr<Session> session, create(model_, context_));
  session->lengths_ = lengths_;
  size_t mapped = 0;
  if (prefixes_ != nullptr) {
    HEARTH_TRY(session->usePrefixes(prefixes_));
    // What the store has of the beginning is mapped, and only what differs from it is copied.
    const CacheLayout& layout = *session->layout_;
    const auto chunks = session->plannedUpTo(std::min(mark_, computed_));
    mapped = prefixes_->load(layout, prefixes_->parts(layout, tokens_, chunks));
  }
  caches_.copyTo(&session->caches_, mapped == 0);
  if (hasLogits_)
    std::ranges::copy(scores(), reinterpret_cast<float*>(session->memory_.logits.data()));
  session->tokens_ = tokens_;
  session->computed_ = computed_;
  session->hasLogits_ = hasLogits_;
  session->mark_ = mark_;
  return session;
}

Status Session::prepare(size_t context) {
  for (const Compilation& compilation : model_->signatures()) {
    auto signature = std::make_unique<Signature>(compilation, model_->embedders());
    HEARTH_TRY(signature->bind(model_->cacheTensors(), &caches_, &memory_));
    const size_t length = signature->length();
    if (length != 1) lengths_.push_back(length);
    signatures_[length] = std::move(signature);
  }
  std::ranges::copy(model_->laterLengths(), std::back_inserter(lengths_));
  std::ranges::sort(lengths_);
  const std::vector<size_t> shorter = shorterLengths(lengths_);
  lengths_.insert(lengths_.begin(), shorter.begin(), shorter.end());
  if (!signatures_.contains(1) || !signatures_[1]->hasLogits())
    return fail(ErrorCode::kUnsupported,
                "The signature decode does not take one token and give the scores of the next.");
  vocabularySize_ = signatures_[1]->vocabularySize();
  context_ = kMaxContext;
  for (auto& [length, signature] : signatures_) {
    HEARTH_TRY(signature->finish(memory_));
    if (!signature->hasCache())
      return fail(ErrorCode::kUnsupported, "The model has no caches that it reads and writes.");
    if (signature->capacity() != 0) context_ = std::min(context_, signature->capacity());
  }
  std::vector<TensorInfo> caches;
  for (const CacheMemory::Tensor& tensor : caches_.tensors()) caches.push_back(tensor.info);
  HEARTH_ASSIGN(capacity_, model_->cacheTensors().capacityOf(caches, signatures_[1]->capacity()));
  if (capacity_ != 0) context_ = std::min(context_, capacity_);
  if (context != 0) context_ = std::min(context_, context);
  if (context_ == kMaxContext)
    return fail(ErrorCode::kUnsupported, "Nothing says how many tokens the model has room for.");
  return {};
}

Status Session::makeReady() {
  if (model_ != nullptr) return {};
  HEARTH_ASSIGN(model_, compile_());
  const size_t context = context_;
  const size_t vocabularySize = vocabularySize_;
  Status prepared = returned([&] { return prepare(context); });
  if (prepared && (vocabularySize_ != vocabularySize || context_ != context))
    prepared =
        fail(ErrorCode::kBadState,
             "The store has scores of {} tokens and a context of {}; the model has {} and {}.",
             vocabularySize, context, vocabularySize_, context_);
  if (!prepared) {
    signatures_.clear();
    lengths_.clear();
    model_ = nullptr;
    context_ = context;
    vocabularySize_ = vocabularySize;
    return prepared;
  }
  // Without them, what follows is computed.
  if (Status used = usePrefixes(std::exchange(prefixes_, nullptr)); !used)
    base::logInfo("No stored prefix is used. {}", used.error().toString());
  return {};
}

Status Session::StepMemory::grow(memory::Mapping* mapping, size_t bytes) {
  if (bytes <= mapping->size()) return {};
  HEARTH_ASSIGN(*mapping, memory::Mapping::anonymous(bytes));
  return {};
}

std::span<const float> Session::scores() const {
  if (given_) return given_->stored.scores;
  return {reinterpret_cast<const float*>(memory_.logits.data()), vocabularySize()};
}

StartReport Session::startReport() const {
  return model_->signatures().front().startReport();
}

std::string Session::startReportJson() const {
  return model_->signatures().front().startReportJson();
}

Status Session::append(std::span<const int32_t> tokens) {
  if (tokens.size() > context_ - tokens_.size())
    return fail(ErrorCode::kResourceExhaustedPersistent,
                "The text has {} tokens; the context has room for {}.",
                tokens_.size() + tokens.size(), context_);
  for (const int32_t token : tokens)
    if (token < 0 || static_cast<size_t>(token) >= vocabularySize())
      return fail(ErrorCode::kBadData, "The model has {} tokens, and none with the number {}.",
                  vocabularySize(), token);
  if (!tokens.empty()) hasLogits_ = false;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return {};
}

Result<size_t> Session::replace(std::span<const int32_t> tokens) {
  const auto [own, other] = std::ranges::mismatch(tokens_, tokens);
  const auto common = static_cast<size_t>(own - tokens_.begin());
  HEARTH_TRY(settleBeyond(common));
  const std::vector<int32_t> rest(own, tokens_.end());
  const bool hadLogits = hasLogits_;
  const size_t computed = computed_;
  tokens_.resize(common);
  computed_ = std::min(computed_, common);
  hasLogits_ = hasLogits_ && rest.empty();
  if (Status status = append(tokens.subspan(common)); !status) {
    tokens_.insert(tokens_.end(), rest.begin(), rest.end());
    computed_ = computed;
    hasLogits_ = hadLogits;
    return std::unexpected(std::move(status.error()));
  }
  forgetMark(common);
  return this->computed();
}

Status Session::rewind(size_t count) {
  if (count > tokens_.size())
    return fail(ErrorCode::kBadData, "The text has {} tokens; {} of them cannot be kept.",
                tokens_.size(), count);
  if (count == tokens_.size()) return {};
  HEARTH_TRY(settleBeyond(count));
  tokens_.resize(count);
  computed_ = std::min(computed_, count);
  hasLogits_ = false;
  forgetMark(count);
  return {};
}

void Session::forgetMark(size_t kept) {
  if (kept < marked_) marked_ = 0;
  if (kept >= mark_) return;
  mark_ = 0;
  unkept_.clear();
  unkeptScores_.clear();
}

Status Session::usePrefixes(std::shared_ptr<const PrefixCache> prefixes) {
  HEARTH_TRY(makeReady());
  // Results of other devices may depend on what is not in the keys.
  for (const auto* const compilations : {&model_->signatures(), &model_->embedders()})
    for (const Compilation& compilation : *compilations)
      if (compilation.device() != kKeptDevice)
        return fail(ErrorCode::kUnsupported, "The model runs on {}; prefixes are kept of {} only.",
                    compilation.device(), kKeptDevice);
  HEARTH_ASSIGN(layout_, CacheLayout::create(caches_.tensors(), model_->cacheTensors(), capacity_));
  prefixes_ = std::move(prefixes);
  return {};
}

Status Session::markPrefix(size_t count) {
  if (count > tokens_.size())
    return fail(ErrorCode::kBadData, "The text has {} tokens; {} of them cannot be marked.",
                tokens_.size(), count);
  if (count != mark_) {
    unkept_.clear();
    unkeptScores_.clear();
  }
  mark_ = count;
  return {};
}

cache::StoreStatus Session::keepPrefix() {
  if (!unkept_.empty() && computed_ < unkept_.back().end) return {};
  const std::vector<PrefixPart> parts = std::exchange(unkept_, {});
  const std::vector<float> scores = std::exchange(unkeptScores_, {});
  if (!parts.empty()) HEARTH_TRY(prefixes_->save(*layout_, parts));
  if (scores.empty()) return {};
  return prefixes_->saveScores(*layout_, std::span(tokens_).first(marked_ + 1), markedKey_, scores);
}

void Session::takeStored(size_t end) {
  if (prefixes_ == nullptr) return;
  // Signatures that are not compiled yet need not be where the store has all that they compute.
  std::vector<PrefixPart> parts = prefixes_->parts(*layout_, tokens_, plannedUpTo(end));
  size_t found = prefixes_->load(*layout_, parts);
  const size_t lengths = lengths_.size();
  if (found != parts.size()) {
    const std::vector<Chunk> chunks = chunksUpTo(end);
    if (lengths_.size() != lengths) {
      parts = prefixes_->parts(*layout_, tokens_, chunks);
      found = prefixes_->load(*layout_, parts);
    }
  }
  if (found != 0) computed_ = parts[found - 1].end;
  counts_.stored += computed_;
  marked_ = parts.empty() ? 0 : end;
  if (!parts.empty()) markedKey_ = parts.back().key;
  parts.erase(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(found));
  unkept_ = std::move(parts);
}

Status Session::compute(size_t begin, size_t count, size_t length, const StepLimits& limits) {
  if (limits.isCancelled != nullptr && *limits.isCancelled)
    return fail(ErrorCode::kMissedDeadlineTransient, "The computation is cancelled.");
  const Clock::time_point start = Clock::now();
  if (limits.deadline && start >= *limits.deadline)
    return fail(ErrorCode::kMissedDeadlineTransient, "The time for the computation is over.");
  HEARTH_TRY(returned([&]() -> Status {
    signatures_.at(length)->run(std::span(tokens_).subspan(begin, count), begin, limits);
    return {};
  }));
  (length == 1 ? counts_.decodeMs : counts_.prefillMs) += millisecondsSince(start);
  (length == 1 ? counts_.decoded : counts_.prefilled) += count;
  return {};
}

bool Session::hasLength(size_t length) {
  if (signatures_.contains(length)) return true;
  const Compilation* const compilation = model_->prefill(length);
  if (compilation == nullptr) return false;
  // What prefixes are kept with says nothing of other devices.
  if (prefixes_ != nullptr && compilation->device() != kKeptDevice) return false;
  const Status added = returned([&]() -> Status {
    auto signature = std::make_unique<Signature>(*compilation, model_->embedders());
    const auto addresses = [&] {
      return std::pair(memory_.mask.data(), memory_.logits.data());
    };
    const auto before = addresses();
    const Status bound = signature->bind(model_->cacheTensors(), &caches_, &memory_);
    if (addresses() != before) {
      hasLogits_ = false;
      for (const auto& [length, other] : signatures_) HEARTH_TRY(other->finish(memory_));
    }
    HEARTH_TRY(bound);
    HEARTH_TRY(signature->finish(memory_));
    if (signature->length() != length || signature->capacity() != signatures_.at(1)->capacity())
      return fail(ErrorCode::kUnsupported, "It takes {} tokens in place of {}.",
                  signature->length(), length);
    signatures_[length] = std::move(signature);
    return {};
  });
  if (!added)
    base::logDebug("No signature for {} tokens is used. {}", length, added.error().toString());
  return added.has_value();
}

std::vector<Chunk> Session::plannedUpTo(size_t end) const {
  return planPrefill(lengths_, end - std::min(end, computed_), computed_,
                     capacity_ != 0 ? capacity_ : context_);
}

std::vector<Chunk> Session::chunksUpTo(size_t end) {
  // A plan with lengths that cannot be had is made again without them.
  while (true) {
    std::vector<Chunk> chunks = plannedUpTo(end);
    const size_t before = lengths_.size();
    for (const Chunk& chunk : chunks)
      if (!hasLength(chunk.length)) std::erase(lengths_, chunk.length);
    if (lengths_.size() == before) return chunks;
  }
}

Status Session::computeChunk(const Chunk& chunk, const StepLimits& limits) {
  HEARTH_TRY(compute(computed_, chunk.tokens, chunk.length, limits));
  computed_ += chunk.tokens;
  return {};
}

Status Session::computeUpTo(size_t end, const StepLimits& limits) {
  for (const Chunk& chunk : chunksUpTo(end)) HEARTH_TRY(computeChunk(chunk, limits));
  return {};
}

Status Session::computeMarked(size_t end, const StepLimits& limits) {
  if (computed_ == 0) takeStored(end);
  return computeUpTo(end, limits);
}

Status Session::computePrefix(const StepLimits& limits) {
  HEARTH_TRY(settle(limits));
  return computeMarked(mark_, limits);
}

Result<bool> Session::advance(const StepLimits& limits) {
  if (tokens_.empty()) return fail(ErrorCode::kBadState, "The text is empty.");
  if (hasLogits_ || takeScores()) return true;
  HEARTH_TRY(settle(limits));
  const size_t last = tokens_.size() - 1;
  const size_t marked = std::min(mark_, last);
  if (computed_ == 0) takeStored(marked);
  // The rest of a plan is the plan of the rest, so the runs are those of logits().
  const std::vector<Chunk> chunks = chunksUpTo(computed_ < marked ? marked : last);
  if (!chunks.empty()) HEARTH_TRY(computeChunk(chunks.front(), limits));
  return computed_ >= last;
}

Result<std::span<const float>> Session::logits(const StepLimits& limits) {
  if (tokens_.empty()) return fail(ErrorCode::kBadState, "The text is empty.");
  if (!hasLogits_ && !takeScores()) {
    HEARTH_TRY(settle(limits));
    // The last token is decoded, which gives the scores, even if it was computed before.
    const size_t last = tokens_.size() - 1;
    HEARTH_TRY(computeMarked(std::min(mark_, last), limits));
    HEARTH_TRY(computeUpTo(last, limits));
    HEARTH_TRY(compute(last, 1, 1, limits));
    computed_ = tokens_.size();
    hasLogits_ = true;
    noteScores();
  }
  return scores();
}

}  // namespace hearth::llm
