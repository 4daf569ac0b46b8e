// SPDX-License-Identifier: Apache-2.0
#include "llm/text_automaton.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hearth::llm {
namespace {

constexpr uint32_t kNoState = CharacterAutomaton::kNowhere;
constexpr uint32_t kContinuationBits = 6;
constexpr uint32_t kContinuations = 1U << kContinuationBits;
constexpr uint8_t kFirstContinuation = 0x80;
constexpr size_t kStepsOfEdge = 16;  // which keeps them below some 16 MiB

// Control characters and how JSON writes them.
constexpr std::pair<uint32_t, char> kEscapes[] = {{'\b', 'b'},  {'\t', 't'}, {'\n', 'n'},
                                                  {'\f', 'f'},  {'\r', 'r'}, {'"', '"'},
                                                  {'\\', '\\'}, {'/', '/'}};

// Characters of UTF-8 by the number of continuation bytes: the first one, and the mark in the first
// byte.
struct Form {
  uint32_t first;
  uint32_t last;
  uint8_t mark;
};
constexpr Form kForms[] = {{0x80, 0x7FF, 0xC0}, {0x800, 0xFFFF, 0xE0}, {0x10000, 0x10FFFF, 0xF0}};

// For each state, whether an end can be reached from it.
std::vector<bool> reachingEnd(const std::vector<TextAutomaton::Row>& rows) {
  std::vector<std::vector<uint32_t>> sources(rows.size());
  std::vector<uint32_t> open;
  std::vector<bool> isReaching(rows.size());
  for (uint32_t i = 0; i < rows.size(); ++i) {
    for (const TextEdge& edge : rows[i].edges) sources[edge.target].push_back(i);
    if (rows[i].isEnd) {
      isReaching[i] = true;
      open.push_back(i);
    }
  }
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    for (const uint32_t source : sources[at]) {
      if (isReaching[source]) continue;
      isReaching[source] = true;
      open.push_back(source);
    }
  }
  return isReaching;
}

// Adds an edge behind the others, as a part of the last one where that is possible.
void addEdge(std::vector<TextEdge>* edges, TextEdge edge) {
  if (!edges->empty() && edges->back().target == edge.target &&
      edges->back().last + 1 == edge.first)
    edges->back().last = edge.last;
  else
    edges->push_back(edge);
}

// Makes the states of bytes of one automaton. Its own states keep their numbers; those within
// characters and escapes come behind them, each once.
class ByteStates {
 public:
  ByteStates(const CharacterAutomaton& automaton, AutomatonBudget* budget)
      : automaton_(automaton), budget_(*budget) {}

  Result<std::vector<TextAutomaton::Row>> make() {
    rows_.resize(automaton_.rows.size());
    for (size_t i = 0; i < automaton_.rows.size(); ++i) {
      row_ = &automaton_.rows[i];
      rows_[i].isEnd = row_->isEnd;
      HEARTH_TRY(makeRow(i));
    }
    return std::move(rows_);
  }

 private:
  // Where a character leads.
  uint32_t targetOf(uint32_t code) const {
    const auto range =
        std::ranges::upper_bound(automaton_.ranges, code, {}, &CharacterAutomaton::Range::first);
    if (range == automaton_.ranges.begin() || std::prev(range)->last < code) return kNoState;
    return row_->next[std::prev(range)->kind];
  }

  Status makeRow(size_t index) {
    std::vector<TextEdge> edges;
    for (uint32_t code = ' '; code < kFirstContinuation; ++code) {
      const uint32_t target = targetOf(code);
      const auto byte = static_cast<uint8_t>(code);
      if (target != kNoState && code != '"' && code != '\\') addEdge(&edges, {byte, byte, target});
    }
    std::vector<TextEdge> escapes;
    for (const auto& [code, letter] : kEscapes) {
      const uint32_t target = targetOf(code);
      const auto byte = static_cast<uint8_t>(letter);
      if (target != kNoState) escapes.push_back({byte, byte, target});
    }
    std::ranges::sort(escapes);
    if (!escapes.empty()) {
      HEARTH_ASSIGN(const uint32_t state, stateOf(std::move(escapes)));
      edges.push_back({'\\', '\\', state});
    }
    std::ranges::sort(edges);
    for (uint32_t more = 1; more <= std::size(kForms); ++more) {
      const Form& form = kForms[more - 1];
      const uint32_t shift = more * kContinuationBits;
      for (uint32_t lead = form.first >> shift; lead <= form.last >> shift; ++lead) {
        HEARTH_ASSIGN(const uint32_t state, statesWithin(lead << shift, more, form.first));
        const auto byte = static_cast<uint8_t>(form.mark | lead);
        if (state != kNoState) addEdge(&edges, {byte, byte, state});
      }
    }
    HEARTH_TRY(budget_.spendSteps(edges.size() * kStepsOfEdge));
    rows_[index].edges = std::move(edges);
    return {};
  }

