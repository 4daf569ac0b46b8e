// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/avx2/avx2_packing.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "drivers/cpu/microkernels/x86/instruction_sets.h"

namespace hearth::cpu {
namespace {

constexpr size_t kSlots = 4;  // inputs that a correction chooses for a column
constexpr size_t kCorrectionBytes = 2 * kAvx2Half * kSlots;
constexpr size_t kHeadBytes = 3 * kAvx2Columns * sizeof(float);

struct Header {
  uint32_t form = 0;
  uint32_t reserved = 0;
  uint64_t inputs = 0, columns = 0;
};

// Where a panel lies.
struct Entry {
  uint64_t offset = 0;
  uint32_t counts[2] = {};
};

size_t toLine(size_t bytes) {
  return (bytes + kAvx2LineBytes - 1) / kAvx2LineBytes * kAvx2LineBytes;
}

size_t panelsOf(size_t columns) {
  return (columns + kAvx2Columns - 1) / kAvx2Columns;
}

size_t tableBytes(size_t columns) {
  return toLine(sizeof(Header) + panelsOf(columns) * sizeof(Entry));
}

size_t weightBytes(size_t inputs) {
  return kAvx2Columns * avx2PaddedInputs(inputs);
}

size_t panelBytes(size_t inputs, uint64_t corrections) {
  return kHeadBytes + weightBytes(inputs) +
         toLine(corrections * (kCorrectionBytes + sizeof(uint32_t)));
}

// The weights of 8 columns for one window of inputs, split.
class Window {
 public:
  void split(const Avx2Weights& weights, Avx2Form form, size_t firstColumn, size_t firstInput) {
    corrections_ = 0;
    const size_t inputs = std::min(kAvx2Window, weights.inputs - firstInput);
    for (size_t c = 0; c < kAvx2Half; ++c) {
      Column& column = weights_[c];
      column.fill(0);
      if (firstColumn + c >= weights.columns) continue;
      const uint8_t* const from = weights.values + (firstColumn + c) * weights.inputs + firstInput;
      if (weights.isSigned)
        for (size_t i = 0; i < inputs; ++i) column[i] = static_cast<int8_t>(from[i]);
      else
        for (size_t i = 0; i < inputs; ++i)
          column[i] = static_cast<int16_t>(from[i] - weights.zero);
      if (form == Avx2Form::kQuads)
        limitQuads(c);
      else if (!weights.isSigned)
        for (size_t i = 0; i < kAvx2Window; ++i) limit(c, {i});
    }
  }

  size_t corrections() const { return corrections_; }
  int8_t weight(size_t column, size_t input) const {
    return static_cast<int8_t>(weights_[column][input]);
  }
  void writeCorrection(size_t index, uint8_t* to) const {
    for (size_t c = 0; c < kAvx2Half; ++c) {
      for (size_t s = 0; s < kSlots; ++s) {
        const Slot& slot = slots_[index][c][s];
        to[c * kSlots + s] = avx2ChoiceOf(slot.input);
        to[(kAvx2Half + c) * kSlots + s] = static_cast<uint8_t>(slot.weight);
      }
    }
  }

 private:
  struct Slot {
    uint8_t input = 0;
    int16_t weight = 0;
  };
  using Slots = std::array<std::array<Slot, kSlots>, kAvx2Half>;

  // The greatest sum of positive weights, and of negated negative ones. A positive weight of 128 is
  // no int8.
  static constexpr int32_t kMostPositive = 127;
  static constexpr int32_t kMostNegative = 128;

  using Column = std::array<int16_t, kAvx2Window>;

  // Limits the sums of a column. Most are within the limits, which is seen for all at once.
  void limitQuads(size_t column) {
    constexpr size_t kPairs = kAvx2Window / 2;
    std::array<int16_t, kPairs> positive, negative;
    for (size_t p = 0; p < kPairs; ++p) {
      const int16_t first = weights_[column][2 * p];
      const int16_t second = weights_[column][2 * p + 1];
      positive[p] =
          static_cast<int16_t>(std::max<int16_t>(first, 0) + std::max<int16_t>(second, 0));
      negative[p] =
          static_cast<int16_t>(std::min<int16_t>(first, 0) + std::min<int16_t>(second, 0));
    }
    for (size_t p = 0; p < kPairs; p += kAvx2Group)
      for (size_t pair = p; pair < p + kAvx2Group / 2; ++pair)
        if (positive[pair] + positive[pair + 2] > kMostPositive ||
            negative[pair] + negative[pair + 2] < -kMostNegative)
          limit(column, {2 * pair, 2 * pair + 1, 2 * pair + kAvx2Group, 2 * pair + kAvx2Group + 1});
  }

