// SPDX-License-Identifier: Apache-2.0
// Behaviours 18 to 22 of NNAPI: compilation caching.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "frontends/nnapi/testing/fake_device_test.h"

namespace hearth::nnapi {
namespace {

namespace fs = std::filesystem;

using Token = std::array<uint8_t, ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN>;

class CachingBehaviour : public FakeDeviceTest {
 protected:
  CachingBehaviour() {
    std::string pattern = fs::temp_directory_path() / "hearth-caching-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    fs::create_directory(folder());
    // Hosts of drivers have the environment that this process had when it started them.
    if (std::getenv("HEARTH_DRIVER_HOSTS") == nullptr)
      ::setenv("XDG_STATE_HOME", (root_ / "state").c_str(), 1);
    ::setenv("HEARTH_REPORT", (root_ / "report").c_str(), 1);
  }
  ~CachingBehaviour() override {
    if (std::getenv("HEARTH_DRIVER_HOSTS") == nullptr) ::unsetenv("XDG_STATE_HOME");
    ::unsetenv("HEARTH_REPORT");
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  fs::path folder() const { return root_ / "cache"; }

  // Compiles with the options that `prepare` sets; all calls must succeed.
  ndk::Compilation compile(
      const ndk::Model& model, const Token* token,
      const std::vector<const ANeuralNetworksDevice*>& devices = {},
      const std::function<void(ANeuralNetworksCompilation*)>& prepare = {}) const {
    ndk::Compilation compilation =
        devices.empty() ? ndk::Compilation(model) : ndk::Compilation(model, devices);
    if (prepare) prepare(compilation.get());
    if (token != nullptr) {
      EXPECT_CODE(NO_ERROR, ANeuralNetworksCompilation_setCaching(compilation.get(),
                                                                  folder().c_str(), token->data()));
    }
    compilation.finish();
    return compilation;
  }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder()))
      names.insert(entry.path().filename().string());
    return names;
  }

  // The cache outcome in the report of the last compilation.
  std::string lastCache() const {
    std::ifstream report(root_ / "report");
    std::string last;
    for (std::string line; std::getline(report, line);) last = line;
    const size_t at = last.find("\"cache\":\"");
    if (at == std::string::npos) return "no report";
    const size_t begin = at + 9;
    return last.substr(begin, last.find('"', begin) - begin);
  }

  fs::path root_;
};

std::vector<const ANeuralNetworksDevice*> listed() {
  const auto devices = ndk::devices();
  return {devices.begin(), devices.end()};
}

std::shared_ptr<FakeDevice> fakeDevice(FakeDeviceOptions options) {
  return std::make_shared<FakeDevice>(std::move(options));
}

// ---- number of cache files ----

TEST_F(CachingBehaviour, B22_DevicesThatWantTooManyFilesAreNotListed) {
  for (const std::optional<ErrorCode> error :
       {std::optional<ErrorCode>(), std::optional(ErrorCode::kUnavailableDevice)})
    for (const uint32_t model : {0u, 1u, 32u, 33u})
      for (const uint32_t data : {0u, 1u, 32u, 33u}) {
        setDevicesForTest({fakeDevice({.name = "always"}), fakeDevice({.name = "caching",
                                                                       .cacheFiles = {model, data},
                                                                       .cacheFilesError = error})});
        std::vector<std::string> names;
        for (const ANeuralNetworksDevice* device : listed()) names.push_back(ndk::nameOf(device));
        if (!error && model <= 32 && data <= 32)
          EXPECT_THAT(names, testing::ElementsAre("always", "caching"));
        else
          EXPECT_THAT(names, testing::ElementsAre("always"));
      }
}

// ---- preparation without a cache, with a miss and with a hit ----

struct Flow {
  hal::CacheFileCounts counts;
  std::optional<ErrorCode> fromCacheError;
};

std::vector<Flow> flows() {
  std::vector<Flow> all;
  for (const uint32_t model : {0u, 1u, 32u})
    for (const uint32_t data : {0u, 1u, 32u})
      for (const std::optional<ErrorCode> error :
           {std::optional<ErrorCode>(), std::optional(ErrorCode::kOpFailed),
            std::optional(ErrorCode::kUnavailableDevice), std::optional(ErrorCode::kBadData)})
        all.push_back({{model, data}, error});
  return all;
}

