// SPDX-License-Identifier: Apache-2.0
#include "hal/driver_library.h"
#include "base/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace hearth::hal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Makes new folders of manifests for each test.
class DriverLibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(testing::TempDir()) / "hearth_drivers" / test->name();
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string folder(const std::string& name) {
    std::filesystem::create_directories(root_ / name);
    return (root_ / name).string();
  }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string manifest(const std::string& library, const std::string& name = "test-device",
                              uint32_t version = kApiVersion) {
    return base::formatText(R"({{"name": "{}", "library": "{}", "api_version": {}}})", name,
                            library, version);
  }

  std::filesystem::path root_;
};

constexpr char kGood[] = HEARTH_TEST_DRIVER;
constexpr char kRefusing[] = HEARTH_TEST_DRIVER_REFUSING;
constexpr char kWithoutSymbol[] = HEARTH_TEST_DRIVER_EMPTY;

TEST_F(DriverLibraryTest, FindsADriverByAbsolutePath) {
  const std::string path = folder("a");
  write(path + "/driver.json", manifest(kGood));
  const DiscoveredDrivers found = discoverDrivers(path, {});
  EXPECT_THAT(found.problems, IsEmpty());
  ASSERT_EQ(found.devices.size(), 1u);
  EXPECT_EQ(found.devices[0]->name(), "test-device");
}

TEST_F(DriverLibraryTest, LibraryIsRelativeToTheManifest) {
  const std::string path = folder("a");
  std::filesystem::copy_file(kGood, path + "/libcopied.so");
  write(path + "/driver.json", manifest("libcopied.so"));
  const DiscoveredDrivers found = discoverDrivers(path, {});
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_EQ(found.devices.size(), 1u);
}

TEST_F(DriverLibraryTest, LibraryIsNotLookedForElsewhere) {
  const std::string path = folder("a");
  write(path + "/driver.json", manifest("libc.so.6"));
  EXPECT_THAT(discoverDrivers(path, {}).problems, ElementsAre(HasSubstr("cannot be loaded")));
}

