// SPDX-License-Identifier: Apache-2.0
// Operators of the private XNNPACK on our pool give the same bits with and without the tiling hint.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <hearth_xnnpack.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "threads/gemm_hint.h"
#include "threads/thread_pool.h"

namespace hearth::threads {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct OperatorDeleter {
  void operator()(xnn_operator* op) const { xnn_delete_operator(op); }
};
using Operator = std::unique_ptr<xnn_operator, OperatorDeleter>;

template <typename T>
std::vector<T> randomValues(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  // XNNPACK reads a few elements past its inputs.
  std::vector<T> values(count + XNN_EXTRA_BYTES);
  for (T& value : values) {
    const int number = static_cast<int>(random() % 255) - 127;
    value = std::is_floating_point_v<T> ? static_cast<T>(number) / 64 : static_cast<T>(number);
  }
  return values;
}

struct ConvolutionShape {
  size_t batch, height, width;
  uint32_t kernel, stride;
  size_t inputChannels, outputChannels;

  uint32_t padding() const { return kernel / 2; }
  size_t outputHeight() const { return (height + 2 * padding() - kernel) / stride + 1; }
  size_t outputWidth() const { return (width + 2 * padding() - kernel) / stride + 1; }
  size_t outputs() const { return batch * outputHeight() * outputWidth() * outputChannels; }
  size_t inputs() const { return batch * height * width * inputChannels; }
  size_t weights() const { return outputChannels * kernel * kernel * inputChannels; }
  GemmHint hint(size_t bytes) const {
    return {kernel * kernel * inputChannels * bytes + 4, outputChannels, false};
  }
};

pthreadpool_t handleOf(ThreadPool* pool) {
  return pool == nullptr ? nullptr : pool->nativeHandle();
}

void run(xnn_operator_t op, ThreadPool* pool, const GemmHint* hint) {
  GemmHintScope scope(hint == nullptr ? GemmHint{} : *hint);
  EXPECT_EQ(xnn_run_operator(op, handleOf(pool)), xnn_status_success);
}

// Runs a convolution, with the functions of its type, and deletes it.
template <typename Reshape, typename Setup, typename T>
void runConvolution(xnn_operator_t raw, const ConvolutionShape& s, ThreadPool* pool,
                    const GemmHint* hint, Reshape reshape, Setup setup, const T* input, T* output) {
  Operator op(raw);
  size_t workspaceSize = 0, alignment = 0, height = 0, width = 0;
  EXPECT_EQ(reshape(raw, s.batch, s.height, s.width, &workspaceSize, &alignment, &height, &width,
                    handleOf(pool)),
            xnn_status_success);
  EXPECT_EQ(height * width, s.outputHeight() * s.outputWidth());
  std::vector<char> workspace(workspaceSize + 64);
  EXPECT_EQ(setup(raw, workspace.data(), input, output), xnn_status_success);
  run(raw, pool, hint);
}

std::vector<float> convolveF32(const ConvolutionShape& s, ThreadPool* pool, const GemmHint* hint) {
  const auto input = randomValues<float>(s.inputs(), 1);
  const auto weights = randomValues<float>(s.weights(), 2);
  const auto bias = randomValues<float>(s.outputChannels, 3);
  std::vector<float> output(s.outputs(), NAN);
  const uint32_t pad = s.padding();
  xnn_operator_t raw = nullptr;
  EXPECT_EQ(xnn_create_convolution2d_nhwc_f32(
                pad, pad, pad, pad, s.kernel, s.kernel, s.stride, s.stride, 1, 1, 1,
                s.inputChannels, s.outputChannels, s.inputChannels, s.outputChannels,
                weights.data(), bias.data(), -kInfinity, kInfinity, 0, nullptr, nullptr, &raw),
            xnn_status_success);
  runConvolution(raw, s, pool, hint, xnn_reshape_convolution2d_nhwc_f32,
                 xnn_setup_convolution2d_nhwc_f32, input.data(), output.data());
  return output;
}

std::vector<int8_t> convolveQs8(const ConvolutionShape& s, ThreadPool* pool, const GemmHint* hint) {
  const auto input = randomValues<int8_t>(s.inputs(), 4);
  const auto weights = randomValues<int8_t>(s.weights(), 5);
  const std::vector<int32_t> bias(s.outputChannels + 16, 77);
  const std::vector<float> scales(s.outputChannels + 16, 0.00005f);
  // One spare row after the output, which the guard may use.
  std::vector<int8_t> output(s.outputs() + s.outputChannels);
  const uint32_t pad = s.padding();
  xnn_operator_t raw = nullptr;
  EXPECT_EQ(
      xnn_create_convolution2d_nhwc_qs8_qc8w(
          pad, pad, pad, pad, s.kernel, s.kernel, s.stride, s.stride, 1, 1, 1, s.inputChannels,
          s.outputChannels, s.inputChannels, s.outputChannels, 3, 1.0f, scales.data(),
          weights.data(), bias.data(), -5, 1.0f, -128, 127, 0, nullptr, nullptr, &raw),
      xnn_status_success);
  runConvolution(raw, s, pool, hint, xnn_reshape_convolution2d_nhwc_qs8_qc8w,
                 xnn_setup_convolution2d_nhwc_qs8_qc8w, input.data(), output.data());
  output.resize(s.outputs());
  return output;
}

std::vector<float> multiplyF32(size_t rows, size_t inputs, size_t outputs, ThreadPool* pool,
                               const GemmHint* hint) {
  const auto input = randomValues<float>(rows * inputs, 6);
  const auto weights = randomValues<float>(outputs * inputs, 7);
  std::vector<float> output(rows * outputs, NAN);
  xnn_operator_t raw = nullptr;
  EXPECT_EQ(
      xnn_create_fully_connected_nc_f32(inputs, outputs, inputs, outputs, weights.data(), nullptr,
                                        -kInfinity, kInfinity, 0, nullptr, nullptr, &raw),
      xnn_status_success);
  Operator op(raw);
  EXPECT_EQ(xnn_reshape_fully_connected_nc_f32(raw, rows, handleOf(pool)), xnn_status_success);
  EXPECT_EQ(xnn_setup_fully_connected_nc_f32(raw, input.data(), output.data()), xnn_status_success);
  run(raw, pool, hint);
  return output;
}

constexpr ConvolutionShape kShapes[] = {
    {1, 7, 7, 3, 1, 128, 512},   // all rows and several column blocks
    {1, 14, 14, 3, 2, 64, 320},  // a block that is not the last one's size
    {2, 9, 5, 3, 1, 32, 130},    // batch in an outer dimension, odd number of columns
    {1, 7, 7, 1, 1, 96, 192},    // plain product
    {1, 5, 1, 1, 1, 16, 24},     // less than one unit of columns
};

class PrivateXnnpack : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    ASSERT_EQ(xnn_initialize(nullptr), xnn_status_success);
    auto pool = ThreadPool::create(GetParam());
    ASSERT_TRUE(pool) << pool.error().toString();
    pool_ = std::move(*pool);
  }

  // Convolutions without and with a hint, which also names larger columns than there are.
  template <typename Convolve>
  void expectSameInHintedOrder(Convolve convolve, size_t elementSize) {
    for (const ConvolutionShape& shape : kShapes) {
      const auto plain = convolve(shape, nullptr, nullptr);
      GemmHint hint = shape.hint(elementSize);
      EXPECT_EQ(convolve(shape, pool_.get(), nullptr), plain);
      EXPECT_EQ(convolve(shape, pool_.get(), &hint), plain);
      hint.packedBytesPerColumn *= 64;
      EXPECT_EQ(convolve(shape, pool_.get(), &hint), plain);
      EXPECT_EQ(convolve(shape, nullptr, &hint), plain);
    }
  }

  std::unique_ptr<ThreadPool> pool_;
};

