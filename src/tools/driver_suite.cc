// SPDX-License-Identifier: Apache-2.0
// hearth-driver-cts: the driver suite on the driver of a library, or of a manifest, in this
// process.
#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <string_view>

#include "hal/cts/backend.h"
#include "hal/driver_library.h"
#include "tools/manifest_device.h"

namespace {

using namespace hearth;

constexpr int kExitUsage = 2;
constexpr char kUsage[] =
    "Usage: hearth-driver-cts DRIVER [OPTION of GoogleTest...]\n"
    "\n"
    "Tests a driver: a library that exports hearth_driver_create, or the manifest (.json) of such\n"
    "a library, of a support library of NNAPI or of an external delegate for TensorFlow Lite. The\n"
    "driver runs in this process, whatever host the manifest names. Tests of operations that the\n"
    "driver does not support are skipped.\n"
    "--gtest_filter=PATTERN chooses tests, --help shows more options.\n";

Result<std::shared_ptr<hal::Device>> deviceOf(const std::string& path) {
  if (!path.ends_with(".json")) return hal::loadDriverLibrary(path);
  HEARTH_ASSIGN(const hal::DriverManifest manifest, hal::readDriverManifest(path));
  return tools::deviceOfManifest(manifest);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]).starts_with('-')) {
    const bool isHelp = argc > 1 && std::string_view(argv[1]) == "--help";
    (isHelp ? std::cout : std::cerr) << kUsage;
    return isHelp ? 0 : kExitUsage;
  }
  const auto device = deviceOf(argv[1]);
  if (!device) {
    std::cerr << "hearth-driver-cts: " << device.error().toString() << "\n";
    return kExitUsage;
  }
  std::cout << "The device " << (*device)->name() << ", version " << (*device)->version() << "\n";
  hal::cts::registerBackend({"driver", [device] {
                               return *device;
                             }});
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
