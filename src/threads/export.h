// SPDX-License-Identifier: Apache-2.0
#pragma once

// Marks the exported symbols of libhearth_threads.so; all others are hidden.
#define HEARTH_THREADS_EXPORT __attribute__((visibility("default")))
