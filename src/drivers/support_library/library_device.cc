// SPDX-License-Identifier: Apache-2.0
#include "drivers/support_library/library_device.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/log.h"
#include "drivers/support_library/expressible.h"
#include "drivers/support_library/library_model.h"
#include "drivers/support_library/library_prepared_model.h"
#include "drivers/support_library/saved_compilation.h"
#include "graph/validated_model.h"
#include "hal/preparation_check.h"
#include "hal/request_check.h"
#include "ops/operation.h"

namespace hearth::drivers::support_library {
namespace {

constexpr size_t kMaxTextBytes = 256;
constexpr uint32_t kMaxExtensions = 256;
constexpr size_t kMaxExtensionTypes = 4096;
// A device's answer may depend on refusals of the step before; each round has at least one more.
constexpr int kMaxRounds = 8;

// What does not change while a library is loaded.
struct Description {
  std::string name;
  std::string innerName;  // in the library; empty where it is the only one
  std::string version;
  hal::DeviceType type = hal::DeviceType::kOther;
  int64_t featureLevel = 0;
  hal::Capabilities capabilities;
  std::vector<std::string> extensions;
  std::vector<hal::ExtensionOperandType> extensionTypes;
  hal::CacheFileCounts cacheFiles;  // that the library wants; none: it caches nothing
};

// Numbers that are none, or not positive, say nothing.
hal::PerformanceInfo asPerformance(const SL_ANeuralNetworksPerformanceInfo& info) {
  const auto checked = [](float value) {
    return std::isfinite(value) && value > 0.0f ? value : 1.0f;
  };
  return {checked(info.execTime), checked(info.powerUsage)};
}

class Describing {
 public:
  Describing(const SupportLibrary& library, const ANeuralNetworksDevice* device)
      : library_(library), functions_(library.functions()), device_(device) {}

  Result<Description> describe() const {
    Description made;
    const char* version = nullptr;
    HEARTH_TRY(asStatus(functions_.ANeuralNetworksDevice_getVersion(device_, &version),
                        "ANeuralNetworksDevice_getVersion"));
    HEARTH_ASSIGN(made.version, checkedText(version, kMaxTextBytes, "version of the device"));
    int32_t type = 0;
    HEARTH_TRY(asStatus(functions_.ANeuralNetworksDevice_getType(device_, &type),
                        "ANeuralNetworksDevice_getType"));
    if (type >= ANEURALNETWORKS_DEVICE_OTHER && type <= ANEURALNETWORKS_DEVICE_ACCELERATOR)
      made.type = static_cast<hal::DeviceType>(type);
    HEARTH_ASSIGN(made.featureLevel, featureLevel());
    HEARTH_TRY(addExtensions(&made));
    addCapabilities(&made.capabilities);
    HEARTH_ASSIGN(made.cacheFiles, cacheFiles());
    return made;
  }

 private:
  Result<int64_t> featureLevel() const {
    int64_t level = 0;
    HEARTH_TRY(asStatus(functions_.ANeuralNetworksDevice_getFeatureLevel(device_, &level),
                        "ANeuralNetworksDevice_getFeatureLevel"));
    if (level < ANEURALNETWORKS_FEATURE_LEVEL_1)
      return fail(ErrorCode::kBadData, "The device is of feature level {}; the levels begin at {}.",
                  level, static_cast<int>(ANEURALNETWORKS_FEATURE_LEVEL_1));
    if (level > ANEURALNETWORKS_FEATURE_LEVEL_5 && level < ANEURALNETWORKS_FEATURE_LEVEL_6)
      level = ANEURALNETWORKS_FEATURE_LEVEL_5;
    return std::min(level, library_.featureLevel());
  }

  Result<hal::CacheFileCounts> cacheFiles() const {
    if (functions_.SL_ANeuralNetworksDevice_getNumberOfCacheFilesNeeded == nullptr ||
        functions_.SL_ANeuralNetworksCompilation_setCachingFromFds == nullptr)
      return hal::CacheFileCounts{};
    hal::CacheFileCounts counts;
    HEARTH_TRY(asStatus(functions_.SL_ANeuralNetworksDevice_getNumberOfCacheFilesNeeded(
                            device_, &counts.model, &counts.data),
                        "SL_ANeuralNetworksDevice_getNumberOfCacheFilesNeeded"));
    if (counts.model > kMaxLibraryFiles || counts.data > kMaxLibraryFiles)
      return fail(ErrorCode::kBadData, "The device wants {} and {} cache files, more than {}.",
                  counts.model, counts.data, kMaxLibraryFiles);
    return counts;
  }

