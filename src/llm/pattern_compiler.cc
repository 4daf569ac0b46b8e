// SPDX-License-Identifier: Apache-2.0
// Makes a program of the text of a regular expression.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "llm/escape.h"
#include "llm/pattern.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

constexpr size_t kMaxExpression = 1 << 16;
constexpr size_t kMaxInstructions = 1 << 13;
constexpr size_t kMaxNesting = 32;
constexpr uint32_t kMaxCount = 1000;
constexpr uint32_t kUnlimited = std::numeric_limits<uint32_t>::max();
// These fold to a letter of ASCII: the long s and the sign of kelvin.
constexpr uint32_t kLongS = 0x17F;
constexpr uint32_t kKelvin = 0x212A;

bool isLetter(uint32_t code) {
  return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
}

}  // namespace

// Parses by recursive descent; each function appends the program of what it reads.
class PatternCompiler {
 public:
  explicit PatternCompiler(std::string_view expression) : text_(expression) {}

  Result<Pattern> compile() {
    if (text_.size() > kMaxExpression)
      return fail(ErrorCode::kBadData, "It has {} bytes; at most {} are read.", text_.size(),
                  kMaxExpression);
    if (findInvalidUtf8(text_) != std::string_view::npos)
      return fail(ErrorCode::kBadData, "It is no UTF-8.");
    HEARTH_TRY(alternatives());
    if (at_ < text_.size()) return wrong("a group is closed that is not open");
    emit({Operation::kMatch});
    if (pattern_.program_.size() > kMaxInstructions) return wrong("it is too long");
    return std::move(pattern_);
  }

 private:
  using Operation = Pattern::Operation;
  using Instruction = Pattern::Instruction;
  using Program = std::vector<Instruction>;

  std::unexpected<Error> wrong(std::string_view problem) const {
    return fail(ErrorCode::kBadData, "It is wrong at byte {}: {}.", at_, problem);
  }
  std::unexpected<Error> unsupported(std::string_view what) const {
    return fail(ErrorCode::kUnsupported, "It has {} at byte {}, which is not supported.", what,
                at_);
  }
  bool isAt(std::string_view word) const { return text_.substr(at_).starts_with(word); }
  bool take(std::string_view word) {
    if (!isAt(word)) return false;
    at_ += word.size();
    return true;
  }
  uint32_t here() const { return static_cast<uint32_t>(pattern_.program_.size()); }
  uint32_t emit(Instruction instruction) {
    pattern_.program_.push_back(instruction);
    return here() - 1;
  }
  // Inserts one instruction; jumps in what follows are moved with it.
  void insert(uint32_t place, Instruction instruction) {
    Program& program = pattern_.program_;
    for (uint32_t i = place; i < program.size(); ++i) shift(&program[i], place, 1);
    program.insert(program.begin() + place, instruction);
  }
  static void shift(Instruction* instruction, uint32_t place, uint32_t by) {
    if (instruction->operation == Operation::kSet ||
        instruction->operation == Operation::kRepeatSet)
      return;
    if (instruction->first >= place) instruction->first += by;
    if (instruction->second >= place) instruction->second += by;
  }

  Status alternatives() {
    if (++nesting_ > kMaxNesting) return wrong("it is nested too deeply");
    std::vector<uint32_t> ends;
    for (;;) {
      const uint32_t begin = here();
      HEARTH_TRY(sequence());
      if (!take("|")) break;
      // The alternative, unless it fails; then the next.
      insert(begin, {Operation::kSplit, false, 0, begin + 1, 0});
      ends.push_back(emit({Operation::kJump}));
      pattern_.program_[begin].second = here();
      if (here() > kMaxInstructions) return wrong("it is too long");
    }
    for (const uint32_t end : ends) pattern_.program_[end].first = here();
    --nesting_;
    return {};
  }

  Status sequence() {
    while (at_ < text_.size() && !isAt("|") && !isAt(")")) HEARTH_TRY(repeated());
    return {};
  }

  // One item and how often it occurs.
  Status repeated() {
    const uint32_t begin = here();
    HEARTH_TRY(item());
    uint32_t least = 1;
    uint32_t most = 1;
    HEARTH_ASSIGN(const bool isRepeated, quantifier(&least, &most));
    if (!isRepeated) return {};
    if (isAt("?")) return unsupported("a repetition that takes as little as possible");
    const bool isPossessive = take("+");
    Program& program = pattern_.program_;
    if (here() == begin + 1 && program[begin].operation == Operation::kSet) {
      program[begin].operation = Operation::kRepeatSet;
      program[begin].isPossessive = isPossessive;
      program[begin].least = least;
      program[begin].most = most;
      return {};
    }
    if (isPossessive) return unsupported("a possessive repetition of a group");
    return repeatGroup(begin, least, most);
  }