class CachingFlows : public CachingBehaviour {
 protected:
  // A new device for each flow, the only one.
  std::shared_ptr<FakeDevice> deviceFor(const Flow& flow) {
    auto device = fakeDevice(
        {.name = "caching", .cacheFiles = flow.counts, .fromCacheError = flow.fromCacheError});
    setDevicesForTest({device});
    fs::remove_all(folder());
    fs::create_directory(folder());
    return device;
  }
  static bool isCaching(const Flow& flow) {
    return flow.counts.model != 0 || flow.counts.data != 0;
  }
};

TEST_F(CachingFlows, B19_WithoutFilesTheModelIsCompiledAndCached) {
  const ndk::Model model = addModel();
  const Token token = {1};
  for (const Flow& flow : flows()) {
    const auto device = deviceFor(flow);
    compile(model, &token, listed());
    EXPECT_EQ(device->preparationsFromCache, 0);
    EXPECT_EQ(device->preparations, 1);
    EXPECT_EQ(device->cachedPreparations, isCaching(flow) ? 1 : 0);
    EXPECT_EQ(files().size(), flow.counts.model + flow.counts.data);
  }
}

TEST_F(CachingFlows, B19_WithFilesTheModelComesFromThem) {
  const ndk::Model model = addModel();
  const Token token = {1};
  for (const Flow& flow : flows()) {
    const auto device = deviceFor(flow);
    compile(model, &token, listed());
    const auto before = files();
    compile(model, &token, listed());
    EXPECT_EQ(device->preparationsFromCache, isCaching(flow) ? 1 : 0);
    const bool isHit = isCaching(flow) && !flow.fromCacheError;
    EXPECT_EQ(device->preparations, isHit ? 1 : 2);
    EXPECT_EQ(device->cachedPreparations, !isCaching(flow) ? 0 : isHit ? 1 : 2);
    EXPECT_EQ(files(), before);
  }
}

TEST_F(CachingFlows, B19_WithoutATokenNothingIsCached) {
  const ndk::Model model = addModel();
  for (const Flow& flow : flows()) {
    const auto device = deviceFor(flow);
    compile(model, nullptr, listed());
    compile(model, nullptr, listed());
    EXPECT_EQ(device->preparationsFromCache, 0);
    EXPECT_EQ(device->preparations, 2);
    EXPECT_EQ(device->cachedPreparations, 0);
    EXPECT_TRUE(files().empty());
  }
}

TEST_F(CachingFlows, B19_OneMissingFileIsAMiss) {
  const ndk::Model model = addModel();
  const Token token = {1};
  const auto device = deviceFor({{2, 3}, {}});
  compile(model, &token, listed());
  const auto before = files();
  ASSERT_EQ(before.size(), 5u);
  for (const std::string& name : before) {
    fs::remove(folder() / name);
    device->preparationsFromCache = 0;
    device->preparations = 0;
    compile(model, &token, listed());
    EXPECT_EQ(device->preparationsFromCache, 0) << name;
    EXPECT_EQ(device->preparations, 1) << name;
    EXPECT_EQ(files(), before);
  }
}

// ---- keys ----

// The parts of a compilation that go into the key.
struct KeyCase {
  std::string deviceName = "first";
  std::string version = "1";
  int32_t preference = ANEURALNETWORKS_PREFER_FAST_SINGLE_ANSWER;
  int priority = ANEURALNETWORKS_PRIORITY_MEDIUM;
  Token token = {7};
  std::set<graph::OperationType> operations;  // of the first device; empty: all
};

class CacheKeys : public CachingBehaviour {
 protected:
  using ModelMaker = std::function<ndk::Model()>;

  // The tokens that the first device is given.
  std::vector<hal::CacheToken> tokensOf(const ModelMaker& makeModel, const KeyCase& one,
                                        bool hasToken = true) {
    auto first = fakeDevice({.name = one.deviceName,
                             .operations = one.operations,
                             .performance = {0.1f, 0.1f},
                             .cacheFiles = {1, 1},
                             .fromCacheError = ErrorCode::kOpFailed,
                             .version = one.version});
    setDevicesForTest({first, fakeDevice({.name = "second", .performance = {0.5f, 0.5f}})});
    compile(makeModel(), hasToken ? &one.token : nullptr, listed(),
            [&](ANeuralNetworksCompilation* compilation) {
              EXPECT_CODE(NO_ERROR,
                          ANeuralNetworksCompilation_setPreference(compilation, one.preference));
              EXPECT_CODE(NO_ERROR,
                          ANeuralNetworksCompilation_setPriority(compilation, one.priority));
            });
    return first->tokens();
  }

