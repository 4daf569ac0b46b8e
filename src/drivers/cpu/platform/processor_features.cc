// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/platform/processor_features.h"

#include <fcntl.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <sys/platform/x86.h>
#else
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/descriptor.h"
#include "base/format.h"

namespace hearth::cpu {
namespace {

// A bit of AT_HWCAP, or from 64 on of AT_HWCAP2. Part of Linux's interface, so they never change.
struct ArmFeature {
  const char* name;
  unsigned bit;
};
constexpr ArmFeature kArmFeatures[] = {
    {"bf16", 64 + 14}, {"dotprod", 20},  {"fp16", 10},      {"fp16fml", 23}, {"i8mm", 64 + 13},
    {"rdm", 12},       {"sme", 64 + 23}, {"sme2", 64 + 37}, {"sve", 22},     {"sve2", 64 + 1},
};
static_assert(std::ranges::is_sorted(kArmFeatures, {}, [](const ArmFeature& feature) {
  return std::string_view(feature.name);
}));

#if !defined(__x86_64__)
static_assert(HWCAP_ASIMDHP == 1u << 10 && HWCAP_ASIMDRDM == 1u << 12 &&
              HWCAP_ASIMDDP == 1u << 20 && HWCAP_SVE == 1u << 22 && HWCAP_ASIMDFHM == 1u << 23);
static_assert(HWCAP2_SVE2 == 1u << 1 && HWCAP2_I8MM == 1u << 13 && HWCAP2_BF16 == 1u << 14 &&
              HWCAP2_SME == 1u << 23);

// The register of the core that happens to run this.
std::optional<uint64_t> ownCoreKind() {
  // Otherwise the instruction ends the process.
  if ((::getauxval(AT_HWCAP) & HWCAP_CPUID) == 0) return std::nullopt;
  uint64_t value;
  __asm__("mrs %0, MIDR_EL1" : "=r"(value));
  return value;
}
#endif

}  // namespace

std::vector<std::string> arm64Features(uint64_t hwcap, uint64_t hwcap2) {
  std::vector<std::string> features;
  for (const ArmFeature& feature : kArmFeatures) {
    const uint64_t bits = feature.bit < 64 ? hwcap : hwcap2;
    if ((bits >> feature.bit % 64 & 1) != 0) features.emplace_back(feature.name);
  }
  return features;
}

std::vector<uint64_t> arm64CoreKinds(const std::string& folder) {
  // Machines with more cores have one kind of them.
  constexpr int kMostCores = 32;
  std::vector<uint64_t> kinds;
  for (int core = 0; core < kMostCores; ++core) {
    const auto file = base::Descriptor::open(
        base::formatText("{}/cpu{}/regs/identification/midr_el1", folder, core), O_RDONLY);
    // Cores that are offline have none; numbers have no gaps otherwise.
    if (!file) continue;
    std::array<char, 24> text;
    const ssize_t size = ::read(file->get(), text.data(), text.size());
    constexpr std::string_view kPrefix = "0x";
    const std::string_view found(text.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
    uint64_t value = 0;
    if (!found.starts_with(kPrefix) ||
        std::from_chars(found.data() + kPrefix.size(), found.data() + found.size(), value, 16).ec !=
            std::errc())
      continue;
    kinds.push_back(value);
  }
  std::ranges::sort(kinds);
  const auto [end, last] = std::ranges::unique(kinds);
  kinds.erase(end, last);
  return kinds;
}

#if defined(__x86_64__)

// The CPUID instruction itself is slow in virtual machines.
std::vector<std::string> cpuFeatures() {
  std::vector<std::string> features;
  __builtin_cpu_init();
  const auto add = [&](bool has, const char* name) {
    if (has) features.emplace_back(name);
  };
  add(__builtin_cpu_supports("amx-fp16"), "amx-fp16");
  add(__builtin_cpu_supports("amx-int8"), "amx-int8");
  add(__builtin_cpu_supports("avx"), "avx");
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("avx512bw"), "avx512bw");
  add(__builtin_cpu_supports("avx512cd"), "avx512cd");
  add(__builtin_cpu_supports("avx512dq"), "avx512dq");
  add(__builtin_cpu_supports("avx512f"), "avx512f");
  add(__builtin_cpu_supports("avx512fp16"), "avx512fp16");
  add(__builtin_cpu_supports("avx512vbmi"), "avx512vbmi");
  add(__builtin_cpu_supports("avx512vl"), "avx512vl");
  add(__builtin_cpu_supports("avx512vnni"), "avx512vnni");
  add(__builtin_cpu_supports("avxvnni"), "avxvnni");
  add(__builtin_cpu_supports("avxvnniint8"), "avxvnniint8");
  add(__builtin_cpu_supports("f16c"), "f16c");
  add(__builtin_cpu_supports("fma"), "fma");
  add(__builtin_cpu_supports("fma4"), "fma4");
  add(__builtin_cpu_supports("gfni"), "gfni");
  add(__builtin_cpu_supports("sse4.1"), "sse4.1");
  add(__builtin_cpu_supports("ssse3"), "ssse3");
  add(__builtin_cpu_supports("xop"), "xop");
  return features;
}

void addProcessor(base::Sha256& hash) {
  // The registers as the dynamic linker has read them.
  for (const unsigned index : {CPUID_INDEX_1, CPUID_INDEX_7, CPUID_INDEX_80000001,
                               CPUID_INDEX_7_ECX_1, CPUID_INDEX_19, CPUID_INDEX_24_ECX_0}) {
    cpuid_feature leaf = *__x86_get_cpuid_feature_leaf(index);
    // EBX has the number of the processor that the dynamic linker happened to run on.
    if (index == CPUID_INDEX_1)
      leaf.cpuid_array[cpuid_register_index_ebx] = leaf.active_array[cpuid_register_index_ebx] = 0;
    hash.update(leaf.cpuid_array, sizeof leaf.cpuid_array);
    hash.update(leaf.active_array, sizeof leaf.active_array);
  }
  // Features may have been hidden from this process after the dynamic linker read the registers.
  for (const std::string& feature : cpuFeatures()) {
    hash.update(feature.data(), feature.size());
    hash.update("", 1);
  }
}

#else

std::vector<std::string> cpuFeatures() {
  return arm64Features(::getauxval(AT_HWCAP), ::getauxval(AT_HWCAP2));
}

void addProcessor(base::Sha256& hash) {
  for (const unsigned long kind : {AT_HWCAP, AT_HWCAP2}) {
    const uint64_t bits = ::getauxval(kind);
    hash.update(&bits, sizeof bits);
  }
  std::vector<uint64_t> kinds = arm64CoreKinds("/sys/devices/system/cpu");
  if (kinds.empty())
    if (const auto own = ownCoreKind()) kinds.push_back(*own);
  hash.update(kinds.data(), kinds.size() * sizeof(uint64_t));
}

#endif

}  // namespace hearth::cpu
