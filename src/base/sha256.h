// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct evp_md_ctx_st;

namespace hearth::base {

using Sha256Digest = std::array<uint8_t, 32>;

// One SHA-256 computation (FIPS 180-4), fed piece by piece. Move-only; one thread at a time. It
// uses an OpenSSL context of its own, so the host's openssl.cnf neither slows nor changes it.
// Throws std::bad_alloc where OpenSSL has no memory.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept = default;
  Sha256& operator=(Sha256&&) noexcept = default;

  void update(std::span<const uint8_t> bytes);
  void update(const void* data, size_t size) {
    update(std::span(static_cast<const uint8_t*>(data), size));
  }

  // The digest of everything fed so far; the object then starts over as if new.
  Sha256Digest finish();

  static Sha256Digest of(std::span<const uint8_t> bytes);

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  void start();

  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// Lower-case hexadecimal digits, two per byte.
std::string toHex(std::span<const uint8_t> bytes);

}  // namespace hearth::base
