// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a file of conformance vectors and makes a model of every case.
#include <cstdint>

#include "tools/conformance/case_model.h"
#include "tools/conformance/nntv_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth;
  auto file = conformance::NntvFile::parse(memory::Pool::borrowed(data, size));
  if (!file) return 0;
  for (size_t i = 0; i < file->caseCount() && i < 64; ++i) {
    const auto testCase = file->readCase(i);
    if (!testCase) continue;
    for (conformance::Variant variant :
         {conformance::Variant::kAsIs, conformance::Variant::kDynamicOutputShape,
          conformance::Variant::kSigned})
      (void)conformance::buildModel(*testCase, variant);
  }
  return 0;
}
