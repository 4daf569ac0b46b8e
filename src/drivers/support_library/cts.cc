// SPDX-License-Identifier: Apache-2.0
// The driver suite on Hearth's own libneuralnetworks.so as support library.
#include "drivers/support_library/library_device.h"
#include "hal/cts/backend.h"

namespace {

using namespace hearth;

Result<std::shared_ptr<hal::Device>> deviceOf(const char* inner) {
  HEARTH_ASSIGN(auto library,
                drivers::support_library::SupportLibrary::load(HEARTH_SUPPORT_LIBRARY));
  return drivers::support_library::createDevice(std::move(library), "support-library", inner);
}

const bool areRegistered = hal::cts::registerBackend({"support_library_cpu",
                                                      [] {
                                                        return deviceOf("hearth-cpu");
                                                      }}) &&
                           hal::cts::registerBackend({"support_library_reference", [] {
                                                        return deviceOf("nnapi-reference");
                                                      }});

}  // namespace
