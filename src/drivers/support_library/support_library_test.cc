// SPDX-License-Identifier: Apache-2.0
// Support libraries whose answers are wrong: each a table with functions that lie.
#include "drivers/support_library/support_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "drivers/support_library/library_device.h"
#include "hal/cts/model_builder.h"
#include "memory/page_size.h"

namespace hearth::drivers::support_library {
namespace {

using testing::HasSubstr;

// What the functions below answer. A correct library with one device, unless a test changes it.
struct Answers {
  uint32_t devices = 1;
  const char* name = "chip";
  const char* version = "1";
  int32_t type = ANEURALNETWORKS_DEVICE_ACCELERATOR;
  int64_t level = ANEURALNETWORKS_FEATURE_LEVEL_5;
  uint32_t extensions = 0;
  const char* extension = "chip.extension";
  float performance = 0.5f;
  uint32_t performanceCalls = 1;
  uint8_t support = 1;
  int operationCode = ANEURALNETWORKS_NO_ERROR;
  int finishCode = ANEURALNETWORKS_NO_ERROR;
  bool makesObjects = true;
  int computeCode = ANEURALNETWORKS_NO_ERROR;
  uint32_t rank = 2;
  std::vector<uint32_t> dimensions = {2, 3};
  hal::CacheFileCounts cacheFiles;
  int cachingCode = ANEURALNETWORKS_NO_ERROR;
  const char* writes = "compiled";  // to each empty file of its cache
};
Answers answers;

// What the library found in the files of its cache, one text for each.
std::vector<std::string> foundInCache;

int setCaching(ANeuralNetworksCompilation*, const int* modelFiles, uint32_t modelCount,
               const int* dataFiles, uint32_t dataCount, const uint8_t*) {
  if (answers.cachingCode != ANEURALNETWORKS_NO_ERROR) return answers.cachingCode;
  foundInCache.clear();
  for (const auto& [files, count] :
       {std::pair(modelFiles, modelCount), std::pair(dataFiles, dataCount)})
    for (uint32_t i = 0; i < count; ++i) {
      std::string text(100, ' ');
      const ssize_t size = ::pread(files[i], text.data(), text.size(), 0);
      text.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
      foundInCache.push_back(text);
      const std::string written = answers.writes + std::to_string(foundInCache.size());
      if (text.empty() && *answers.writes != '\0' &&
          ::pwrite(files[i], written.data(), written.size(), 0) < 0)
        return ANEURALNETWORKS_OP_FAILED;
    }
  return ANEURALNETWORKS_NO_ERROR;
}

// Where objects of the library lie; it never looks into them.
char object;
template <typename Object>
int make(Object** made) {
  *made = answers.makesObjects ? reinterpret_cast<Object*>(&object) : nullptr;
  return ANEURALNETWORKS_NO_ERROR;
}
template <typename... Parameters>
int succeed(Parameters... /*parameters*/) {
  return ANEURALNETWORKS_NO_ERROR;
}
template <typename... Parameters>
void ignore(Parameters... /*parameters*/) {}

// Every function succeeds and does nothing.
template <typename Result, typename... Parameters>
void fill(Result (**function)(Parameters...)) {
  if constexpr (std::is_void_v<Result>)
    *function = ignore<Parameters...>;
  else
    *function = [](Parameters...) {
      return Result();
    };
}

NnApiSLDriverImplFL5 makeTable() {
  NnApiSLDriverImplFL5 table{};
  table.base.implFeatureLevel = ANEURALNETWORKS_FEATURE_LEVEL_5;
#define HEARTH_FILL(name) fill(&table.name)
  HEARTH_FILL(ANeuralNetworksCompilation_free);
  HEARTH_FILL(ANeuralNetworksCompilation_setPreference);
  HEARTH_FILL(ANeuralNetworksCompilation_setPriority);
  HEARTH_FILL(ANeuralNetworksCompilation_setTimeout);
  HEARTH_FILL(ANeuralNetworksExecution_free);
  HEARTH_FILL(ANeuralNetworksExecution_getDuration);
  HEARTH_FILL(ANeuralNetworksExecution_setInput);
  HEARTH_FILL(ANeuralNetworksExecution_setInputFromMemory);
  HEARTH_FILL(ANeuralNetworksExecution_setLoopTimeout);
  HEARTH_FILL(ANeuralNetworksExecution_setMeasureTiming);
  HEARTH_FILL(ANeuralNetworksExecution_setOutput);
  HEARTH_FILL(ANeuralNetworksExecution_setOutputFromMemory);
  HEARTH_FILL(ANeuralNetworksExecution_setReusable);
  HEARTH_FILL(ANeuralNetworksExecution_setTimeout);
  HEARTH_FILL(ANeuralNetworksMemory_createFromFd);
  HEARTH_FILL(ANeuralNetworksMemory_free);
  HEARTH_FILL(ANeuralNetworksModel_addOperand);
  HEARTH_FILL(ANeuralNetworksModel_finish);
  HEARTH_FILL(ANeuralNetworksModel_free);
  HEARTH_FILL(ANeuralNetworksModel_getExtensionOperandType);
  HEARTH_FILL(ANeuralNetworksModel_identifyInputsAndOutputs);
  HEARTH_FILL(ANeuralNetworksModel_relaxComputationFloat32toFloat16);
  HEARTH_FILL(ANeuralNetworksModel_setOperandExtensionData);
  HEARTH_FILL(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams);
  HEARTH_FILL(ANeuralNetworksModel_setOperandValue);
  HEARTH_FILL(ANeuralNetworksModel_setOperandValueFromMemory);
  HEARTH_FILL(ANeuralNetworksModel_setOperandValueFromModel);
#undef HEARTH_FILL
  table.ANeuralNetworks_getDeviceCount = [](uint32_t* count) {
    *count = answers.devices;
    return 0;
  };
  table.ANeuralNetworks_getDevice = [](uint32_t, ANeuralNetworksDevice** device) {
    return make(device);
  };
  table.ANeuralNetworks_getRuntimeFeatureLevel = [] {
    return answers.level;
  };
  table.ANeuralNetworksDevice_getName = [](const ANeuralNetworksDevice*, const char** name) {
    *name = answers.name;
    return 0;
  };
  table.ANeuralNetworksDevice_getVersion = [](const ANeuralNetworksDevice*, const char** version) {
    *version = answers.version;
    return 0;
  };
  table.ANeuralNetworksDevice_getType = [](const ANeuralNetworksDevice*, int32_t* type) {
    *type = answers.type;
    return 0;
  };
  table.ANeuralNetworksDevice_getFeatureLevel = [](const ANeuralNetworksDevice*, int64_t* level) {
    *level = answers.level;
    return 0;
  };
  table.SL_ANeuralNetworksDevice_getVendorExtensionCount = [](const ANeuralNetworksDevice*,
                                                              uint32_t* count) {
    *count = answers.extensions;
    return 0;
  };
  table.SL_ANeuralNetworksDevice_getVendorExtensionName = [](const ANeuralNetworksDevice*, uint32_t,
                                                             const char** name) {
    *name = answers.extension;
    return 0;
  };
  table.SL_ANeuralNetworksDevice_forEachVendorExtensionOperandTypeInformation =
      [](const ANeuralNetworksDevice*, uint32_t, void* context,
         void (*callback)(SL_ANeuralNetworksExtensionOperandTypeInformation, void*)) {
        for (uint32_t i = 0; i < answers.performanceCalls; ++i)
          callback({4, static_cast<uint16_t>(i), true}, context);
        return 0;
      };
  table.SL_ANeuralNetworksDevice_getPerformanceInfo = [](const ANeuralNetworksDevice*, int32_t,
                                                         SL_ANeuralNetworksPerformanceInfo* info) {
    *info = {answers.performance, answers.performance};
    return 0;
  };
  table.SL_ANeuralNetworksDevice_forEachOperandPerformanceInfo =
      [](const ANeuralNetworksDevice*, void* context,
         void (*callback)(SL_ANeuralNetworksOperandPerformanceInfo, void*)) {
        for (uint32_t i = 0; i < answers.performanceCalls; ++i)
          callback({static_cast<int32_t>(i), {answers.performance, answers.performance}}, context);
        return 0;
      };
  table.SL_ANeuralNetworksDevice_getNumberOfCacheFilesNeeded = [](const ANeuralNetworksDevice*,
                                                                  uint32_t* model, uint32_t* data) {
    *model = answers.cacheFiles.model;
    *data = answers.cacheFiles.data;
    return 0;
  };
  table.SL_ANeuralNetworksCompilation_setCachingFromFds = setCaching;
  table.ANeuralNetworksModel_create = [](ANeuralNetworksModel** model) {
    return make(model);
  };
  table.ANeuralNetworksModel_addOperation = [](ANeuralNetworksModel*, ANeuralNetworksOperationType,
                                               uint32_t, const uint32_t*, uint32_t,
                                               const uint32_t*) {
    return answers.operationCode;
  };
  table.ANeuralNetworksModel_getSupportedOperationsForDevices =
      [](const ANeuralNetworksModel*, const ANeuralNetworksDevice* const*, uint32_t,
         bool* supported) {
        *reinterpret_cast<uint8_t*>(supported) = answers.support;
        return 0;
      };
  table.ANeuralNetworksCompilation_createForDevices =
      [](ANeuralNetworksModel*, const ANeuralNetworksDevice* const*, uint32_t,
         ANeuralNetworksCompilation** compilation) {
        return make(compilation);
      };
  table.ANeuralNetworksCompilation_finish = [](ANeuralNetworksCompilation*) {
    return answers.finishCode;
  };
  table.ANeuralNetworksExecution_create = [](ANeuralNetworksCompilation*,
                                             ANeuralNetworksExecution** execution) {
    return make(execution);
  };
  table.ANeuralNetworksExecution_compute = [](ANeuralNetworksExecution*) {
    return answers.computeCode;
  };
  table.ANeuralNetworksExecution_getOutputOperandRank = [](ANeuralNetworksExecution*, int32_t,
                                                           uint32_t* rank) {
    *rank = answers.rank;
    return 0;
  };
  table.ANeuralNetworksExecution_getOutputOperandDimensions = [](ANeuralNetworksExecution*, int32_t,
                                                                 uint32_t* dimensions) {
    std::ranges::copy(answers.dimensions, dimensions);
    return 0;
  };
  return table;
}

class SupportLibraryTest : public testing::Test {
 protected:
  SupportLibraryTest() { answers = {}; }

