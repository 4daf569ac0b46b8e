// SPDX-License-Identifier: Apache-2.0
#include "hal/device_operators.h"

#include <mutex>
#include <vector>

#include "base/env.h"
#include "base/mutex.h"
#include "hal/driver_manifest.h"
#include "ops/device_operator.h"

namespace hearth::hal {
namespace {

// Of installed drivers. What is wrong with a manifest is said where its device is made.
void registerInstalled() {
  std::vector<std::string> problems;
  for (const std::string& path :
       findDriverManifests(base::envString(base::Env::kDriverPath), &problems)) {
    const auto manifest = readDriverManifest(path);
    if (!manifest) continue;
    // Their lengths are checked.
    for (const std::string& name : manifest->customOperators)
      static_cast<void>(ops::registerDeviceOperator(name));
  }
}

}  // namespace

std::string deviceOperatorExtension(std::string_view name) {
  return "hearth.custom/" + std::string(name);
}

const ops::CustomOperator* findOperator(std::string_view name) {
  if (const ops::CustomOperator* const known = ops::findCustomOperator(name)) return known;
  static constinit base::Mutex mutex;
  static constinit bool isDone = false;
  {
    const std::lock_guard lock(mutex);
    if (!isDone) registerInstalled();
    isDone = true;
  }
  return ops::findCustomOperator(name);
}

}  // namespace hearth::hal
