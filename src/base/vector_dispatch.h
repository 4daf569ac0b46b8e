// SPDX-License-Identifier: Apache-2.0
// One source for all instruction sets: a body is compiled for each of them, and the widest one that
// the CPU has runs.
#pragma once

namespace hearth::base {

// For the call operator of a body and all functions that it calls: only inlined code is compiled
// anew.
#define HEARTH_INLINE __attribute__((always_inline))

#if defined(__x86_64__)
// GCC uses vectors of 256 bits unless it is told to prefer 512. Clang ignores the whole attribute
// when it contains what only GCC knows, and then refuses the intrinsics of these instruction sets.
#if defined(__clang__)
#define HEARTH_TARGET_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c"
#else
#define HEARTH_TARGET_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c,prefer-vector-width=512"
#endif

// The body is passed as a copy, so that the compiler knows that its captures do not change when a
// loop stores bytes, which may alias anything.
template <typename Body>
__attribute__((target("avx2,fma,f16c"))) void callForAvx2(const Body body) {
  body();
}
template <typename Body>
__attribute__((target(HEARTH_TARGET_AVX512))) void callForAvx512(const Body body) {
  body();
}
#endif

// Calls body().
template <typename Body>
void onWidestVectors(const Body& body) {
#if defined(__x86_64__)
  static const int level = __builtin_cpu_supports("avx512bw") &&
                                   __builtin_cpu_supports("avx512dq") &&
                                   __builtin_cpu_supports("avx512vl")
                               ? 2
                           : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                                   __builtin_cpu_supports("f16c")
                               ? 1
                               : 0;
  if (level == 2) return callForAvx512(body);
  if (level == 1) return callForAvx2(body);
#endif
  body();
}

}  // namespace hearth::base
