// SPDX-License-Identifier: Apache-2.0
// Runs every golden case on every built-in device, through the public API. The golden outputs are
// those of LiteRT's XNNPACK kernels and of its reference kernels, which differ. Integer kernels
// leave no room for differences: unless stated otherwise, the bytes must equal those of the first.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/hearth.hpp"
#include "tools/media/elements.h"
#include "tools/media/file.h"
#include "tools/media/npy.h"

namespace hearth {
namespace {

using Numbers = std::vector<double>;

enum class Rule {
  kBytes,  // those of LiteRT's XNNPACK kernels
  // The largest difference from the nearer of the two is at most 1.5 times the difference between
  // them plus 1.5 quantisation steps (floats: plus 1e-4 of the largest value).
  kValues,
  kScores,    // kValues, the same first class, and a correlation of at least 0.97
  kClassMap,  // no more pixels differ from the nearer of both than differ between them
};

struct Case {
  const char* model;
  const char* folder;  // below the model's, "" for the main case
  Rule onCpu = Rule::kBytes;
  Rule onReference = Rule::kBytes;
};

constexpr Case kCases[] = {
    {"mobilenet_v1_0.25_128_quant", ""},
    {"mobilenet_v1_0.25_128_quant", "alt_bird"},
    {"mobilenet_v1_0.75_192_quant", ""},
    {"mobilenet_v1_0.75_192_quant", "alt_owl"},
    // LiteRT's kernels differ by up to 18 steps from each other, and the reference as much from
    // them.
    {"mobilenet_v2_quantized_1x3x224x224", "", Rule::kBytes, Rule::kScores},
    {"mobilenet_v2_quantized_1x3x224x224", "alt_bird", Rule::kBytes, Rule::kScores},
    // All kinds of kernels disagree about some pixels at the edges of objects.
    {"deeplabv3_mnv2_pascal_quant", "", Rule::kClassMap, Rule::kClassMap},
    {"person_detect", ""},
    {"person_detect", "alt_no_person"},
    {"micro_speech_quantized", ""},
    {"micro_speech_quantized", "alt_no"},
    {"dtln_noise_suppression", ""},
    {"keras_lstm_mnist_ptq", ""},
    {"split_concat", ""},
};

std::optional<Numbers> readNumbers(const std::string& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const auto bytes = tools::readFile(path);
  if (!bytes) return std::nullopt;
  const auto array = tools::parseNpy(*bytes);
  EXPECT_TRUE(array) << path;
  if (!array) return std::nullopt;
  return tools::toNumbers(*array);
}

double largestDifference(const Numbers& a, const Numbers& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    EXPECT_TRUE(std::isfinite(a[i]));
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

size_t differingElements(const Numbers& a, const Numbers& b) {
  size_t differing = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) differing += a[i] != b[i];
  return differing;
}

ptrdiff_t best(const Numbers& values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

double correlation(const Numbers& a, const Numbers& b) {
  const auto mean = [](const Numbers& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  const double meanA = mean(a);
  const double meanB = mean(b);
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - meanA) * (b[i] - meanB);
    aa += (a[i] - meanA) * (a[i] - meanA);
    bb += (b[i] - meanB) * (b[i] - meanB);
  }
  return ab / std::sqrt(aa * bb);
}

void expectGolden(Rule rule, hearth_type type, const Numbers& got, const Numbers& reference,
                  const std::optional<Numbers>& xnnpack) {
  // Cases without a file of XNNPACK's outputs use those of the reference.
  const Numbers& other = xnnpack ? *xnnpack : reference;
  ASSERT_EQ(got.size(), reference.size());
  ASSERT_EQ(got.size(), other.size());
  switch (rule) {
    case Rule::kBytes:
      EXPECT_EQ(differingElements(got, other), 0u)
          << "of " << got.size() << ", by up to " << largestDifference(got, other);
      break;
    case Rule::kScores:
      EXPECT_EQ(best(got), best(reference));
      EXPECT_GE(std::max(correlation(got, reference), correlation(got, other)), 0.97);
      [[fallthrough]];
    case Rule::kValues: {
      double allowance = 1.5;
      if (type == HEARTH_TYPE_FLOAT32) {
        allowance = 0;
        for (const double value : reference) allowance = std::max(allowance, std::abs(value));
        allowance *= 1e-4;
      }
      EXPECT_LE(std::min(largestDifference(got, reference), largestDifference(got, other)),
                1.5 * largestDifference(reference, other) + allowance);
      break;
    }
    case Rule::kClassMap:
      EXPECT_LE(std::min(differingElements(got, reference), differingElements(got, other)),
                differingElements(reference, other));
      break;
  }
}

class GoldenTest : public testing::TestWithParam<std::tuple<Case, const char*>> {
 protected:
  void SetUp() override {
    const char* data = std::getenv("HEARTH_TEST_DATA");
    if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
    data_ = std::string(data) + "/data";
  }