  // Takes from the weights of these inputs what exceeds the limits of one sum.
  void limit(size_t column, std::initializer_list<size_t> inputs) {
    for (const int32_t sign : {1, -1}) {
      const int32_t most = sign > 0 ? kMostPositive : kMostNegative;
      int32_t sum = 0;
      for (const size_t input : inputs) sum += std::max(0, sign * weights_[column][input]);
      while (sum > most) {
        size_t largest = *inputs.begin();
        for (const size_t input : inputs)
          if (sign * weights_[column][input] > sign * weights_[column][largest]) largest = input;
        const int32_t taken = std::min({sum - most, sign * weights_[column][largest], most});
        sum -= taken;
        weights_[column][largest] = static_cast<int16_t>(weights_[column][largest] - sign * taken);
        correct(column, largest, static_cast<int16_t>(sign * taken));
      }
    }
  }

  // Puts a weight into the first correction that has room. A pair of slots keeps the limits, too.
  void correct(size_t column, size_t input, int16_t weight) {
    for (size_t i = 0;; ++i) {
      if (i == corrections_) {
        if (i == slots_.size()) slots_.emplace_back();
        slots_[i] = {};
        ++corrections_;
      }
      for (size_t first = 0; first < kSlots; first += 2) {
        Slot* const pair = &slots_[i][column][first];
        if (pair[1].weight != 0) continue;
        const int32_t sum = pair[0].weight + weight;
        const bool isSameSign = (pair[0].weight < 0) == (weight < 0);
        if (pair[0].weight != 0 && isSameSign && (sum > kMostPositive || sum < -kMostNegative))
          continue;
        pair[pair[0].weight == 0 ? 0 : 1] = {static_cast<uint8_t>(input), weight};
        return;
      }
    }
  }

