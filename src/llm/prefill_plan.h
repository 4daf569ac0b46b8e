// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hearth::llm {

// Tokens that one run of a signature takes.
struct Chunk {
  size_t length = 1;  // of the signature; 1 = the one that decodes
  size_t tokens = 1;  // at most `length`; the rest is filled up
};

// Divides `count` tokens from `position` on among signatures of these lengths (ascending, above 1),
// so that none writes at or behind `capacity`, which has room for the tokens. The longer chunks
// come first, and the rest of a plan is the plan of the rest. A length that a plan does not use
// changes nothing in it.
std::vector<Chunk> planPrefill(std::span<const size_t> lengths, size_t count, size_t position,
                               size_t capacity);

// Lengths below those of a model's signatures (above 1) at which its shortest one is worth having,
// too: powers of 2 from 16 on, ascending. What a signature takes beyond a text's end is computed
// for nothing.
std::vector<size_t> shorterLengths(std::span<const size_t> lengths);

// The lengths worth having: those up to 512, or else the shortest. A longer one computes no more
// tokens in a second, and has intermediate results in proportion to its length.
std::vector<size_t> usefulLengths(std::vector<size_t> lengths);

}  // namespace hearth::llm
