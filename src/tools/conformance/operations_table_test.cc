// SPDX-License-Identifier: Apache-2.0
// docs/operations.md is what the code says.
#include "tools/conformance/testing/operations_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "drivers/cpu/microkernels/vnni_gemm.h"

namespace hearth::conformance {
namespace {

TEST(OperationsTableTest, ThePageIsUpToDate) {
  const char* data = std::getenv("HEARTH_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
  if (!cpu::hasVnniGemm()) GTEST_SKIP() << "The page is of a CPU with AVX-512 VNNI.";
  const auto table = operationsTable(data);
  ASSERT_TRUE(table) << table.error().toString();
  const std::string path = HEARTH_DOCS_DIR "/operations.md";
  if (const char* update = std::getenv("HEARTH_UPDATE_DOCS"); update != nullptr && *update == '1') {
    std::ofstream(path) << *table;
  }
  std::ifstream file(path);
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(page, *table) << "HEARTH_UPDATE_DOCS=1 writes " << path << " anew.";
}

}  // namespace
}  // namespace hearth::conformance