  Result<std::shared_ptr<hal::Device>> device(const std::string& name = "") const {
    HEARTH_ASSIGN(auto library, SupportLibrary::of(&table_.base));
    return createDevice(std::move(library), "npu", name);
  }
  // The error of the device that the answers describe; empty when there is a device.
  std::string problem(const std::string& name = "") const {
    const auto made = device(name);
    return made ? "" : made.error().message();
  }
  Result<std::shared_ptr<hal::PreparedModel>> prepare(const graph::Dimensions& dimensions) const {
    HEARTH_ASSIGN(const auto made, device());
    return made->prepareModel(std::make_shared<const graph::Model>(hal::cts::addModel(dimensions)),
                              {}, {});
  }
  // What a computation with room for six numbers answers.
  static hal::ExecutionResult compute(hal::PreparedModel& prepared) {
    static std::array<float, 18> numbers{};
    hal::Request request;
    for (size_t i = 0; i < 3; ++i) {
      hal::Argument argument;
      argument.kind = hal::Argument::Kind::kPointer;
      argument.pointer = &numbers[6 * i];
      argument.length = 6 * sizeof(float);
      if (i < 2) argument.dimensions = {2, 3};
      (i < 2 ? request.inputs : request.outputs).push_back(argument);
    }
    auto execution = prepared.createExecution(std::move(request));
    if (!execution) return {.status = std::unexpected(execution.error())};
    return (*execution)->compute({});
  }

