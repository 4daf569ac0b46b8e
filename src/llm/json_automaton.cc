// SPDX-License-Identifier: Apache-2.0
#include "llm/json_automaton.h"

#include <algorithm>
#include <string>
#include <utility>

namespace hearth::llm {
namespace {

using Kind = JsonSchema::Kind;
using Node = JsonSchema::Node;

// Of many ways to go on the first ones are kept: each of them leads to an end.
constexpr size_t kMaxFrames = 1024;
constexpr uint32_t kMaxExponentDigits = 2;

// The frame of the end, which is no part of any value.
constexpr uint32_t kEndFrame = 0;

// Where in a character of a string a text is.
enum Character : uint32_t {
  kPlain,
  kEscape,     // behind a backslash
  kHex1,       // the first digit of \uXXXX
  kSurrogate,  // behind \uD: surrogates are not used
  kHex2,       // the second digit, and so on
  kHex3,
  kHex4,
  kLast1,  // one more byte of UTF-8, any
  kLast2,
  kLast3,
  kAfterE0,  // bytes that would make a shorter character, or none
  kAfterEd,
  kAfterF0,
  kAfterF4,
};

bool isDigit(uint8_t byte) {
  return byte >= '0' && byte <= '9';
}

bool isHex(uint8_t byte) {
  return isDigit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

bool isWithin(uint8_t byte, uint8_t least, uint8_t most) {
  return byte >= least && byte <= most;
}

// What follows the first byte of a character; kPlain for a character of one byte. False for bytes
// that begin none.
bool characterAfter(uint8_t byte, uint32_t* place) {
  if (byte < 0x80) {
    *place = kPlain;
    return byte >= 0x20 && byte != '"' && byte != '\\';
  }
  if (isWithin(byte, 0xC2, 0xDF))
    *place = kLast1;
  else if (byte == 0xE0)
    *place = kAfterE0;
  else if (byte == 0xED)
    *place = kAfterEd;
  else if (isWithin(byte, 0xE1, 0xEF))
    *place = kLast2;
  else if (byte == 0xF0)
    *place = kAfterF0;
  else if (isWithin(byte, 0xF1, 0xF3))
    *place = kLast3;
  else if (byte == 0xF4)
    *place = kAfterF4;
  else
    return false;
  return true;
}

// The place behind a byte that is not the first one of a character.
bool characterGoesOn(uint8_t byte, uint32_t* place) {
  switch (*place) {
    case kEscape:
      if (byte == 'u') {
        *place = kHex1;
        return true;
      }
      *place = kPlain;
      return std::string_view("\"\\/bfnrt").contains(static_cast<char>(byte));
    case kHex1:
      *place = byte == 'd' || byte == 'D' ? kSurrogate : kHex2;
      return isHex(byte);
    case kSurrogate:
      *place = kHex3;
      return isWithin(byte, '0', '7');
    case kHex2:
    case kHex3:
      ++*place;
      return isHex(byte);
    case kHex4:
      *place = kPlain;
      return isHex(byte);
    case kLast1:
      *place = kPlain;
      return isWithin(byte, 0x80, 0xBF);
    case kLast2:
      *place = kLast1;
      return isWithin(byte, 0x80, 0xBF);
    case kLast3:
      *place = kLast2;
      return isWithin(byte, 0x80, 0xBF);
    case kAfterE0:
      *place = kLast1;
      return isWithin(byte, 0xA0, 0xBF);
    case kAfterEd:
      *place = kLast1;
      return isWithin(byte, 0x80, 0x9F);
    case kAfterF0:
      *place = kLast2;
      return isWithin(byte, 0x90, 0xBF);
    case kAfterF4:
      *place = kLast2;
      return isWithin(byte, 0x80, 0x8F);
    default:
      return false;
  }
}

size_t mixed(size_t hash, size_t value) {
  return (hash ^ value) * 0x9E3779B97F4A7C15 + (hash >> 29);
}

}  // namespace

size_t JsonAutomaton::Hash::operator()(const Frame& frame) const {
  size_t hash = mixed(frame.parent, frame.node);
  hash = mixed(hash, size_t{frame.count} << 32 | frame.place);
  return mixed(hash, static_cast<size_t>(frame.step) << 8 | frame.depth);
}

size_t JsonAutomaton::Hash::operator()(const std::vector<uint32_t>& frames) const {
  size_t hash = frames.size();
  for (const uint32_t frame : frames) hash = mixed(hash, frame);
  return hash;
}

JsonAutomaton::JsonAutomaton(std::shared_ptr<const JsonSchema> schema)
    : schema_(std::move(schema)) {
  intern({});
  stateOf({});
  // Not only unknown: it stays wrong.
  rows_[kWrong].fill(kWrong);
}

uint32_t JsonAutomaton::intern(const Frame& frame) {
  const auto [found, isNew] = frameIds_.try_emplace(frame, static_cast<uint32_t>(frames_.size()));
  if (isNew) frames_.push_back(frame);
  return found->second;
}

JsonAutomaton::State JsonAutomaton::stateOf(std::vector<uint32_t> frames) {
  const auto [found, isNew] = stateIds_.try_emplace(frames, static_cast<State>(rows_.size()));
  if (isNew) {
    rows_.emplace_back().fill(kUnknown);
    states_.push_back(std::move(frames));
  }
  return found->second;
}

JsonAutomaton::State JsonAutomaton::begin() {
  reached_.clear();
  pushValue(schema_->root(), Frame());  // the end
  return stateOf(std::exchange(reached_, {}));
}

JsonAutomaton::State JsonAutomaton::find(State state, uint8_t byte) {
  reached_.clear();
  for (const uint32_t id : states_[state]) {
    // A copy: frames that are added move the others.
    const Frame frame = frames_[id];
    step(frame, byte);
    if (reached_.size() > kMaxFrames) break;
  }
  // In the order of the schema, which is that of preference where there are too many.
  std::vector<uint32_t> frames;
  frames.reserve(reached_.size());
  for (const uint32_t id : reached_)
    if (frames.size() < kMaxFrames) frames.push_back(id);
  std::ranges::sort(frames);
  const auto repeated = std::ranges::unique(frames);
  frames.erase(repeated.begin(), repeated.end());
  const State next = stateOf(std::move(frames));
  rows_[state][byte] = next;
  return next;
}

bool JsonAutomaton::mayEnd(State state) const {
  return std::ranges::any_of(states_[state], [&](uint32_t id) {
    const Frame& frame = frames_[id];
    return id == kEndFrame || (frame.parent == kEndFrame && isWholeNumber(frame));
  });
}

bool JsonAutomaton::mustEnd(State state) {
  if (!mayEnd(state)) return false;
  for (unsigned byte = 0; byte < rows_[state].size(); ++byte)
    if (next(state, static_cast<uint8_t>(byte)) != kWrong) return false;
  return true;
}

uint32_t JsonAutomaton::copy(uint32_t frame, const std::vector<Frame>& from,
                             std::unordered_map<uint32_t, uint32_t>* copies) {
  if (frame == kEndFrame) return kEndFrame;
  if (const auto found = copies->find(frame); found != copies->end()) return found->second;
  Frame made = from[frame];
  // As deep as the text nests.
  made.parent = copy(made.parent, from, copies);
  return copies->emplace(frame, intern(made)).first->second;
}

JsonAutomaton::State JsonAutomaton::forgetOthers(State kept) {
  const std::vector<Frame> from = std::exchange(frames_, {});
  std::vector<uint32_t> frames = std::move(states_[kept]);
  frameIds_.clear();
  stateIds_.clear();
  states_.clear();
  rows_.clear();
  intern({});
  stateOf({});
  rows_[kWrong].fill(kWrong);
  std::unordered_map<uint32_t, uint32_t> copies;
  for (uint32_t& frame : frames) frame = copy(frame, from, &copies);
  std::ranges::sort(frames);
  return stateOf(std::move(frames));
}

// ---- Values ------------------------------------------------------------------------------------

bool JsonAutomaton::takeSpace(Frame frame, uint8_t byte) {
  if (byte == '\n' && frame.count == 0)
    frame.count = 1;
  else if (byte == ' ' && frame.count <= kMaxSpaces)
    frame.count = std::max(frame.count + 1, 2u);
  else
    return false;
  push(frame);
  return true;
}

bool JsonAutomaton::fits(uint32_t node, uint32_t depth) const {
  return depth + schema_->node(node).depth <= JsonSchema::kMaxDepth;
}

// A value comes next, and then what `parent` says.
void JsonAutomaton::pushValue(uint32_t node, const Frame& parent) {
  const uint32_t id = intern(parent);
  for (const uint32_t choice : schema_->node(node).choices)
    if (fits(choice, parent.depth))
      push({.parent = id, .node = choice, .step = Step::kBegin, .depth = parent.depth});
}

// The same, and this is its first byte.
void JsonAutomaton::beginValues(uint32_t node, const Frame& parent, uint8_t byte) {
  const uint32_t id = intern(parent);
  for (const uint32_t choice : schema_->node(node).choices)
    if (fits(choice, parent.depth))
      beginValue({.parent = id, .node = choice, .step = Step::kBegin, .depth = parent.depth}, byte);
}

void JsonAutomaton::beginValue(const Frame& begin, uint8_t byte) {
  const Node& node = schema_->node(begin.node);
  Frame frame = begin;
  frame.count = 0;
  switch (node.kind) {
    case Kind::kObject:
    case Kind::kArray:
      if (byte != (node.kind == Kind::kObject ? '{' : '[')) return;
      frame.step = node.kind == Kind::kObject ? Step::kObjectFirst : Step::kArrayFirst;
      ++frame.depth;
      return push(frame);
    case Kind::kString:
      if (byte != '"') return;
      frame.step = node.text != nullptr ? Step::kText : Step::kString;
      if (node.text != nullptr) frame.count = node.text->begin();
      return push(frame);
    case Kind::kNumber:
    case Kind::kInteger:
      if (node.text != nullptr) {
        frame.step = Step::kText;
        frame.count = node.text->begin();
        return stepText(frame, byte);
      }
      if (byte != '-' && !isDigit(byte)) return;
      frame.step = byte == '-' ? Step::kMinus : byte == '0' ? Step::kZero : Step::kDigits;
      frame.count = frame.step == Step::kDigits ? 1 : 0;
      return push(frame);
    case Kind::kLiterals:
      frame.step = Step::kLiteral;
      for (uint32_t i = 0; i < node.literals.size(); ++i) {
        frame.count = i;
        frame.place = 0;
        step(frame, byte);
      }
      return;
    case Kind::kAnyOf:
      return;  // no choice is one
  }
}

void JsonAutomaton::step(const Frame& frame, uint8_t byte) {
  switch (frame.step) {
    case Step::kEnd:
      return;
    case Step::kBegin:
      if (!takeSpace(frame, byte)) beginValue(frame, byte);
      return;
    case Step::kObjectFirst:
    case Step::kObjectMore:
    case Step::kKey:
    case Step::kColon:
    case Step::kObjectNext:
      return stepObject(frame, byte);
    case Step::kArrayFirst:
    case Step::kArrayNext:
      return stepArray(frame, byte);
    case Step::kString:
      return stepString(frame, byte);
    case Step::kLiteral: {
      const std::string& text = schema_->node(frame.node).literals[frame.count];
      if (static_cast<uint8_t>(text[frame.place]) != byte) return;
      Frame next = frame;
      if (++next.place < text.size()) return push(next);
      reached_.push_back(frame.parent);
      return;
    }
    case Step::kText:
      return stepText(frame, byte);
    default:
      return stepNumber(frame, byte);
  }
}

// ---- Objects and arrays ------------------------------------------------------------------------

// Whether no property from this one on is required.
bool JsonAutomaton::mayClose(const Node& node, uint32_t property) const {
  return std::none_of(node.properties.begin() + property, node.properties.end(),
                      [](const auto& later) { return later.isRequired; });
}

// The keys that may come, behind their quote. `isCheck`: only says whether there are any.
void JsonAutomaton::beginKeys(const Frame& frame, uint32_t property, bool isCheck, bool* isThere) {
  const Node& node = schema_->node(frame.node);
  Frame key{.parent = frame.parent,
            .node = frame.node,
            .place = 1,
            .step = Step::kKey,
            .depth = frame.depth};
  if (node.hasAnyKeys && fits(node.items, frame.depth)) {
    *isThere = true;
    if (isCheck) return;
    key.step = Step::kColon;
    key.place = 0;
    push({.parent = intern(key),
          .node = JsonSchema::kAnyString,
          .step = Step::kString,
          .depth = frame.depth});
    return;
  }
  for (uint32_t i = property; i < node.properties.size(); ++i) {
    const JsonSchema::Property& candidate = node.properties[i];
    if (fits(candidate.value, frame.depth)) {
      *isThere = true;
      if (isCheck) return;
      key.count = i;
      push(key);
    }
    if (candidate.isRequired) return;
  }
}

void JsonAutomaton::stepObject(const Frame& frame, uint8_t byte) {
  const Node& node = schema_->node(frame.node);
  Frame next = frame;
  bool isThere = false;
  switch (frame.step) {
    case Step::kObjectFirst:
    case Step::kObjectMore:
      if (takeSpace(frame, byte)) return;
      if (byte == '"') beginKeys(frame, frame.place, false, &isThere);
      if (byte == '}' && frame.step == Step::kObjectFirst && mayClose(node, 0))
        reached_.push_back(frame.parent);
      return;
    case Step::kKey: {
      const std::string& key = node.properties[frame.count].key;
      if (static_cast<uint8_t>(key[frame.place]) != byte) return;
      if (++next.place == key.size()) {
        next.step = Step::kColon;
        next.place = 0;
      }
      return push(next);
    }
    case Step::kColon:
      if (byte != ':') return;
      next.step = Step::kObjectNext;
      next.place = node.hasAnyKeys ? 0 : frame.count + 1;
      next.count = 0;
      return pushValue(node.hasAnyKeys ? node.items : node.properties[frame.count].value, next);
    default:
      if (takeSpace(frame, byte)) return;
      if (byte == '}' && mayClose(node, frame.place)) reached_.push_back(frame.parent);
      if (byte != ',') return;
      beginKeys(frame, frame.place, true, &isThere);
      next.step = Step::kObjectMore;
      next.count = 0;
      if (isThere) push(next);
  }
}

void JsonAutomaton::stepArray(const Frame& frame, uint8_t byte) {
  if (takeSpace(frame, byte)) return;
  const Node& node = schema_->node(frame.node);
  const uint32_t elements = frame.place;
  if (byte == ']' && elements >= node.least) {
    reached_.push_back(frame.parent);
    return;
  }
  if (elements >= node.most) return;
  Frame next = frame;
  next.step = Step::kArrayNext;
  next.count = 0;
  // Without a limit only the least number matters, and whether there is one.
  next.place = node.most != JsonSchema::kMost ? elements + 1
                                              : std::min(elements + 1, std::max(node.least, 1u));
  if (frame.step == Step::kArrayFirst)
    beginValues(node.items, next, byte);
  else if (byte == ',')
    pushValue(node.items, next);
}

// ---- Strings and numbers -----------------------------------------------------------------------

void JsonAutomaton::stepString(Frame frame, uint8_t byte) {
  const Node& node = schema_->node(frame.node);
  if (frame.place != kPlain) {
    if (characterGoesOn(byte, &frame.place)) push(frame);
    return;
  }
  if (byte == '"') {
    if (frame.count >= node.least) reached_.push_back(frame.parent);
    return;
  }
  if (frame.count >= node.most) return;
  if (byte == '\\')
    frame.place = kEscape;
  else if (!characterAfter(byte, &frame.place))
    return;
  if (node.most != JsonSchema::kMost || frame.count < node.least) ++frame.count;
  push(frame);
}

void JsonAutomaton::stepText(const Frame& frame, uint8_t byte) {
  const TextAutomaton& text = *schema_->node(frame.node).text;
  if (const auto state = text.next(frame.count, byte)) {
    Frame next = frame;
    next.count = *state;
    return push(next);
  }
  if (!text.mayEnd(frame.count)) return;
  if (schema_->node(frame.node).kind == Kind::kString) {
    // Within the text a quote has a backslash before it.
    if (byte == '"') reached_.push_back(frame.parent);
    return;
  }
  const Frame parent = frames_[frame.parent];
  step(parent, byte);
}

bool JsonAutomaton::isWholeNumber(const Frame& frame) const {
  if (frame.step == Step::kText) {
    const Node& node = schema_->node(frame.node);
    return node.kind != Kind::kString && node.text->mayEnd(frame.count);
  }
  return frame.step == Step::kZero || frame.step == Step::kDigits ||
         frame.step == Step::kFraction || frame.step == Step::kExponentDigits;
}

void JsonAutomaton::stepNumber(Frame frame, uint8_t byte) {
  const bool isInteger = schema_->node(frame.node).kind == Kind::kInteger;
  const bool isWhole = isWholeNumber(frame);
  const auto go = [&](Step step, uint32_t count) {
    Frame next = frame;
    next.step = step;
    next.count = count;
    push(next);
  };
  switch (frame.step) {
    case Step::kMinus:
      if (byte == '0') return go(Step::kZero, 0);
      if (isDigit(byte)) return go(Step::kDigits, 1);
      return;
    case Step::kPoint:
      if (isDigit(byte)) go(Step::kFraction, 1);
      return;
    case Step::kExponent:
      if (byte == '+' || byte == '-') return go(Step::kExponentSign, 0);
      if (isDigit(byte)) go(Step::kExponentDigits, 1);
      return;
    case Step::kExponentSign:
      if (isDigit(byte)) go(Step::kExponentDigits, 1);
      return;
    default:
      break;
  }
  const uint32_t mostDigits = frame.step == Step::kZero             ? 0
                              : frame.step == Step::kExponentDigits ? kMaxExponentDigits
                                                                    : kMaxDigits;
  if (isDigit(byte)) {
    if (frame.count < mostDigits) go(frame.step, frame.count + 1);
    return;
  }
  const bool isBeforePoint = frame.step == Step::kZero || frame.step == Step::kDigits;
  if (!isInteger && byte == '.' && isBeforePoint) return go(Step::kPoint, 0);
  if (!isInteger && (byte == 'e' || byte == 'E') && frame.step != Step::kExponentDigits)
    return go(Step::kExponent, 0);
  // A number has no end of its own: the byte belongs to what follows.
  if (!isWhole) return;
  const Frame parent = frames_[frame.parent];
  step(parent, byte);
}

}  // namespace hearth::llm
