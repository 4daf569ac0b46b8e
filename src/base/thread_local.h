// SPDX-License-Identifier: Apache-2.0
#pragma once

// Declares a thread_local variable whose memory exists as soon as its thread does. The C library
// allocates the thread-local variables of a library that was loaded with dlopen() when a thread
// first uses one, and aborts the process if there is no memory for them. The libraries' own few
// bytes come from the space that it keeps for this model in every thread.
//
//   HEARTH_THREAD_LOCAL bool isInside = false;
//
// tests/install/exports_test.py checks that the libraries have no others.
#define HEARTH_THREAD_LOCAL [[gnu::tls_model("initial-exec")]] thread_local
