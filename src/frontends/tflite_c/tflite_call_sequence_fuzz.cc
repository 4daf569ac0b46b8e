// SPDX-License-Identifier: Apache-2.0
// The first bytes say where a model ends and the calls begin; the rest of the input are both.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/log.h"
#include "frontends/tflite_c/testing/call_sequence.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool kIsQuiet = [] {
    hearth::base::setLogLevel(hearth::base::LogLevel::kOff);
    return ::setenv("HEARTH_STORE_MODE", "off", 1) == 0;
  }();
  constexpr size_t kHead = 2;
  if (!kIsQuiet || size <= kHead + 1) return 0;
  const std::span<const uint8_t> rest(data + kHead, size - kHead);
  const size_t calls = std::min<size_t>(data[0] * 256u + data[1], rest.size() - 1);
  const std::span<const uint8_t> model = rest.subspan(calls);
  hearth::tflite_c::testing::runCallSequence(rest.first(calls), {&model, 1});
  return 0;
}
