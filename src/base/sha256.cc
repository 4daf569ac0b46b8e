// SPDX-License-Identifier: Apache-2.0
// Uses OpenSSL's own digest contexts, not its EVP interface, which loads the library's providers at
// the first use. That takes longer than a whole start from the store.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/sha256.h"

#include <openssl/sha.h>

#include <new>

namespace hearth::base {
namespace {

static_assert(std::is_trivially_copyable_v<SHA256_CTX>);

}  // namespace

Sha256::Sha256() {
  static_assert(sizeof(SHA256_CTX) <= sizeof state_ && alignof(SHA256_CTX) <= alignof(Sha256));
  start();
}

void Sha256::start() {
  SHA256_Init(new (state_.data()) SHA256_CTX);
}

void Sha256::update(std::span<const uint8_t> bytes) {
  SHA256_Update(std::launder(reinterpret_cast<SHA256_CTX*>(state_.data())), bytes.data(),
                bytes.size());
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  SHA256_Final(digest.data(), std::launder(reinterpret_cast<SHA256_CTX*>(state_.data())));
  start();
  return digest;
}

Sha256Digest Sha256::of(std::span<const uint8_t> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string toHex(std::span<const uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(2 * bytes.size(), '\0');
  char* next = text.data();
  for (const uint8_t byte : bytes) {
    *next++ = kDigits[byte >> 4];
    *next++ = kDigits[byte & 15];
  }
  return text;
}

}  // namespace hearth::base
