// SPDX-License-Identifier: Apache-2.0
// libhearth_delegate.so: the two functions that TensorFlow Lite calls in an external delegate. They
// jump into libhearth.so, so a process that also uses Hearth directly has one runtime.
#include <cstddef>

#include "frontends/delegate/functions.h"

extern "C" {

__attribute__((visibility("default"))) TfLiteDelegate* tflite_plugin_create_delegate(
    const char* const* keys, const char* const* values, size_t count,
    void (*report_error)(const char*)) {
  return hearth_delegate_functions()->create(keys, values, count, report_error);
}

__attribute__((visibility("default"))) void tflite_plugin_destroy_delegate(
    TfLiteDelegate* delegate) {
  hearth_delegate_functions()->destroy(delegate);
}

}  // extern "C"
