// SPDX-License-Identifier: Apache-2.0
#include "ops/fingerprint.h"

#include <bit>
#include <cstring>
#include <utility>

namespace hearth::ops {
namespace {

constexpr uint64_t kPrime0 = 0xC3A5C85C97CB3127u;
constexpr uint64_t kPrime1 = 0xB492B66FBE98F273u;
constexpr uint64_t kPrime2 = 0x9AE16A3B2F90404Fu;

uint64_t word64(const uint8_t* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}
uint64_t word32(const uint8_t* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}
uint64_t rotate(uint64_t value, int count) {
  return std::rotr(value, count);
}
uint64_t foldHigh(uint64_t value) {
  return value ^ (value >> 47);
}

uint64_t combine(uint64_t a, uint64_t b, uint64_t factor) {
  const uint64_t first = foldHigh((a ^ b) * factor);
  return foldHigh((b ^ first) * factor) * factor;
}

uint64_t ofUpTo16(const uint8_t* bytes, size_t size) {
  const uint64_t factor = kPrime2 + size * 2;
  if (size >= 8) {
    const uint64_t a = word64(bytes) + kPrime2;
    const uint64_t b = word64(bytes + size - 8);
    return combine(rotate(b, 37) * factor + a, (rotate(a, 25) + b) * factor, factor);
  }
  if (size >= 4) return combine(size + (word32(bytes) << 3), word32(bytes + size - 4), factor);
  if (size == 0) return kPrime2;
  const uint64_t low = bytes[0] + (uint64_t{bytes[size / 2]} << 8);
  const uint64_t high = size + (uint64_t{bytes[size - 1]} << 2);
  return foldHigh((low * kPrime2) ^ (high * kPrime0)) * kPrime2;
}

uint64_t of17To32(const uint8_t* bytes, size_t size) {
  const uint64_t factor = kPrime2 + size * 2;
  const uint64_t a = word64(bytes) * kPrime1;
  const uint64_t b = word64(bytes + 8);
  const uint64_t c = word64(bytes + size - 8) * factor;
  const uint64_t d = word64(bytes + size - 16) * kPrime2;
  return combine(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + kPrime2, 18) + c, factor);
}

uint64_t of33To64(const uint8_t* bytes, size_t size) {
  const uint64_t factor = kPrime2 + size * 2;
  const uint64_t a = word64(bytes) * kPrime2;
  const uint64_t b = word64(bytes + 8);
  const uint64_t c = word64(bytes + size - 8) * factor;
  const uint64_t d = word64(bytes + size - 16) * kPrime2;
  const uint64_t y = rotate(a + b, 43) + rotate(c, 30) + d;
  const uint64_t z = combine(y, a + rotate(b + kPrime2, 18) + c, factor);
  const uint64_t e = word64(bytes + 16) * factor;
  const uint64_t f = word64(bytes + 24);
  const uint64_t g = (y + word64(bytes + size - 32)) * factor;
  const uint64_t h = (z + word64(bytes + size - 24)) * factor;
  return combine(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, factor);
}

using Pair = std::pair<uint64_t, uint64_t>;

Pair absorb32(const uint8_t* bytes, uint64_t a, uint64_t b) {
  a += word64(bytes);
  b = rotate(b + a + word64(bytes + 24), 21);
  const uint64_t before = a;
  a += word64(bytes + 8) + word64(bytes + 16);
  b += rotate(a, 44);
  return {a + word64(bytes + 24), b + before};
}

struct State {
  uint64_t x, y, z;
  Pair v, w;

  // The last block uses another factor and weights two of the terms by 9.
  void absorb64(const uint8_t* block, uint64_t factor, uint64_t weight) {
    x = rotate(x + y + v.first + word64(block + 8), 37) * factor;
    y = rotate(y + v.second + word64(block + 48), 42) * factor;
    x ^= w.second * weight;
    y += v.first * weight + word64(block + 40);
    z = rotate(z + w.first, 33) * factor;
    v = absorb32(block, v.second * factor, x + w.first);
    w = absorb32(block + 32, z + w.second, y + word64(block + 16));
    std::swap(z, x);
  }
};

uint64_t ofMoreThan64(const uint8_t* bytes, size_t size) {
  constexpr uint64_t kSeed = 81;
  State state = {kSeed, kSeed * kPrime1 + 113, 0, {0, 0}, {0, 0}};
  state.z = foldHigh(state.y * kPrime2 + 113) * kPrime2;
  state.x = state.x * kPrime2 + word64(bytes);
  const size_t blocks = (size - 1) / 64;
  for (size_t i = 0; i < blocks; ++i) state.absorb64(bytes + i * 64, kPrime1, 1);
  const uint64_t factor = kPrime1 + ((state.z & 0xFF) << 1);
  state.w.first += (size - 1) & 63;
  state.v.first += state.w.first;
  state.w.first += state.v.first;
  state.absorb64(bytes + size - 64, factor, 9);
  return combine(
      combine(state.v.first, state.w.first, factor) + foldHigh(state.y) * kPrime0 + state.z,
      combine(state.v.second, state.w.second, factor) + state.x, factor);
}

}  // namespace

uint64_t fingerprint64(std::span<const uint8_t> bytes) {
  if (bytes.size() <= 16) return ofUpTo16(bytes.data(), bytes.size());
  if (bytes.size() <= 32) return of17To32(bytes.data(), bytes.size());
  if (bytes.size() <= 64) return of33To64(bytes.data(), bytes.size());
  return ofMoreThan64(bytes.data(), bytes.size());
}

}  // namespace hearth::ops
