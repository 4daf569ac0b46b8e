// SPDX-License-Identifier: Apache-2.0
// Makes a tokenizer of the table of a `tokenizer.json` of Hugging Face's tokenizers.
#include <memory>
#include <utility>

#include "llm/byte_pair_tokenizer.h"
#include "llm/json_reader.h"
#include "llm/tokenizer.h"

namespace hearth::llm {
namespace {

constexpr size_t kMaxSteps = 64;
constexpr std::string_view kMetaspace = "\xE2\x96\x81";  // U+2581

using Kind = JsonReader::Kind;

// Reads a value that may be null, which leaves `value` as it is.
Status readTextOrNull(JsonReader* reader, std::string* text) {
  HEARTH_ASSIGN(const Kind kind, reader->peek());
  return kind == Kind::kNull ? reader->skip() : reader->readString(text);
}

Status readBoolOrNull(JsonReader* reader, bool* value) {
  HEARTH_ASSIGN(const Kind kind, reader->peek());
  if (kind == Kind::kNull) return reader->skip();
  HEARTH_ASSIGN(*value, reader->readBool());
  return {};
}

// The members that steps of normalizers, pre-tokenizers and decoders have.
struct Step {
  std::string type;
  std::string text;        // of a pattern that is a text, or of `content` where that is the text
  std::string expression;  // of a pattern that is an expression
  std::string content;     // replacement of Replace; what Strip removes
  std::string replacement = std::string(kMetaspace);  // of Metaspace
  std::string prependScheme = "always";
  std::string behavior = "Isolated";
  std::string prepend;
  bool hasPrefixSpace = true;
  bool isInverted = false;
  bool isEachDigit = false;
  bool isSplit = true;
  bool usesExpression = true;
  bool isLeft = true;
  bool isRight = true;
  int64_t start = 0;
  int64_t stop = 0;
};

Status readPattern(JsonReader* reader, Step* step) {
  HEARTH_ASSIGN(const Kind kind, reader->peek());
  if (kind == Kind::kString) return reader->readString(&step->text);
  return forEachMember(reader, [&](const std::string& key) -> Status {
    if (key == "String") return reader->readString(&step->text);
    if (key == "Regex") return reader->readString(&step->expression);
    return reader->skip();
  });
}

using StepList = std::vector<Step>;

Status readSteps(JsonReader* reader, size_t depth, StepList* steps);

Status readMember(JsonReader* reader, const std::string& key, size_t depth, Step* step,
                  StepList* inner) {
  if (key == "type") return reader->readString(&step->type);
  if (key == "pattern") return readPattern(reader, step);
  if (key == "content") return reader->readString(&step->content);
  if (key == "replacement") return reader->readString(&step->replacement);
  if (key == "prepend_scheme") return reader->readString(&step->prependScheme);
  if (key == "behavior") return reader->readString(&step->behavior);
  if (key == "prepend") return reader->readString(&step->prepend);
  if (key == "add_prefix_space") return readBoolOrNull(reader, &step->hasPrefixSpace);
  if (key == "invert") return readBoolOrNull(reader, &step->isInverted);
  if (key == "individual_digits") return readBoolOrNull(reader, &step->isEachDigit);
  if (key == "split") return readBoolOrNull(reader, &step->isSplit);
  if (key == "use_regex") return readBoolOrNull(reader, &step->usesExpression);
  if (key == "strip_left") return readBoolOrNull(reader, &step->isLeft);
  if (key == "strip_right") return readBoolOrNull(reader, &step->isRight);
  if (key == "start" || key == "stop") {
    HEARTH_ASSIGN((key == "start" ? step->start : step->stop), reader->readInteger());
    return {};
  }
  if (key == "normalizers" || key == "pretokenizers" || key == "decoders")
    return forEachElement(reader, [&] { return readSteps(reader, depth + 1, inner); });
  return reader->skip();
}

// Appends a step, or those of a sequence; null is none.
Status readSteps(JsonReader* reader, size_t depth, StepList* steps) {
  HEARTH_ASSIGN(const Kind kind, reader->peek());
  if (kind == Kind::kNull) return reader->skip();
  if (depth > 4) return fail(ErrorCode::kBadData, "Steps of the tokenizer are nested too deeply.");
  Step step;
  StepList inner;
  HEARTH_TRY(forEachMember(reader, [&](const std::string& key) {
    return readMember(reader, key, depth, &step, &inner);
  }));
  if (step.type == "Sequence")
    steps->insert(steps->end(), inner.begin(), inner.end());
  else
    steps->push_back(std::move(step));
  if (steps->size() > kMaxSteps)
    return fail(ErrorCode::kBadData, "The tokenizer has more than {} steps.", kMaxSteps);
  return {};
}

std::unexpected<Error> unsupported(const char* what, const std::string& name) {
  return fail(ErrorCode::kUnsupported, "The tokenizer has the {} {}, which is not supported.", what,
              name);
}

Result<Normalizer> normalizerOf(const Step& step) {
  Normalizer made;
  if (step.type == "NFC") return made;
  if (step.type == "NFD") {
    made.kind = Normalizer::Kind::kDecomposed;
    return made;
  }
  if (step.type == "Prepend") {
    made.kind = Normalizer::Kind::kPrepend;
    made.text = step.prepend;
    return made;
  }
  if (step.type == "Strip") {
    made.kind = Normalizer::Kind::kStrip;
    made.isLeft = step.isLeft;
    made.isRight = step.isRight;
    return made;
  }
  if (step.type != "Replace") return unsupported("normalizer", step.type);
  made.kind = Normalizer::Kind::kReplace;
  made.text = step.text;
  made.replacement = step.content;
  if (!step.expression.empty()) {
    HEARTH_ASSIGN(made.pattern, Pattern::compile(step.expression));
  } else if (step.text.empty()) {
    return fail(ErrorCode::kBadData, "A normalizer of the tokenizer replaces nothing.");
  }
  return made;
}

Result<SplitBehavior> behaviorOf(const std::string& name) {
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return unsupported("split behavior", name);
}

Status addByteLevel(const Step& step, std::vector<PreTokenizer>* made) {
  if (step.hasPrefixSpace) {
    made->emplace_back();
    made->back().kind = PreTokenizer::Kind::kPrependSpace;
  }
  if (step.usesExpression) {
    made->emplace_back();
    HEARTH_ASSIGN(made->back().pattern, Pattern::compile(gpt2Expression()));
  }
  return {};
}

Status addPreTokenizer(const Step& step, std::vector<PreTokenizer>* made) {
  if (step.type == "ByteLevel") return addByteLevel(step, made);
  PreTokenizer one;
  if (step.type == "Split") {
    one.text = step.text;
    if (!step.expression.empty()) {
      HEARTH_ASSIGN(one.pattern, Pattern::compile(step.expression));
    }
    HEARTH_ASSIGN(one.behavior, behaviorOf(step.behavior));
    one.isInverted = step.isInverted;
  } else if (step.type == "Digits") {
    one.kind = PreTokenizer::Kind::kDigits;
    one.isEachDigit = step.isEachDigit;
  } else if (step.type == "Metaspace") {
    one.kind = PreTokenizer::Kind::kMetaspace;
    one.text = step.replacement;
    one.isPrepended = step.prependScheme != "never" && step.hasPrefixSpace;
    one.isOnlyFirst = step.prependScheme == "first";
    one.isSplit = step.isSplit;
  } else if (step.type == "Punctuation") {
    HEARTH_ASSIGN(one.pattern, Pattern::compile(R"([\p{P}$+<=>^`|~])"));
    HEARTH_ASSIGN(one.behavior, behaviorOf(step.behavior));
  } else if (step.type == "Whitespace") {
    HEARTH_ASSIGN(one.pattern, Pattern::compile(R"(\w+|[^\w\s]+)"));
    one.behavior = SplitBehavior::kRemoved;
    one.isInverted = true;
  } else if (step.type == "WhitespaceSplit") {
    HEARTH_ASSIGN(one.pattern, Pattern::compile(R"(\s)"));
    one.behavior = SplitBehavior::kRemoved;
  } else {
    return unsupported("pre-tokenizer", step.type);
  }
  made->push_back(std::move(one));
  return {};
}

}  // namespace

// Reads what the table describes into a tokenizer. Its tokens and merges stay where they are.
class TokenizerJson {
 public:
  explicit TokenizerJson(BytePairTable table) : reader_(table.description()) {
    made_.table_ = std::move(table);
  }

