// SPDX-License-Identifier: Apache-2.0
// What of this machine's processor decides which kernels run. All functions are thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"

namespace hearth::cpu {

// The architectures that there are builds for, as people call them, and the one of this code.
inline constexpr std::array<std::string_view, 2> kArchitectures = {"arm64", "x86-64"};
#if defined(__aarch64__)
inline constexpr std::string_view kArchitecture = kArchitectures[0];
#else
inline constexpr std::string_view kArchitecture = kArchitectures[1];
#endif

// The features by which kernels are chosen, in GCC's names, sorted. They are those that the kernel
// and the C library found when this code was loaded.
std::vector<std::string> cpuFeatures();

// Adds to the digest all that XNNPACK may look at when it chooses kernels. Processors that run the
// same kernels may differ in it.
void addProcessor(base::Sha256& hash);

// What ARM processors have, by the auxiliary vector's AT_HWCAP and AT_HWCAP2 (Linux,
// Documentation/arch/arm64/elf_hwcaps.rst). For the two functions above, and for tests on all
// processors.
std::vector<std::string> arm64Features(uint64_t hwcap, uint64_t hwcap2);

// The identification registers (MIDR_EL1) of the kinds of cores that a machine has, each once,
// sorted: XNNPACK has kernels for some kinds. `folder` is "/sys/devices/system/cpu" or a test's.
// Empty where nothing can be read there.
std::vector<uint64_t> arm64CoreKinds(const std::string& folder);

}  // namespace hearth::cpu
