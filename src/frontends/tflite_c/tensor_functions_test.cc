// SPDX-License-Identifier: Apache-2.0
// Functions of tensors that need no interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "frontends/tflite_c/declarations.h"
#include "frontends/tflite_c/testing/library.h"

namespace hearth::tflite_c::testing {
namespace {

using ::testing::ElementsAre;

// What a function says of tensors with each kind of memory, from kTfLiteMemNone on.
std::array<int, 8> answersOf(const std::string& name) {
  std::array<int, 8> answers{};
  for (size_t i = 0; i < answers.size(); ++i) {
    TfLiteTensor tensor{};
    tensor.allocation_type = static_cast<TfLiteAllocationType>(i);
    answers[i] = function<int(const TfLiteTensor*)>(("TfLiteTensor" + name).c_str())(&tensor);
    EXPECT_EQ(function<int(const TfLiteTensor*)>(("TfLiteOpaqueTensor" + name).c_str())(&tensor),
              answers[i]);
  }
  return answers;
}

TEST(TensorFunctions, TellHowLongThingsStayAsTheyAre) {
  EXPECT_THAT(answersOf("GetAllocationStrategy"), ElementsAre(1, 2, 3, 3, 4, 4, 0, 5));
  EXPECT_THAT(answersOf("GetBufferAddressStability"), ElementsAre(3, 3, 1, 1, 2, 2, 0, 3));
  EXPECT_THAT(answersOf("GetDataStability"), ElementsAre(3, 3, 2, 3, 2, 2, 0, 2));
  EXPECT_THAT(answersOf("GetDataKnownStep"), ElementsAre(1, 1, 3, 3, 3, 2, 0, 3));
  EXPECT_THAT(answersOf("GetShapeKnownStep"), ElementsAre(1, 1, 2, 2, 3, 2, 0, 3));
}

TEST(TensorFunctions, ResetFillsInTheDescription) {
  const auto reset =
      function<void(TfLiteType, const char*, TfLiteIntArray*, TfLiteQuantizationParams, char*,
                    size_t, TfLiteAllocationType, const void*, bool, TfLiteTensor*)>(
          "TfLiteTensorReset");
  char buffer[6] = {};
  TfLiteTensor tensor{};
  TfLiteIntArray* const dims = function<TfLiteIntArray*(int)>("TfLiteIntArrayCreate")(1);
  dims->data[0] = 6;
  reset(kTfLiteUInt8, "mask", dims, {0.5f, 3}, buffer, sizeof buffer, kTfLiteArenaRw, &buffer, true,
        &tensor);
  EXPECT_EQ(tensor.type, kTfLiteUInt8);
  EXPECT_STREQ(tensor.name, "mask");
  EXPECT_EQ(tensor.dims, dims);
  EXPECT_EQ(tensor.legacy_scale, 0.5f);
  EXPECT_EQ(tensor.legacy_zero_point, 3);
  EXPECT_EQ(tensor.data, buffer);
  EXPECT_EQ(tensor.bytes, sizeof buffer);
  EXPECT_EQ(tensor.allocation_type, kTfLiteArenaRw);
  EXPECT_EQ(tensor.allocation, &buffer);
  EXPECT_TRUE(tensor.is_variable);
  // It frees what the tensor had.
  reset(kTfLiteFloat32, nullptr, nullptr, {}, nullptr, 0, kTfLiteMemNone, nullptr, false, &tensor);
  EXPECT_EQ(tensor.bytes, 0u);
  EXPECT_FALSE(tensor.is_variable);
  reset(kTfLiteFloat32, nullptr, nullptr, {}, nullptr, 0, kTfLiteMemNone, nullptr, false, nullptr);
}

int copy(const TfLiteTensor* from, TfLiteTensor* to) {
  return function<int(const TfLiteTensor*, TfLiteTensor*)>("TfLiteTensorCopy")(from, to);
}

void release(TfLiteTensor* tensor) {
  function<void(TfLiteTensor*)>("TfLiteTensorFree")(tensor);
}

TEST(TensorFunctions, CopyNeedsMemoryForItsBytesOnly) {
  TfLiteTensor empty{};
  TfLiteTensor target{};
  target.data = &target;
  EXPECT_EQ(copy(&empty, &target), kOk);
  EXPECT_EQ(target.data, &target);
  empty.bytes = target.bytes = 1;
  EXPECT_EQ(copy(&empty, &target), kError);
  EXPECT_EQ(copy(&target, &empty), kError);
}

int objects = 0;

class Counted final : public VariantData {
 public:
  explicit Counted(int number) : number_(number) { ++objects; }
  Counted(const Counted& other) : number_(other.number_) { ++objects; }
  Counted& operator=(const Counted&) = default;
  ~Counted() override { --objects; }
  VariantData* CloneTo(VariantData* target) const override {
    if (target == nullptr) return new Counted(*this);
    *static_cast<Counted*>(target) = *this;
    return target;
  }
  int number() const { return number_; }