  Status repeatGroup(uint32_t begin, uint32_t least, uint32_t most) {
    const Program body(pattern_.program_.begin() + begin, pattern_.program_.end());
    pattern_.program_.resize(begin);
    if (most == kUnlimited && canBeEmpty(body, begin))
      return unsupported("a repetition of what may be empty");
    const auto copies = static_cast<uint64_t>(most == kUnlimited ? least + 1 : most);
    if (copies * (body.size() + 2) > kMaxInstructions) return wrong("it is too long");
    const auto add = [&] {
      const uint32_t by = here() - begin;
      for (Instruction instruction : body) {
        shift(&instruction, begin, by);
        emit(instruction);
      }
    };
    for (uint32_t i = 0; i < least; ++i) add();
    if (most == kUnlimited) {
      const uint32_t split = emit({Operation::kSplit});
      add();
      emit({Operation::kJump, false, 0, split});
      pattern_.program_[split].first = split + 1;
      pattern_.program_[split].second = here();
      return {};
    }
    std::vector<uint32_t> splits;
    for (uint32_t i = least; i < most; ++i) {
      splits.push_back(emit({Operation::kSplit}));
      pattern_.program_.back().first = here();
      add();
    }
    for (const uint32_t split : splits) pattern_.program_[split].second = here();
    return {};
  }

  // Whether the end of the body can be reached past no character.
  static bool canBeEmpty(const Program& body, uint32_t begin) {
    std::vector<bool> isReached(body.size() + 1);
    isReached[0] = true;
    // Jumps of a body without unlimited groups lead forwards; those of such a group lead back to
    // where it has been reached already.
    for (size_t i = 0; i < body.size(); ++i) {
      if (!isReached[i]) continue;
      const Instruction& instruction = body[i];
      switch (instruction.operation) {
        case Operation::kSet:
          break;
        case Operation::kRepeatSet:
          if (instruction.least == 0) isReached[i + 1] = true;
          break;
        case Operation::kSplit:
          isReached[instruction.first - begin] = true;
          isReached[instruction.second - begin] = true;
          break;
        case Operation::kJump:
        case Operation::kAhead:
        case Operation::kNotAhead:
          isReached[instruction.first - begin] = true;
          break;
        default:
          isReached[i + 1] = true;
      }
    }
    return isReached[body.size()];
  }

  Result<bool> quantifier(uint32_t* least, uint32_t* most) {
    if (take("*")) {
      *least = 0;
      *most = kUnlimited;
      return true;
    }
    if (take("+")) {
      *most = kUnlimited;
      return true;
    }
    if (take("?")) {
      *least = 0;
      return true;
    }
    if (!take("{")) return false;
    const std::optional<uint32_t> low = number();
    if (take(",")) {
      const std::optional<uint32_t> high = number();
      *most = high.value_or(kUnlimited);
      if (!low && !high) return wrong("a repetition needs a number");
    } else {
      if (!low) return wrong("a repetition needs a number");
      *most = *low;
    }
    *least = low.value_or(0);
    if (!take("}") || *least > *most || *least > kMaxCount ||
        (*most > kMaxCount && *most != kUnlimited))
      return wrong("a repetition is wrong, or larger than 1000");
    return true;
  }

  std::optional<uint32_t> number() {
    std::optional<uint32_t> value;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9')
      value = std::min(value.value_or(0) * 10 + static_cast<uint32_t>(text_[at_++] - '0'),
                       kMaxCount + 1);
    return value;
  }

  Status item() {
    if (take("(")) return group();
    CharacterSet set;
    if (take("[")) {
      HEARTH_TRY(characterClass(&set));
    } else if (take(".")) {
      set.ranges.emplace_back('\n', '\n');
      set.isNegated = true;
    } else if (take("^")) {
      emit({Operation::kBegin});
      return {};
    } else if (take("$")) {
      emit({Operation::kEnd});
      return {};
    } else if (isAt("*") || isAt("+") || isAt("?")) {
      return wrong("nothing stands before a repetition");
    } else {
      HEARTH_TRY(member(&set, false));
    }
    addSet(std::move(set));
    return {};
  }

  void addSet(CharacterSet set) {
    emit({Operation::kSet, false, static_cast<uint32_t>(pattern_.sets_.size())});
    pattern_.sets_.push_back(std::move(set));
  }

  Status group() {
    const bool hadCase = isCaseless_;
    Operation operation = Operation::kMatch;
    if (take("?=")) {
      operation = Operation::kAhead;
    } else if (take("?!")) {
      operation = Operation::kNotAhead;
    } else if (take("?i:")) {
      isCaseless_ = true;
    } else if (isAt("?") && !take("?:")) {
      return unsupported("a group of this kind");
    }
    const uint32_t begin = here();
    if (operation != Operation::kMatch) emit({operation});
    HEARTH_TRY(alternatives());
    if (!take(")")) return wrong("a group is not closed");
    isCaseless_ = hadCase;
    if (operation != Operation::kMatch) {
      emit({Operation::kMatch});
      pattern_.program_[begin].first = here();
    }
    return {};
  }

