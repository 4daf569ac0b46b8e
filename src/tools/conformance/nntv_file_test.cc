// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/nntv_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tools/conformance/case_model.h"

namespace hearth::conformance {
namespace {

// Writes a file as FORMAT describes it.
class NntvWriter {
 public:
  template <typename T>
  NntvWriter& put(T value) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
    return *this;
  }
  NntvWriter& text(const std::string& value) {
    put(static_cast<uint32_t>(value.size()));
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    return *this;
  }
  NntvWriter& list(const std::vector<uint32_t>& values) {
    put(static_cast<uint32_t>(values.size()));
    for (uint32_t value : values) put(value);
    return *this;
  }
  void patch64(size_t offset, uint64_t value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(value));
  }
  size_t size() const { return bytes_.size(); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

void writeOperand(NntvWriter& writer, uint8_t lifetime, uint64_t blob) {
  writer.text("operand").put(int32_t{5}).put(lifetime).put(uint8_t{4}).list({4});
  writer.put(0.5f).put(int32_t{128}).put(uint32_t{1}).put(int32_t{-1});
  writer.put(blob).put(uint64_t{4});
}

// One case: RELU of a QUANT8_ASYMM[4] whose input and output are [1, 2, 254, 255].
std::vector<uint8_t> fileOfOneCase() {
  NntvWriter writer;
  writer.put(std::array<char, 8>{'N', 'N', 'T', 'V', 'E', 'C', '0', '1'}).put(uint64_t{1});
  for (int i = 0; i < 6; ++i) writer.put(uint64_t{0});
  const uint64_t blob = writer.size();
  writer.put(std::array<uint8_t, 4>{1, 2, 254, 255});
  const uint64_t record = writer.size();
  writer.text("name").text("relu").text("V1_0").put(uint32_t{1}).text("variation");
  writer.put(uint32_t{0}).put(uint32_t{0x01010101}).put(uint32_t{kQuantCoupling}).put(0.0f);
  for (int i = 0; i < 18; ++i) writer.put(static_cast<float>(i));
  writer.put(uint32_t{1}).text("main").put(uint32_t{2});
  writeOperand(writer, 1, blob);
  writeOperand(writer, 2, blob);
  writer.put(uint32_t{1}).put(int32_t{19}).text("").list({0}).list({1});
  writer.list({0}).list({1});
  const uint64_t index = writer.size();
  writer.put(record);
  writer.patch64(16, index);
  return writer.bytes();
}

Result<NntvFile> parse(const std::vector<uint8_t>& bytes) {
  return NntvFile::parse(memory::Pool::borrowed(bytes.data(), bytes.size()));
}

Result<Case> firstCaseOf(const std::vector<uint8_t>& bytes) {
  HEARTH_ASSIGN(const NntvFile file, parse(bytes));
  return file.readCase(0);
}

TEST(NntvFile, ReadsACase) {
  const std::vector<uint8_t> bytes = fileOfOneCase();
  const auto file = parse(bytes);
  ASSERT_TRUE(file) << file.error().toString();
  ASSERT_EQ(file->caseCount(), 1u);
  const auto testCase = file->readCase(0);
  ASSERT_TRUE(testCase) << testCase.error().toString();
  EXPECT_EQ(testCase->name, "name");
  EXPECT_EQ(testCase->spec, "relu");
  EXPECT_EQ(testCase->flags, kQuantCoupling);
  EXPECT_EQ(testCase->tolerances[3].absolute, 6.0f);
  EXPECT_EQ(testCase->tolerances[3].relative, 7.0f);
  const CaseSubgraph& main = testCase->subgraphs[0];
  ASSERT_EQ(main.operands.size(), 2u);
  EXPECT_EQ(main.operands[1].lifetime, graph::Lifetime::kSubgraphOutput);
  EXPECT_EQ(main.operands[1].zeroPoint, 128);
  EXPECT_EQ(main.operands[0].data[2], 254);
  EXPECT_FALSE(file->readCase(1));
}

TEST(NntvFile, SignedVariantMovesValuesAndZeroPoints) {
  const std::vector<uint8_t> bytes = fileOfOneCase();
  const auto testCase = firstCaseOf(bytes);
  ASSERT_TRUE(testCase);
  EXPECT_EQ(variantsOf(*testCase), std::vector({Variant::kAsIs, Variant::kSigned}));
  const auto model = buildModel(*testCase, Variant::kSigned);
  ASSERT_TRUE(model) << model.error().toString();
  const graph::Operand& operand = model->model->main().operands[0];
  EXPECT_EQ(operand.type, graph::OperandType::kTensorQuant8AsymmSigned);
  EXPECT_EQ(operand.zeroPoint, 0);
  EXPECT_EQ(model->inputs[0].data, std::vector<uint8_t>({0x81, 0x82, 126, 127}));
}

TEST(NntvFile, DynamicVariantForgetsOutputDimensionsOnly) {
  const std::vector<uint8_t> bytes = fileOfOneCase();
  const auto testCase = firstCaseOf(bytes);
  ASSERT_TRUE(testCase);
  const auto model = buildModel(*testCase, Variant::kDynamicOutputShape);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->model->main().operands[0].dimensions, graph::Dimensions({4}));
  EXPECT_EQ(model->model->main().operands[1].dimensions, graph::Dimensions({0}));
  EXPECT_EQ(model->outputs[0].dimensions, graph::Dimensions({4}));
}

TEST(NntvFile, EveryTruncationIsAnErrorOrHarmless) {
  const std::vector<uint8_t> bytes = fileOfOneCase();
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A copy of exactly that size, so that a sanitizer sees a read past its end.
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<long>(size));
    const auto file = parse(cut);
    EXPECT_FALSE(file) << size << ": the index is at the end";
  }
}

TEST(NntvFile, DamagedBytesAreAnErrorOrHarmless) {
  const std::vector<uint8_t> good = fileOfOneCase();
  std::mt19937 random(1);
  size_t readable = 0;
  for (size_t round = 0; round < 20'000; ++round) {
    std::vector<uint8_t> bytes = good;
    for (int i = 0; i < 3; ++i)
      bytes[random() % bytes.size()] = random() % 3 == 0 ? 0xff : static_cast<uint8_t>(random());
    const auto file = parse(bytes);
    if (!file || file->caseCount() == 0) continue;
    const auto testCase = file->readCase(0);
    if (!testCase) continue;
    ++readable;
    for (Variant variant : variantsOf(*testCase)) {
      const auto model = buildModel(*testCase, variant);
      if (model) (void)graph::validate(*model->model);
    }
  }
  EXPECT_GT(readable, 0u);
}

}  // namespace
}  // namespace hearth::conformance
