// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_manager.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/format.h"
#include "drivers/reference/reference_device.h"
#include "hal/driver_entry.h"
#include "hal/testing/stub_devices.h"
#include "hal/testing/test_driver.h"

namespace hearth::runtime {
namespace {

using testing::ElementsAre;

// Runs `run` in a child process, since a process creates its devices only once.
template <typename Run>
bool succeedsInChild(Run run) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // kills a child that hangs
    // Not _exit(): the warming thread has to end with the process, as in a program.
    std::exit(run() ? 0 : 1);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

bool canUseDevices() {
  const auto device = DeviceManager::shared().find("hearth-cpu");
  if (!device) return false;
  device->warmUp();
  return true;
}

std::vector<std::string> namesOf(const std::vector<std::shared_ptr<hal::Device>>& devices) {
  std::vector<std::string> names;
  for (const auto& device : devices) names.push_back(device->name());
  return names;
}

// Installs a driver, and a manifest whose library is missing.
class InstalledDriverTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    write("a.json", "missing.so", "missing-device");
    write("b.json", HEARTH_TEST_DRIVER, "test-device");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& file, const std::string& library, const std::string& name) const {
    std::ofstream(folder_ / file) << base::formatText(
        R"({{"name": "{}", "library": "{}", "api_version": {}}})", name, library, hal::kApiVersion);
  }
  void install() const { ::setenv("HEARTH_DRIVER_PATH", folder_.c_str(), 1); }

  // The counters of the installed driver; null if it cannot be loaded.
  static const hal::TestDriverCounts* counts() {
    void* library = ::dlopen(HEARTH_TEST_DRIVER, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    return static_cast<const hal::TestDriverCounts*>(::dlsym(library, hal::kTestDriverCounts));
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / "hearth_device_manager";
};

TEST_F(InstalledDriverTest, StandsBetweenTheBuiltInDevices) {
  EXPECT_TRUE(succeedsInChild([&] {
    install();
    EXPECT_THAT(namesOf(DeviceManager::shared().devices()),
                ElementsAre("hearth-cpu", "test-device", "nnapi-reference"));
    return !HasFailure();
  }));
}

TEST_F(InstalledDriverTest, IsWarmedUpOnceByAnotherThread) {
  // With one processor no thread is started.
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "There is one processor.";
  EXPECT_TRUE(succeedsInChild([&] {
    install();
    const hal::TestDriverCounts* counted = counts();
    if (counted == nullptr) return false;
    DeviceManager::warmUp();
    DeviceManager::warmUp();
    while (counted->warmUps == 0) std::this_thread::yield();
    DeviceManager::warmUp();
    // A fork waits until the thread has ended.
    if (!succeedsInChild([] { return true; })) return false;
    EXPECT_EQ(counted->warmUps.load(), 1);
    EXPECT_NE(counted->warmingThread.load(), ::gettid());
    EXPECT_THAT(namesOf(DeviceManager::shared().devices()),
                ElementsAre("hearth-cpu", "test-device", "nnapi-reference"));
    return !HasFailure();
  }));
}

// A compilation that begins while the devices are created gets the same devices.
TEST_F(InstalledDriverTest, IsFoundWhileDevicesAreWarmedUp) {
  EXPECT_TRUE(succeedsInChild([&] {
    install();
    DeviceManager::warmUp();
    return canUseDevices() && DeviceManager::shared().find("test-device") != nullptr;
  }));
}

// During the fork, the warming thread is in initialisations that happen once in a process.
TEST(DeviceManagerTest, AChildDoesNotWaitForItsParentsThread) {
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(succeedsInChild([] {
      DeviceManager::warmUp();
      return succeedsInChild(canUseDevices) && canUseDevices();
    })) << i;
}

// A device of the given type.
class TypedDevice final : public hal::StubDevice {
 public:
  TypedDevice(std::string name, hal::DeviceType type) : StubDevice(std::move(name)), type_(type) {}
  hal::DeviceType type() const override { return type_; }

 private:
  const hal::DeviceType type_;
};

TEST(DeviceManagerTest, ADeviceIsSelectedByNameAndAllByTheirType) {
  const auto device = [](const char* name, hal::DeviceType type) {
    return std::make_shared<TypedDevice>(name, type);
  };
  const DeviceManager manager(
      {device("fast", hal::DeviceType::kCpu), device("cpu", hal::DeviceType::kOther),
       device("npu", hal::DeviceType::kAccelerator), device("plain", hal::DeviceType::kCpu)});
  EXPECT_THAT(namesOf(*manager.select("npu")), ElementsAre("npu"));
  EXPECT_THAT(namesOf(*manager.select("Accelerator")), ElementsAre("npu"));
  EXPECT_THAT(namesOf(*manager.select("CPU")), ElementsAre("fast", "plain"));
  EXPECT_THAT(namesOf(*manager.select("cpu")), ElementsAre("cpu")) << "a name goes before a type";
}

TEST(DeviceManagerTest, TheErrorForAMissingDeviceListsAllDevices) {
  const DeviceManager manager(
      {std::shared_ptr<hal::Device>(drivers::reference::createDevice()),
       std::make_shared<TypedDevice>("npu", hal::DeviceType::kAccelerator)});
  const auto missing = manager.select("nnapi");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().message(),
            "There is no device nnapi; there are: nnapi-reference (cpu), npu (accelerator).");
  EXPECT_EQ(manager.select("GPU").error().message(),
            "There is no device of the type gpu; there are: nnapi-reference (cpu), npu "
            "(accelerator).");
  EXPECT_EQ(DeviceManager({}).select("nnapi").error().message(),
            "There is no device nnapi; there are: none.");
  EXPECT_EQ(DeviceManager({}, {{"npu", "There is no /dev/npu."}}).select("npu").error().message(),
            "There is no device npu; there are: none. It is left out: There is no /dev/npu.");
}

// A device that answers with the given number of cache files, or with an error, and with the given
// types of extensions.
class AnsweringDevice final : public hal::StubDevice {
 public:
  AnsweringDevice(std::string name, Result<hal::CacheFileCounts> counts)
      : StubDevice(std::move(name)), counts_(std::move(counts)) {}
  Result<hal::CacheFileCounts> numberOfCacheFilesNeeded() const override { return counts_; }
  std::vector<std::string> supportedExtensions() const override {
    return {"com.example", "hearth.tflite"};
  }
  std::vector<hal::ExtensionOperandType> extensionOperandTypes() const override { return types; }

