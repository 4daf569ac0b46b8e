// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hearth::base {
namespace {

std::span<const uint8_t> bytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The two examples and the million letters a of FIPS 180-4.
TEST(Sha256, MatchesPublishedVectors) {
  EXPECT_EQ(toHex(Sha256::of({})),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(toHex(Sha256::of(bytesOf("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string million(1000000, 'a');
  EXPECT_EQ(toHex(Sha256::of(bytesOf(million))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesEqualTheWhole) {
  const std::string text(257, 'x');
  Sha256 hash;
  for (size_t at = 0; at < text.size(); at += 10)
    hash.update(bytesOf(text).subspan(at).first(std::min<size_t>(10, text.size() - at)));
  EXPECT_EQ(hash.finish(), Sha256::of(bytesOf(text)));
}

TEST(Sha256, StartsOverAfterFinish) {
  Sha256 hash;
  hash.update(bytesOf("first"));
  hash.finish();
  hash.update(bytesOf("abc"));
  EXPECT_EQ(hash.finish(), Sha256::of(bytesOf("abc")));
}

// Each thread hashes different bytes, in pieces, so that state shared between objects would be
// noticed.
TEST(Sha256, ObjectsOfSeveralThreadsAreIndependent) {
  struct Hashed {
    std::string text;
    const char* expected;
    std::string found;
  };
  Hashed all[] = {{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", ""},
                  {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", ""},
                  {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                   "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", ""},
                  {std::string(1000000, 'a'),
                   "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", ""}};
  {
    std::vector<std::jthread> threads;
    for (Hashed& one : all)
      threads.emplace_back([&one] {
        Sha256 hash;
        for (size_t at = 0; at < one.text.size(); at += 100)
          hash.update(bytesOf(std::string_view(one.text).substr(at, 100)));
        one.found = toHex(hash.finish());
      });
  }
  for (const Hashed& one : all) EXPECT_EQ(one.found, one.expected);
}

TEST(Hex, HasTwoDigitsPerByte) {
  const uint8_t bytes[] = {0x00, 0x0f, 0xa0, 0xff};
  EXPECT_EQ(toHex(bytes), "000fa0ff");
}

}  // namespace
}  // namespace hearth::base
