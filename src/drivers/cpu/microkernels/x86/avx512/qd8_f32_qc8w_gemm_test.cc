// SPDX-License-Identifier: Apache-2.0
// The products over XNNPACK's panels and over those for AVX2 give the very numbers of XNNPACK.
#include "drivers/cpu/microkernels/x86/avx512/qd8_f32_qc8w_gemm.h"

#include <gtest/gtest.h>
#include <hearth_xnnpack.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_gemm.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_qd8_row.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_strassen.h"
#include "drivers/cpu/microkernels/x86/f32_gemm.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "drivers/cpu/platform/kernel_traits.h"
#include "drivers/cpu/testing/reference_comparison.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "drivers/cpu/weights/xnnpack_panels.h"

namespace hearth::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Shape {
  size_t rows, inputs, columns;
  float lowest = -kInfinity, highest = kInfinity;
};

class Qd8GemmTest : public testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    if (!hasQd8Gemm() && !hasAvx2()) GTEST_SKIP() << "this CPU or XNNPACK does without";
    ASSERT_TRUE(initializeXnnpack());
  }
};

TEST_P(Qd8GemmTest, EqualsXnnpack) {
  const Shape shape = GetParam();
  std::mt19937 random(11);
  std::vector<int8_t> weights(shape.columns * shape.inputs + XNN_EXTRA_BYTES);
  for (int8_t& weight : weights) weight = static_cast<int8_t>(random() % 255 - 127);
  std::vector<float> scales = randomFloats(shape.columns + XNN_EXTRA_QUANTIZATION_PARAMS, 1);
  for (float& scale : scales) scale = 0.01f + 0.001f * std::fabs(scale);
  const std::vector<float> biases = randomFloats(shape.columns, 2);
  std::vector<int8_t> rows(shape.rows * shape.inputs + XNN_EXTRA_BYTES);
  for (int8_t& number : rows) number = static_cast<int8_t>(random());
  std::vector<struct xnn_quantization_params> parameters(shape.rows +
                                                         XNN_EXTRA_QUANTIZATION_PARAMS);
  for (auto& one : parameters) {
    one.zero_point = static_cast<int32_t>(random() % 256) - 128;
    one.scale = 0.001f * static_cast<float>(1 + random() % 50);
  }
  // XNNPACK computes the last row several times, with the parameters after its own.
  std::fill(parameters.begin() + static_cast<ptrdiff_t>(shape.rows), parameters.end(),
            parameters[shape.rows - 1]);

  PackedWeights packed(true);
  const WeightPlace place;
  xnn_operator_t made = nullptr;
  ASSERT_EQ(packed.create(place, "FULLY_CONNECTED", nullptr,
                          [&] {
                            return xnn_create_fully_connected_nc_qd8_f32_qc8w(
                                shape.inputs, shape.columns, shape.inputs, shape.columns,
                                scales.data(), weights.data(), biases.data(), shape.lowest,
                                shape.highest, 0, nullptr, packed.provider(), &made);
                          }),
            xnn_status_success);
  const XnnOperator op(made);
  // Bytes after the columns of a row must stay unchanged.
  const size_t stride = shape.columns + 3;
  std::vector<float> expected(shape.rows * shape.columns);
  ASSERT_EQ(xnn_reshape_fully_connected_nc_qd8_f32_qc8w(made, shape.rows, nullptr),
            xnn_status_success);
  ASSERT_EQ(xnn_setup_fully_connected_nc_qd8_f32_qc8w(made, rows.data(), expected.data(),
                                                      parameters.data()),
            xnn_status_success);
  ASSERT_EQ(xnn_run_operator(made, nullptr), xnn_status_success);

  // `multiply` computes panels [first, last) into rows of `stride` elements.
  const auto compare = [&](size_t panels, const auto& multiply) {
    std::vector<float> output(shape.rows * stride, 77.0f);
    const size_t middle = panels / 2;
    multiply(size_t{0}, middle, output.data());
    multiply(middle, panels, output.data());
    for (size_t row = 0; row < shape.rows; ++row) {
      for (size_t column = 0; column < shape.columns; ++column)
        ASSERT_EQ(output[row * stride + column], expected[row * shape.columns + column])
            << row << " " << column;
      for (size_t column = shape.columns; column < stride; ++column)
        ASSERT_EQ(output[row * stride + column], 77.0f);
    }
  };
  const auto describe = [&](auto& product) {
    product.packed = packed.bytesOf(place).data();
    product.inputs = shape.inputs;
    product.columns = shape.columns;
    product.lowest = shape.lowest;
    product.highest = shape.highest;
    product.outputStride = stride;
  };
  if (hasQd8Gemm()) {
    Qd8Gemm product;
    describe(product);
    ASSERT_LE(product.panels() * product.panelBytes(), packed.bytesOf(place).size());
    const size_t rowBytes = qd8RowBytes(shape.inputs);
    std::vector<uint8_t> prepared(shape.rows * rowBytes);
    for (size_t row = 0; row < shape.rows; ++row)
      prepareQd8Row(rows.data() + row * shape.inputs, shape.inputs,
                    prepared.data() + row * rowBytes);
    compare(product.panels(), [&](size_t first, size_t last, float* output) {
      multiplyQd8(product, prepared.data(), parameters.data(), shape.rows, first, last, output);
    });
  }
  if (hasAvx2Qd8Panels()) {
    Avx2Qd8Panels product;
    describe(product);
    ASSERT_LE(product.panels() * product.panelBytes(), packed.bytesOf(place).size());
    std::vector<uint8_t> prepared(strassenRowBytes(product, shape.rows));
    std::vector<uint8_t> scratch(strassenScratch(product, shape.rows));
    const size_t steps = strassenSteps(product, shape.rows);
    prepareStrassenRows(product, rows.data(), shape.rows, steps / 3, steps, prepared.data());
    prepareStrassenRows(product, rows.data(), shape.rows, 0, steps / 3, prepared.data());
    compare(strassenBlocks(product), [&](size_t first, size_t last, float* output) {
      multiplyStrassen(product, prepared.data(), parameters.data(), shape.rows, first, last,
                       scratch.data(), output);
    });
    std::vector<int16_t> widened(qd8RowNumbers(product));
    compare(product.panels(), [&](size_t first, size_t last, float* output) {
      for (size_t row = 0; row < shape.rows; ++row) {
        widenQd8Row(product, rows.data() + row * shape.inputs, widened.data());
        multiplyQd8Row(product, widened.data(), parameters[row], first, last,
                       output + row * stride);
      }
    });
    std::vector<int16_t> allWidened(shape.rows * qd8RowNumbers(product));
    for (size_t row = 0; row < shape.rows; ++row)
      widenQd8Row(product, rows.data() + row * shape.inputs,
                  allWidened.data() + row * qd8RowNumbers(product));
    compare(product.panels(), [&](size_t first, size_t last, float* output) {
      multiplyQd8Rows(product, allWidened.data(), parameters.data(), shape.rows, first, last,
                      output);
    });
  }
  if (!hasAvx2()) return;
  Avx2Weights forAvx2;
  forAvx2.values = reinterpret_cast<const uint8_t*>(weights.data());
  forAvx2.inputs = shape.inputs;
  forAvx2.columns = shape.columns;
  std::vector<int32_t> negativeSums;
  for (size_t column = 0; column < shape.columns; ++column)
    negativeSums.push_back(static_cast<int32_t>(0 - forAvx2.sumOf(column)));
  forAvx2.constants = negativeSums.data();
  forAvx2.factors = scales.data();
  forAvx2.biases = biases.data();
  for (const Avx2Form form : {Avx2Form::kQuads, Avx2Form::kWords, Avx2Form::kDots}) {
    SCOPED_TRACE(static_cast<uint32_t>(form));
    const Avx2Packer packer(forAvx2, form);
    std::vector<uint8_t> bytes(packer.bytes());
    packer.pack(bytes.data());
    auto panels = Avx2Panels::read(bytes, shape.inputs, shape.columns);
    ASSERT_TRUE(panels);
    Avx2HybridGemm product;
    product.weights = *panels;
    product.lowest = shape.lowest;
    product.highest = shape.highest;
    product.outputStride = stride;
    std::vector<uint8_t> prepared(shape.rows * avx2RowBytes(form, shape.inputs) + kAvx2ReadSlack);
    prepareAvx2Rows(form, reinterpret_cast<const uint8_t*>(rows.data()), shape.inputs, shape.rows,
                    shape.inputs, 0x80, prepared.data());
    compare(product.panels(), [&](size_t first, size_t last, float* output) {
      multiplyAvx2Hybrid(product, prepared.data(), parameters.data(), shape.rows, first, last,
                         output);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Qd8GemmTest,
    testing::Values(Shape{1, 8, 16}, Shape{1, 1, 17}, Shape{2, 7, 16}, Shape{3, 9, 47},
                    Shape{4, 64, 33}, Shape{5, 65, 100}, Shape{6, 63, 16}, Shape{7, 100, 31},
                    Shape{8, 128, 48}, Shape{9, 33, 19}, Shape{10, 40, 64}, Shape{11, 17, 21},
                    Shape{12, 300, 50}, Shape{13, 31, 18}, Shape{25, 96, 40}, Shape{128, 72, 160},
                    Shape{14, 50, 35, -1.0f, 2.0f}, Shape{1, 4096, 80, 0.0f},
                    // Sums that are kept between parts, and more rows than fit there.
                    Shape{2, 2049, 16}, Shape{30, 4100, 40}, Shape{13, 6144, 24},
                    Shape{200, 2060, 33},
                    // Blocks of all sizes.
                    Shape{17, 200, 130}, Shape{100, 2304, 256}, Shape{128, 4096, 65, -2.0f}));

#if defined(__x86_64__)
// Where XNNPACK has no kernels for matrix instructions, it packs as the products read.
TEST(PackedPanelsTest, AreThoseOfTheProducts) {
  if (__builtin_cpu_supports("amx-int8")) GTEST_SKIP() << "XNNPACK packs for AMX.";
  // For AMD's first Zen processors it packs float32 in groups of four inputs.
  EXPECT_EQ(hasF32Gemm(), cpuHasF32Gemm() && !__builtin_cpu_is("znver1"));
  EXPECT_EQ(hasQs8Gemm(), hasAvx512Vnni());
  EXPECT_EQ(hasQd8Gemm(), cpuHasQd8Gemm());
}
#endif

}  // namespace
}  // namespace hearth::cpu
