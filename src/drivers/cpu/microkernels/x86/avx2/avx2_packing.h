// SPDX-License-Identifier: Apache-2.0
// Packing of 8-bit weights for Avx2Gemm. AVX2 has an instruction that multiplies unsigned by signed
// bytes, but it adds pairs of products in 16 bits and saturates. Here weights are split while they
// are packed, so that this cannot happen: what is too much for 16 bits is multiplied once more, as
// a correction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hearth::cpu {

inline constexpr size_t kAvx2Columns = 16;    // of a panel
inline constexpr size_t kAvx2Half = 8;        // columns of one vector of sums
inline constexpr size_t kAvx2Group = 4;       // inputs of a column that lie together
inline constexpr size_t kAvx2InputStep = 8;   // inputs are padded to a multiple of this
inline constexpr size_t kAvx2Window = 32;     // inputs among which a correction chooses
inline constexpr size_t kAvx2LineBytes = 64;  // alignment of panels

// How a product multiplies.
enum class Avx2Form : uint32_t {
  // Adds four products in 16 bits: those of a pair of inputs, and of the pair four inputs further.
  // The positive weights of such four inputs add up to 127 at most, and the negative ones to -128,
  // so that with inputs up to 255 the sum lies between -32640 and 32385.
  kQuads = 1,
  // Widens weights and inputs to 16 bits. For weights that would need many corrections.
  kWords,
  // The instruction of AVX-VNNI, which adds four products in 32 bits.
  kDots,
};

// What packing reads. The product is of inputs from 0 to 255.
struct Avx2Weights {
  const uint8_t* values = nullptr;  // [columns][inputs]
  bool isSigned = true;             // int8; else uint8 with the zero point `zero`
  int32_t zero = 0;
  size_t inputs = 0, columns = 0;
  // Of each column: what is added to the sum, what the sum is multiplied by, and what is added then
  // (null: 0).
  const int32_t* constants = nullptr;
  const float* factors = nullptr;
  const float* biases = nullptr;

  int32_t at(size_t column, size_t input) const {
    const uint8_t value = values[column * inputs + input];
    return isSigned ? static_cast<int8_t>(value) : value - zero;
  }
  // The sum of a column's weights, modulo 2^32.
  uint32_t sumOf(size_t column) const;
};

// Packs weights in one form.
class Avx2Packer {
 public:
  // With kWords, weights must be int8. What `weights` points to must outlive the packer.
  Avx2Packer(const Avx2Weights& weights, Avx2Form form);
  // In the form that is fastest on this CPU for products of `rows` rows.
  Avx2Packer(const Avx2Weights& weights, size_t rows);

  Avx2Form form() const { return form_; }
  size_t bytes() const;
  // Corrections of all panels.
  size_t corrections() const;
  // Writes bytes() bytes, which are 64-byte aligned.
  void pack(uint8_t* packed) const;

 private:
  // Counts the corrections, as long as they are at most this many.
  void count(uint64_t most);
  // Whether the form has corrections for such weights.
  bool mayCorrect() const;

  Avx2Weights weights_;
  Avx2Form form_;
  std::vector<uint32_t> counts_;  // corrections of each half of a panel
};

// One panel of packed weights.
struct Avx2Panel {
  // 16 constants, 16 factors and 16 biases; then for each group of inputs 16 x 4 weights (int8).
  // Padding is zero.
  const uint8_t* data = nullptr;
  // For each correction of the first half, then of the second: for 8 columns 4 inputs of the
  // window each, as numbers of choiceOf(), and 8 x 4 weights.
  const uint8_t* corrections = nullptr;
  const uint8_t* windows = nullptr;  // of the corrections, uint32 each
  uint32_t counts[2] = {};
};

// The byte that chooses `input` of a window: a shuffle of the first half of the window takes it as
// it is and one of the second half with the upper bit flipped; each gives zero for inputs of the
// other half.
constexpr uint8_t avx2ChoiceOf(size_t input) {
  return static_cast<uint8_t>(input + 0x70);
}

constexpr size_t avx2PaddedInputs(size_t inputs) {
  return (inputs + kAvx2InputStep - 1) / kAvx2InputStep * kAvx2InputStep;
}

// The weights that Avx2Packer wrote.
class Avx2Panels {
 public:
  // Nothing when `packed` has not been packed for a product of this size. Only the first bytes are
  // looked at: a wrong weight or correction behind them makes a wrong result, but nothing outside
  // of `packed` and the rows is read.
  static std::optional<Avx2Panels> read(std::span<const uint8_t> packed, size_t inputs,
                                        size_t columns);

  Avx2Form form() const { return form_; }
  size_t inputs() const { return inputs_; }
  size_t columns() const { return columns_; }
  size_t count() const { return panels_.size(); }
  // Bytes of the packing.
  size_t bytes() const { return bytes_; }
  const Avx2Panel& panel(size_t index) const { return panels_[index]; }

 private:
  std::vector<Avx2Panel> panels_;
  size_t inputs_ = 0, columns_ = 0, bytes_ = 0;
  Avx2Form form_ = Avx2Form::kQuads;
};

}  // namespace hearth::cpu
