// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "hal/device.h"
#include "tflite_abi/structures.h"

namespace hearth::tflite_c {

// The device that an installed driver makes of the library in which the delegate's Prepare is; null
// where there is none.
std::shared_ptr<hal::Device> deviceOfDelegate(const TfLiteDelegate& delegate);

// Whether there is one for the library with this path or name; not for null. Thread-safe.
bool hasDelegateDevice(const char* library);

}  // namespace hearth::tflite_c