  // The rest of a class behind its bracket.
  Status characterClass(CharacterSet* set) {
    if (++nesting_ > kMaxNesting) return wrong("it is nested too deeply");
    set->isNegated = take("^");
    for (bool isFirst = true; isFirst || !isAt("]"); isFirst = false) {
      if (at_ == text_.size()) return wrong("a class of characters is not closed");
      if (isAt("&&")) return unsupported("an intersection of classes");
      if (isAt("[:")) return unsupported("a class with a name");
      if (take("[")) {
        HEARTH_TRY(characterClass(&set->sets.emplace_back()));
        continue;
      }
      HEARTH_TRY(member(set, true));
    }
    take("]");
    --nesting_;
    return {};
  }

  // One character, a range of them in a class, or a category.
  Status member(CharacterSet* set, bool isInClass) {
    if (isAt("\\p") || isAt("\\P")) return property(set);
    if (isAt("\\s") || isAt("\\S")) {
      (text_[at_ + 1] == 's' ? set->hasWhiteSpace : set->hasOtherThanWhiteSpace) = true;
      at_ += 2;
      return {};
    }
    if (isAt("\\d") || isAt("\\D") || isAt("\\w") || isAt("\\W")) return shorthand(set);
    HEARTH_ASSIGN(const uint32_t first, character());
    uint32_t last = first;
    if (isInClass && isAt("-") && !isAt("-]")) {
      take("-");
      HEARTH_ASSIGN(last, character());
      if (last < first) return wrong("a range of characters runs backwards");
    }
    set->ranges.emplace_back(first, last);
    if (isCaseless_ && first == last && isLetter(first)) {
      set->ranges.emplace_back(first ^ 0x20, first ^ 0x20);
      if ((first | 0x20) == 's') set->ranges.emplace_back(kLongS, kLongS);
      if ((first | 0x20) == 'k') set->ranges.emplace_back(kKelvin, kKelvin);
    }
    return {};
  }

  Status shorthand(CharacterSet* set) {
    const char letter = text_[at_ + 1];
    at_ += 2;
    CharacterSet named;
    named.categories = *categoriesNamed("Nd");
    if (letter == 'w' || letter == 'W')
      named.categories |= *categoriesNamed("L") | *categoriesNamed("M") | *categoriesNamed("Pc");
    named.isNegated = letter == 'D' || letter == 'W';
    set->sets.push_back(std::move(named));
    return {};
  }

  Status property(CharacterSet* set) {
    CharacterSet named;
    named.isNegated = isAt("\\P");
    at_ += 2;
    std::string_view name = text_.substr(at_, 1);
    if (take("{")) {
      if (take("^")) named.isNegated = !named.isNegated;
      const size_t end = text_.find('}', at_);
      if (end == std::string_view::npos) return wrong("a property is not closed");
      name = text_.substr(at_, end - at_);
      at_ = end + 1;
    } else {
      at_ += name.size();
    }
    const std::optional<Categories> categories = categoriesNamed(name);
    if (!categories) return unsupported("a property other than a general category");
    named.categories = *categories;
    if (!named.isNegated)
      set->categories |= named.categories;
    else
      set->sets.push_back(std::move(named));
    return {};
  }

  // A character, perhaps an escaped one.
  Result<uint32_t> character() {
    if (at_ == text_.size()) return wrong("it ends too early");
    const Character found = decodeCharacter(text_, at_);
    at_ += found.size;
    if (found.code != '\\') return found.code;
    if (at_ == text_.size()) return wrong("it ends with a backslash");
    const Character escaped = decodeCharacter(text_, at_);
    at_ += escaped.size;
    if (const auto control = controlCharacter(escaped.code)) return *control;
    if (escaped.code == 'u') return hexadecimal(4);
    if (escaped.code == 'x') return isAt("{") ? braced() : hexadecimal(2);
    if (isLetter(escaped.code) || (escaped.code >= '0' && escaped.code <= '9'))
      return unsupported("an escape of this kind");
    return escaped.code;
  }

  Result<uint32_t> braced() {
    take("{");
    const size_t end = text_.find('}', at_);
    if (end == std::string_view::npos) return wrong("the number of a character is not closed");
    HEARTH_ASSIGN(const uint32_t code, hexadecimal(end - at_));
    take("}");
    return code;
  }

  Result<uint32_t> hexadecimal(size_t count) {
    const std::string_view digits = text_.substr(at_, count);
    const std::optional<uint32_t> code = numberOfCharacter(digits);
    if (!code || digits.size() != count)
      return wrong("the number of a character lacks hexadecimal digits, or is above 10FFFF");
    at_ += count;
    return *code;
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t nesting_ = 0;
  bool isCaseless_ = false;
  Pattern pattern_;
};

Result<Pattern> Pattern::compile(std::string_view expression) {
  auto pattern = PatternCompiler(expression).compile();
  if (!pattern)
    return std::unexpected(
        std::move(pattern.error()).addContext("while reading an expression of the tokenizer"));
  return pattern;
}

}  // namespace hearth::llm
