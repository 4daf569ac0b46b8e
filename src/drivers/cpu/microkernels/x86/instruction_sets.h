// SPDX-License-Identifier: Apache-2.0
// Instruction sets of this CPU that kernels and lowerings choose by. False on other architectures.
// The operating system keeps the registers of every set that is said to be there. All functions are
// thread-safe.
#pragma once

namespace hearth::cpu {

// AVX2 and FMA.
bool hasAvx2();

// The dot product of bytes in registers of 256 bits, AVX-VNNI, with AVX2.
bool hasAvxVnni();

// The same in registers of 512 bits, AVX-512 VNNI, with AVX-512 BW and VL.
bool hasAvx512Vnni();

}  // namespace hearth::cpu
