// SPDX-License-Identifier: Apache-2.0
// The same assertions as C++: the headers serve both languages.
#include "frontends/nnapi/abi_test.c"