TEST_F(DriverLibraryTest, EveryProblemSkipsOneDriverOnly) {
  const std::string first = folder("first");
  const std::string second = folder("second");
  write(first + "/a.json", "{ this is no JSON");
  write(first + "/b.json", manifest(kGood, "test-device", kApiVersion - 1));
  write(first + "/c.json", manifest(kWithoutSymbol));
  write(first + "/d.json", manifest("missing.so"));
  write(first + "/e.json", manifest(kGood, "another-name"));
  write(first + "/f.json", manifest(kRefusing, "refusing"));
  write(first + "/g.json", "");
  write(first + "/h.json", std::string(100'000, ' '));
  write(first + "/i.txt", "no manifest");
  std::filesystem::create_directory(first + "/j.json");
  ASSERT_EQ(::mkfifo((first + "/k.json").c_str(), 0600), 0);
  write(second + "/a.json", manifest(kGood));
  write(second + "/b.json", manifest(kGood));
  const DiscoveredDrivers found =
      discoverDrivers(first + ":" + root_.string() + "/missing::" + second, {});
  EXPECT_THAT(found.problems,
              ElementsAre(HasSubstr("not a JSON object"),
                          HasSubstr(base::formatText("version {}", kApiVersion - 1)),
                          HasSubstr("does not export hearth_driver_create"),
                          HasSubstr("cannot be loaded"), HasSubstr("of the name test-device"),
                          HasSubstr("There is no such chip"), HasSubstr("not a JSON object"),
                          HasSubstr("more than 65536 bytes"), HasSubstr("is not a file"),
                          HasSubstr("is not a file"), HasSubstr("which exists")));
  ASSERT_EQ(found.devices.size(), 1u);
  EXPECT_EQ(found.devices[0]->name(), "test-device");
}

TEST_F(DriverLibraryTest, AManifestMayHave65536Bytes) {
  const std::string path = folder("a");
  std::string text = manifest(kGood);
  text.resize(65536, ' ');
  write(path + "/driver.json", text);
  EXPECT_EQ(discoverDrivers(path, {}).devices.size(), 1u);
  write(path + "/driver.json", text + ' ');
  EXPECT_THAT(discoverDrivers(path, {}).problems, ElementsAre(HasSubstr("more than 65536 bytes")));
}

// As a user's manifest takes the place of a package's.
TEST_F(DriverLibraryTest, TheFirstFolderThatHasADeviceCounts) {
  const std::string first = folder("first");
  const std::string second = folder("second");
  const std::string text =
      base::formatText(R"({{"name": "test-device", "library": "{}", "api_version": {}, )"
                       R"("optional": true, "needs": {{"devices": ["/nowhere"]}}}})",
                       kGood, kApiVersion);
  write(first + "/a.json", manifest(kGood));
  write(second + "/a.json", manifest("missing.so"));
  write(second + "/b.json", text);
  const DiscoveredDrivers found = discoverDrivers(first + ":" + second, {});
  EXPECT_EQ(found.devices.size(), 1u);
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_THAT(found.leftOut, IsEmpty());
  // If its driver cannot be loaded, the next one is tried.
  const DiscoveredDrivers other = discoverDrivers(second + ":" + first, {});
  EXPECT_EQ(other.devices.size(), 1u);
  EXPECT_THAT(other.problems, ElementsAre(HasSubstr("cannot be loaded")));
}

TEST_F(DriverLibraryTest, TakenNamesAreRefused) {
  const std::string path = folder("a");
  write(path + "/driver.json", manifest(kGood));
  const DiscoveredDrivers found = discoverDrivers(path, {"test-device"});
  EXPECT_THAT(found.devices, IsEmpty());
  EXPECT_THAT(found.problems, ElementsAre(HasSubstr("which exists")));
}

TEST(DriverManifest, FieldsAreChecked) {
  EXPECT_TRUE(parseDriverManifest(R"({"name":"a","library":"b","api_version":1,"more":[]})"));
  // A host that runs already says its version itself.
  EXPECT_TRUE(parseDriverManifest(R"({"name":"a","socket":"b"})"));
  for (const char* text :
       {"", "[]", "null", "{}", R"({"name":"a","library":"b"})", R"({"name":"a","host":"b"})",
        R"({"name":"a","socket":"b","api_version":"1"})",
        R"({"name":"a","library":"b","api_version":-1})",
        R"({"name":"a","library":"b","api_version":1.5})",
        R"({"name":"a","library":"b","api_version":"1"})",
        R"({"name":"","library":"b","api_version":1})",
        R"({"name":7,"library":"b","api_version":1})",
        R"({"name":"a","library":null,"api_version":1})",
        R"({"name":"a\u0000b","library":"b","api_version":1})",
        R"({"name":"a","library":"b","api_version":1} trailing)"}) {
    const auto manifest = parseDriverManifest(text);
    ASSERT_FALSE(manifest) << text;
    EXPECT_EQ(manifest.error().code(), ErrorCode::kBadData) << text;
  }
}

TEST(DriverManifest, SupportLibrariesAlwaysHaveAHost) {
  const auto manifest =
      parseDriverManifest(R"({"name":"a","library":"b","support_library":true,"device":"npu"})");
  ASSERT_TRUE(manifest) << manifest.error().toString();
  EXPECT_TRUE(manifest->isSupportLibrary);
  EXPECT_EQ(manifest->host, kHearthHost);
  EXPECT_EQ(manifest->device, "npu");
  const auto loaded = loadDriver(*manifest);
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message(), HasSubstr("which only a host loads"));
  EXPECT_FALSE(
      parseDriverManifest(R"({"name":"a","library":"b","api_version":1})")->isSupportLibrary);
  for (const char* text :
       {R"({"name":"a","support_library":true})",
        R"({"name":"a","socket":"s","support_library":true})",
        R"({"name":"a","library":"b","support_library":false})",
        R"({"name":"a","library":"b","support_library":1})",
        R"({"name":"a","library":"b","support_library":true,"device":7})",
        R"({"name":"a","library":"b","support_library":true,"device":"\u0000"})"})
    EXPECT_FALSE(parseDriverManifest(text)) << text;
}

TEST(DriverManifest, SaysWhatTheDriverNeeds) {
  const std::string begin = R"({"name":"a","library":"b","api_version":1,"needs":)";
  const auto manifest = parseDriverManifest(
      begin +
      R"({"read_write":["/x","y"],"read_only":["/z"],"devices":["/dev/npu"],"code":true,"w":1,
          "if_present":{"read_only":["/usr/l*"],"devices":["/dev/x*","/dev/y"]},
          "variables":["A","B_C"]}})");
  ASSERT_TRUE(manifest) << manifest.error().toString();
  EXPECT_THAT(manifest->needs.readWrite, ElementsAre("/x", "y"));
  EXPECT_THAT(manifest->needs.readOnly, ElementsAre("/z"));
  EXPECT_THAT(manifest->needs.devices, ElementsAre("/dev/npu"));
  EXPECT_THAT(manifest->needs.ifPresent.readWrite, IsEmpty());
  EXPECT_THAT(manifest->needs.ifPresent.readOnly, ElementsAre("/usr/l*"));
  EXPECT_THAT(manifest->needs.ifPresent.devices, ElementsAre("/dev/x*", "/dev/y"));
  EXPECT_THAT(manifest->needs.variables, ElementsAre("A", "B_C"));
  EXPECT_TRUE(manifest->needs.code);
  EXPECT_FALSE(parseDriverManifest(begin + "{}}")->needs.code);
  for (const char* needs :
       {"[]", "7", R"({"read_write":"/x"})", R"({"read_only":[7]})", R"({"devices":[""]})",
        R"({"devices":{}})", R"({"code":1})", R"({"read_only":["a\u0000b"]})",
        R"({"if_present":[]})", R"({"if_present":{"devices":"/dev/x"}})",
        R"({"if_present":{"devices":["a\u0000b"]}})", R"({"variables":"A"})",
        R"({"variables":["A=B"]})", R"({"variables":["A\u0000"]})"}) {
    const auto wrong = parseDriverManifest(begin + needs + "}");
    ASSERT_FALSE(wrong) << needs;
    EXPECT_EQ(wrong.error().code(), ErrorCode::kBadData) << needs;
  }
}

