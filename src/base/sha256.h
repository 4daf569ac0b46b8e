// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hearth::base {

using Sha256Digest = std::array<uint8_t, 32>;

// One SHA-256 computation (FIPS 180-4), fed piece by piece. A copy continues independently. For one
// thread at a time. OpenSSL computes it without its configuration, so the host's openssl.cnf
// neither slows nor changes it.
class Sha256 {
 public:
  Sha256();

  void update(std::span<const uint8_t> bytes);
  void update(const void* data, size_t size) {
    update(std::span(static_cast<const uint8_t*>(data), size));
  }

  // Returns the digest of all bytes so far, and starts anew.
  Sha256Digest finish();

  static Sha256Digest of(std::span<const uint8_t> bytes);

 private:
  void start();

  alignas(8) std::array<std::byte, 112> state_;  // OpenSSL's
};

// Lower-case hexadecimal digits, two per byte.
std::string toHex(std::span<const uint8_t> bytes);

}  // namespace hearth::base
