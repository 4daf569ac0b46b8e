// SPDX-License-Identifier: Apache-2.0
#include "graph/channel_scales.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace hearth::graph {
namespace {

TEST(ChannelScalesTest, AnEmptyListHasNothing) {
  const ChannelScales none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(none, ChannelScales(std::vector<float>()));
  EXPECT_EQ(none.digest(), base::Sha256::of({}));
  EXPECT_TRUE(none.areWithin(0.0f, 1.0f));
}

TEST(ChannelScalesTest, CopiesShareTheNumbers) {
  std::vector<float> source{1.0f, 2.0f, 3.0f};
  const ChannelScales scales(source);
  source[0] = 9.0f;
  const ChannelScales copy = scales;
  EXPECT_EQ(copy, ChannelScales({1.0f, 2.0f, 3.0f}));
  EXPECT_EQ(copy.data(), scales.data());
  EXPECT_NE(copy, ChannelScales({1.0f, 2.0f}));
  EXPECT_NE(copy, ChannelScales({1.0f, 2.0f, 4.0f}));
}

TEST(ChannelScalesTest, APartOutlivesTheListAndIsFollowedByMore) {
  std::shared_ptr<const float> part = ChannelScales({1.0f, 2.0f, 3.0f}).from(1);
  EXPECT_EQ(part.get()[0], 2.0f);
  for (size_t i = 1; i < 2 + ChannelScales::kReadableBehind; ++i)
    EXPECT_EQ(part.get()[i], 3.0f) << i;
  part = ChannelScales(size_t{2}, 0.5f).from(0);
  for (size_t i = 0; i < 2 + ChannelScales::kReadableBehind; ++i)
    EXPECT_EQ(part.get()[i], 0.5f) << i;
}

TEST(ChannelScalesTest, DigestIsThatOfTheBytes) {
  const std::vector<float> values{1.0f, -0.0f};
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  const ChannelScales scales(values);
  EXPECT_EQ(scales.digest(), base::Sha256::of({bytes, 2 * sizeof(float)}));
  EXPECT_EQ(scales.digest(), base::Sha256::of({bytes, 2 * sizeof(float)})) << "the second time";
  EXPECT_NE(scales.digest(), ChannelScales({1.0f, 0.0f}).digest());
}

TEST(ChannelScalesTest, FingerprintOfGivenNumbersIsTheDigest) {
  EXPECT_EQ(ChannelScales().fingerprint(), ChannelScales().digest());
  EXPECT_EQ(ChannelScales::ofPool({}).fingerprint(), ChannelScales().digest());
  const ChannelScales scales({1.0f, 2.0f});
  EXPECT_EQ(scales.fingerprint(), scales.digest());
}

TEST(ChannelScalesTest, FingerprintOfAPoolsNumbersDependsOnEachAndItsPlace) {
  for (const size_t count : {1, 7, 8, 9, 1000}) {
    std::vector<float> values(count, 0.25f);
    const base::Sha256Digest same = ChannelScales::ofPool(values).fingerprint();
    EXPECT_EQ(ChannelScales::ofPool(values).fingerprint(), same);
    EXPECT_NE(same, ChannelScales(values).digest());
    std::set<base::Sha256Digest> others{same};
    for (size_t i = 0; i < count; ++i) {
      values[i] = std::nextafter(0.25f, 1.0f);
      others.insert(ChannelScales::ofPool(values).fingerprint());
      values[i] = -0.25f;
      others.insert(ChannelScales::ofPool(values).fingerprint());
      values[i] = 0.25f;
    }
    EXPECT_EQ(others.size(), 2 * count + 1);
    values.push_back(0.0f);
    EXPECT_FALSE(others.contains(ChannelScales::ofPool(values).fingerprint()));
    EXPECT_EQ(ChannelScales::ofPool(values), ChannelScales(values));
    EXPECT_EQ(ChannelScales::ofPool(values).digest(), ChannelScales(values).digest());
  }
}

TEST(ChannelScalesTest, RangeFindsWrongNumbers) {
  using Limits = std::numeric_limits<float>;
  EXPECT_TRUE(ChannelScales({0.5f, 2.0f}).areWithin(0.5f, 2.0f));
  EXPECT_FALSE(ChannelScales({0.5f, 2.0f}).areWithin(0.5f, 1.0f));
  for (const float wrong : {0.0f, -0.0f, -1.0f, Limits::infinity(), Limits::quiet_NaN()})
    EXPECT_FALSE(ChannelScales({1.0f, wrong, 1.0f}).areWithin(Limits::denorm_min(), Limits::max()))
        << wrong;
}

}  // namespace
}  // namespace hearth::graph
