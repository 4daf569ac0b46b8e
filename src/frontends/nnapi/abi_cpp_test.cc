// SPDX-License-Identifier: Apache-2.0
// The same assertions in C++: the headers must be valid in both languages.
#include "frontends/nnapi/abi_test.c"