TEST(DriverManifest, SaysWhetherTheDeviceIsMeasured) {
  const std::string begin = R"({"name":"a","library":"b","api_version":1)";
  EXPECT_FALSE(parseDriverManifest(begin + "}")->isMeasured);
  EXPECT_FALSE(parseDriverManifest(begin + R"(,"measured":false})")->isMeasured);
  EXPECT_TRUE(parseDriverManifest(begin + R"(,"measured":true})")->isMeasured);
  EXPECT_FALSE(parseDriverManifest(begin + R"(,"measured":1})"));
}

TEST(DriverManifest, NumberedDevicesHaveNamesOfTheirOwn) {
  const std::string begin = R"({"name":"a","library":"b","api_version":1)";
  const auto manifest = parseDriverManifest(
      begin + R"(,"numbered":true,"measured":true,"asked_for_by":"HEARTH_VULKAN_DEVICE"})");
  ASSERT_TRUE(manifest) << manifest.error().toString();
  EXPECT_EQ(manifestOfDevice(*manifest, "a")->number, 1u);
  const auto third = manifestOfDevice(*manifest, "a-3");
  ASSERT_TRUE(third);
  EXPECT_EQ(third->name, "a-3");
  EXPECT_EQ(third->firstName, "a");
  EXPECT_EQ(third->number, 3u);
  EXPECT_TRUE(third->isMeasured);
  EXPECT_TRUE(mayBeLeftOut(*third));
  EXPECT_FALSE(mayBeLeftOut(*manifest));
  for (const char* const name : {"", "b", "a-", "a-0", "a-1", "a-02", "a-2 ", "a-17", "a-x"})
    EXPECT_FALSE(manifestOfDevice(*manifest, name)) << name;
  EXPECT_FALSE(manifestOfDevice(*parseDriverManifest(begin + "}"), "a-2"));
  for (const char* const text :
       {R"({"name":"a","library":"b","api_version":1,"numbered":1})",
        R"({"name":"a","socket":"b","numbered":true})",
        R"({"name":"a","host":"b","api_version":1,"numbered":true})",
        R"({"name":"a","library":"b","support_library":true,"numbered":true})"})
    EXPECT_FALSE(parseDriverManifest(text)) << text;
}

// A manifest of the library with three devices.
std::string numberedText() {
  return base::formatText(
      R"({{"name": "test-device", "library": "{}", "api_version": {}, "numbered": true}})", kGood,
      kApiVersion);
}

std::vector<std::string> namesOf(const DiscoveredDrivers& found) {
  std::vector<std::string> names;
  for (const auto& device : found.devices) names.push_back(device->name());
  return names;
}

