// SPDX-License-Identifier: Apache-2.0
#include "llm/schema_pattern.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "llm/schema_expression.h"

namespace hearth::llm {
namespace {

using Kind = SchemaExpression::Kind;

constexpr size_t kMaxNodes = size_t{1} << 13;
constexpr size_t kMaxParts = 4 * kMaxNodes;
constexpr size_t kStepsOfState = 8;  // that looking for one costs
constexpr uint32_t kFirstSurrogate = 0xD800;
constexpr uint32_t kLastSurrogate = 0xDFFF;
constexpr uint32_t kLastCode = 0x10FFFF;

struct Node {
  enum class Kind { kSet, kSplit, kBegin, kEnd, kMatch };

  Kind kind = Kind::kMatch;
  uint32_t set = 0;    // of kSet
  uint32_t next = 0;   // behind it
  uint32_t other = 0;  // of kSplit: as well
};

// The automaton of an expression with all ways at once.
class Graph {
 public:
  static Result<Graph> of(const SchemaExpression& expression) {
    Graph graph;
    HEARTH_ASSIGN(const uint32_t match, graph.add({}));
    HEARTH_ASSIGN(graph.begin_, graph.build(expression, match));
    return graph;
  }

  uint32_t begin() const { return begin_; }
  size_t size() const { return nodes_.size(); }
  const Node& node(uint32_t index) const { return nodes_[index]; }
  const std::vector<CharacterRanges>& sets() const { return sets_; }

 private:
  Result<uint32_t> add(Node node) {
    if (nodes_.size() == kMaxNodes) return fail(ErrorCode::kUnsupported, "it is too long");
    nodes_.push_back(node);
    return static_cast<uint32_t>(nodes_.size() - 1);
  }

  // The node where the expression begins that goes on at `next`.
  Result<uint32_t> build(const SchemaExpression& expression, uint32_t next) {
    // What is empty can be repeated very often without a node.
    if (++built_ > kMaxParts) return fail(ErrorCode::kUnsupported, "it is too long");
    switch (expression.kind) {
      case Kind::kBegin:
        return add({.kind = Node::Kind::kBegin, .next = next});
      case Kind::kEnd:
        return add({.kind = Node::Kind::kEnd, .next = next});
      case Kind::kSet: {
        const auto [found, isNew] =
            setIds_.try_emplace(expression.set, static_cast<uint32_t>(sets_.size()));
        if (isNew) sets_.push_back(expression.set);
        return add({.kind = Node::Kind::kSet, .set = found->second, .next = next});
      }
      case Kind::kSequence:
        for (auto part = expression.parts.rbegin(); part != expression.parts.rend(); ++part) {
          HEARTH_ASSIGN(next, build(*part, next));
        }
        return next;
      case Kind::kChoice: {
        HEARTH_ASSIGN(uint32_t begin, build(expression.parts.back(), next));
        for (size_t i = expression.parts.size() - 1; i-- > 0;) {
          HEARTH_ASSIGN(const uint32_t one, build(expression.parts[i], next));
          HEARTH_ASSIGN(begin, add({.kind = Node::Kind::kSplit, .next = one, .other = begin}));
        }
        return begin;
      }
      case Kind::kRepeat:
        break;
    }
    const SchemaExpression& part = expression.parts.front();
    uint32_t begin = next;
    if (expression.most == SchemaExpression::kUnlimited) {
      HEARTH_ASSIGN(begin, add({.kind = Node::Kind::kSplit, .other = next}));
      HEARTH_ASSIGN(nodes_[begin].next, build(part, begin));
    } else {
      for (uint32_t i = expression.least; i < expression.most; ++i) {
        HEARTH_ASSIGN(const uint32_t one, build(part, begin));
        HEARTH_ASSIGN(begin, add({.kind = Node::Kind::kSplit, .next = one, .other = next}));
      }
    }
    for (uint32_t i = 0; i < expression.least; ++i) {
      HEARTH_ASSIGN(begin, build(part, begin));
    }
    return begin;
  }

  std::vector<Node> nodes_;
  std::vector<CharacterRanges> sets_;
  std::map<CharacterRanges, uint32_t> setIds_;
  size_t built_ = 0;
  uint32_t begin_ = 0;
};

bool contains(const CharacterRanges& ranges, uint32_t code) {
  const auto behind =
      std::ranges::upper_bound(ranges, code, {}, &CharacterRanges::value_type::first);
  return behind != ranges.begin() && std::prev(behind)->second >= code;
}

// Follows all ways of a graph at once.
class Determiniser {
 public:
  Determiniser(const Graph& graph, AutomatonBudget* budget)
      : graph_(graph), budget_(*budget), visited_(graph.size()) {}