  // Expects the same tokens each time, and other tokens after each change.
  void checkKeys(const ModelMaker& makeModel, const KeyCase& basis) {
    const auto tokens = tokensOf(makeModel, basis);
    ASSERT_FALSE(tokens.empty());
    for (int i = 0; i < 10; ++i) EXPECT_EQ(tokensOf(makeModel, basis), tokens);
    EXPECT_TRUE(tokensOf(makeModel, basis, false).empty());

    std::set<std::vector<hal::CacheToken>> different = {tokens};
    const auto expectNew = [&](const char* what, auto change) {
      KeyCase other = basis;
      change(&other);
      const auto changed = tokensOf(makeModel, other);
      ASSERT_FALSE(changed.empty()) << what;
      EXPECT_TRUE(different.insert(changed).second) << what;
    };
    expectNew("device name", [](KeyCase* c) { c->deviceName = "another"; });
    expectNew("device version", [](KeyCase* c) { c->version = "2"; });
    expectNew("low power", [](KeyCase* c) { c->preference = ANEURALNETWORKS_PREFER_LOW_POWER; });
    expectNew("sustained speed",
              [](KeyCase* c) { c->preference = ANEURALNETWORKS_PREFER_SUSTAINED_SPEED; });
    expectNew("low priority", [](KeyCase* c) { c->priority = ANEURALNETWORKS_PRIORITY_LOW; });
    expectNew("high priority", [](KeyCase* c) { c->priority = ANEURALNETWORKS_PRIORITY_HIGH; });
    expectNew("first byte of the token", [](KeyCase* c) { c->token[0] = 8; });
    expectNew("last byte of the token", [](KeyCase* c) { c->token[31] = 1; });
  }
};

TEST_F(CacheKeys, B18_OfAWholeModel) {
  checkKeys([] { return addThenMulModel(); }, {});
}

TEST_F(CacheKeys, B18_OfPartsOfAModel) {
  KeyCase adds;
  adds.operations = {graph::OperationType::kAdd};
  checkKeys([] { return addThenMulModel(); }, adds);
  // Another part of the same model has another key, and so has the whole.
  KeyCase multiplications;
  multiplications.operations = {graph::OperationType::kMul};
  const auto make = [] {
    return addThenMulModel();
  };
  EXPECT_NE(tokensOf(make, adds), tokensOf(make, multiplications));
  EXPECT_NE(tokensOf(make, adds), tokensOf(make, {}));
}

// IF with a branch that adds and one that multiplies. The first device does not take it whole.
ndk::Model choiceModel() {
  const auto branch = [](int32_t operation) {
    ndk::Model model;
    const uint32_t a = model.operand(floats({2}));
    const uint32_t result = model.operand(floats({2}));
    model.operation(operation, {a, a, model.int32(0)}, {result});
    model.finish({a}, {result});
    return model;
  };
  static const auto* const then = new ndk::Model(branch(ANEURALNETWORKS_ADD));
  static const auto* const otherwise = new ndk::Model(branch(ANEURALNETWORKS_MUL));
  ndk::Model model;
  const uint32_t condition = model.operand({ANEURALNETWORKS_TENSOR_BOOL8, {1}, 0, 0});
  const uint32_t a = model.operand(floats({2}));
  const uint32_t result = model.operand(floats({2}));
  model.operation(ANEURALNETWORKS_IF, {condition, model.model(*then), model.model(*otherwise), a},
                  {result});
  model.finish({condition, a}, {result});
  return model;
}

TEST_F(CacheKeys, B18_OfReferencedModels) {
  const auto first = [&](std::set<graph::OperationType> operations) {
    auto device = fakeDevice({.name = "first",
                              .operations = std::move(operations),
                              .performance = {0.1f, 0.1f},
                              .cacheFiles = {1, 1},
                              .fromCacheError = ErrorCode::kOpFailed});
    setDevicesForTest(
        {device, fakeDevice({.name = "second",
                             .operations = {graph::OperationType::kAdd, graph::OperationType::kMul},
                             .performance = {0.5f, 0.5f}})});
    const Token token = {7};
    compile(choiceModel(), &token, listed());
    return device->tokens();
  };
  const auto both = first({graph::OperationType::kAdd, graph::OperationType::kMul});
  const auto then = first({graph::OperationType::kAdd});
  const auto otherwise = first({graph::OperationType::kMul});
  // Each branch has a key of its own, whichever device runs the other.
  ASSERT_EQ(both.size(), 2u);
  EXPECT_NE(both[0], both[1]);
  EXPECT_EQ(then, std::vector{both[0]});
  EXPECT_EQ(otherwise, std::vector{both[1]});
}

