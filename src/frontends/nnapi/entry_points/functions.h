// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "android/NeuralNetworksSupportLibraryImpl.h"

namespace hearth::nnapi {

// One pointer for each function of include/android, under its own name.
struct Functions {
#define HEARTH_NNAPI_FUNCTION(name) decltype(&::name) name;
#include "frontends/nnapi/entry_points/functions.inc"
#undef HEARTH_NNAPI_FUNCTION
};

}  // namespace hearth::nnapi

// The functions' addresses in libhearth.so. Only for libneuralnetworks.so of the same build.
extern "C" __attribute__((visibility("default"))) const hearth::nnapi::Functions*
hearth_nnapi_functions();
