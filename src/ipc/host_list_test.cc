// SPDX-License-Identifier: Apache-2.0
#include "ipc/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::ipc {
namespace {

TEST(HostListTest, NamesPlaces) {
  const auto places =
      parseHostList("hearth-cpu=spawn,a=/run/a.sock,b=spawn:/opt/host,c=shared,d=process");
  ASSERT_TRUE(places) << places.error().toString();
  ASSERT_EQ(places->size(), 5u);
  EXPECT_EQ(places->at("c").kind, HostPlace::Kind::kShared);
  EXPECT_EQ(places->at("d").kind, HostPlace::Kind::kProcess);
  EXPECT_EQ(places->at("hearth-cpu").kind, HostPlace::Kind::kSpawn);
  EXPECT_EQ(places->at("hearth-cpu").path, "");
  EXPECT_EQ(places->at("a").kind, HostPlace::Kind::kSocket);
  EXPECT_EQ(places->at("a").path, "/run/a.sock");
  EXPECT_EQ(places->at("b").kind, HostPlace::Kind::kSpawn);
  EXPECT_EQ(places->at("b").path, "/opt/host");
  ASSERT_TRUE(parseHostList(""));
  EXPECT_TRUE(parseHostList("")->empty());
}

TEST(HostListTest, RefusesAnythingElse) {
  for (const char* const text :
       {"x", "=spawn", "x=", "x=spwan", "x=spawn:", "x=spawn:relative", "x=relative.sock",
        "x=spawn,,y=spawn", "x=spawn y=spawn", "x=spawn,x=/run/x.sock", ","}) {
    const auto places = parseHostList(text);
    ASSERT_FALSE(places) << text;
    EXPECT_EQ(places.error().code(), ErrorCode::kBadData);
    EXPECT_THAT(places.error().message(), testing::HasSubstr("HEARTH_DRIVER_HOSTS"));
  }
}

TEST(HostListTest, ManifestsHavePlaces) {
  const auto kindOf = [](const char* text) {
    const auto manifest = hal::parseDriverManifest(text);
    EXPECT_TRUE(manifest) << text;
    return manifest ? placeOf(*manifest) : std::nullopt;
  };
  EXPECT_FALSE(kindOf(R"({"name": "a", "library": "liba.so", "api_version": 3})"));
  const auto own =
      kindOf(R"({"name": "a", "library": "l.so", "host": "hearth", "api_version": 3})");
  ASSERT_TRUE(own);
  EXPECT_EQ(own->kind, HostPlace::Kind::kSpawn);
  EXPECT_EQ(own->path, "");
  const auto other = kindOf(R"({"name": "a", "host": "/opt/a", "api_version": 3})");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->path, "/opt/a");
  const auto shared = kindOf(
      R"({"name": "a", "library": "l.so", "host": "/opt/a", "shared": true, "api_version": 3})");
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->kind, HostPlace::Kind::kShared);
  EXPECT_EQ(shared->path, "/opt/a");
  const auto joined = kindOf(R"({"name": "a", "socket": "/run/a", "api_version": 3})");
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->kind, HostPlace::Kind::kSocket);
  EXPECT_EQ(joined->path, "/run/a");
  for (const char* const text :
       {R"({"name": "a", "api_version": 3})",
        R"({"name": "a", "library": "l.so", "socket": "/run/a", "api_version": 3})",
        R"({"name": "a", "host": "hearth", "socket": "/run/a", "api_version": 3})",
        R"({"name": "a", "host": 7, "api_version": 3})",
        R"({"name": "a", "library": "l.so", "shared": true, "api_version": 3})",
        R"({"name": "a", "socket": "/run/a", "shared": true, "api_version": 3})",
        R"({"name": "a", "host": "/opt/a", "shared": 1, "api_version": 3})",
        R"({"name": "a", "socket": "", "api_version": 3})"})
    EXPECT_FALSE(hal::parseDriverManifest(text)) << text;
}

}  // namespace
}  // namespace hearth::ipc
