// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace hearth::threads {

// Flushes denormals to zero on this thread while it lives, if `enabled`; then restores the floating
// point control register. No effect on processors without such a mode.
class FlushDenormals {
 public:
  explicit FlushDenormals(bool enabled) : enabled_(enabled) {
    if (!enabled_) return;
    saved_ = read();
    write(saved_ | kFlush);
  }
  ~FlushDenormals() {
    if (enabled_) write(saved_);
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr uint64_t kFlush = 0x8040;  // MXCSR: flush to zero, denormals are zero
  static uint64_t read() { return _mm_getcsr(); }
  static void write(uint64_t value) { _mm_setcsr(static_cast<uint32_t>(value)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kFlush = uint64_t{1} << 24;  // FPCR.FZ
  static uint64_t read() {
    uint64_t value;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void write(uint64_t value) { __asm__ __volatile__("msr fpcr, %0" : : "r"(value)); }
#else
  static constexpr uint64_t kFlush = 0;
  static uint64_t read() { return 0; }
  static void write(uint64_t) {}
#endif

  bool enabled_;
  uint64_t saved_ = 0;
};

}  // namespace hearth::threads
