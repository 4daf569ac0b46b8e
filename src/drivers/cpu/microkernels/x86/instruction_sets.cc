// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/instruction_sets.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hearth::cpu {

#if defined(__x86_64__)

namespace {

// Whether the operating system keeps the registers is asked with AVX2.
bool cpuHasAvxVnni() {
  constexpr unsigned kAvxVnni = 1u << 4;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return hasAvx2() && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kAvxVnni) != 0;
}

}  // namespace

bool hasAvx2() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}

bool hasAvxVnni() {
  static const bool has = cpuHasAvxVnni();
  return has;
}

bool hasAvx512Vnni() {
  static const bool has = __builtin_cpu_supports("avx512vnni") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return has;
}

#else

bool hasAvx2() {
  return false;
}
bool hasAvxVnni() {
  return false;
}
bool hasAvx512Vnni() {
  return false;
}

#endif

}  // namespace hearth::cpu