  NnApiSLDriverImplFL5 table_ = makeTable();
};

TEST_F(SupportLibraryTest, ACorrectLibraryHasADevice) {
  const auto made = device();
  ASSERT_TRUE(made) << made.error().toString();
  EXPECT_EQ((*made)->name(), "npu");
  EXPECT_EQ((*made)->type(), hal::DeviceType::kAccelerator);
  EXPECT_EQ((*made)->featureLevel(), 31);
  EXPECT_EQ((*made)->capabilities().relaxedFloat32.execTime, 0.5f);
  EXPECT_EQ(problem("chip"), "");
  EXPECT_THAT(problem("other"), HasSubstr("has no device other; there are: chip"));
}

TEST_F(SupportLibraryTest, WrongTablesAreRefused) {
  EXPECT_FALSE(SupportLibrary::of(nullptr));
  EXPECT_FALSE(SupportLibrary::of(reinterpret_cast<const NnApiSLDriverImpl*>(uintptr_t{8})));
  table_.base.implFeatureLevel = ANEURALNETWORKS_FEATURE_LEVEL_4;
  EXPECT_THAT(problem(), HasSubstr("of feature level 30"));
  table_ = makeTable();
  table_.ANeuralNetworksModel_finish = nullptr;
  EXPECT_EQ(problem(), "The support library lacks ANeuralNetworksModel_finish.");
  // A table that ends with the page behind which nothing is mapped, too early.
  const size_t page = memory::pageSize();
  auto* const pages = static_cast<uint8_t*>(
      ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(::munmap(pages + page, page), 0);
  auto* const head = reinterpret_cast<NnApiSLDriverImpl*>(pages + page - sizeof(NnApiSLDriverImpl));
  head->implFeatureLevel = ANEURALNETWORKS_FEATURE_LEVEL_5;
  const auto cut = SupportLibrary::of(head);
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message(), HasSubstr("readable bytes"));
  ::munmap(pages, page);
}

TEST_F(SupportLibraryTest, ClaimsBeyondLimitsAreRefused) {
  answers.devices = UINT32_MAX;
  EXPECT_THAT(problem(), HasSubstr("has 4294967295 devices"));
  answers = {};
  answers.devices = 2;
  EXPECT_THAT(problem(), HasSubstr("has 2 devices (chip, chip)"));
  answers = {};
  answers.extensions = UINT32_MAX;
  EXPECT_THAT(problem(), HasSubstr("has 4294967295 extensions"));
  answers = {};
  const std::string endless(100'000, 'x');
  answers.name = endless.c_str();
  EXPECT_THAT(problem(), HasSubstr("above 256 bytes"));
  answers = {};
  for (const char* wrong : {static_cast<const char*>(nullptr), ""}) {
    answers.version = wrong;
    EXPECT_NE(problem(), "");
    answers = {};
    answers.name = wrong;
    EXPECT_NE(problem(), "");
    answers = {};
    answers.extensions = 1;
    answers.extension = wrong;
    EXPECT_NE(problem(), "");
    answers = {};
  }
  answers.level = 0;
  EXPECT_THAT(problem(), HasSubstr("feature level 0"));
  answers = {};
  answers.makesObjects = false;
  EXPECT_THAT(problem(), HasSubstr("is null"));
}

TEST_F(SupportLibraryTest, WhatMeansNothingIsLeftOut) {
  answers.type = 4711;
  answers.performance = std::numeric_limits<float>::quiet_NaN();
  answers.performanceCalls = 100'000;
  answers.extensions = 1;
  answers.level = INT64_MAX;
  const auto made = device();
  ASSERT_TRUE(made) << made.error().toString();
  EXPECT_EQ((*made)->type(), hal::DeviceType::kOther);
  EXPECT_EQ((*made)->featureLevel(), 1000007);
  EXPECT_LE((*made)->extensionOperandTypes().size(), 4096u);
  const hal::Capabilities capabilities = (*made)->capabilities();
  EXPECT_EQ(capabilities.relaxedFloat32.execTime, 1.0f);
  EXPECT_LT(capabilities.operandPerformance.size(), 100u);
}

TEST_F(SupportLibraryTest, AnAnswerOtherThanABoolSupportsTheOperation) {
  const auto made = device();
  ASSERT_TRUE(made);
  for (const uint8_t support : {0, 1, 0xff}) {
    answers.support = support;
    const auto supports = (*made)->supportedOperations(hal::cts::addModel({2, 3}));
    ASSERT_TRUE(supports) << supports.error().toString();
    EXPECT_EQ((*supports)[0].supported, support != 0);
  }
  answers.operationCode = ANEURALNETWORKS_BAD_DATA;
  const auto supports = (*made)->supportedOperations(hal::cts::addModel({2, 3}));
  ASSERT_TRUE(supports) << supports.error().toString();
  EXPECT_THAT((*supports)[0].reason, HasSubstr("BAD_DATA to ANeuralNetworksModel_addOperation"));
}

TEST_F(SupportLibraryTest, OperandsThatNothingUsesAreNotAdded) {
  static uint32_t added = 0;
  added = 0;
  table_.ANeuralNetworksModel_addOperand = [](ANeuralNetworksModel*,
                                              const ANeuralNetworksOperandType*) {
    ++added;
    return 0;
  };
  graph::Model model = hal::cts::addModel({2, 3});
  const size_t used = model.main().operands.size();
  graph::Operand more = model.main().operands[0];
  more.lifetime = graph::Lifetime::kTemporary;
  model.main().operands.push_back(more);
  const auto made = device();
  ASSERT_TRUE(made) << made.error().toString();
  ASSERT_TRUE((*made)->prepareModel(std::make_shared<const graph::Model>(model), {}, {}));
  EXPECT_EQ(added, used);
}

// The constants of pools from which the library makes memories, and of those from which it does
// not.
TEST_F(SupportLibraryTest, ConstantsOfPoolsAreInMemoriesOfTheLibrary) {
  static std::vector<const void*> given;
  table_.ANeuralNetworksModel_setOperandValue = [](ANeuralNetworksModel*, int32_t,
                                                   const void* value, size_t size) {
    if (size == 24) given.push_back(value);
    return 0;
  };
  table_.ANeuralNetworksModel_setOperandValueFromMemory =
      [](ANeuralNetworksModel*, int32_t, const ANeuralNetworksMemory* memory, size_t, size_t) {
        given.push_back(memory);
        return 0;
      };
  const auto pool = memory::Pool::anonymous(24);
  ASSERT_TRUE(pool) << pool.error().toString();
  const auto giveConstant = [&]() -> const void* {
    given.clear();
    hal::cts::ModelBuilder builder;
    constexpr auto kFloats = graph::OperandType::kTensorFloat32;
    const uint32_t input = builder.input(kFloats, {2, 3});
    const uint32_t constant = builder.reference(kFloats, {2, 3}, *pool, 0);
    const uint32_t activation = builder.scalar(0);
    builder.operation(graph::OperationType::kAdd, {input, constant, activation},
                      {builder.output(kFloats, {2, 3})});
    const auto made = device();
    EXPECT_TRUE(made) << made.error().toString();
    EXPECT_TRUE(
        (*made)->prepareModel(std::make_shared<const graph::Model>(builder.model()), {}, {}));
    return given.size() == 1 ? given[0] : nullptr;
  };
  EXPECT_EQ(giveConstant(), (*pool)->data());
  table_.ANeuralNetworksMemory_createFromFd = [](size_t, int, int, size_t,
                                                 ANeuralNetworksMemory** memory) {
    return make(memory);
  };
  EXPECT_EQ(giveConstant(), &object);
}

TEST_F(SupportLibraryTest, FailuresOfPreparationsAreErrors) {
  for (const auto& [code, expected] :
       {std::pair(int{ANEURALNETWORKS_MISSED_DEADLINE_PERSISTENT},
                  ErrorCode::kMissedDeadlinePersistent),
        std::pair(-1, ErrorCode::kOpFailed), std::pair(4711, ErrorCode::kOpFailed)}) {
    answers.finishCode = code;
    const auto prepared = prepare({2, 3});
    ASSERT_FALSE(prepared) << code;
    EXPECT_EQ(prepared.error().code(), expected);
  }
}

TEST_F(SupportLibraryTest, ShapesThatDoNotFitAreErrors) {
  const auto prepared = prepare({0, 0});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const hal::ExecutionResult right = compute(**prepared);
  ASSERT_TRUE(right.status) << right.status.error().toString();
  EXPECT_EQ(right.outputShapes[0].dimensions, graph::Dimensions({2, 3}));
  const auto refuses = [&](const char* why) {
    const hal::ExecutionResult result = compute(**prepared);
    ASSERT_FALSE(result.status) << why;
    EXPECT_EQ(result.status.error().code(), ErrorCode::kOpFailed) << why;
  };
  answers.rank = UINT32_MAX;
  refuses("more dimensions than there is room for");
  answers.rank = 3;
  answers.dimensions = {1, 2, 3};
  refuses("another rank than the model's");
  answers.rank = 2;
  answers.dimensions = {3, 3};
  refuses("more bytes than the argument has");
  answers.dimensions = {UINT32_MAX, UINT32_MAX};
  refuses("a product that overflows");
  answers.computeCode = 4711;
  refuses("a code that NNAPI does not have");
}

// A library that wants two model files and one data file, and a client's files.
class SupportLibraryCaching : public SupportLibraryTest {
 protected:
  SupportLibraryCaching() {
    answers.cacheFiles = {2, 1};
    std::string pattern = std::filesystem::temp_directory_path() / "hearth-library-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("XDG_STATE_HOME", folder_.c_str(), 1);
  }
  ~SupportLibraryCaching() override {
    ::unsetenv("XDG_STATE_HOME");
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  hal::Cache cache(uint8_t token) const {
    hal::Cache cache;
    cache.modelFiles.push_back(*model_.duplicate());
    cache.dataFiles.push_back(*data_.duplicate());
    cache.token = {token};
    return cache;
  }
  // A preparation with the client's files under token 1: why it was not saved.
  std::string save() const {
    const auto made = device();
    if (!made) return made.error().toString();
    const auto prepared = (*made)->prepareModel(
        std::make_shared<const graph::Model>(hal::cts::addModel({2, 3})), {}, cache(1));
    return prepared ? (*prepared)->startReport().cacheProblem : prepared.error().toString();
  }
  Result<std::shared_ptr<hal::PreparedModel>> restore(uint8_t token) const {
    HEARTH_ASSIGN(const auto made, device());
    return made->prepareModelFromCache({}, cache(token));
  }

  std::filesystem::path folder_;
  const base::Descriptor model_ = base::Descriptor(::memfd_create("model", MFD_CLOEXEC));
  const base::Descriptor data_ = base::Descriptor(::memfd_create("data", MFD_CLOEXEC));
};

TEST_F(SupportLibraryCaching, ALibraryFindsWhatItHasWritten) {
  const auto made = device();
  ASSERT_TRUE(made);
  const auto counts = (*made)->numberOfCacheFilesNeeded();
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->model, 1u);
  EXPECT_EQ(counts->data, 1u);
  EXPECT_EQ(save(), "");
  EXPECT_THAT(foundInCache, testing::ElementsAre("", "", ""));
  const auto restored = restore(1);
  ASSERT_TRUE(restored) << restored.error().toString();
  EXPECT_THAT(foundInCache, testing::ElementsAre("compiled1", "compiled2", "compiled3"));
  EXPECT_TRUE(compute(**restored).status);
}

TEST_F(SupportLibraryCaching, ALibraryDoesNotSeeFilesThatItHasNotWritten) {
  EXPECT_EQ(save(), "");
  foundInCache.clear();
  EXPECT_FALSE(restore(2));
  answers.version = "2";
  EXPECT_FALSE(restore(1)) << "the library is another one";
  answers.version = "1";
  uint8_t byte = 0;
  ASSERT_EQ(::pread(data_.get(), &byte, 1, 0), 1);
  byte ^= 1;
  ASSERT_EQ(::pwrite(data_.get(), &byte, 1, 0), 1);
  EXPECT_FALSE(restore(1)) << "a client has written to a file";
  byte ^= 1;
  ASSERT_EQ(::pwrite(data_.get(), &byte, 1, 0), 1);
  EXPECT_TRUE(foundInCache.empty());
  EXPECT_TRUE(restore(1));
}

TEST_F(SupportLibraryCaching, WhatGoesWrongIsNoErrorOfThePreparation) {
  answers.writes = "";
  EXPECT_THAT(save(), HasSubstr("has written nothing to its cache"));
  EXPECT_FALSE(restore(1));
  answers.cachingCode = ANEURALNETWORKS_BAD_DATA;
  EXPECT_THAT(save(), HasSubstr("BAD_DATA to SL_ANeuralNetworksCompilation_setCachingFromFds"));
  EXPECT_FALSE(restore(1));
}

TEST_F(SupportLibraryCaching, ALibraryMayWantNoFiles) {
  for (const bool hasFunctions : {true, false}) {
    answers.cacheFiles = {0, 0};
    if (!hasFunctions) {
      answers.cacheFiles = {1, 1};
      table_.SL_ANeuralNetworksCompilation_setCachingFromFds = nullptr;
    }
    const auto made = device();
    ASSERT_TRUE(made);
    EXPECT_EQ((*made)->numberOfCacheFilesNeeded()->model, 0u);
    EXPECT_EQ(restore(1).error().code(), ErrorCode::kUnsupported);
  }
  table_ = makeTable();
  answers.cacheFiles = {UINT32_MAX, 1};
  EXPECT_THAT(problem(), HasSubstr("wants 4294967295 and 1 cache files"));
}

}  // namespace
}  // namespace hearth::drivers::support_library
