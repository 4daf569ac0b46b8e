// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <openssl/evp.h>

#include <new>

namespace hearth::base {
namespace {

// Never freed: hashes may run in static destructors and detached threads.
const EVP_MD* algorithm() {
  static const EVP_MD* const fetched = [] {
    OSSL_LIB_CTX* library = OSSL_LIB_CTX_new();
    const EVP_MD* found = library ? EVP_MD_fetch(library, "SHA2-256", nullptr) : nullptr;
    if (found == nullptr) throw std::bad_alloc();
    return found;
  }();
  return fetched;
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (!context_) throw std::bad_alloc();
  start();
}

void Sha256::start() {
  if (EVP_DigestInit_ex2(context_.get(), algorithm(), nullptr) != 1) throw std::bad_alloc();
}

void Sha256::update(std::span<const uint8_t> bytes) {
  if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) throw std::bad_alloc();
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  if (EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) != 1) throw std::bad_alloc();
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
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace hearth::base
