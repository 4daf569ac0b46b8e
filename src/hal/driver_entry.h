// SPDX-License-Identifier: Apache-2.0
// The symbols that a driver library exports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "hal/device.h"

#define HEARTH_DRIVER_EXPORT extern "C" __attribute__((visibility("default")))

namespace hearth::hal {

inline constexpr char kDriverCreateSymbol[] = "hearth_driver_create";
// Of a library with numbered devices (DriverManifest::isNumbered) besides.
inline constexpr char kDriverCreateNumberedSymbol[] = "hearth_driver_create_numbered";
// Of such a library, if it likes.
inline constexpr char kDriverCountSymbol[] = "hearth_driver_count";
// What a support library of NNAPI exports instead.
inline constexpr char kSupportLibrarySymbol[] = "ANeuralNetworks_getSLDriverImpl";

// The type of `hearth_driver_create`. Makes the library's device, which the caller owns and
// deletes; the library stays loaded for the rest of the process. `apiVersion` is the caller's
// kApiVersion. On failure returns null and writes the reason, a sentence that ends with a zero
// byte, into `message` of `messageSize` bytes. Must not throw. Called from any thread, and in each
// process once, or again where it has made no device.
using DriverCreateFunction = Device* (*)(uint32_t apiVersion, char* message, size_t messageSize);

// The type of `hearth_driver_create_numbered`. Makes one of the library's devices: 2 is the first
// behind that of `hearth_driver_create`. Returns null, too, where there are not so many. Otherwise
// as DriverCreateFunction, for each number.
using DriverCreateNumberedFunction = Device* (*)(uint32_t apiVersion, uint32_t number,
                                                 char* message, size_t messageSize);

// The type of `hearth_driver_count`. How many devices the library has, for a process that has made
// one of them; 0 where that is not known. Programs ask the host of one device whether there are
// others. Must not throw. Called from any thread.
using DriverCountFunction = uint32_t (*)();

// For these functions: whether the library is built for this version of the interface.
// Otherwise writes the sentence that says so.
inline bool isBuiltFor(uint32_t apiVersion, char* message, size_t messageSize) {
  if (apiVersion == kApiVersion) return true;
  std::snprintf(message, messageSize, "It is built for version %u of the driver interface.",
                kApiVersion);
  return false;
}

}  // namespace hearth::hal