TEST_F(DriverLibraryTest, ALibraryMayHaveNumberedDevices) {
  const std::string path = folder("a");
  write(path + "/driver.json", numberedText());
  const DiscoveredDrivers found = discoverDrivers(path, {});
  EXPECT_THAT(namesOf(found), ElementsAre("test-device", "test-device-2", "test-device-3"));
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_THAT(found.leftOut, IsEmpty());
  // One that somebody wants is not left out without a message.
  const DiscoveredDrivers wanted = discoverDrivers(path, {}, loadDriver, {"test-device-7"});
  EXPECT_EQ(wanted.devices.size(), 3u);
  EXPECT_THAT(wanted.problems, ElementsAre(HasSubstr("There are 3 chips")));
  // Where it is asked for, whatever the manifest says of device nodes.
  write(path + "/driver.json",
        base::formatText(R"({{"name": "test-device", "library": "{}", "api_version": {}, )"
                         R"("numbered": true, "optional": true, )"
                         R"("asked_for_by": "HEARTH_VULKAN_DEVICE", )"
                         R"("needs": {{"if_present": {{"devices": ["/nowhere/npu"]}}}}}})",
                         kGood, kApiVersion));
  EXPECT_THAT(namesOf(discoverDrivers(path, {})), IsEmpty());
  ::setenv("HEARTH_VULKAN_DEVICE", "any", 1);
  EXPECT_EQ(discoverDrivers(path, {}).devices.size(), 3u);
  ::unsetenv("HEARTH_VULKAN_DEVICE");
  // Of a manifest that does not number them it has one.
  write(path + "/driver.json", manifest(kGood));
  EXPECT_THAT(namesOf(discoverDrivers(path, {})), ElementsAre("test-device"));
}

TEST_F(DriverLibraryTest, ALibrarySaysHowManyDevicesItHas) {
  const std::string path = folder("a");
  write(path + "/driver.json", numberedText());
  const auto numbered = readDriverManifest(path + "/driver.json");
  ASSERT_TRUE(numbered) << numbered.error().toString();
  ASSERT_TRUE(loadDriver(*numbered));
  EXPECT_EQ(countOfDevices(*numbered), 3u);
  DriverManifest other = *numbered;
  other.isNumbered = false;
  EXPECT_EQ(countOfDevices(other), 1u);
  other = *numbered;
  // It is not loaded either.
  other.library = kWithoutSymbol;
  EXPECT_EQ(countOfDevices(other), 1u);
  other.library = "/nowhere/libnpu.so";
  EXPECT_EQ(countOfDevices(other), 1u);
}

TEST_F(DriverLibraryTest, NumberedDevicesEndWhereOneIsNotThere) {
  const std::string path = folder("a");
  write(path + "/driver.json", numberedText());
  std::vector<std::string> tried;
  const auto make = [&](const DriverManifest& manifest) -> Result<std::shared_ptr<Device>> {
    tried.push_back(manifest.name);
    if (manifest.number == 2) return fail(ErrorCode::kUnavailableDevice, "It is elsewhere.");
    return loadDriver(manifest);
  };
  EXPECT_THAT(namesOf(discoverDrivers(path, {}, make)), ElementsAre("test-device"));
  EXPECT_THAT(tried, ElementsAre("test-device", "test-device-2"));
  // As one that has a host of its own.
  EXPECT_THAT(namesOf(discoverDrivers(path, {}, make, {"test-device-3"})),
              ElementsAre("test-device", "test-device-3"));
}

TEST_F(DriverLibraryTest, NumberedDevicesAreThoseOfTheManifestThatCounts) {
  const std::string first = folder("first");
  const std::string second = folder("second");
  write(first + "/driver.json", manifest(kGood));
  write(second + "/driver.json", numberedText());
  EXPECT_THAT(namesOf(discoverDrivers(first + ":" + second, {})), ElementsAre("test-device"));
  // Each may have another manifest before.
  write(first + "/driver.json", R"({"name": "test-device-2", "socket": "s"})");
  const auto make = [](const DriverManifest& manifest) {
    return manifest.socket.empty() ? loadDriver(manifest) : loadDriverLibrary(kGood, 2);
  };
  const DiscoveredDrivers found = discoverDrivers(first + ":" + second, {}, make);
  EXPECT_THAT(namesOf(found), ElementsAre("test-device-2", "test-device", "test-device-3"));
  EXPECT_THAT(found.problems, IsEmpty());
}

