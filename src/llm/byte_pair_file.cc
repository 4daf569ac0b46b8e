// SPDX-License-Identifier: Apache-2.0
#include "llm/byte_pair_file.h"

#include <optional>
#include <string>

#include "llm/byte_pair_table.h"
#include "llm/json_reader.h"
#include "llm/vocabulary.h"

namespace hearth::llm {
namespace {

constexpr size_t kMaxFileBytes = size_t{256} << 20;

// Reads the tokens and merges of the file, and copies the rest.
class BytePairFile {
 public:
  explicit BytePairFile(std::string_view json) : json_(json), reader_(json) {}

  Result<std::vector<uint8_t>> read() {
    HEARTH_TRY(forEachMember(&reader_, [&](const std::string& key) -> Status {
      if (key == "added_tokens") return readAddedTokens();
      if (key == "model") return readModel();
      return reader_.skip();
    }));
    HEARTH_TRY(reader_.expectEnd());
    if (!hasModel_) return fail(ErrorCode::kBadData, "The tokenizer has no model.");
    rest_ += json_.substr(copied_);
    return BytePairTable::make(vocabulary_, merges_, rest_);
  }

 private:
  // Puts `other` in place of the value between `begin` and the reader's position.
  void replace(size_t begin, std::string_view other) {
    rest_ += json_.substr(copied_, begin - copied_);
    rest_ += other;
    copied_ = reader_.position();
  }

  Status readAddedTokens() {
    return forEachElement(&reader_, [&]() -> Status {
      std::string text;
      int64_t id = -1;
      HEARTH_TRY(forEachMember(&reader_, [&](const std::string& key) -> Status {
        if (key == "content") return reader_.readString(&text);
        if (key != "id") return reader_.skip();
        HEARTH_ASSIGN(id, reader_.readInteger());
        return {};
      }));
      // A text of one token may stand in place of another's in the model's own list.
      if (id < 0 || id >= static_cast<int64_t>(Vocabulary::kMaxTokens))
        return fail(ErrorCode::kBadData, "An added token has the number {}.", id);
      return vocabulary_.add(text, id);
    });
  }

  Status readModel() {
    std::string type = "BPE";
    std::optional<JsonReader> merges;
    hasModel_ = true;
    HEARTH_TRY(forEachMember(&reader_, [&](const std::string& key) -> Status {
      const size_t begin = reader_.position();
      if (key == "type") return reader_.readString(&type);
      if (key == "vocab") {
        HEARTH_TRY(readVocabulary());
        replace(begin, "{}");
        return {};
      }
      if (key != "merges") return reader_.skip();
      // Read behind the vocabulary, wherever that stands.
      merges = reader_;
      HEARTH_TRY(reader_.skip());
      replace(begin, "[]");
      return {};
    }));
    if (type != "BPE")
      return fail(ErrorCode::kUnsupported,
                  "The tokenizer has the model {}, which is not supported.", type);
    if (!merges) return fail(ErrorCode::kBadData, "The tokenizer has no merges.");
    return readMerges(&*merges);
  }

  Status readVocabulary() {
    HEARTH_ASSIGN(const JsonReader::Kind kind, reader_.peek());
    // Of a model other than BPE, whose name may follow.
    if (kind != JsonReader::Kind::kObject) return reader_.skip();
    return forEachMember(&reader_, [&](const std::string& key) -> Status {
      HEARTH_ASSIGN(const int64_t id, reader_.readInteger());
      return vocabulary_.add(key, id);
    });
  }

  Status readMerges(JsonReader* reader) {
    std::string left;
    std::string right;
    return forEachElement(reader, [&]() -> Status {
      HEARTH_ASSIGN(const JsonReader::Kind kind, reader->peek());
      if (kind == JsonReader::Kind::kString) {
        HEARTH_TRY(reader->readString(&left));
        const size_t space = left.find(' ', 1);
        if (space == std::string::npos)
          return fail(ErrorCode::kBadData, "A merge of the tokenizer has one part.");
        right = left.substr(space + 1);
        left.resize(space);
      } else {
        HEARTH_TRY(reader->beginArray());
        for (std::string* part : {&left, &right}) {
          HEARTH_ASSIGN(const bool isThere, reader->nextElement());
          if (!isThere) return fail(ErrorCode::kBadData, "A merge of the tokenizer has one part.");
          HEARTH_TRY(reader->readString(part));
        }
        HEARTH_ASSIGN(const bool hasMore, reader->nextElement());
        if (hasMore) return fail(ErrorCode::kBadData, "A merge of the tokenizer has three parts.");
      }
      return merges_.add(vocabulary_, left, right);
    });
  }

  std::string_view json_;
  JsonReader reader_;
  Vocabulary vocabulary_;
  MergeList merges_;
  bool hasModel_ = false;
  std::string rest_;
  size_t copied_ = 0;  // of json_ into rest_, or left out
};

}  // namespace

Result<std::vector<uint8_t>> tableOfTokenizerJson(std::string_view json) {
  if (json.size() > kMaxFileBytes)
    return fail(ErrorCode::kBadData, "The tokenizer has {} bytes; at most {} are read.",
                json.size(), kMaxFileBytes);
  return BytePairFile(json).read();
}

}  // namespace hearth::llm
