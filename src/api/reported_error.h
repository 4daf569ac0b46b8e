// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hearth/hearth.h"

// Makes an error object in libhearth.so, which frees it, for a library on top of it: stores it in
// *error, unless `error` is null, and returns the code. `message` is a sentence. Only for libraries
// of the same build.
extern "C" __attribute__((visibility("default"))) hearth_status
hearth_report_error(hearth_status code, const char* message, hearth_error** error);
