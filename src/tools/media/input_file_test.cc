// SPDX-License-Identifier: Apache-2.0
#include "tools/media/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tools/media/elements.h"
#include "tools/media/file.h"
#include "tools/media/npy.h"

namespace hearth::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class InputFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hearth_input_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string put(const std::string& name, const std::vector<uint8_t>& bytes) {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(writeFile(path, bytes));
    return path;
  }
  static TensorInfo tensor(hearth_type type, std::vector<uint32_t> dimensions, float scale = 0) {
    TensorInfo info;
    info.name = "samples";
    info.type = type;
    info.scale = scale;
    info.byteSize = typeSize(type);
    for (const uint32_t dimension : dimensions) info.byteSize *= dimension;
    info.dimensions = std::move(dimensions);
    return info;
  }
  static std::string errorOf(const std::string& path, const TensorInfo& info) {
    const auto value = readInputFile(path, info, std::nullopt);
    return value ? "" : value.error().toString();
  }

  std::string folder_;
};

TEST_F(InputFileTest, ChecksArraysAgainstTheTensor) {
  const std::string path = put("a.npy", formatNpy({HEARTH_TYPE_UINT8, {1, 2}, {7, 8}}));
  const auto value = readInputFile(path, tensor(HEARTH_TYPE_UINT8, {1, 2}), std::nullopt);
  ASSERT_TRUE(value) << value.error().toString();
  EXPECT_EQ(value->array.bytes, (TensorBytes{7, 8}));
  EXPECT_TRUE(readInputFile(path, tensor(HEARTH_TYPE_UINT8, {1, 0}), std::nullopt));
  EXPECT_THAT(errorOf(path, tensor(HEARTH_TYPE_UINT8, {2, 1})),
              AllOf(HasSubstr("[1,2]"), HasSubstr("[2,1]"), HasSubstr(path)));
  EXPECT_THAT(errorOf(path, tensor(HEARTH_TYPE_INT8, {1, 2})),
              AllOf(HasSubstr("uint8"), HasSubstr("int8")));
}

TEST_F(InputFileTest, RawFilesHaveExactlyTheSize) {
  const std::string path = put("a.bin", {1, 2, 3, 4});
  EXPECT_TRUE(readInputFile(path, tensor(HEARTH_TYPE_FLOAT32, {1}), std::nullopt));
  EXPECT_THAT(errorOf(path, tensor(HEARTH_TYPE_FLOAT32, {2})),
              AllOf(HasSubstr("4 bytes"), HasSubstr("exactly 8")));
}

TEST_F(InputFileTest, RefusesPathsThatAreNoFiles) {
  EXPECT_THAT(errorOf(folder_ + "/none.npy", tensor(HEARTH_TYPE_UINT8, {1})),
              HasSubstr("none.npy"));
  EXPECT_THAT(errorOf(folder_, tensor(HEARTH_TYPE_UINT8, {1})), HasSubstr("regular file"));
  const std::string pipe = folder_ + "/pipe.npy";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(errorOf(pipe, tensor(HEARTH_TYPE_UINT8, {1})), HasSubstr("regular file"));
  const std::string picture = put("a.png", {1, 2, 3});
  EXPECT_THAT(errorOf(picture, tensor(HEARTH_TYPE_UINT8, {1, 4, 4, 3})), HasSubstr("picture"));
}

TEST_F(InputFileTest, SoundIsScaledAndCut) {
  std::vector<uint8_t> wav = {'R',  'I',  'F', 'F', 0,  0,    0, 0, 'W', 'A',  'V', 'E',
                              'f',  'm',  't', ' ', 16, 0,    0, 0, 1,   0,    1,   0,
                              0x80, 0x3E, 0,   0,   0,  0x7D, 0, 0, 2,   0,    16,  0,
                              'd',  'a',  't', 'a', 4,  0,    0, 0, 0,   0x40, 0,   0x80};
  const std::string path = put("a.wav", wav);
  const auto real = readInputFile(path, tensor(HEARTH_TYPE_FLOAT32, {3}), std::nullopt);
  ASSERT_TRUE(real) << real.error().toString();
  EXPECT_EQ(toNumbers(real->array), (std::vector<double>{0.5, -1.0, 0.0}));
  const auto whole = readInputFile(path, tensor(HEARTH_TYPE_INT16, {1, 1}), std::nullopt);
  ASSERT_TRUE(whole);
  EXPECT_EQ(toNumbers(whole->array), (std::vector<double>{16384}));
  EXPECT_FALSE(readInputFile(path, tensor(HEARTH_TYPE_INT8, {2}), std::nullopt));
  EXPECT_FALSE(readInputFile(path, tensor(HEARTH_TYPE_INT16, {2, 2}), std::nullopt));
}

TEST_F(InputFileTest, RandomValuesStayInTheirRange) {
  const auto real = randomInput(tensor(HEARTH_TYPE_FLOAT32, {1000}), 1, 0);
  ASSERT_TRUE(real);
  const std::vector<double> values = toNumbers(*real);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, -1.0);
  EXPECT_LT(*high, 1.0);
  EXPECT_LT(*low, -0.9);
  EXPECT_GT(*high, 0.9);

  const std::vector<double> quantized =
      toNumbers(*randomInput(tensor(HEARTH_TYPE_INT8, {5000}, 0.1f), 1, 0));
  EXPECT_EQ(*std::min_element(quantized.begin(), quantized.end()), -128);
  EXPECT_EQ(*std::max_element(quantized.begin(), quantized.end()), 127);

  for (const hearth_type type :
       {HEARTH_TYPE_INT32, HEARTH_TYPE_INT64, HEARTH_TYPE_BOOL, HEARTH_TYPE_UINT8}) {
    for (const double value : toNumbers(*randomInput(tensor(type, {100}), 1, 0)))
      EXPECT_TRUE(value == 0 || value == 1);
  }
  const TensorInfo info = tensor(HEARTH_TYPE_UINT8, {64}, 0.1f);
  EXPECT_EQ(randomInput(info, 1, 0)->bytes, randomInput(info, 1, 0)->bytes);
  EXPECT_NE(randomInput(info, 1, 0)->bytes, randomInput(info, 2, 0)->bytes);
  EXPECT_NE(randomInput(info, 1, 0)->bytes, randomInput(info, 1, 1)->bytes);
  EXPECT_FALSE(randomInput(tensor(HEARTH_TYPE_UINT8, {1, 0}), 1, 0));
}

TEST_F(InputFileTest, FilesAppearWhole) {
  const std::string path = put("out.bin", {1, 2, 3});
  EXPECT_EQ(*readFile(path), (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_FALSE(writeFile(folder_ + "/none/out.bin", std::vector<uint8_t>{1}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

}  // namespace
}  // namespace hearth::tools
