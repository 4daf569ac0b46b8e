// SPDX-License-Identifier: Apache-2.0
// Hides instruction sets from a program that runs with LD_AUDIT naming this library: the kernel
// makes CPUID fault (arch_prctl(2), ARCH_SET_CPUID), and the handler of the fault returns the
// processor's answer without the features above HEARTH_ISA_LEVEL. Needs a processor whose flags
// list cpuid_fault. The dynamic linker has read CPUID before; only the C library's choice of
// functions depends on that.
#include <asm/prctl.h>
#include <cpuid.h>
#include <link.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

struct Registers {
  uint32_t eax, ebx, ecx, edx;
};

// The bits of one leaf of CPUID that a level hides in addition to those of the levels before.
struct Mask {
  uint32_t leaf, subleaf;
  Registers hidden;
};

struct Level {
  std::string_view name;
  Mask masks[3];
};

constexpr uint32_t bit(unsigned index) {
  return 1u << index;
}

// From the newest to the oldest, in the order in which XNNPACK chooses kernels. The bits are those
// of Intel's manual.
constexpr Level kLevels[] = {
    // No AMX, AVX512-FP16, GFNI, AVX-VNNI-INT8, AVX10.
    {"avx512vnni",
     {{7, 0, {0, 0, bit(8), bit(22) | bit(23) | bit(24) | bit(25)}},
      {7, 1, {bit(21), 0, 0, bit(4) | bit(5) | bit(19)}}}},
    // No VNNI of either kind, VBMI, IFMA, BF16, BITALG, VPOPCNTDQ.
    {"avx512skx",
     {{7, 0, {0, bit(21), bit(1) | bit(6) | bit(11) | bit(12) | bit(14), bit(8)}},
      {7, 1, {bit(4) | bit(5) | bit(23), 0, 0, 0}}}},
    // No AVX-512: F, DQ, PF, ER, CD, BW, VL.
    {"avx2",
     {{7, 0, {0, bit(16) | bit(17) | bit(26) | bit(27) | bit(28) | bit(30) | bit(31), 0, 0}}}},
    {"fma3", {{7, 0, {0, bit(5), 0, 0}}}},
    {"f16c", {{1, 0, {0, 0, bit(12), 0}}}},
    // No F16C, FMA4, XOP.
    {"avx", {{1, 0, {0, 0, bit(29), 0}}, {0x80000001, 0, {0, 0, bit(11) | bit(16), 0}}}},
    {"sse41", {{1, 0, {0, 0, bit(28), 0}}}},
    {"ssse3", {{1, 0, {0, 0, bit(19) | bit(20), 0}}}},
    {"sse2", {{1, 0, {0, 0, bit(0) | bit(9), 0}}}},
};

// A level beside these: AVX2, and AVX-VNNI, which processors without AVX-512 have.
constexpr std::string_view kAvxVnni = "avx_vnni";
bool showsAvxVnni = false;

size_t levels = 0;  // number of levels whose features are hidden; written before CPUID faults

void setFaulting(bool faults) {
  ::syscall(SYS_arch_prctl, ARCH_SET_CPUID, faults ? 0 : 1);
}

Registers answer(uint32_t leaf, uint32_t subleaf) {
  Registers found{};
  __cpuid_count(leaf, subleaf, found.eax, found.ebx, found.ecx, found.edx);
  for (size_t i = 0; i < levels; ++i)
    for (const Mask& mask : kLevels[i].masks)
      if (mask.leaf == leaf && mask.subleaf == (leaf == 7 ? subleaf : 0)) {
        const bool keepsBit = showsAvxVnni && leaf == 7 && subleaf == 1;
        found.eax &= ~(keepsBit ? mask.hidden.eax & ~bit(4) : mask.hidden.eax);
        found.ebx &= ~mask.hidden.ebx;
        found.ecx &= ~mask.hidden.ecx;
        found.edx &= ~mask.hidden.edx;
      }
  return found;
}

void onFault(int signal, siginfo_t* info, void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  constexpr uint8_t kCpuid[] = {0x0f, 0xa2};
  // The fault is a general protection fault and not a page fault, so the instruction can be read.
  const auto* at = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
  if (info->si_code != SI_KERNEL || std::memcmp(at, kCpuid, sizeof kCpuid) != 0) {
    ::signal(signal, SIG_DFL);  // the instruction faults again
    return;
  }
  setFaulting(false);
  const Registers found =
      answer(static_cast<uint32_t>(registers[REG_RAX]), static_cast<uint32_t>(registers[REG_RCX]));
  setFaulting(true);
  registers[REG_RAX] = found.eax;
  registers[REG_RBX] = found.ebx;
  registers[REG_RCX] = found.ecx;
  registers[REG_RDX] = found.edx;
  registers[REG_RIP] += sizeof kCpuid;
}

[[noreturn]] void refuse(std::string_view sentence) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
  ::_exit(125);
}

void install() {
  const char* found = std::getenv("HEARTH_ISA_LEVEL");
  std::string_view wanted = found == nullptr ? "" : found;
  showsAvxVnni = wanted == kAvxVnni;
  if (showsAvxVnni) wanted = "avx2";
  for (size_t i = 0; i < std::size(kLevels); ++i)
    if (kLevels[i].name == wanted) levels = i + 1;
  if (levels == 0) refuse("isa_mask: HEARTH_ISA_LEVEL names no level.\n");
  struct sigaction action{};
  action.sa_sigaction = onFault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, nullptr);
  if (::syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) != 0)
    refuse("isa_mask: this processor cannot make CPUID fault.\n");
}

}  // namespace

// rtld-audit(7): the dynamic linker calls this before it relocates the program, and so before any
// function is chosen by CPUID.
extern "C" __attribute__((visibility("default"))) unsigned la_version(unsigned) {
  install();
  return LAV_CURRENT;
}