  // Runs once more and returns all outputs.
  std::vector<Numbers> run(Execution& execution) {
    for (tools::TensorBytes& output : outputs_) std::fill(output.begin(), output.end(), 0xAA);
    execution.run();
    std::vector<Numbers> results;
    for (size_t i = 0; i < outputs_.size(); ++i)
      results.push_back(tools::toNumbers({infos_[i].type, {outputs_[i].size()}, outputs_[i]}));
    return results;
  }

  std::string data_;
  std::vector<TensorInfo> infos_;
  std::vector<tools::TensorBytes> outputs_;
};

TEST_P(GoldenTest, GivesWhatLiteRtGives) {
  const auto& [golden, device] = GetParam();
  const std::string folder = data_ + "/golden/" + golden.model + "/" + golden.folder + "/";
  CompileOptions options;
  options.device = device;
  const Compilation compilation =
      Model(data_ + "/models/" + golden.model + ".tflite").compile(options);
  EXPECT_EQ(compilation.device(), device);
  Execution execution = compilation.createExecution();

  const std::vector<TensorInfo> inputInfos = compilation.inputs();
  std::vector<tools::TensorBytes> inputs;
  for (size_t i = 0; i < inputInfos.size(); ++i) {
    const auto bytes = tools::readFile(folder + "input_" + std::to_string(i) + ".npy");
    ASSERT_TRUE(bytes) << bytes.error().toString();
    const auto array = tools::parseNpy(*bytes);
    ASSERT_TRUE(array) << array.error().toString();
    EXPECT_EQ(array->type, inputInfos[i].type);
    inputs.push_back(array->bytes);
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    execution.setInput(i, inputs[i].data(), inputs[i].size());
  infos_ = compilation.outputs();
  for (const TensorInfo& info : infos_) {
    ASSERT_GT(info.byteSize, 0u);
    outputs_.emplace_back(info.byteSize);
  }
  for (size_t i = 0; i < outputs_.size(); ++i)
    execution.setOutput(i, outputs_[i].data(), outputs_[i].size());

  const bool isReference = std::string_view(device) == "nnapi-reference";
  const Rule rule = isReference ? golden.onReference : golden.onCpu;
  const std::vector<Numbers> first = run(execution);
  const std::vector<Numbers> second = run(execution);
  for (size_t i = 0; i < first.size(); ++i) {
    SCOPED_TRACE("output " + std::to_string(i));
    const std::string stem = folder + "output_" + std::to_string(i);
    const std::optional<Numbers> reference = readNumbers(stem + ".npy");
    ASSERT_TRUE(reference);
    expectGolden(rule, infos_[i].type, first[i], *reference, readNumbers(stem + ".xnnpack.npy"));
    // State tensors change the second run; without any, it repeats the first.
    const std::optional<Numbers> step2 = readNumbers(stem + ".step2.npy");
    if (step2)
      expectGolden(rule, infos_[i].type, second[i], *step2, std::nullopt);
    else
      EXPECT_EQ(second[i], first[i]);
  }
  execution.resetState();
  EXPECT_EQ(run(execution), first);
}

std::string nameOf(const testing::TestParamInfo<GoldenTest::ParamType>& info) {
  const auto& [golden, device] = info.param;
  std::string name = std::string(golden.model) + "_" + golden.folder + "_" + device;
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest,
                         testing::Combine(testing::ValuesIn(kCases),
                                          testing::Values("hearth-cpu", "nnapi-reference")),
                         nameOf);

}  // namespace
}  // namespace hearth