  // The state of whoever has read the first bytes of a character from `begin` on and needs `more`;
  // kNoState where no such character, from `least` on, leads anywhere.
  Result<uint32_t> statesWithin(uint32_t begin, uint32_t more, uint32_t least) {
    const uint32_t end = begin + (1U << more * kContinuationBits);
    // The ranges that have a part in it.
    const auto first = std::ranges::lower_bound(automaton_.ranges, std::max(begin, least), {},
                                                &CharacterAutomaton::Range::last);
    HEARTH_TRY(budget_.spendSteps(1));
    if (first == automaton_.ranges.end() || first->first >= end) return kNoState;
    const bool isUniform = first->first <= begin && first->last >= end - 1 && begin >= least;
    if (isUniform) return uniform(row_->next[first->kind], more);
    HEARTH_TRY(budget_.spendSteps(kContinuations));
    std::vector<TextEdge> edges;
    for (uint32_t i = 0; i < kContinuations; ++i) {
      const uint32_t code = begin + (i << (more - 1) * kContinuationBits);
      uint32_t target = kNoState;
      if (more > 1) {
        HEARTH_ASSIGN(target, statesWithin(code, more - 1, least));
      } else if (code >= least) {
        target = targetOf(code);
      }
      const auto byte = static_cast<uint8_t>(kFirstContinuation + i);
      if (target != kNoState) addEdge(&edges, {byte, byte, target});
    }
    if (edges.empty()) return kNoState;
    return stateOf(std::move(edges));
  }

  // Any `more` continuation bytes lead to the target.
  Result<uint32_t> uniform(uint32_t target, uint32_t more) {
    for (uint32_t i = 0; i < more && target != kNoState; ++i) {
      HEARTH_ASSIGN(
          target, stateOf({{kFirstContinuation, kFirstContinuation + kContinuations - 1, target}}));
    }
    return target;
  }

  Result<uint32_t> stateOf(std::vector<TextEdge> edges) {
    if (const auto found = states_.find(edges); found != states_.end()) return found->second;
    HEARTH_TRY(budget_.spendStates(1));
    HEARTH_TRY(budget_.spendSteps(edges.size() * kStepsOfEdge));
    const auto state = static_cast<uint32_t>(rows_.size());
    rows_.push_back({.edges = edges});
    states_.emplace(std::move(edges), state);
    return state;
  }

  const CharacterAutomaton& automaton_;
  AutomatonBudget& budget_;
  const CharacterAutomaton::Row* row_ = nullptr;
  std::vector<TextAutomaton::Row> rows_;
  std::map<std::vector<TextEdge>, uint32_t> states_;
};

}  // namespace

std::optional<TextAutomaton> TextAutomaton::of(std::vector<Row> rows, State begin) {
  const std::vector<bool> isReaching = reachingEnd(rows);
  if (!isReaching[begin]) return std::nullopt;
  for (Row& row : rows)
    std::erase_if(row.edges, [&](const TextEdge& edge) { return !isReaching[edge.target]; });
  TextAutomaton automaton;
  automaton.rows_ = std::move(rows);
  automaton.begin_ = begin;
  return automaton;
}

std::optional<TextAutomaton::State> TextAutomaton::next(State state, uint8_t byte) const {
  for (const TextEdge& edge : rows_[state].edges) {
    if (byte < edge.first) return std::nullopt;
    if (byte <= edge.last) return edge.target;
  }
  return std::nullopt;
}

Result<CharacterAutomaton> withLength(const CharacterAutomaton& automaton, uint32_t least,
                                      uint32_t most, AutomatonBudget* budget) {
  const bool isLimited = most != UINT32_MAX;
  CharacterAutomaton made{.ranges = automaton.ranges};
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> states;
  std::vector<std::pair<uint32_t, uint32_t>> open;  // a state and the characters so far
  const auto stateOf = [&](uint32_t row, uint32_t count) -> Result<uint32_t> {
    const auto [found, isNew] =
        states.try_emplace({row, count}, static_cast<uint32_t>(open.size()));
    if (isNew) {
      HEARTH_TRY(budget->spendStates(1));
      open.emplace_back(row, count);
    }
    return found->second;
  };
  HEARTH_TRY(stateOf(0, 0));
  for (size_t i = 0; i < open.size(); ++i) {
    const auto [row, count] = open[i];
    const CharacterAutomaton::Row& from = automaton.rows[row];
    HEARTH_TRY(budget->spendSteps(from.next.size()));
    CharacterAutomaton::Row to{.next = std::vector(from.next.size(), kNoState),
                               .isEnd = from.isEnd && count >= least};
    if (!isLimited || count < most) {
      // Without a limit, only the least number matters.
      const uint32_t behind = isLimited || count < least ? count + 1 : count;
      for (size_t kind = 0; kind < from.next.size(); ++kind) {
        if (from.next[kind] == kNoState) continue;
        HEARTH_ASSIGN(to.next[kind], stateOf(from.next[kind], behind));
      }
    }
    made.rows.push_back(std::move(to));
  }
  return made;
}

Result<std::optional<TextAutomaton>> stringAutomaton(const CharacterAutomaton& automaton,
                                                     AutomatonBudget* budget) {
  HEARTH_ASSIGN(std::vector<TextAutomaton::Row> rows, ByteStates(automaton, budget).make());
  return TextAutomaton::of(std::move(rows), 0);
}

}  // namespace hearth::llm
