// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <map>
#include <string>

#include "android/NeuralNetworksSupportLibraryImpl.h"
#include "frontends/nnapi/testing/test_models.h"

namespace hearth::nnapi {
namespace {

class SupportLibrary : public QuietTest {
 protected:
  // The cast that a client makes after it has checked the version.
  const NnApiSLDriverImplFL5& table() const {
    return *reinterpret_cast<const NnApiSLDriverImplFL5*>(ANeuralNetworks_getSLDriverImpl());
  }
  const ANeuralNetworksDevice* device_ = ndk::devices()[0];
};

TEST_F(SupportLibrary, HasEveryFunctionAtItsPlace) {
  ASSERT_EQ(table().base.implFeatureLevel, ANEURALNETWORKS_FEATURE_LEVEL_5);
  const auto* const bytes = reinterpret_cast<const char*>(&table());
  for (size_t at = sizeof(NnApiSLDriverImpl); at < sizeof(NnApiSLDriverImplFL5);
       at += sizeof(void*)) {
    void* function;
    std::memcpy(&function, bytes + at, sizeof(function));
    EXPECT_NE(function, nullptr) << at;
  }
  EXPECT_EQ(table().ANeuralNetworksBurst_create, &ANeuralNetworksBurst_create);
  EXPECT_EQ(table().ANeuralNetworks_getRuntimeFeatureLevel,
            &ANeuralNetworks_getRuntimeFeatureLevel);
}

TEST_F(SupportLibrary, TellsAboutDevices) {
  uint32_t modelFiles = 99;
  uint32_t dataFiles = 99;
  EXPECT_CODE(NO_ERROR, table().SL_ANeuralNetworksDevice_getNumberOfCacheFilesNeeded(
                            device_, &modelFiles, &dataFiles));
  EXPECT_LE(modelFiles, 32u);
  EXPECT_LE(dataFiles, 32u);
  SL_ANeuralNetworksPerformanceInfo info = {};
  for (const int32_t kind : {0, 1, 2, 3}) {
    EXPECT_CODE(NO_ERROR,
                table().SL_ANeuralNetworksDevice_getPerformanceInfo(device_, kind, &info));
    EXPECT_GT(info.execTime, 0);
    EXPECT_GT(info.powerUsage, 0);
  }
  EXPECT_CODE(BAD_DATA, table().SL_ANeuralNetworksDevice_getPerformanceInfo(device_, 4, &info));
  EXPECT_CODE(UNEXPECTED_NULL,
              table().SL_ANeuralNetworksDevice_getPerformanceInfo(device_, 0, nullptr));
  std::map<int32_t, float> times;
  EXPECT_CODE(NO_ERROR,
              table().SL_ANeuralNetworksDevice_forEachOperandPerformanceInfo(
                  device_, &times, [](SL_ANeuralNetworksOperandPerformanceInfo one, void* context) {
                    (*static_cast<std::map<int32_t, float>*>(context))[one.operandType] =
                        one.performanceInfo.execTime;
                  }));
  EXPECT_TRUE(times.contains(ANEURALNETWORKS_TENSOR_FLOAT32));
  EXPECT_LE(times.rbegin()->first, ANEURALNETWORKS_MODEL);
}

TEST_F(SupportLibrary, TellsAboutExtensions) {
  uint32_t count = 0;
  EXPECT_CODE(NO_ERROR, table().SL_ANeuralNetworksDevice_getVendorExtensionCount(device_, &count));
  ASSERT_EQ(count, 1u);
  const char* name = nullptr;
  EXPECT_CODE(NO_ERROR, table().SL_ANeuralNetworksDevice_getVendorExtensionName(device_, 0, &name));
  EXPECT_STREQ(name, "hearth.tflite");
  EXPECT_CODE(BAD_DATA, table().SL_ANeuralNetworksDevice_getVendorExtensionName(device_, 1, &name));
  std::map<uint16_t, uint32_t> sizes;
  EXPECT_CODE(NO_ERROR,
              table().SL_ANeuralNetworksDevice_forEachVendorExtensionOperandTypeInformation(
                  device_, 0, &sizes,
                  [](SL_ANeuralNetworksExtensionOperandTypeInformation one, void* context) {
                    EXPECT_TRUE(one.isTensor);
                    (*static_cast<std::map<uint16_t, uint32_t>*>(context))[one.type] = one.byteSize;
                  }));
  // 64-bit integers have the code 0.
  EXPECT_EQ(sizes[0], 8u);
}

TEST_F(SupportLibrary, CachesThroughDescriptors) {
  const ndk::Model model = addModel();
  const ndk::Compilation compilation(model);
  const uint8_t token[ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN] = {};
  EXPECT_CODE(UNEXPECTED_NULL, table().SL_ANeuralNetworksCompilation_setCachingFromFds(
                                   compilation.get(), nullptr, 0, nullptr, 0, nullptr));
  EXPECT_CODE(UNEXPECTED_NULL, table().SL_ANeuralNetworksCompilation_setCachingFromFds(
                                   compilation.get(), nullptr, 1, nullptr, 0, token));
  EXPECT_CODE(NO_ERROR, table().SL_ANeuralNetworksCompilation_setCachingFromFds(
                            compilation.get(), nullptr, 0, nullptr, 0, token));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksCompilation_finish(compilation.get()));
}

}  // namespace
}  // namespace hearth::nnapi
