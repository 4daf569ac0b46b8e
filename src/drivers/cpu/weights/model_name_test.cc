// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/model_name.h"

#include <gtest/gtest.h>

#include "cache/testing/store_test_util.h"

namespace hearth::cpu {
namespace {

TEST(ModelNameTest, IsTheNameOfTheFirstFile) {
  const cache::TempFolder folder;
  graph::Model model;
  EXPECT_EQ(modelName(model), "");
  const std::vector<uint8_t> bytes(100);
  model.pools.push_back(memory::Pool::borrowed(bytes.data(), bytes.size()));
  EXPECT_EQ(modelName(model), "");
  for (const char* const name : {"first.tflite", "second.tflite"}) {
    cache::writeFile(folder.path() / name, bytes);
    model.pools.push_back(memory::Pool::openFile(folder.path() / name).value());
  }
  EXPECT_EQ(modelName(model), "first.tflite");
}

}  // namespace
}  // namespace hearth::cpu
