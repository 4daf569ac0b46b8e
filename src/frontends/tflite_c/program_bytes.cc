// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/program_bytes.h"

#include "base/caught.h"
#include "runtime/device_manager.h"

namespace hearth::tflite_c {

ProgramBytes::~ProgramBytes() {
  if (pool_.expired()) return;
  base::logged("waiting for readers of a model", [] {
    for (const auto& device : runtime::DeviceManager::shared().devices()) device->flush();
  });
}

}  // namespace hearth::tflite_c