  Result<BytePairTokenizer> read() {
    HEARTH_TRY(forEachMember(&reader_, [&](const std::string& key) -> Status {
      if (key == "added_tokens") return readAddedTokens();
      if (key == "normalizer") return readSteps(&reader_, 0, &normalizers_);
      if (key == "pre_tokenizer") return readSteps(&reader_, 0, &preTokenizers_);
      if (key == "decoder") return readSteps(&reader_, 0, &decoders_);
      if (key == "model") return readModel();
      return reader_.skip();
    }));
    HEARTH_TRY(reader_.expectEnd());
    HEARTH_TRY(finish());
    return std::move(made_);
  }

 private:
  Status readAddedTokens() {
    return forEachElement(&reader_, [&]() -> Status {
      AddedToken token;
      int64_t id = -1;
      HEARTH_TRY(forEachMember(&reader_, [&](const std::string& key) -> Status {
        if (key == "content") return reader_.readString(&token.text);
        if (key == "special") return readBoolOrNull(&reader_, &token.isSpecial);
        if (key == "normalized") return readBoolOrNull(&reader_, &token.isNormalized);
        if (key == "single_word") return readBoolOrNull(&reader_, &token.isWholeWord);
        if (key == "lstrip") return readBoolOrNull(&reader_, &token.takesSpaceBefore);
        if (key == "rstrip") return readBoolOrNull(&reader_, &token.takesSpaceBehind);
        if (key != "id") return reader_.skip();
        HEARTH_ASSIGN(id, reader_.readInteger());
        return {};
      }));
      if (id < 0 || static_cast<size_t>(id) >= made_.table_.size())
        return fail(ErrorCode::kBadData, "An added token has the number {}, which is none.", id);
      token.id = static_cast<int32_t>(id);
      AddedTokens& added = token.isNormalized ? made_.addedNormalized_ : made_.addedPlain_;
      return added.add(std::move(token));
    });
  }

