// SPDX-License-Identifier: Apache-2.0
// Uses OpenSSL's GCM mode itself, for the reason that is given in sha256.cc.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/gmac.h"

#include <openssl/aes.h>
#include <openssl/modes.h>

#include <new>

namespace hearth::base {

struct Gmac::State {
  AES_KEY key;
  GCM128_CONTEXT* mode = nullptr;  // refers to `key`
};

Gmac::Gmac(const Key& key) : state_(std::make_unique<State>()) {
  AES_set_encrypt_key(key.data(), static_cast<int>(8 * key.size()), &state_->key);
  state_->mode = CRYPTO_gcm128_new(&state_->key, reinterpret_cast<block128_f>(AES_encrypt));
  if (state_->mode == nullptr) throw std::bad_alloc();
}

Gmac::~Gmac() {
  CRYPTO_gcm128_release(state_->mode);
}

Gmac::Tag Gmac::of(std::span<const uint8_t> bytes) {
  constexpr std::array<uint8_t, 12> kVector{};
  CRYPTO_gcm128_setiv(state_->mode, kVector.data(), kVector.size());
  CRYPTO_gcm128_aad(state_->mode, bytes.data(), bytes.size());
  Tag tag;
  CRYPTO_gcm128_tag(state_->mode, tag.data(), tag.size());
  return tag;
}

}  // namespace hearth::base