  void addCapabilities(hal::Capabilities* capabilities) const {
    for (const auto& [kind, info] :
         {std::pair(SL_ANEURALNETWORKS_CAPABILITIES_PERFORMANCE_RELAXED_TENSOR,
                    &capabilities->relaxedFloat32),
          std::pair(SL_ANEURALNETWORKS_CAPABILITIES_PERFORMANCE_IF, &capabilities->ifPerformance),
          std::pair(SL_ANEURALNETWORKS_CAPABILITIES_PERFORMANCE_WHILE,
                    &capabilities->whilePerformance)}) {
      SL_ANeuralNetworksPerformanceInfo answer{1.0f, 1.0f};
      if (functions_.SL_ANeuralNetworksDevice_getPerformanceInfo(device_, kind, &answer) ==
          ANEURALNETWORKS_NO_ERROR)
        *info = asPerformance(answer);
    }
    const auto add = [](SL_ANeuralNetworksOperandPerformanceInfo info, void* to) {
      const auto type = static_cast<graph::OperandType>(info.operandType);
      if (info.operandType >> 16 == 0 && graph::findOperandType(type) != nullptr)
        static_cast<hal::Capabilities*>(to)->operandPerformance[type] =
            asPerformance(info.performanceInfo);
    };
    static_cast<void>(functions_.SL_ANeuralNetworksDevice_forEachOperandPerformanceInfo(
        device_, capabilities, add));
  }

  Status addExtensions(Description* to) const {
    uint32_t count = 0;
    HEARTH_TRY(
        asStatus(functions_.SL_ANeuralNetworksDevice_getVendorExtensionCount(device_, &count),
                 "SL_ANeuralNetworksDevice_getVendorExtensionCount"));
    if (count > kMaxExtensions)
      return fail(ErrorCode::kBadData, "The device has {} extensions, more than {}.", count,
                  kMaxExtensions);
    for (uint32_t i = 0; i < count; ++i) {
      const char* text = nullptr;
      HEARTH_TRY(
          asStatus(functions_.SL_ANeuralNetworksDevice_getVendorExtensionName(device_, i, &text),
                   "SL_ANeuralNetworksDevice_getVendorExtensionName"));
      HEARTH_ASSIGN(std::string name, checkedText(text, kMaxTextBytes, "name of an extension"));
      if (std::ranges::contains(to->extensions, name)) continue;
      to->extensions.push_back(name);
      if (name != graph::kTfliteExtensionName) HEARTH_TRY(addTypes(i, name, to));
    }
    return {};
  }

  Status addTypes(uint32_t index, const std::string& extension, Description* to) const {
    struct Found {
      const std::string& extension;
      std::vector<hal::ExtensionOperandType> types;
    } found{extension, {}};
    const auto add = [](SL_ANeuralNetworksExtensionOperandTypeInformation info, void* context) {
      auto& into = *static_cast<Found*>(context);
      if (into.types.size() >= kMaxExtensionTypes ||
          std::ranges::contains(into.types, info.type, &hal::ExtensionOperandType::number))
        return;
      into.types.push_back({into.extension, info.type, info.byteSize, info.isTensor});
    };
    HEARTH_TRY(
        asStatus(functions_.SL_ANeuralNetworksDevice_forEachVendorExtensionOperandTypeInformation(
                     device_, index, &found, add),
                 "SL_ANeuralNetworksDevice_forEachVendorExtensionOperandTypeInformation"));
    to->extensionTypes.insert(to->extensionTypes.end(), found.types.begin(), found.types.end());
    return {};
  }

  const SupportLibrary& library_;
  const NnApiSLDriverImplFL5& functions_;
  const ANeuralNetworksDevice* const device_;
};

// A model that the library has compiled.
struct Compiled {
  std::shared_ptr<const LibraryModel> model;
  Handle<ANeuralNetworksCompilation> compilation;
};

class LibraryDevice final : public hal::Device {
 public:
  LibraryDevice(std::shared_ptr<const SupportLibrary> library, const ANeuralNetworksDevice* device,
                Description description)
      : library_(std::move(library)),
        device_(device),
        description_(std::move(description)),
        memories_(std::make_shared<LibraryMemories>(library_)) {}