  Status readModel() {
    return forEachMember(&reader_, [&](const std::string& key) -> Status {
      if (key == "unk_token") return readTextOrNull(&reader_, &unknown_);
      if (key == "byte_fallback") return readBoolOrNull(&reader_, &options_.hasByteFallback);
      if (key == "ignore_merges") return readBoolOrNull(&reader_, &options_.takesWholeWords);
      if (key == "fuse_unk") return readBoolOrNull(&reader_, &options_.fusesUnknown);
      if (key == "continuing_subword_prefix" || key == "end_of_word_suffix") {
        std::string affix;
        HEARTH_TRY(readTextOrNull(&reader_, &affix));
        if (!affix.empty()) return unsupported("affix of subwords", affix);
        return {};
      }
      return reader_.skip();
    });
  }

  Status finish() {
    for (const Step& step : normalizers_) {
      HEARTH_ASSIGN(Normalizer normalizer, normalizerOf(step));
      made_.normalizers_.push_back(std::move(normalizer));
    }
    for (const Step& step : preTokenizers_) {
      options_.isByteLevel = options_.isByteLevel || step.type == "ByteLevel";
      HEARTH_TRY(addPreTokenizer(step, &made_.preTokenizers_));
    }
    for (const Step& step : decoders_) HEARTH_TRY(addDecoder(step));
    if (!unknown_.empty()) options_.unknown = made_.table_.find(unknown_);
    made_.pairs_ = BytePairs(made_.table_, options_);
    return {};
  }

  Status addDecoder(const Step& step) {
    if (step.type == "ByteLevel") {
      made_.isByteLevel_ = true;
    } else if (step.type == "ByteFallback") {
      made_.hasByteTokens_ = true;
    } else if (step.type == "Metaspace") {
      made_.space_ = step.replacement;
      made_.isFirstSpaceDropped_ = step.prependScheme != "never" && step.hasPrefixSpace;
    } else if (step.type == "Replace" && step.content == " " && step.expression.empty()) {
      made_.space_ = step.text;
    } else if (step.type == "Strip" && step.content == " " && step.stop == 0 && step.start <= 1) {
      made_.isFirstSpaceDropped_ = step.start == 1;
    } else if (step.type != "Fuse") {
      return unsupported("decoder", step.type);
    }
    return {};
  }

  JsonReader reader_;
  BytePairTokenizer made_;
  BytePairOptions options_;
  std::string unknown_;
  std::vector<Step> normalizers_;
  std::vector<Step> preTokenizers_;
  std::vector<Step> decoders_;
};

Result<Tokenizer> BytePairTokenizer::ofTable(std::span<const uint8_t> bytes,
                                             std::shared_ptr<const void> owner) {
  HEARTH_ASSIGN(BytePairTable table, BytePairTable::open(bytes, std::move(owner)));
  HEARTH_ASSIGN(BytePairTokenizer tokenizer, TokenizerJson(std::move(table)).read());
  return Tokenizer(std::make_shared<const BytePairTokenizer>(std::move(tokenizer)));
}

}  // namespace hearth::llm
