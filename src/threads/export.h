// SPDX-License-Identifier: Apache-2.0
#pragma once

// Marks what libhearth_threads.so shows; everything else is hidden.
#define HEARTH_THREADS_EXPORT __attribute__((visibility("default")))