  std::array<Column, kAvx2Half> weights_;
  std::vector<Slots> slots_;
  size_t corrections_ = 0;
};

// Packs a panel of int8 weights as they are.
void packPlain(const Avx2Weights& weights, size_t first, size_t columns, uint8_t* to) {
  for (size_t input = 0; input < weights.inputs; input += kAvx2Group) {
    const size_t count = std::min(kAvx2Group, weights.inputs - input);
    const uint8_t* from = weights.values + first * weights.inputs + input;
    for (size_t c = 0; c < columns; ++c, from += weights.inputs) {
      uint8_t* const group = to + (input / kAvx2Group * kAvx2Columns + c) * kAvx2Group;
      if (count == kAvx2Group)
        std::memcpy(group, from, kAvx2Group);
      else
        std::memcpy(group, from, count);
    }
  }
}

// Instructions that multiply, add and rearrange, for 8 columns and one row: of the forms for each
// group of inputs, and of a correction.
constexpr double kQuadsWork = 2.5;
constexpr double kWordsWork = 4.4;
constexpr double kCorrectionWork = 6;
// With fewer rows reading the weights takes longer than multiplying them, and corrections are read,
// too.
constexpr size_t kFewRows = 4;
constexpr double kMostCorrectionShare = 0.03;

}  // namespace

uint32_t Avx2Weights::sumOf(size_t column) const {
  const uint8_t* const from = values + column * inputs;
  uint32_t sum = 0;
  if (isSigned) {
    for (size_t i = 0; i < inputs; ++i) sum += static_cast<uint32_t>(static_cast<int8_t>(from[i]));
    return sum;
  }
  for (size_t i = 0; i < inputs; ++i) sum += from[i];
  return sum - static_cast<uint32_t>(inputs) * static_cast<uint32_t>(zero);
}

Avx2Packer::Avx2Packer(const Avx2Weights& weights, Avx2Form form) : weights_(weights), form_(form) {
  count(UINT64_MAX);
}

Avx2Packer::Avx2Packer(const Avx2Weights& weights, size_t rows)
    : weights_(weights), form_(hasAvxVnni() ? Avx2Form::kDots : Avx2Form::kQuads) {
  if (form_ == Avx2Form::kDots || !weights.isSigned) {
    count(UINT64_MAX);
    return;
  }
  const size_t halfGroups =
      2 * panelsOf(weights.columns) * (avx2PaddedInputs(weights.inputs) / kAvx2Group);
  const double most = (rows < kFewRows ? kMostCorrectionShare * kAvx2Half * kAvx2Group /
                                             static_cast<double>(kCorrectionBytes)
                                       : (kWordsWork - kQuadsWork) / kCorrectionWork) *
                      static_cast<double>(halfGroups);
  count(static_cast<uint64_t>(most));
  if (static_cast<double>(corrections()) <= most) return;
  form_ = Avx2Form::kWords;
  count(UINT64_MAX);
}

void Avx2Packer::count(uint64_t most) {
  counts_.assign(2 * panelsOf(weights_.columns), 0);
  if (!mayCorrect()) return;
  Window window;
  uint64_t sum = 0;
  for (size_t half = 0; half < counts_.size(); ++half)
    for (size_t input = 0; input < weights_.inputs && sum <= most; input += kAvx2Window) {
      window.split(weights_, form_, half * kAvx2Half, input);
      counts_[half] += static_cast<uint32_t>(window.corrections());
      sum += window.corrections();
    }
}

bool Avx2Packer::mayCorrect() const {
  return form_ == Avx2Form::kQuads || (form_ == Avx2Form::kDots && !weights_.isSigned);
}

size_t Avx2Packer::corrections() const {
  size_t sum = 0;
  for (const uint32_t count : counts_) sum += count;
  return sum;
}

size_t Avx2Packer::bytes() const {
  size_t bytes = tableBytes(weights_.columns);
  for (size_t half = 0; half < counts_.size(); half += 2)
    bytes += panelBytes(weights_.inputs, uint64_t{counts_[half]} + counts_[half + 1]);
  return bytes;
}

void Avx2Packer::pack(uint8_t* packed) const {
  std::memset(packed, 0, bytes());
  const Header header = {static_cast<uint32_t>(form_), 0, weights_.inputs, weights_.columns};
  std::memcpy(packed, &header, sizeof header);
  uint64_t offset = tableBytes(weights_.columns);
  Window window;
  for (size_t p = 0; p < panelsOf(weights_.columns); ++p) {
    const Entry entry = {offset, {counts_[2 * p], counts_[2 * p + 1]}};
    std::memcpy(packed + sizeof header + p * sizeof entry, &entry, sizeof entry);
    uint8_t* const panel = packed + offset;
    const uint64_t corrections = uint64_t{entry.counts[0]} + entry.counts[1];
    offset += panelBytes(weights_.inputs, corrections);
    const size_t first = p * kAvx2Columns;
    const size_t columns = std::min(kAvx2Columns, weights_.columns - first);
    constexpr size_t kVectors = kAvx2Columns * sizeof(float);
    std::memcpy(panel, weights_.constants + first, columns * sizeof(int32_t));
    std::memcpy(panel + kVectors, weights_.factors + first, columns * sizeof(float));
    if (weights_.biases != nullptr)
      std::memcpy(panel + 2 * kVectors, weights_.biases + first, columns * sizeof(float));
    uint8_t* const values = panel + kHeadBytes;
    if (!mayCorrect()) {
      packPlain(weights_, first, columns, values);
      continue;
    }
    uint8_t* correction = values + weightBytes(weights_.inputs);
    uint8_t* place = correction + corrections * kCorrectionBytes;
    for (size_t half = 0; half < 2; ++half) {
      for (size_t input = 0; input < weights_.inputs; input += kAvx2Window) {
        window.split(weights_, form_, first + half * kAvx2Half, input);
        const size_t end = std::min(kAvx2Window, avx2PaddedInputs(weights_.inputs) - input);
        for (size_t i = 0; i < end; ++i)
          for (size_t c = 0; c < kAvx2Half; ++c)
            values[((input + i) / kAvx2Group * kAvx2Columns + half * kAvx2Half + c) * kAvx2Group +
                   i % kAvx2Group] = static_cast<uint8_t>(window.weight(c, i));
        for (size_t i = 0; i < window.corrections(); ++i) {
          window.writeCorrection(i, correction);
          correction += kCorrectionBytes;
          const auto index = static_cast<uint32_t>(input / kAvx2Window);
          std::memcpy(place, &index, sizeof index);
          place += sizeof index;
        }
      }
    }
  }
}

std::optional<Avx2Panels> Avx2Panels::read(std::span<const uint8_t> packed, size_t inputs,
                                           size_t columns) {
  Header header;
  if (packed.size() < tableBytes(columns)) return std::nullopt;
  std::memcpy(&header, packed.data(), sizeof header);
  if (header.inputs != inputs || header.columns != columns ||
      header.form < static_cast<uint32_t>(Avx2Form::kQuads) ||
      header.form > static_cast<uint32_t>(Avx2Form::kDots))
    return std::nullopt;
  Avx2Panels panels;
  panels.inputs_ = inputs;
  panels.columns_ = columns;
  panels.form_ = static_cast<Avx2Form>(header.form);
  uint64_t offset = tableBytes(columns);
  for (size_t p = 0; p < panelsOf(columns); ++p) {
    Entry entry;
    std::memcpy(&entry, packed.data() + sizeof header + p * sizeof entry, sizeof entry);
    if (entry.offset != offset) return std::nullopt;
    const uint64_t corrections = uint64_t{entry.counts[0]} + entry.counts[1];
    offset += panelBytes(inputs, corrections);
    if (offset > packed.size()) return std::nullopt;
    Avx2Panel panel;
    panel.data = packed.data() + entry.offset;
    panel.corrections = panel.data + kHeadBytes + weightBytes(inputs);
    panel.windows = panel.corrections + corrections * kCorrectionBytes;
    panel.counts[0] = entry.counts[0];
    panel.counts[1] = entry.counts[1];
    panels.panels_.push_back(panel);
  }
  panels.bytes_ = offset;
  return panels;
}

}  // namespace hearth::cpu