TEST_F(DriverLibraryTest, AnOptionalDriverMayLackItsLibraryOrItsDevice) {
  const std::string path = folder("a");
  write(path + "/npu.json",
        R"({"name": "npu", "optional": true, "delegate": {"library": "/nowhere/libvx.so"}})");
  const DiscoveredDrivers found = discoverDrivers(path, {});
  EXPECT_THAT(found.problems, IsEmpty());
  ASSERT_EQ(found.leftOut.size(), 1u);
  EXPECT_EQ(found.leftOut[0].name, "npu");
  EXPECT_EQ(found.leftOut[0].reason, "The library /nowhere/libvx.so is not installed.");
  write(path + "/npu.json",
        R"({"name": "npu", "optional": true, "delegate": {"library": "/proc/self/exe"},
            "needs": {"devices": ["/dev/null", "/nowhere/npu0"]}})");
  EXPECT_THAT(discoverDrivers(path, {}).problems, IsEmpty());
  write(path + "/npu.json",
        R"({"name": "npu", "optional": true, "delegate": {"library": "/proc/self/exe"},
            "needs": {"devices": ["/dev/null"]}})");
  EXPECT_THAT(discoverDrivers(path, {}).problems, testing::SizeIs(1));
  write(path + "/npu.json", R"({"name": "npu", "delegate": {"library": "/nowhere/libvx.so"}})");
  EXPECT_THAT(discoverDrivers(path, {}).problems, testing::SizeIs(1));
}

// An optional driver with one of the libraries.
std::string optionalManifest(const std::string& library, const std::string& name,
                             const std::string& more) {
  return base::formatText(
      R"({{"name": "{}", "library": "{}", "api_version": {}, "optional": true, {}}})", name,
      library, kApiVersion, more);
}

TEST_F(DriverLibraryTest, AnOptionalDriverIsNotTriedWhereNoneOfItsDevicesIs) {
  const std::string path = folder("a");
  const std::string nodes = folder("dev");
  const auto discover = [&] {
    int attempts = 0;
    const auto make = [&](const DriverManifest& manifest) {
      ++attempts;
      return loadDriver(manifest);
    };
    DiscoveredDrivers found = discoverDrivers(path, {}, make);
    EXPECT_THAT(found.problems, IsEmpty());
    EXPECT_EQ(attempts, static_cast<int>(found.devices.size()));
    return found;
  };
  const std::string first = nodes + "/render*";
  const std::string second = nodes + "/npu0";
  write(
      path + "/driver.json",
      optionalManifest(kGood, "test-device",
                       base::formatText(R"("needs": {{"if_present": {{"devices": ["{}", "{}"]}}}})",
                                        first, second)));
  const DiscoveredDrivers without = discover();
  EXPECT_THAT(without.devices, IsEmpty());
  ASSERT_EQ(without.leftOut.size(), 1u);
  EXPECT_EQ(without.leftOut[0].reason, base::formatText("There is no {} or {}.", first, second));
  write(nodes + "/render128", "");
  EXPECT_EQ(discover().devices.size(), 1u);
  std::filesystem::rename(nodes + "/render128", nodes + "/npu0");
  EXPECT_EQ(discover().devices.size(), 1u);
}

TEST_F(DriverLibraryTest, AnOptionalDriverMayMakeNoDevice) {
  const std::string path = folder("a");
  write(path + "/driver.json", optionalManifest(kRefusing, "refusing", R"("needs": {})"));
  const DiscoveredDrivers found = discoverDrivers(path, {});
  EXPECT_THAT(found.problems, IsEmpty());
  ASSERT_EQ(found.leftOut.size(), 1u);
  EXPECT_EQ(found.leftOut[0].name, "refusing");
  EXPECT_THAT(found.leftOut[0].reason, HasSubstr("There is no such chip"));
  // Another failure is one.
  write(path + "/driver.json", optionalManifest(kWithoutSymbol, "refusing", R"("needs": {})"));
  EXPECT_THAT(discoverDrivers(path, {}).problems, testing::SizeIs(1));
}