  std::vector<hal::ExtensionOperandType> types;

 private:
  const Result<hal::CacheFileCounts> counts_;
};

TEST(DeviceManagerTest, DevicesWithTooManyCacheFilesAreLeftOut) {
  const auto device = [](const char* name, Result<hal::CacheFileCounts> counts) {
    return std::make_shared<AnsweringDevice>(name, std::move(counts));
  };
  EXPECT_THAT(namesOf(DeviceManager::registrable(
                  {device("none", hal::CacheFileCounts{0, 0}),
                   device("models", hal::CacheFileCounts{33, 0}),
                   device("most", hal::CacheFileCounts{32, 32}),
                   device("data", hal::CacheFileCounts{0, 33}),
                   device("silent", fail(ErrorCode::kUnavailableDevice, "It does not answer.")),
                   device("last", hal::CacheFileCounts{1, 1})})),
              ElementsAre("none", "most", "last"));
}

TEST(DeviceManagerTest, DevicesThatAnnounceTypesWronglyAreLeftOut) {
  const auto device = [](const char* name, std::vector<hal::ExtensionOperandType> types) {
    auto made = std::make_shared<AnsweringDevice>(name, hal::CacheFileCounts());
    made->types = std::move(types);
    return made;
  };
  EXPECT_THAT(namesOf(DeviceManager::registrable(
                  {device("good", {{"com.example", 0, 1, true}, {"com.example", 1, 8, false}}),
                   device("empty", {{"com.example", 0, 0, true}}),
                   device("twice", {{"com.example", 7, 4, true}, {"com.example", 7, 4, true}}),
                   device("of another extension", {{"com.example.other", 0, 4, true}}),
                   device("of hearth.tflite", {{"hearth.tflite", 900, 4, true}})})),
              ElementsAre("good"));
}

}  // namespace
}  // namespace hearth::runtime