 private:
  int number_;
};

TfLiteTensor tensorOf(VariantData* object) {
  TfLiteTensor tensor{};
  tensor.type = kTfLiteVariant;
  tensor.allocation_type = kTfLiteVariantObject;
  tensor.data = object;
  return tensor;
}

int numberOf(const TfLiteTensor& tensor) {
  return static_cast<const Counted*>(static_cast<const VariantData*>(tensor.data))->number();
}

TEST(TensorFunctions, ObjectsAreCopiedAndDeleted) {
  TfLiteTensor first = tensorOf(new Counted(1));
  TfLiteTensor second = tensorOf(new Counted(2));
  TfLiteTensor third = tensorOf(nullptr);
  void* const place = second.data;
  EXPECT_EQ(copy(&first, &second), kOk);
  EXPECT_EQ(second.data, place);
  EXPECT_EQ(numberOf(second), 1);
  EXPECT_EQ(copy(&third, &second), kError);
  EXPECT_EQ(copy(&second, &third), kOk);
  EXPECT_EQ(numberOf(third), 1);
  EXPECT_EQ(objects, 3);
  // Over memory of another kind, and back.
  TfLiteTensor other{};
  other.allocation_type = kTfLiteDynamic;
  other.data = std::malloc(1);
  EXPECT_EQ(copy(&first, &other), kOk);
  EXPECT_EQ(other.allocation_type, kTfLiteVariantObject);
  EXPECT_EQ(numberOf(other), 1);
  TfLiteTensor plain{};
  plain.allocation_type = kTfLiteArenaRw;
  EXPECT_EQ(copy(&plain, &other), kOk);
  EXPECT_EQ(other.allocation_type, kTfLiteArenaRw);
  for (TfLiteTensor* tensor : {&first, &second, &third, &other}) release(tensor);
  EXPECT_EQ(objects, 0);
}

TEST(TensorFunctions, MemoryThatCannotGrowBelongsToTheProgram) {
  const auto resize = function<int(size_t, TfLiteTensor*, bool)>("TfLiteTensorResizeMaybeCopy");
  TfLiteTensor tensor{};
  tensor.allocation_type = kTfLiteDynamic;
  EXPECT_EQ(resize(4, &tensor, true), kOk);
  std::memcpy(tensor.data, "abcd", 4);
  EXPECT_EQ(resize(8, &tensor, true), kOk);
  EXPECT_EQ(std::memcmp(tensor.data, "abcd", 4), 0);
  void* const before = tensor.data;
  EXPECT_EQ(resize(std::numeric_limits<size_t>::max() - 16, &tensor, true), kError);
  EXPECT_EQ(tensor.data, nullptr);
  std::free(before);
  tensor.data = std::malloc(8);
  EXPECT_EQ(resize(std::numeric_limits<size_t>::max() - 7, &tensor, false), kError);
  EXPECT_EQ(tensor.data, nullptr);
  EXPECT_EQ(resize(16, nullptr, false), kError);
  release(&tensor);
}

}  // namespace
}  // namespace hearth::tflite_c::testing