  std::string name() const override { return description_.name; }
  std::string version() const override { return description_.version; }
  hal::DeviceType type() const override { return description_.type; }
  int64_t featureLevel() const override { return description_.featureLevel; }
  hal::Capabilities capabilities() const override { return description_.capabilities; }
  std::vector<std::string> supportedExtensions() const override { return description_.extensions; }
  std::vector<hal::ExtensionOperandType> extensionOperandTypes() const override {
    return description_.extensionTypes;
  }
  Result<hal::CacheFileCounts> numberOfCacheFilesNeeded() const override {
    return isCaching() ? kCacheFileCounts : hal::CacheFileCounts{};
  }

  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override;
  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache cache) override;
  Result<std::shared_ptr<hal::PreparedModel>> prepareModelFromCache(
      const hal::PrepareOptions& options, hal::Cache cache) override;
  Result<std::unique_ptr<hal::Buffer>> allocate(
      const hal::BufferDescription& description,
      const std::vector<hal::BufferRole>& roles) override {
    return memories_->allocate(description, roles);
  }

 private:
  bool isCaching() const {
    return description_.cacheFiles.model != 0 || description_.cacheFiles.data != 0;
  }
  DeviceTerms terms() const { return {library_->featureLevel(), description_.extensions}; }
  Status ask(const graph::Model& model, std::vector<std::string>* reasons) const;
  Status setOptions(ANeuralNetworksCompilation* compilation,
                    const hal::PrepareOptions& options) const;
  Status setFiles(ANeuralNetworksCompilation* compilation, const LibraryFiles& files,
                  const hal::CacheToken& token) const;
  // Compiles a valid model. `files` are those of the library under this token; null: none. With
  // `refusal` it is no error that the library does not take them: that gets its answer.
  Result<Compiled> compile(std::shared_ptr<const graph::Model> model,
                           const hal::PrepareOptions& options, const LibraryFiles* files,
                           const hal::CacheToken& token, Status* refusal = nullptr) const;
  // The same with new files, which are saved in the client's. `problem` gets why they are not.
  Result<Compiled> compileAndSave(const std::shared_ptr<const graph::Model>& model,
                                  const hal::PrepareOptions& options, const hal::Cache& cache,
                                  std::string* problem) const;
  Result<cache::CacheOwner> cacheOwner(const hal::CacheToken& token) const;