TEST_P(PrivateXnnpack, FloatConvolutionIsTheSameInHintedOrder) {
  expectSameInHintedOrder(convolveF32, sizeof(float));
  EXPECT_GT(pool_->counters().calls, 0u);
}

TEST_P(PrivateXnnpack, Int8ConvolutionIsTheSameInHintedOrder) {
  expectSameInHintedOrder(convolveQs8, sizeof(int8_t));
}

TEST_P(PrivateXnnpack, FullyConnectedIsTheSameInHintedOrder) {
  for (const size_t rows : {1, 2, 17, 49}) {
    const GemmHint hint{(200 + 1) * sizeof(float) * 64, 333, false};
    const auto plain = multiplyF32(rows, 200, 333, nullptr, nullptr);
    EXPECT_EQ(multiplyF32(rows, 200, 333, pool_.get(), nullptr), plain);
    EXPECT_EQ(multiplyF32(rows, 200, 333, pool_.get(), &hint), plain);
  }
}

// The guard changes results only where XNNPACK's kernel computes a single last row wrongly; none is
// known to do so with up to 64 input channels.
TEST_P(PrivateXnnpack, GuardedTailComputesTheSameRows) {
  // 41 x 41 rows leave one row after tiles of 2 to 8, 10, 14 and 16 rows.
  for (const ConvolutionShape& shape :
       {ConvolutionShape{1, 41, 41, 3, 1, 16, 130}, ConvolutionShape{3, 41, 41, 3, 1, 8, 24},
        ConvolutionShape{1, 7, 7, 3, 1, 64, 72}}) {
    GemmHint hint = shape.hint(sizeof(int8_t));
    hint.guardOneRowTail = true;
    const auto plain = convolveQs8(shape, nullptr, nullptr);
    EXPECT_EQ(convolveQs8(shape, pool_.get(), &hint), plain);
    hint.packedBytesPerColumn = 0;
    EXPECT_EQ(convolveQs8(shape, pool_.get(), &hint), plain);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, PrivateXnnpack, testing::Values(1, 2, 3));

TEST(PrivateXnnpackLibrary, EverySymbolResolvesToTheCopy) {
  std::ifstream list(HEARTH_XNNPACK_SYMBOLS);
  ASSERT_TRUE(list);
  void* library = dlopen("libhearth_xnnpack.so", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr) << dlerror();
  size_t count = 0;
  for (std::string name; std::getline(list, name); ++count) {
    void* symbol = dlsym(library, name.c_str());
    ASSERT_NE(symbol, nullptr) << name;
    Dl_info info;
    ASSERT_NE(dladdr(symbol, &info), 0) << name;
    EXPECT_NE(std::string(info.dli_fname).find("libhearth_xnnpack.so"), std::string::npos) << name;
  }
  EXPECT_GT(count, 100u);
  EXPECT_EQ(dlsym(library, "xnn_initialize"), nullptr);
  dlclose(library);
}

}  // namespace
}  // namespace hearth::threads
