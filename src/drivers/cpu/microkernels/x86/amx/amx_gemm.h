// SPDX-License-Identifier: Apache-2.0
// int8 products on AMX over the panels that XNNPACK packs for it, and with its very results. Inputs
// are read where they lie, also those of windows: XNNPACK's kernel copies each of them into a tile
// for every 64 columns, and rounds sums while no product runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hearth::cpu {

inline constexpr size_t kAmxColumns = 64;  // of a panel
inline constexpr size_t kAmxGroup = 4;     // inputs of a column that lie together
inline constexpr size_t kAmxRows = 16;     // of a tile
inline constexpr size_t kAmxInputs = 64;   // of a row of a tile

// Whether this CPU has the instructions and the system lets this process use them, which it asks
// for. Thread-safe.
bool cpuHasAmxGemm();

// output[row][column] = clamp(zero point + factor[column] * (bias[column] + sum over inputs)).
struct AmxGemm {
  // Panels of 64 columns: 64 biases (int32), for each group of inputs 64 x 4 weights, 64 factors
  // (float). The last panel is padded.
  const uint8_t* packed = nullptr;
  size_t inputs = 0;  // a multiple of kAmxGroup
  size_t columns = 0;
  int32_t outputZero = 0;
  int32_t lowest = 0, highest = 0;  // of the output, in steps

  size_t panels() const { return (columns + kAmxColumns - 1) / kAmxColumns; }
  size_t panelBytes() const { return kAmxColumns * (2 * sizeof(int32_t) + inputs); }
  // Blocks of up to kAmxInputs inputs.
  size_t blocks() const { return (inputs + kAmxInputs - 1) / kAmxInputs; }
};

// 16 rows of inputs, and where the first column of each row's output goes; null for rows whose
// results are not wanted.
struct AmxTile {
  const int8_t* rows = nullptr;
  int8_t* outputs[kAmxRows] = {};
};

// Multiplies tiles by panels [firstPanel, lastPanel). Rows of a tile lie `stride` bytes apart, and
// `offsets` says for each block where its 64 bytes begin in a row. All of them are read, also
// behind the product's inputs. Rounds to nearest even, then clamps, as XNNPACK.
void multiplyAmx(const AmxGemm& product, std::span<const AmxTile> tiles, size_t stride,
                 std::span<const size_t> offsets, size_t firstPanel, size_t lastPanel);

}  // namespace hearth::cpu
