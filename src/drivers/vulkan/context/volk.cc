// SPDX-License-Identifier: Apache-2.0
// The loader of Vulkan's functions. It opens libvulkan.so.1 when it is asked to, so nothing links
// to that library.
#define VOLK_IMPLEMENTATION
#include <volk.h>
