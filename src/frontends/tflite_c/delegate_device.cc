// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/delegate_device.h"

#include <dlfcn.h>

#include "base/caught.h"
#include "runtime/delegate_library.h"

namespace hearth::tflite_c {

std::shared_ptr<hal::Device> deviceOfDelegate(const TfLiteDelegate& delegate) {
  const auto* const builder =
      static_cast<const TfLiteOpaqueDelegateBuilder*>(delegate.opaque_delegate_builder);
  const void* prepare = reinterpret_cast<const void*>(delegate.Prepare);
  // Structures that are older than the field have the function.
  if (prepare == nullptr && builder != nullptr)
    prepare = reinterpret_cast<const void*>(builder->Prepare);
  Dl_info info{};
  if (prepare == nullptr || ::dladdr(prepare, &info) == 0 || info.dli_fname == nullptr)
    return nullptr;
  return runtime::deviceOfDelegateLibrary(info.dli_fname);
}

bool hasDelegateDevice(const char* library) {
  bool isThere = false;
  base::logged("Looking for the device of a delegate", [&] {
    isThere = library != nullptr && runtime::deviceOfDelegateLibrary(library) != nullptr;
  });
  return isThere;
}

}  // namespace hearth::tflite_c