  const std::shared_ptr<const SupportLibrary> library_;
  const ANeuralNetworksDevice* const device_;
  const Description description_;
  const std::shared_ptr<LibraryMemories> memories_;
};

// Asks the library about the operations that have no reason in `reasons`, and adds its own.
Status LibraryDevice::ask(const graph::Model& model, std::vector<std::string>* reasons) const {
  for (int round = 0; round < kMaxRounds; ++round) {
    std::vector<size_t> asked;
    for (size_t i = 0; i < reasons->size(); ++i)
      if ((*reasons)[i].empty()) asked.push_back(i);
    if (asked.empty()) return {};
    std::vector<std::string> refusals;
    const auto made = LibraryModel::make(
        library_, std::make_shared<const graph::Model>(withoutOperations(model, *reasons)),
        &refusals);
    if (made) {
      // Bytes, as a library may write other values than those of a bool.
      std::vector<uint8_t> answers(asked.size());
      HEARTH_TRY(
          asStatus(library_->functions().ANeuralNetworksModel_getSupportedOperationsForDevices(
                       (*made)->get(), &device_, 1, reinterpret_cast<bool*>(answers.data())),
                   "ANeuralNetworksModel_getSupportedOperationsForDevices"));
      for (size_t i = 0; i < asked.size(); ++i)
        if (answers[i] == 0)
          (*reasons)[asked[i]] =
              base::formatText("The support library does not run this {}.",
                               graph::nameOf(model.main().operations[asked[i]].type));
      return {};
    }
    bool isAnyRefused = false;
    for (size_t i = 0; i < refusals.size() && i < asked.size(); ++i) {
      isAnyRefused |= !refusals[i].empty();
      (*reasons)[asked[i]] = refusals[i];
    }
    if (isAnyRefused) continue;
    // The library refuses a subgraph, or the model as a whole.
    const auto isControlFlow = [&](size_t index) {
      const graph::OperationType type = model.main().operations[index].type;
      return type == graph::OperationType::kIf || type == graph::OperationType::kWhile;
    };
    const bool hasControlFlow = std::ranges::any_of(asked, isControlFlow);
    for (const size_t index : asked)
      if (!hasControlFlow || isControlFlow(index)) (*reasons)[index] = made.error().toString();
  }
  for (std::string& reason : *reasons)
    if (reason.empty()) reason = "The support library keeps refusing the model.";
  return {};
}

Result<std::vector<hal::OperationSupport>> LibraryDevice::supportedOperations(
    const graph::Model& model) {
  HEARTH_TRY(hal::checkPoolsMapped(model));
  HEARTH_TRY(graph::validateOnce(model));
  std::vector<std::string> reasons = inexpressibleOperations(model, terms());
  HEARTH_TRY(ask(model, &reasons));
  std::vector<hal::OperationSupport> supports;
  for (std::string& reason : reasons) {
    const bool isSupported = reason.empty();
    supports.push_back({isSupported, isSupported ? "own" : "", std::move(reason)});
  }
  return supports;
}

Status LibraryDevice::setOptions(ANeuralNetworksCompilation* compilation,
                                 const hal::PrepareOptions& options) const {
  const NnApiSLDriverImplFL5& functions = library_->functions();
  // The default preference is the same; but libraries may take it for a wish of the client's to
  // have the first answer soon, whatever the later ones take.
  if (options.preference != hal::Preference::kFastSingleAnswer ||
      options.preparation == hal::Preparation::kJustInTime)
    HEARTH_TRY(asStatus(functions.ANeuralNetworksCompilation_setPreference(
                            compilation, static_cast<int32_t>(options.preference)),
                        "ANeuralNetworksCompilation_setPreference"));
  HEARTH_TRY(asStatus(functions.ANeuralNetworksCompilation_setPriority(
                          compilation, static_cast<int>(options.priority)),
                      "ANeuralNetworksCompilation_setPriority"));
  if (options.deadline.isNever()) return {};
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
                        options.deadline.when() - base::Deadline::Clock::now())
                        .count();
  return asStatus(functions.ANeuralNetworksCompilation_setTimeout(
                      compilation, static_cast<uint64_t>(std::max<int64_t>(left, 1))),
                  "ANeuralNetworksCompilation_setTimeout");
}

Status LibraryDevice::setFiles(ANeuralNetworksCompilation* compilation, const LibraryFiles& files,
                               const hal::CacheToken& token) const {
  std::vector<int> numbers[2];
  for (const auto* const list : {&files.model, &files.data})
    for (const base::Descriptor& file : *list)
      numbers[list == &files.model ? 0 : 1].push_back(file.get());
  return asStatus(library_->functions().SL_ANeuralNetworksCompilation_setCachingFromFds(
                      compilation, numbers[0].data(), static_cast<uint32_t>(numbers[0].size()),
                      numbers[1].data(), static_cast<uint32_t>(numbers[1].size()), token.data()),
                  "SL_ANeuralNetworksCompilation_setCachingFromFds");
}

Result<Compiled> LibraryDevice::compile(std::shared_ptr<const graph::Model> model,
                                        const hal::PrepareOptions& options,
                                        const LibraryFiles* files, const hal::CacheToken& token,
                                        Status* refusal) const {
  std::vector<std::string> refusals;
  HEARTH_ASSIGN(auto made, LibraryModel::make(library_, std::move(model), &refusals));
  const NnApiSLDriverImplFL5& functions = library_->functions();
  HEARTH_ASSIGN(auto compilation,
                makeObject<ANeuralNetworksCompilation>(
                    "ANeuralNetworksCompilation_createForDevices",
                    functions.ANeuralNetworksCompilation_createForDevices,
                    functions.ANeuralNetworksCompilation_free, made->get(), &device_, 1u));
  HEARTH_TRY(setOptions(compilation.get(), options));
  if (files != nullptr) {
    Status taken = setFiles(compilation.get(), *files, token);
    if (!taken && refusal == nullptr) return std::unexpected(std::move(taken.error()));
    if (refusal != nullptr) *refusal = std::move(taken);
  }
  HEARTH_TRY(asStatus(functions.ANeuralNetworksCompilation_finish(compilation.get()),
                      "ANeuralNetworksCompilation_finish"));
  HEARTH_TRY(hal::checkPoolsWhole(made->source()));
  return Compiled{std::move(made), std::move(compilation)};
}

