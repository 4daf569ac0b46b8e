// SPDX-License-Identifier: Apache-2.0
#include "tools/media/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::tools {
namespace {

using ::testing::HasSubstr;

std::vector<uint8_t> npy(const std::string& header, const std::vector<uint8_t>& data,
                         int version = 1) {
  const std::string magic("\x93NUMPY", 6);
  std::vector<uint8_t> file(magic.begin(), magic.end());
  file.push_back(static_cast<uint8_t>(version));
  file.push_back(0);
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    file.push_back(static_cast<uint8_t>(header.size() >> (8 * i)));
  file.insert(file.end(), header.begin(), header.end());
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

std::string errorOf(const std::string& header, size_t dataBytes = 0) {
  const auto result = parseNpy(npy(header, std::vector<uint8_t>(dataBytes)));
  return result ? "" : result.error().message();
}

TEST(NpyTest, ReadsBothVersions) {
  for (int version : {1, 2}) {
    const auto array = parseNpy(npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1), }\n",
                                    {1, 0, 255, 255}, version));
    ASSERT_TRUE(array) << array.error().toString();
    EXPECT_EQ(array->type, HEARTH_TYPE_INT16);
    EXPECT_EQ(array->shape, (std::vector<uint64_t>{2, 1}));
    EXPECT_EQ(array->bytes, (TensorBytes{1, 0, 255, 255}));
  }
}

TEST(NpyTest, WritesWhatItReads) {
  for (const hearth_type type :
       {HEARTH_TYPE_FLOAT32, HEARTH_TYPE_FLOAT16, HEARTH_TYPE_FLOAT64, HEARTH_TYPE_INT8,
        HEARTH_TYPE_UINT8, HEARTH_TYPE_INT16, HEARTH_TYPE_UINT16, HEARTH_TYPE_INT32,
        HEARTH_TYPE_UINT32, HEARTH_TYPE_INT64, HEARTH_TYPE_UINT64, HEARTH_TYPE_BOOL}) {
    for (const std::vector<uint64_t>& shape :
         {std::vector<uint64_t>{}, std::vector<uint64_t>{3}, std::vector<uint64_t>{2, 1, 3}}) {
      uint64_t count = 1;
      for (const uint64_t dimension : shape) count *= dimension;
      const Array array{type, shape, TensorBytes(count * typeSize(type), 1)};
      const std::vector<uint8_t> file = formatNpy(array);
      EXPECT_EQ((file.size() - array.bytes.size()) % 64, 0u);
      const auto back = parseNpy(file);
      ASSERT_TRUE(back) << typeName(type) << back.error().toString();
      EXPECT_EQ(back->type, type);
      EXPECT_EQ(back->shape, shape);
      EXPECT_EQ(back->bytes, array.bytes);
    }
  }
}

TEST(NpyTest, WidensInt4) {
  const auto back = parseNpy(formatNpy({HEARTH_TYPE_INT4, {3}, {0x8F, 0x07}}));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->type, HEARTH_TYPE_INT8);
  EXPECT_EQ(back->bytes, (TensorBytes{0xFF, 0xF8, 0x07}));
}

TEST(NpyTest, RefusesHostileHeaders) {
  const std::string tail = "'fortran_order': False, 'shape': ";
  EXPECT_THAT(errorOf("{'descr': '<f4', " + tail + "(4294967296, 4294967296, 4294967296)}"),
              HasSubstr("too large"));
  EXPECT_THAT(errorOf("{'descr': '<f4', " + tail + "(99999999999999999999,)}"),
              HasSubstr("64 bits"));
  EXPECT_THAT(errorOf("{'descr': '<f4', " + tail + "(1000000000,)}", 4), HasSubstr("needs"));
  EXPECT_THAT(errorOf("{'descr': '<f4', " + tail + "(-1,)}"), HasSubstr("whole number"));
  EXPECT_THAT(errorOf("{'descr': '>f4', " + tail + "(1,)}", 4), HasSubstr("Big-endian"));
  EXPECT_THAT(errorOf("{'descr': '|O', " + tail + "(1,)}", 8), HasSubstr("cannot be read"));
  EXPECT_THAT(errorOf("{'descr': [('a', '<f4')], " + tail + "(1,)}", 4), HasSubstr("Structured"));
  EXPECT_THAT(errorOf("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", 16),
              HasSubstr("Fortran"));
  EXPECT_THAT(errorOf("{'descr': '<f4', 'descr': '<f4', " + tail + "(1,)}", 4),
              HasSubstr("repeated"));
  EXPECT_THAT(errorOf("{'descr': '<f4"), HasSubstr("open quote"));
  EXPECT_THAT(errorOf("{" + std::string(1000, '{')), HasSubstr("quoted"));
  EXPECT_THAT(errorOf("{'descr': '<f4'}"), HasSubstr("lacks"));
  EXPECT_THAT(errorOf(""), HasSubstr("brace"));
}

TEST(NpyTest, RefusesEveryTruncation) {
  const std::vector<uint8_t> file = formatNpy({HEARTH_TYPE_UINT8, {3}, {1, 2, 3}});
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(parseNpy(std::span(file).first(size))) << size;
  EXPECT_TRUE(parseNpy(file));
}

}  // namespace
}  // namespace hearth::tools
