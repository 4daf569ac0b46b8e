// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/portable/int4_tile.h"

#include <gtest/gtest.h>
#include <hearth_xnnpack.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ops/half.h"
#include "ops/int4.h"

namespace hearth::cpu {
namespace {

struct NamedTiles {
  std::string name;
  const Int4Tiles* tiles;
};

// The kernels that this CPU runs.
std::vector<NamedTiles> kernelsOfThisCpu() {
  std::vector<NamedTiles> found;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("f16c") && __builtin_cpu_supports("fma")) {
    if (__builtin_cpu_supports("avx2")) found.push_back({"AVX2", &kAvx2Int4Tiles});
    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      found.push_back({"VNNI", &kVnniInt4Tiles});
  }
#elif defined(__aarch64__)
  found.push_back({"NEON", &kNeonInt4Tiles});
  if ((::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0)
    found.push_back({"dot product", &kNeonDotInt4Tiles});
#endif
  return found;
}

enum class Scales { kFloat, kHalf, kChannel };

struct Case {
  Scales scales;
  size_t inputs, columns, blockSize;
  bool isExtreme = false;  // numbers and weights are the smallest and largest ones only
};

// A layer of random numbers.
class Layer {
 public:
  Layer(const Case& c, size_t rows) : rows_(rows) {
    product_.inputs = c.inputs;
    product_.columns = c.columns;
    product_.blockSize = c.blockSize;
    product_.areScalesHalf = c.scales == Scales::kHalf;
    product_.areSumsWhole = c.scales == Scales::kChannel;
    product_.lowest = -40.0F;
    product_.highest = std::numeric_limits<float>::infinity();
    product_.outputStride = c.columns + 3;
    std::mt19937 random(static_cast<uint32_t>(c.inputs + rows));
    const auto one = [&](auto... choices) {
      const int all[] = {choices...};
      return all[random() % sizeof...(choices)];
    };
    weights_.resize(c.inputs * c.columns / 2);
    for (auto& pair : weights_)
      pair = static_cast<uint8_t>(c.isExtreme ? one(0x88, 0x77, 0x87, 0x78) : random());
    numbers_.resize(rows * c.inputs);
    for (auto& number : numbers_)
      number = static_cast<int8_t>(c.isExtreme ? one(-128, -128, 127) : random());
    for (size_t i = 0; i < c.columns * product_.blocks(); ++i) {
      scales_.push_back(0.001F * static_cast<float>(1 + random() % 100));
      halfScales_.push_back(static_cast<ops::Half>(scales_.back()));
      if (product_.areScalesHalf) scales_.back() = static_cast<float>(halfScales_.back());
    }
    for (size_t i = 0; i < c.columns; ++i)
      biases_.push_back(0.1F * static_cast<float>(random() % 100));
    for (size_t i = 0; i < rows; ++i)
      parameters_.push_back({.zero_point = static_cast<int32_t>(random() % 256) - 128,
                             .scale = 0.01F * static_cast<float>(1 + random() % 10)});
    packed_.resize(product_.panels() * product_.panelBytes());
    const void* const given =
        product_.areScalesHalf ? static_cast<const void*>(halfScales_.data()) : scales_.data();
    packInt4(product_, weights_.data(), given, biases_.data(), packed_.data());
    product_.packed = packed_.data();
    prepared_.resize(rows * int4RowBytes(product_));
    for (size_t r = 0; r < rows; ++r)
      prepareInt4Row(product_, numbers_.data() + r * c.inputs,
                     prepared_.data() + r * int4RowBytes(product_));
  }

  // The results of all columns by one kernel, with what lies between rows.
  std::vector<float> multiply(const Int4Tiles& tiles) const {
    const auto& functions = product_.areSumsWhole    ? tiles.wholeSums
                            : product_.areScalesHalf ? tiles.halfScales
                                                     : tiles.floatScales;
    std::vector<float> output(rows_ * product_.outputStride, kUntouched);
    for (size_t panel = 0; panel < product_.panels(); ++panel) {
      Int4Tile tile;
      tile.rows = prepared_.data();
      tile.parameters = parameters_.data();
      tile.panel = packed_.data() + panel * product_.panelBytes();
      tile.ahead = tile.panel;
      tile.columns = product_.columns - panel * kInt4Columns;
      tile.output = output.data() + panel * kInt4Columns;
      functions[rows_ - 1](product_, tile);
    }
    return output;
  }

