// SPDX-License-Identifier: Apache-2.0
// hearth-driver-cts: the driver suite on the driver of a library, or of a manifest, in this
// process.
#include <gtest/gtest.h>
#include <hearth_build_info.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "hal/cts/backend.h"
#include "hal/driver_library.h"
#include "tools/manifest_device.h"

namespace {

using namespace hearth;

constexpr int kExitUsage = 2;
constexpr char kProgram[] = "hearth-driver-cts";

Result<std::shared_ptr<hal::Device>> deviceOf(const std::string& path) {
  if (!path.ends_with(".json")) return hal::loadDriverLibrary(path);
  HEARTH_ASSIGN(const hal::DriverManifest manifest, hal::readDriverManifest(path));
  return tools::deviceOfManifest(manifest);
}

int refuse(const std::string& sentence) {
  std::cerr << kProgram << ": " << sentence << "\n";
  return kExitUsage;
}

struct Arguments {
  std::string driver;
  std::string filter;
  std::string output;
  bool isListed = false;
};

void addOptions(CLI::App* app, Arguments* arguments) {
  app->add_option(
         "DRIVER", arguments->driver,
         "The driver: a library that exports hearth_driver_create, or the manifest (.json) "
         "of such a library, of a support library of NNAPI or of an external delegate for "
         "TensorFlow Lite")
      ->required();
  app->add_option(
         "--gtest_filter", arguments->filter,
         "Tests to run: names with * and ?, separated by colons; those behind a - are left "
         "out (all)")
      ->type_name("PATTERN");
  app->add_flag("--gtest_list_tests", arguments->isListed, "List the tests and run none");
  app->add_option("--gtest_output", arguments->output, "Report to write: json:FILE or xml:FILE")
      ->type_name("REPORT");
}

// Gives GoogleTest its options. False where it does not know one of the others, which is then
// `unknown`.
bool giveOptions(const Arguments& arguments, const std::vector<std::string>& others,
                 std::string* unknown) {
  std::vector<std::string> texts = {kProgram};
  texts.insert(texts.end(), others.begin(), others.end());
  std::vector<char*> words;
  for (std::string& text : texts) words.push_back(text.data());
  int count = static_cast<int>(words.size());
  words.push_back(nullptr);
  testing::InitGoogleTest(&count, words.data());
  if (!arguments.filter.empty()) GTEST_FLAG_SET(filter, arguments.filter);
  if (!arguments.output.empty()) GTEST_FLAG_SET(output, arguments.output);
  if (arguments.isListed) GTEST_FLAG_SET(list_tests, true);
  if (count > 1) *unknown = words[1];
  return count <= 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Test a driver of Hearth. It runs in this process, whatever host its manifest names. Tests "
      "of "
      "operations that it does not support are skipped. All options of GoogleTest are understood.",
      kProgram);
  app.set_version_flag("--version", std::string(kProgram) + " " HEARTH_VERSION);
  app.get_formatter()->column_width(34);
  app.allow_extras();
  Arguments arguments;
  addOptions(&app, &arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help and --version
  } catch (const CLI::ParseError& error) {
    return refuse(std::string(error.what()) + ". " + kProgram + " --help lists the options.");
  }
  const auto device = deviceOf(arguments.driver);
  if (!device) return refuse(device.error().toString());
  hal::cts::registerBackend({"driver", [device] {
                               return *device;
                             }});
  if (std::string unknown; !giveOptions(arguments, app.remaining(), &unknown))
    return refuse("There is no option " + unknown + ". " + kProgram + " --help lists the options.");
  if (!arguments.isListed)
    std::cout << "The device " << (*device)->name() << ", version " << (*device)->version() << "\n";
  return RUN_ALL_TESTS();
}