  Result<CharacterAutomaton> make() {
    HEARTH_TRY(divideCharacters());
    // What the text's beginning says is only true in the first state.
    HEARTH_TRY(addState(closed({graph_.begin()}, true, false), closed({graph_.begin()}, true, true),
                        false));
    for (size_t i = 0; i < states_.size(); ++i) {
      for (uint32_t kind = 0; kind < members_.size(); ++kind) {
        HEARTH_TRY(budget_.spendSteps(states_[i].size() + kStepsOfState));
        std::vector<uint32_t> behind;
        bool isFound = false;
        for (const uint32_t id : states_[i]) {
          const Node& node = graph_.node(id);
          isFound |= node.kind == Node::Kind::kMatch;
          if (node.kind == Node::Kind::kSet && members_[kind][node.set])
            behind.push_back(node.next);
        }
        // What is found stays found, and what is not may begin at each character.
        if (isFound)
          behind = states_[i];
        else
          behind.push_back(graph_.begin());
        const std::vector<uint32_t> next = closed(behind, false, false);
        HEARTH_TRY(budget_.spendSteps(visits_));
        if (next.empty()) continue;
        HEARTH_ASSIGN(made_.rows[i].next[kind], addState(next, closed(next, false, true), true));
      }
    }
    return std::move(made_);
  }

 private:
  // Characters that are in the same sets have one class.
  Status divideCharacters() {
    std::set<uint32_t> borders = {0, kFirstSurrogate, kLastSurrogate + 1, kLastCode + 1};
    for (const CharacterRanges& ranges : graph_.sets())
      for (const auto& [first, last] : ranges) {
        borders.insert(first);
        borders.insert(last + 1);
      }
    HEARTH_TRY(budget_.spendSteps(borders.size() * (graph_.sets().size() + 1)));
    std::map<std::vector<bool>, uint32_t> kinds;
    for (auto border = borders.begin(); std::next(border) != borders.end(); ++border) {
      const uint32_t first = *border;
      if (first >= kFirstSurrogate && first <= kLastSurrogate) continue;
      std::vector<bool> isMember;
      for (const CharacterRanges& ranges : graph_.sets())
        isMember.push_back(contains(ranges, first));
      const auto [kind, isNew] = kinds.try_emplace(isMember, static_cast<uint32_t>(kinds.size()));
      if (isNew) members_.push_back(std::move(isMember));
      made_.ranges.push_back({first, *std::next(border) - 1, kind->second});
    }
    return {};
  }

  // The nodes that are reached without a character: characters, ends, and the match.
  std::vector<uint32_t> closed(std::vector<uint32_t> open, bool isBegin, bool isEnd) {
    ++round_;
    visits_ = 0;
    std::vector<uint32_t> reached;
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      if (std::exchange(visited_[at], round_) == round_) continue;
      ++visits_;
      const Node& node = graph_.node(at);
      if (node.kind == Node::Kind::kSplit) {
        open.push_back(node.next);
        open.push_back(node.other);
      } else if (node.kind == Node::Kind::kBegin) {
        if (isBegin) open.push_back(node.next);
      } else if (node.kind == Node::Kind::kEnd && isEnd) {
        open.push_back(node.next);
      } else {
        reached.push_back(at);
      }
    }
    std::ranges::sort(reached);
    const auto isMatch = [&](uint32_t id) {
      return graph_.node(id).kind == Node::Kind::kMatch;
    };
    const auto match = std::ranges::find_if(reached, isMatch);
    if (match != reached.end() && !isEnd) return {*match};
    return reached;
  }

  // The state of these nodes. `atEnd`: what they are where the text ends.
  Result<uint32_t> addState(const std::vector<uint32_t>& nodes, const std::vector<uint32_t>& atEnd,
                            bool isShared) {
    if (const auto found = ids_.find(nodes); isShared && found != ids_.end()) return found->second;
    HEARTH_TRY(budget_.spendStates(1));
    const auto state = static_cast<uint32_t>(states_.size());
    const bool isEnd = std::ranges::any_of(
        atEnd, [&](uint32_t id) { return graph_.node(id).kind == Node::Kind::kMatch; });
    states_.push_back(nodes);
    made_.rows.push_back({std::vector(members_.size(), CharacterAutomaton::kNowhere), isEnd});
    if (isShared) ids_.emplace(nodes, state);
    return state;
  }

  const Graph& graph_;
  AutomatonBudget& budget_;
  std::vector<std::vector<bool>> members_;  // by class: the sets that it is in
  std::vector<std::vector<uint32_t>> states_;
  std::map<std::vector<uint32_t>, uint32_t> ids_;
  std::vector<uint32_t> visited_;  // by node: the last round that it was reached in
  uint32_t round_ = 0;
  size_t visits_ = 0;
  CharacterAutomaton made_;
};

}  // namespace

Result<CharacterAutomaton> patternAutomaton(std::string_view expression, AutomatonBudget* budget) {
  HEARTH_ASSIGN(const SchemaExpression parsed, parseSchemaExpression(expression));
  HEARTH_ASSIGN(const Graph graph, Graph::of(parsed));
  return Determiniser(graph, budget).make();
}

}  // namespace hearth::llm
