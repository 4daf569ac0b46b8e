// SPDX-License-Identifier: Apache-2.0
#include "llm/cache_tensors.h"

#include <gmock/gmock.h>

namespace hearth::llm {
namespace {

using ::testing::HasSubstr;

TensorInfo tensor(const std::string& name, std::vector<uint32_t> dimensions) {
  TensorInfo info;
  info.name = name;
  info.dimensions = std::move(dimensions);
  return info;
}

StateBuffer cache(const std::string& name, std::optional<uint32_t> axis,
                  StateBuffer::Type type = StateBuffer::Type::kGlobalKeys) {
  StateBuffer buffer;
  buffer.prefillInput = buffer.decodeInput = name;
  buffer.prefillOutput = buffer.decodeOutput = name + "_new";
  buffer.type = type;
  buffer.sequenceAxis = axis;
  return buffer;
}

CacheTensors tensorsOf(const std::vector<StateBuffer>& buffers) {
  auto tensors = CacheTensors::of(buffers);
  if (!tensors) ADD_FAILURE() << tensors.error().toString();
  return tensors.value_or(CacheTensors());
}

template <typename T>
std::string problem(const Result<T>& result) {
  return result ? "" : result.error().message();
}

TEST(CacheTensorsTest, WithoutMetadataNamesAreEqual) {
  const CacheTensors tensors;
  EXPECT_EQ(tensors.ofInput("k", true), "k");
  EXPECT_EQ(tensors.ofInput("tokens", false), "");
  EXPECT_EQ(tensors.ofOutput("k", true), "k");
  EXPECT_EQ(tensors.ofOutput("logits", false), "");
}

TEST(CacheTensorsTest, AFileNamesInputAndOutputOfEachSignature) {
  StateBuffer buffer = cache("k", 2);
  buffer.prefillInput = "past";
  buffer.prefillOutput = "present";
  const CacheTensors tensors = tensorsOf({buffer});
  for (const char* const input : {"k", "past"}) EXPECT_EQ(tensors.ofInput(input, false), "k");
  for (const char* const output : {"k_new", "present"})
    EXPECT_EQ(tensors.ofOutput(output, false), "k");
  // What it does not name is found by its name.
  EXPECT_EQ(tensors.ofInput("v", true), "v");
}

TEST(CacheTensorsTest, ATensorIsOneCache) {
  EXPECT_THAT(problem(CacheTensors::of(std::vector{cache("k", 2), cache("k", 2)})),
              HasSubstr("k twice"));
  StateBuffer other = cache("v", 2);
  other.prefillOutput = "k_new";
  EXPECT_THAT(problem(CacheTensors::of(std::vector{cache("k", 2), other})),
              HasSubstr("k_new that it is two caches"));
  EXPECT_TRUE(CacheTensors::of(std::vector{StateBuffer(), StateBuffer()}));
}

TEST(CacheTensorsTest, TheAxisIsTheFilesOrTheOnlyOneOfThatLength) {
  const CacheTensors said = tensorsOf({cache("k", 2), cache("v", 3), cache("w", 1)});
  const CacheTensors none;
  const auto axisOf = [](const CacheTensors& tensors, const TensorInfo& info) -> int {
    const auto axis = tensors.tokenAxis(info, 64);
    return axis ? static_cast<int>(*axis) : -1;
  };
  EXPECT_EQ(axisOf(none, tensor("k", {1, 2, 64, 8})), 2);
  EXPECT_EQ(axisOf(said, tensor("k", {1, 2, 64, 8})), 2);
  // Keys of 64 numbers for 64 tokens.
  EXPECT_EQ(axisOf(none, tensor("k", {1, 2, 64, 64})), -1);
  EXPECT_EQ(axisOf(said, tensor("k", {1, 2, 64, 64})), 2);
  EXPECT_EQ(axisOf(said, tensor("w", {1, 64, 64, 8})), 1);
  // Values as in the file, laid out by token, and nobody knows which.
  EXPECT_EQ(axisOf(said, tensor("v", {1, 2, 8, 64})), 3);
  EXPECT_EQ(axisOf(said, tensor("v", {1, 2, 64, 8})), 2);
  EXPECT_EQ(axisOf(said, tensor("v", {1, 2, 64, 64})), -1);
  // Along another axis than the file says.
  EXPECT_EQ(axisOf(said, tensor("k", {1, 64, 2, 8})), -1);
  EXPECT_EQ(axisOf(none, tensor("k", {1, 2, 32, 8})), -1);
  EXPECT_EQ(axisOf(none, tensor("k", {})), -1);
}

TEST(CacheTensorsTest, CachesSayHowManyTokensTheyHaveRoomFor) {
  const CacheTensors said = tensorsOf({cache("k", 2), cache("v", 3)});
  const std::vector<TensorInfo> caches = {tensor("k", {1, 2, 64, 8}), tensor("v", {1, 2, 8, 64})};
  EXPECT_EQ(said.capacityOf(caches, 0).value(), 64u);
  EXPECT_EQ(said.capacityOf(caches, 64).value(), 64u);
  EXPECT_EQ(said.capacityOf(caches, 32).value(), 32u);
  EXPECT_EQ(CacheTensors().capacityOf(caches, 0).value(), 0u);
}

TEST(CacheTensorsTest, WhatASessionCannotKeepIsRefused) {
  const std::vector<TensorInfo> caches = {tensor("k", {1, 2, 64, 8})};
  EXPECT_THAT(problem(tensorsOf({cache("k", 7)}).capacityOf(caches, 64)),
              HasSubstr("along axis 7; it has 4"));
  EXPECT_THAT(problem(tensorsOf({cache("k", 2)}).capacityOf(caches, 128)),
              HasSubstr("room for 64 tokens of 128"));
  EXPECT_THAT(
      problem(
          tensorsOf({cache("k", {}, StateBuffer::Type::kLinearAttention)}).capacityOf(caches, 64)),
      HasSubstr("linear attention"));
}

}  // namespace
}  // namespace hearth::llm