Result<Compiled> LibraryDevice::compileAndSave(const std::shared_ptr<const graph::Model>& model,
                                               const hal::PrepareOptions& options,
                                               const hal::Cache& cache,
                                               std::string* problem) const {
  const auto files = makeLibraryFiles(description_.cacheFiles);
  if (!files) *problem = files.error().toString();
  Status taken;
  HEARTH_ASSIGN(Compiled compiled,
                compile(model, options, files ? &*files : nullptr, cache.token, &taken));
  if (!files) return compiled;
  const Status saved = [&]() -> Status {
    HEARTH_TRY(taken);
    HEARTH_ASSIGN(const cache::CacheOwner owner, cacheOwner(cache.token));
    return saveCompilation(*model, *files, owner, cache);
  }();
  if (!saved) *problem = saved.error().toString();
  return compiled;
}

// The kind of files that this driver writes, the library, and its device.
Result<cache::CacheOwner> LibraryDevice::cacheOwner(const hal::CacheToken& token) const {
  HEARTH_ASSIGN(const base::Sha256Digest library, library_->identity());
  base::Sha256 hash;
  for (const std::string& text :
       {std::string("support library"), description_.innerName, description_.version})
    hash.update(text.c_str(), text.size() + 1);
  hash.update(library);
  return cache::CacheOwner{hash.finish(), ::geteuid(), token};
}

Result<std::shared_ptr<hal::PreparedModel>> LibraryDevice::prepareModel(
    std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
    hal::Cache cache) {
  HEARTH_TRY(hal::checkPreparation(model.get(), options));
  HEARTH_TRY(ops::validateOperationsExceptDrivers(*model));
  const uint64_t limit = options.maxActivationBytes;
  HEARTH_TRY(checkActivations(*model, limit));
  for (const std::string& reason : inexpressibleOperations(*model, terms()))
    if (!reason.empty()) return fail(ErrorCode::kUnsupported, "{}", reason);
  const bool isSaved = isCaching() && !(cache.modelFiles.empty() && cache.dataFiles.empty());
  std::string problem;
  HEARTH_ASSIGN(Compiled compiled, isSaved
                                       ? compileAndSave(model, options, cache, &problem)
                                       : compile(std::move(model), options, nullptr, cache.token));
  if (!problem.empty()) base::logInfo("A compilation is not cached. {}", problem);
  return std::make_shared<LibraryPreparedModel>(memories_, std::move(compiled.model),
                                                std::move(compiled.compilation), limit,
                                                std::move(problem));
}

Result<std::shared_ptr<hal::PreparedModel>> LibraryDevice::prepareModelFromCache(
    const hal::PrepareOptions& options, hal::Cache cache) {
  if (!isCaching()) return hal::Device::prepareModelFromCache(options, std::move(cache));
  HEARTH_TRY(hal::checkDeadline(options));
  HEARTH_ASSIGN(const cache::CacheOwner owner, cacheOwner(cache.token));
  HEARTH_ASSIGN(const SavedCompilation saved,
                loadCompilation(description_.cacheFiles, owner, cache));
  HEARTH_TRY(ops::validateOperationsExceptDrivers(*saved.model));
  HEARTH_TRY(checkActivations(*saved.model, options.maxActivationBytes));
  HEARTH_ASSIGN(Compiled compiled, compile(saved.model, options, &saved.files, cache.token));
  return std::make_shared<LibraryPreparedModel>(memories_, std::move(compiled.model),
                                                std::move(compiled.compilation),
                                                options.maxActivationBytes, "");
}

}  // namespace

Result<std::shared_ptr<hal::Device>> createDevice(std::shared_ptr<const SupportLibrary> library,
                                                  std::string name, const std::string& device) {
  HEARTH_ASSIGN(const ANeuralNetworksDevice* const found, library->device(device));
  HEARTH_ASSIGN(Description description, Describing(*library, found).describe());
  description.innerName = device;
  description.name = std::move(name);
  return std::make_shared<LibraryDevice>(std::move(library), found, std::move(description));
}

}  // namespace hearth::drivers::support_library
