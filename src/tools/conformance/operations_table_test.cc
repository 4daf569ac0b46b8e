// SPDX-License-Identifier: Apache-2.0
// Tests that docs/operations.md agrees with the code.
#include "tools/conformance/testing/operations_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "drivers/cpu/platform/processor_features.h"
#include "ops/operation.h"

namespace hearth::conformance {
namespace {

constexpr char kPage[] = HEARTH_DOCS_DIR "/operations.md";

std::string readPage() {
  std::ifstream file(kPage);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return parts;
}

// The types of each operation in the kernels' table, whichever kernel runs them.
std::map<std::string, std::set<std::string>> typesByOperation(const std::string& page) {
  std::map<std::string, std::set<std::string>> types;
  bool isTable = false;
  for (const std::string& line : split(page, "\n")) {
    if (line.starts_with("|---|---|---|---|")) {
      isTable = true;
    } else if (isTable && !line.starts_with("|")) {
      break;
    } else if (isTable) {
      const std::vector<std::string> cells = split(line.substr(2), " |");
      std::set<std::string>& known = types[cells[0]];
      for (size_t i = 1; i < cells.size(); ++i)
        for (const std::string& type : split(cells[i], ", "))
          if (const size_t begin = type.find_first_not_of(' '); begin != std::string::npos)
            known.insert(type.substr(begin));
    }
  }
  return types;
}

// Each row is "| TFLite operation | code | becomes |".
std::string tflitePart(const std::string& page) {
  const size_t begin = page.find("## Operations of .tflite files");
  return begin == std::string::npos ? "" : page.substr(begin);
}

// With HEARTH_UPDATE_DOCS=1 the test rewrites the page and is skipped, since it would prove
// nothing.
constexpr char kOtherCpu[] = "The page is of a CPU with AVX-512 VNNI and without AMX.";

// With AMX, kernels of XNNPACK run what kernels of ours run elsewhere.
bool isCpuOfThePage() {
  return cpu::hasAvx512Vnni() && !std::ranges::contains(cpu::cpuFeatures(), "amx-int8");
}

class OperationsTableTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* data = std::getenv("HEARTH_TEST_DATA");
    if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
    static const auto made = operationsTable(data);
    ASSERT_TRUE(made) << made.error().toString();
    made_ = *made;
    page_ = readPage();
    const char* update = std::getenv("HEARTH_UPDATE_DOCS");
    if (update == nullptr || *update != '1') return;
    if (!isCpuOfThePage()) GTEST_SKIP() << kOtherCpu;
    std::ofstream(kPage) << made_;
    GTEST_SKIP() << kPage << " was written.";
  }

  std::string made_;
  std::string page_;
};

TEST_F(OperationsTableTest, ThePageIsUpToDate) {
  if (!isCpuOfThePage()) GTEST_SKIP() << kOtherCpu;
  EXPECT_EQ(page_, made_) << "HEARTH_UPDATE_DOCS=1 writes " << kPage << " anew.";
}

// Holds on any CPU: CPUs differ in kernels, but not in the operations and types that they run.
TEST_F(OperationsTableTest, EveryOperationStandsOnThePageInItsTypes) {
  const auto onPage = typesByOperation(page_);
  const auto made = typesByOperation(made_);
  EXPECT_EQ(onPage.size(), made.size());
  EXPECT_EQ(made.size(), ops::allOperations().size());
  size_t tried = 0;
  for (const auto& [name, types] : made) {
    EXPECT_TRUE(onPage.contains(name) && onPage.at(name) == types)
        << "The row of " << name << " needs the types " << testing::PrintToString(types) << ".";
    tried += !types.empty();
  }
  EXPECT_GT(tried, made.size() * 3 / 4) << "Too few operations are in the models.";
}

TEST_F(OperationsTableTest, EveryOperationOfTheFrontEndStandsOnThePage) {
  const std::string made = tflitePart(made_);
  EXPECT_GT(split(made, "\n").size(), 100u);
  EXPECT_EQ(tflitePart(page_), made);
}

}  // namespace
}  // namespace hearth::conformance
