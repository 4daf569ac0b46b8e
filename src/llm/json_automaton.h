// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "llm/json_schema.h"

namespace hearth::llm {

// Reads texts of a schema byte by byte: says which byte may come next. States are numbers, made
// when they are first reached. From each state that can be reached an end can be reached, so that
// whoever only takes what may come never gets stuck. Used by one thread at a time.
//
// White space between values is at most one line feed and then kMaxSpaces spaces, and numbers have
// at most kMaxDigits digits before and behind the point: a model that repeats itself comes to an
// end.
class JsonAutomaton {
 public:
  using State = uint32_t;
  static constexpr State kWrong = 0;  // which nothing leads out of
  static constexpr uint32_t kMaxSpaces = 32;
  static constexpr uint32_t kMaxDigits = 18;

  explicit JsonAutomaton(std::shared_ptr<const JsonSchema> schema);

  State begin();
  State next(State state, uint8_t byte) {
    const State known = rows_[state][byte];
    return known != kUnknown ? known : find(state, byte);
  }
  // Whether the text may end here, and whether nothing else may come.
  bool mayEnd(State state) const;
  bool mustEnd(State state);

  // How many states there are. Forgets all but one, whose new number is returned: who walks over
  // many texts calls it now and then.
  size_t size() const { return rows_.size(); }
  State forgetOthers(State kept);

 private:
  enum class Step : uint8_t {
    kEnd,
    kBegin,        // of a value; count: white space before it
    kObjectFirst,  // behind '{'; count: white space
    kObjectMore,   // behind ','; count: white space; place: the next property
    kKey,          // count: the property; place: in its text
    kColon,        // count: the property
    kObjectNext,   // behind a value; count: white space; place: the next property
    kArrayFirst,   // behind '['; count: white space
    kArrayNext,    // behind an element; count: white space; place: elements
    kString,       // count: characters; place: a Character
    kLiteral,      // count: which one; place: in its text
    kMinus,
    kZero,
    kDigits,  // count: digits; the same below
    kPoint,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits,
    kText,  // a string behind its quote, or a number; count: the state of its automaton
  };

  // What is to be read, and behind it what the parent says.
  struct Frame {
    uint32_t parent = 0;
    uint32_t node = 0;
    uint32_t count = 0;
    uint32_t place = 0;
    Step step = Step::kEnd;
    uint8_t depth = 0;  // of open objects and arrays

    bool operator==(const Frame&) const = default;
  };
  struct Hash {
    size_t operator()(const Frame& frame) const;
    size_t operator()(const std::vector<uint32_t>& frames) const;
  };
  using Row = std::array<State, 256>;

  static constexpr State kUnknown = UINT32_MAX;

  State find(State state, uint8_t byte);
  State stateOf(std::vector<uint32_t> frames);
  uint32_t intern(const Frame& frame);
  void push(const Frame& frame) { reached_.push_back(intern(frame)); }

  void step(const Frame& frame, uint8_t byte);
  bool takeSpace(Frame frame, uint8_t byte);
  bool fits(uint32_t node, uint32_t depth) const;
  void pushValue(uint32_t node, const Frame& parent);
  void beginValues(uint32_t node, const Frame& parent, uint8_t byte);
  void beginValue(const Frame& begin, uint8_t byte);
  void stepObject(const Frame& frame, uint8_t byte);
  bool mayClose(const JsonSchema::Node& node, uint32_t property) const;
  void beginKeys(const Frame& frame, uint32_t property, bool isCheck, bool* isThere);
  void stepArray(const Frame& frame, uint8_t byte);
  void stepString(Frame frame, uint8_t byte);
  void stepNumber(Frame frame, uint8_t byte);
  void stepText(const Frame& frame, uint8_t byte);
  bool isWholeNumber(const Frame& frame) const;
  uint32_t copy(uint32_t frame, const std::vector<Frame>& from,
                std::unordered_map<uint32_t, uint32_t>* copies);

  const std::shared_ptr<const JsonSchema> schema_;
  std::vector<Frame> frames_;
  std::unordered_map<Frame, uint32_t, Hash> frameIds_;
  std::vector<std::vector<uint32_t>> states_;  // the frames that each is in at once
  std::unordered_map<std::vector<uint32_t>, State, Hash> stateIds_;
  std::vector<Row> rows_;
  std::vector<uint32_t> reached_;  // while a byte is read
};

}  // namespace hearth::llm