TEST_F(CacheKeys, B18_FilesAreNamedByTheKey) {
  const auto tokens = tokensOf([] { return addModel(); }, {});
  ASSERT_EQ(tokens.size(), 1u);
  std::string name;
  for (const uint8_t byte : tokens[0]) {
    name += static_cast<char>('A' + (byte & 15));
    name += static_cast<char>('A' + (byte >> 4));
  }
  EXPECT_EQ(files(), (std::set<std::string>{name + "10", name + "20"}));
  struct stat status;
  ASSERT_EQ(::stat((folder() / (name + "10")).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

// ---- hearth-cpu ----

TEST_F(CachingBehaviour, B20_NoCacheFolderIsNoError) {
  const ndk::Model model = addModel();
  const uint8_t token[ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN] = {1};
  for (const char* folder : {"/nowhere/at/all", "/proc", ""}) {
    ndk::Compilation compilation(model);
    EXPECT_CODE(NO_ERROR, ANeuralNetworksCompilation_setCaching(compilation.get(), folder, token));
    EXPECT_CODE(NO_ERROR, ANeuralNetworksCompilation_finish(compilation.get()));
    const std::vector<float> a = {1, 2};
    std::vector<float> sum(2);
    ndk::Execution(compilation).input(0, a).input(1, a).output(0, sum).compute();
    EXPECT_THAT(sum, testing::ElementsAre(2, 4));
  }
}

TEST_F(CachingBehaviour, B21_TheCpuComputesTheSameFromItsCache) {
  // A layer with packed weights, a constant that is read unpacked, and small constants.
  const auto layered = [] {
    constexpr uint32_t kWidth = 64;
    std::vector<float> weights(kWidth * kWidth);
    std::vector<float> offsets(16 * kWidth);
    const std::vector<float> biases(kWidth, 0.5f);
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = static_cast<float>((i * 37) % 41) / 16 - 1;
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<float>(i % 7);
    ndk::Model model;
    const uint32_t in = model.operand(floats({16, kWidth}));
    const uint32_t filter = model.constant<float>(floats({kWidth, kWidth}), weights);
    const uint32_t bias = model.constant<float>(floats({kWidth}), biases);
    const uint32_t layer = model.operand(floats({16, kWidth}));
    const uint32_t more = model.constant<float>(floats({16, kWidth}), offsets);
    const uint32_t out = model.operand(floats({16, kWidth}));
    model.operation(ANEURALNETWORKS_FULLY_CONNECTED, {in, filter, bias, model.int32(0)}, {layer});
    model.operation(ANEURALNETWORKS_ADD, {layer, more, model.int32(0)}, {out});
    model.finish({in}, {out});
    return model;
  };
  const ndk::Model model = layered();
  const Token token = {9};
  std::vector<float> in(16 * 64);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 13) - 6;
  const auto results = [&](const ndk::Compilation& compilation) {
    std::vector<float> out(in.size());
    ndk::Execution(compilation).input(0, in).output(0, out).compute();
    return out;
  };
  const auto expected = results(compile(model, nullptr));
  EXPECT_EQ(lastCache(), "");
  EXPECT_EQ(results(compile(model, &token)), expected);
  EXPECT_NE(lastCache(), "hit");
  const auto before = files();
  EXPECT_EQ(before.size(), 2u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(results(compile(model, &token)), expected);
    EXPECT_EQ(lastCache(), "hit");
  }
  EXPECT_EQ(files(), before) << "Nothing else is left in the client's folder.";
  // A changed file is a miss, and the compilation repairs it.
  for (const std::string& name : before) {
    std::ofstream(folder() / name, std::ios::app) << "x";
    EXPECT_EQ(results(compile(model, &token)), expected);
    EXPECT_NE(lastCache(), "hit");
    EXPECT_EQ(results(compile(model, &token)), expected);
    EXPECT_EQ(lastCache(), "hit");
  }
}

}  // namespace
}  // namespace hearth::nnapi