TEST_F(DriverLibraryTest, ADriverThatIsAskedForIsNotOptional) {
  const std::string path = folder("a");
  write(path + "/driver.json", optionalManifest(kRefusing, "refusing",
                                                R"("asked_for_by": "HEARTH_VULKAN_DEVICE",
                            "needs": {"if_present": {"devices": ["/nowhere/npu"]}})"));
  ::unsetenv("HEARTH_VULKAN_DEVICE");
  EXPECT_THAT(discoverDrivers(path, {}).problems, IsEmpty());
  ::setenv("HEARTH_VULKAN_DEVICE", "any", 1);
  EXPECT_THAT(discoverDrivers(path, {}).problems, ElementsAre(HasSubstr("There is no such chip")));
  ::unsetenv("HEARTH_VULKAN_DEVICE");
  EXPECT_THAT(discoverDrivers(path, {}, loadDriver, {"refusing"}).problems, testing::SizeIs(1));
  EXPECT_FALSE(
      parseDriverManifest(R"({"name":"a","library":"b","api_version":1,"asked_for_by":"PATH"})"));
}

TEST_F(DriverLibraryTest, ThePathsThatArePresent) {
  const std::string path = folder("a");
  for (const char* const name : {"render129", "render128", "card0", ".render"})
    write(path + "/" + name, "");
  EXPECT_THAT(presentPaths(path + "/render*"),
              ElementsAre(path + "/render128", path + "/render129"));
  EXPECT_THAT(presentPaths(path + "/*d*8"), ElementsAre(path + "/render128"));
  EXPECT_THAT(presentPaths(path + "/*"), testing::SizeIs(3));
  EXPECT_THAT(presentPaths(path + "/card0"), ElementsAre(path + "/card0"));
  EXPECT_THAT(presentPaths(path + "/card1"), IsEmpty());
  EXPECT_THAT(presentPaths(path + "/nowhere/*"), IsEmpty());
}

TEST(DriverManifestTest, ADelegateHasAHostAndValuesAsTexts) {
  const auto manifest = parseDriverManifest(
      R"({"name": "npu", "delegate": {"library": "libvx.so", "tflite": "2.14",
          "options": {"id": 0, "cache": true, "a": "b"}, "variables": {"VX": "1"}},
          "custom_operators": ["vx-op", "other"]})");
  ASSERT_TRUE(manifest) << manifest.error().toString();
  EXPECT_EQ(manifest->host, kHearthHost);
  ASSERT_TRUE(manifest->delegate);
  EXPECT_EQ(manifest->delegate->library, "libvx.so");
  EXPECT_EQ(manifest->delegate->version, "2.14");
  EXPECT_THAT(manifest->delegate->options,
              ElementsAre(testing::Pair("a", "b"), testing::Pair("cache", "true"),
                          testing::Pair("id", "0")));
  EXPECT_THAT(manifest->delegate->variables, ElementsAre(testing::Pair("VX", "1")));
  EXPECT_THAT(manifest->customOperators, ElementsAre("vx-op", "other"));
}

TEST(DriverManifestTest, ThoseOfVendorsAreOptionalDelegates) {
  std::vector<std::string> problems;
  const std::vector<std::string> paths = findDriverManifests(HEARTH_VENDORS, &problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_FALSE(paths.empty());
  for (const std::string& path : paths) {
    const auto manifest = readDriverManifest(path);
    ASSERT_TRUE(manifest) << manifest.error().toString();
    EXPECT_TRUE(manifest->isOptional && manifest->delegate) << path;
  }
  EXPECT_THAT(discoverDrivers(HEARTH_VENDORS, {}).problems, IsEmpty());
}

TEST(DriverManifestTest, WrongDelegatesAreRefused) {
  for (const char* const text :
       {R"({"name": "npu", "delegate": "libvx.so"})", R"({"name": "npu", "delegate": {}})",
        R"({"name": "npu", "library": "a.so", "delegate": {"library": "b.so"}})",
        R"({"name": "npu", "delegate": {"library": "b.so", "options": ["a"]}})",
        R"({"name": "npu", "delegate": {"library": "b.so", "options": {"a": [1]}}})",
        R"({"name": "npu", "delegate": {"library": "b.so", "prepare_seconds": -1}})",
        R"({"name": "npu", "delegate": {"library": "b.so"}, "custom_operators": "a"})",
        R"({"name": "npu", "delegate": {"library": "b.so"}, "custom_operators": [""]})",
        R"({"name": "npu", "delegate": {"library": "b.so"}, "custom_operators": [1]})",
        R"({"name": "npu", "delegate": {"library": "b.so", "variables": {"A=B": "1"}}})"})
    EXPECT_FALSE(parseDriverManifest(text)) << text;
}

}  // namespace
}  // namespace hearth::hal
