// SPDX-License-Identifier: Apache-2.0
// Behaviours 13 to 17 of NNAPI: compilations.
#include <array>
#include <memory>

#include "frontends/nnapi/testing/fake_device_test.h"

namespace hearth::nnapi {
namespace {

using ndk::Out;

class CompilationBehaviour : public FakeDeviceTest {};

TEST_F(CompilationBehaviour, B13_OrderOfCalls) {
  const ndk::Model unfinished;
  ndk::CompilationHandle none;
  EXPECT_CODE(BAD_STATE, ANeuralNetworksCompilation_create(unfinished.get(), Out(none)));
  EXPECT_EQ(none, nullptr);

  const ndk::Model model = addModel();
  ndk::Compilation compilation(model);
  compilation.finish();
  ANeuralNetworksCompilation* const c = compilation.get();
  const uint8_t token[ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN] = {};
  EXPECT_CODE(BAD_STATE, ANeuralNetworksCompilation_setPreference(c, 1));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksCompilation_setPriority(c, 100));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksCompilation_setTimeout(c, 1));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksCompilation_setCaching(c, "/tmp", token));
  EXPECT_CODE(BAD_STATE, ANeuralNetworksCompilation_finish(c));
}

TEST_F(CompilationBehaviour, B14_PreferenceAndPriority) {
  const ndk::Model model = addModel();
  ndk::Compilation compilation(model);
  for (const int32_t preference : {0, 1, 2})
    EXPECT_CODE(NO_ERROR, ANeuralNetworksCompilation_setPreference(compilation.get(), preference));
  for (const int32_t preference : {-1, 3, 1000})
    EXPECT_CODE(BAD_DATA, ANeuralNetworksCompilation_setPreference(compilation.get(), preference));
  for (const int priority : {90, 100, 110})
    EXPECT_CODE(NO_ERROR, ANeuralNetworksCompilation_setPriority(compilation.get(), priority));
  for (const int priority : {0, 89, 95, 111, -1})
    EXPECT_CODE(BAD_DATA, ANeuralNetworksCompilation_setPriority(compilation.get(), priority));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksCompilation_finish(compilation.get()));
}

TEST_F(CompilationBehaviour, B15_TimeoutOnlyForOneDevice) {
  const ndk::Model model = addModel();
  ndk::Compilation everywhere(model);
  EXPECT_CODE(BAD_DATA, ANeuralNetworksCompilation_setTimeout(everywhere.get(), 1));
  const auto devices = ndk::devices();
  ASSERT_GE(devices.size(), 2u);
  ndk::Compilation onTwo(model, {devices[0], devices[1]});
  EXPECT_CODE(BAD_DATA, ANeuralNetworksCompilation_setTimeout(onTwo.get(), 1));
  ndk::Compilation onOne(model, {devices[0]});
  EXPECT_CODE(NO_ERROR, ANeuralNetworksCompilation_setTimeout(onOne.get(), 1));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksCompilation_setTimeout(onOne.get(), UINT64_MAX));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksCompilation_finish(onOne.get()));
  ndk::Compilation cleared(model, {devices[0]});
  EXPECT_CODE(NO_ERROR, ANeuralNetworksCompilation_setTimeout(cleared.get(), 1));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksCompilation_setTimeout(cleared.get(), 0));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksCompilation_finish(cleared.get()));
}

TEST_F(CompilationBehaviour, B16_ListedDevicesAndNoOthers) {
  auto onlyAdds = std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "adds", .operations = {graph::OperationType::kAdd}});
  setDevicesForTest(
      {onlyAdds, std::make_shared<FakeDevice>(FakeDeviceOptions{.name = "nnapi-reference"})});
  const ndk::Model model = addThenMulModel();
  const auto devices = ndk::devices();
  const auto create = [&](std::vector<const ANeuralNetworksDevice*> list) {
    ndk::CompilationHandle compilation;
    const int code = ANeuralNetworksCompilation_createForDevices(
        model.get(), list.data(), static_cast<uint32_t>(list.size()), Out(compilation));
    EXPECT_EQ(compilation == nullptr, code != ANEURALNETWORKS_NO_ERROR);
    return code;
  };
  const ANeuralNetworksDevice* const dangling[] = {devices[0]};
  ndk::CompilationHandle none;
  EXPECT_CODE(BAD_DATA,
              ANeuralNetworksCompilation_createForDevices(model.get(), dangling, 0, Out(none)));
  EXPECT_CODE(BAD_DATA, create({devices[0], devices[0]}));
  EXPECT_CODE(BAD_DATA, create({reinterpret_cast<const ANeuralNetworksDevice*>(model.get())}));
  EXPECT_CODE(NO_ERROR, create({devices[0], devices[1]}));

  ndk::Compilation alone(model, {devices[0]});
  EXPECT_CODE(BAD_DATA, ANeuralNetworksCompilation_finish(alone.get()));
  ndk::Compilation together(model, {devices[0], devices[1]});
  EXPECT_CODE(NO_ERROR, ANeuralNetworksCompilation_finish(together.get()));
}

TEST_F(CompilationBehaviour, B17_ExecutionsNeedAFinishedCompilation) {
  setDevicesForTest({std::make_shared<FakeDevice>(
      FakeDeviceOptions{.name = "broken", .prepareError = ErrorCode::kOpFailed})});
  const ndk::Model model = addModel();
  const auto check = [](const ndk::Compilation& compilation) {
    ANeuralNetworksExecution* execution = reinterpret_cast<ANeuralNetworksExecution*>(1);
    EXPECT_CODE(BAD_STATE, ANeuralNetworksExecution_create(compilation.get(), &execution));
    EXPECT_EQ(execution, nullptr);
    ANeuralNetworksBurst* burst = reinterpret_cast<ANeuralNetworksBurst*>(1);
    EXPECT_CODE(BAD_STATE, ANeuralNetworksBurst_create(compilation.get(), &burst));
    EXPECT_EQ(burst, nullptr);
  };
  ndk::Compilation compilation(model, {ndk::devices()[0]});
  check(compilation);
  EXPECT_CODE(OP_FAILED, ANeuralNetworksCompilation_finish(compilation.get()));
  check(compilation);
}

}  // namespace
}  // namespace hearth::nnapi