  // The same by definition: sums of blocks are exact, and each step rounds once.
  std::vector<float> expected() const {
    std::vector<float> output(rows_ * product_.outputStride, kUntouched);
    for (size_t r = 0; r < rows_; ++r)
      for (size_t column = 0; column < product_.columns; ++column)
        output[r * product_.outputStride + column] =
            std::fmin(product_.highest, std::fmax(product_.lowest, value(r, column)));
    return output;
  }

 private:
  static constexpr float kUntouched = -1234.0F;

  float value(size_t row, size_t column) const {
    const auto& [zeroPoint, rowScale] = parameters_[row];
    float sum = 0.0F;
    double weightSum = 0.0;
    int32_t dot = 0;
    int32_t wholeSum = 0;
    for (size_t b = 0; b < product_.blocks(); ++b) {
      const float scale = scales_[column * product_.blocks() + b];
      dot = wholeSum = 0;
      for (size_t i = b * product_.blockSize; i < (b + 1) * product_.blockSize; ++i) {
        const int32_t weight = ops::int4At(weights_.data(), column * product_.inputs + i);
        dot += numbers_[row * product_.inputs + i] * weight;
        wholeSum += weight;
      }
      sum = std::fma(static_cast<float>(dot), scale, sum);
      weightSum += static_cast<double>(scale) * wholeSum;
    }
    if (product_.areSumsWhole)
      return std::fma(static_cast<float>(dot - zeroPoint * wholeSum) * rowScale, scales_[column],
                      biases_[column]);
    sum = std::fma(-static_cast<float>(zeroPoint), static_cast<float>(weightSum), sum);
    return std::fma(sum, rowScale, biases_[column]);
  }

  size_t rows_;
  Qb4Gemm product_;
  std::vector<uint8_t> weights_;
  std::vector<int8_t> numbers_;
  std::vector<float> scales_;
  std::vector<ops::Half> halfScales_;
  std::vector<float> biases_;
  std::vector<xnn_quantization_params> parameters_;
  std::vector<uint8_t> packed_;
  std::vector<uint8_t> prepared_;
};

class Int4TilesTest : public testing::TestWithParam<Case> {};

// So all CPUs give the same results, whichever instructions they have.
TEST_P(Int4TilesTest, EachKernelRoundsAsDefined) {
  const std::vector<NamedTiles> kernels = kernelsOfThisCpu();
  if (kernels.empty()) GTEST_SKIP() << "This CPU has no such kernel.";
  for (const auto& [name, tiles] : kernels)
    for (size_t rows = 1; rows <= tiles->mostRows; ++rows) {
      const Layer layer(GetParam(), rows);
      EXPECT_EQ(layer.multiply(*tiles), layer.expected()) << name << ", rows: " << rows;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Int4TilesTest,
    testing::Values(Case{Scales::kFloat, 8, 16, 8}, Case{Scales::kFloat, 64, 5, 32},
                    Case{Scales::kFloat, 96, 33, 24}, Case{Scales::kFloat, 480, 17, 40},
                    Case{Scales::kFloat, 1024, 16, 256}, Case{Scales::kHalf, 8, 1, 8},
                    Case{Scales::kHalf, 256, 40, 32}, Case{Scales::kHalf, 144, 16, 72},
                    Case{Scales::kChannel, 8, 16, 8}, Case{Scales::kChannel, 200, 19, 200},
                    Case{Scales::kChannel, 2048, 32, 2048}, Case{Scales::kFloat, 512, 16, 32, true},
                    Case{Scales::kHalf, 512, 16, 128, true},
                    Case{Scales::kChannel, 4096, 16, 4096, true}));

}  // namespace
}  // namespace hearth::cpu
