// SPDX-License-Identifier: Apache-2.0
#include "drivers/support_library/support_library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/build_id.h"
#include "base/descriptor.h"
#include "base/format.h"
#include "hal/driver_entry.h"

namespace hearth::drivers::support_library {
namespace {

constexpr uint32_t kMaxDevices = 64;
constexpr size_t kMaxNameBytes = 256;

// The functions that this driver calls, and where they stand in the table.
struct Entry {
  const char* name;
  size_t offset;
};
#define HEARTH_ENTRY(name) {#name, offsetof(NnApiSLDriverImplFL5, name)}
constexpr Entry kNeeded[] = {
    HEARTH_ENTRY(ANeuralNetworksCompilation_createForDevices),
    HEARTH_ENTRY(ANeuralNetworksCompilation_finish),
    HEARTH_ENTRY(ANeuralNetworksCompilation_free),
    HEARTH_ENTRY(ANeuralNetworksCompilation_setPreference),
    HEARTH_ENTRY(ANeuralNetworksCompilation_setPriority),
    HEARTH_ENTRY(ANeuralNetworksCompilation_setTimeout),
    HEARTH_ENTRY(ANeuralNetworksDevice_getFeatureLevel),
    HEARTH_ENTRY(ANeuralNetworksDevice_getName),
    HEARTH_ENTRY(ANeuralNetworksDevice_getType),
    HEARTH_ENTRY(ANeuralNetworksDevice_getVersion),
    HEARTH_ENTRY(ANeuralNetworksExecution_compute),
    HEARTH_ENTRY(ANeuralNetworksExecution_create),
    HEARTH_ENTRY(ANeuralNetworksExecution_free),
    HEARTH_ENTRY(ANeuralNetworksExecution_getDuration),
    HEARTH_ENTRY(ANeuralNetworksExecution_getOutputOperandDimensions),
    HEARTH_ENTRY(ANeuralNetworksExecution_getOutputOperandRank),
    HEARTH_ENTRY(ANeuralNetworksExecution_setInput),
    HEARTH_ENTRY(ANeuralNetworksExecution_setInputFromMemory),
    HEARTH_ENTRY(ANeuralNetworksExecution_setLoopTimeout),
    HEARTH_ENTRY(ANeuralNetworksExecution_setMeasureTiming),
    HEARTH_ENTRY(ANeuralNetworksExecution_setOutput),
    HEARTH_ENTRY(ANeuralNetworksExecution_setOutputFromMemory),
    HEARTH_ENTRY(ANeuralNetworksExecution_setReusable),
    HEARTH_ENTRY(ANeuralNetworksExecution_setTimeout),
    HEARTH_ENTRY(ANeuralNetworksMemory_createFromFd),
    HEARTH_ENTRY(ANeuralNetworksMemory_free),
    HEARTH_ENTRY(ANeuralNetworksModel_addOperand),
    HEARTH_ENTRY(ANeuralNetworksModel_addOperation),
    HEARTH_ENTRY(ANeuralNetworksModel_create),
    HEARTH_ENTRY(ANeuralNetworksModel_finish),
    HEARTH_ENTRY(ANeuralNetworksModel_free),
    HEARTH_ENTRY(ANeuralNetworksModel_getExtensionOperandType),
    HEARTH_ENTRY(ANeuralNetworksModel_getSupportedOperationsForDevices),
    HEARTH_ENTRY(ANeuralNetworksModel_identifyInputsAndOutputs),
    HEARTH_ENTRY(ANeuralNetworksModel_relaxComputationFloat32toFloat16),
    HEARTH_ENTRY(ANeuralNetworksModel_setOperandExtensionData),
    HEARTH_ENTRY(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams),
    HEARTH_ENTRY(ANeuralNetworksModel_setOperandValue),
    HEARTH_ENTRY(ANeuralNetworksModel_setOperandValueFromMemory),
    HEARTH_ENTRY(ANeuralNetworksModel_setOperandValueFromModel),
    HEARTH_ENTRY(ANeuralNetworks_getDevice),
    HEARTH_ENTRY(ANeuralNetworks_getDeviceCount),
    HEARTH_ENTRY(ANeuralNetworks_getRuntimeFeatureLevel),
    HEARTH_ENTRY(SL_ANeuralNetworksDevice_forEachOperandPerformanceInfo),
    HEARTH_ENTRY(SL_ANeuralNetworksDevice_forEachVendorExtensionOperandTypeInformation),
    HEARTH_ENTRY(SL_ANeuralNetworksDevice_getPerformanceInfo),
    HEARTH_ENTRY(SL_ANeuralNetworksDevice_getVendorExtensionCount),
    HEARTH_ENTRY(SL_ANeuralNetworksDevice_getVendorExtensionName),
};
#undef HEARTH_ENTRY

// Copies memory that may not be there: a pipe's write() then fails, where reading it would end the
// process.
Status copyReadable(const void* from, size_t size, void* to) {
  static_assert(sizeof(NnApiSLDriverImplFL5) <= PIPE_BUF);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return std::unexpected(base::errnoError(errno, "Making a pipe"));
  const base::Descriptor reading(ends[0]);
  const base::Descriptor writing(ends[1]);
  const ssize_t written = ::write(writing.get(), from, size);
  if (written < 0 || static_cast<size_t>(written) != size)
    return fail(ErrorCode::kBadData,
                "The table of the support library does not have {} readable bytes.", size);
  if (::read(reading.get(), to, size) != written)
    return std::unexpected(base::errnoError(errno, "Reading a pipe"));
  return {};
}

// The highest level up to this one that Hearth knows.
int64_t levelUpTo(int64_t level) {
  if (level >= ANEURALNETWORKS_FEATURE_LEVEL_7) return ANEURALNETWORKS_FEATURE_LEVEL_7;
  return level >= ANEURALNETWORKS_FEATURE_LEVEL_6 ? ANEURALNETWORKS_FEATURE_LEVEL_6
                                                  : ANEURALNETWORKS_FEATURE_LEVEL_5;
}

}  // namespace

Status asStatus(int code, const char* function) {
  if (code == ANEURALNETWORKS_NO_ERROR) return {};
  if (code < static_cast<int>(ErrorCode::kOutOfMemory) ||
      code > static_cast<int>(ErrorCode::kDeadObject))
    return fail(ErrorCode::kOpFailed, "The support library answers {} to {}, which is no code.",
                code, function);
  const auto error = static_cast<ErrorCode>(code);
  return fail(error, "The support library answers {} to {}.", base::errorCodeName(error), function);
}

Result<std::string> checkedText(const char* text, size_t limit, const char* what) {
  if (text == nullptr) return fail(ErrorCode::kBadData, "The support library has no {}.", what);
  const size_t length = ::strnlen(text, limit + 1);
  if (length == 0 || length > limit)
    return fail(ErrorCode::kBadData, "The {} of the support library is empty or above {} bytes.",
                what, limit);
  return std::string(text, length);
}

SupportLibrary::SupportLibrary(const NnApiSLDriverImplFL5& functions)
    : functions_(functions),
      featureLevel_(levelUpTo(functions.ANeuralNetworks_getRuntimeFeatureLevel())) {}

Result<std::shared_ptr<const SupportLibrary>> SupportLibrary::load(const std::string& path) {
  // The linker would look up a name without a slash in its own search path.
  const std::string file = path.contains('/') ? path : "./" + path;
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const text = ::dlerror();
    return fail(ErrorCode::kNotFound, "The support library {} cannot be loaded: {}.", file,
                text != nullptr ? text : "the loader says nothing");
  }
  const auto table =
      reinterpret_cast<NnApiSLDriverImpl* (*)()>(::dlsym(library, hal::kSupportLibrarySymbol));
  if (table == nullptr)
    return fail(ErrorCode::kBadData, "The library {} does not export {}.", file,
                hal::kSupportLibrarySymbol);
  auto loaded = of(table());
  if (!loaded)
    return std::unexpected(std::move(loaded.error()).addContext("while loading " + file));
  return loaded;
}

Result<std::shared_ptr<const SupportLibrary>> SupportLibrary::of(const NnApiSLDriverImpl* table) {
  if (table == nullptr)
    return fail(ErrorCode::kBadData, "The support library has no table of functions.");
  NnApiSLDriverImplFL5 copy;
  HEARTH_TRY(copyReadable(table, sizeof copy.base, &copy.base));
  if (copy.base.implFeatureLevel < ANEURALNETWORKS_FEATURE_LEVEL_5)
    return fail(ErrorCode::kBadData,
                "The support library is of feature level {}; the tables begin with {}.",
                copy.base.implFeatureLevel, static_cast<int>(ANEURALNETWORKS_FEATURE_LEVEL_5));
  HEARTH_TRY(copyReadable(table, sizeof copy, &copy));
  for (const Entry& entry : kNeeded) {
    const void* function = nullptr;
    std::memcpy(&function, reinterpret_cast<const char*>(&copy) + entry.offset, sizeof function);
    if (function == nullptr)
      return fail(ErrorCode::kBadData, "The support library lacks {}.", entry.name);
  }
  return std::shared_ptr<const SupportLibrary>(new SupportLibrary(copy));
}

Result<base::Sha256Digest> SupportLibrary::identity() const {
  const void* const code =
      reinterpret_cast<const void*>(functions_.ANeuralNetworksCompilation_finish);
  base::Sha256 hash;
  if (const auto build = base::buildIdOf(code); !build.empty()) {
    hash.update(build);
    return hash.finish();
  }
  Dl_info place;
  struct stat file;
  if (::dladdr(code, &place) == 0 || place.dli_fname == nullptr ||
      ::stat(place.dli_fname, &file) != 0)
    return fail(ErrorCode::kNotFound, "The file of the support library is not found.");
  hash.update(place.dli_fname, std::strlen(place.dli_fname));
  const int64_t facts[] = {static_cast<int64_t>(file.st_size), file.st_mtim.tv_sec,
                           file.st_mtim.tv_nsec};
  hash.update(facts, sizeof facts);
  return hash.finish();
}

Result<const ANeuralNetworksDevice*> SupportLibrary::device(const std::string& name) const {
  uint32_t count = 0;
  HEARTH_TRY(asStatus(functions_.ANeuralNetworks_getDeviceCount(&count),
                      "ANeuralNetworks_getDeviceCount"));
  if (count > kMaxDevices)
    return fail(ErrorCode::kBadData, "The support library has {} devices, more than {}.", count,
                kMaxDevices);
  const ANeuralNetworksDevice* only = nullptr;
  std::string names;
  for (uint32_t i = 0; i < count; ++i) {
    ANeuralNetworksDevice* device = nullptr;
    HEARTH_TRY(
        asStatus(functions_.ANeuralNetworks_getDevice(i, &device), "ANeuralNetworks_getDevice"));
    if (device == nullptr)
      return fail(ErrorCode::kBadData, "Device {} of the support library is null.", i);
    const char* text = nullptr;
    HEARTH_TRY(asStatus(functions_.ANeuralNetworksDevice_getName(device, &text),
                        "ANeuralNetworksDevice_getName"));
    HEARTH_ASSIGN(const std::string known, checkedText(text, kMaxNameBytes, "name of a device"));
    if (known == name) return device;
    only = device;
    names += base::formatText("{}{}", names.empty() ? "" : ", ", known);
  }
  if (name.empty() && count == 1) return only;
  if (name.empty())
    return fail(ErrorCode::kNotFound,
                "The support library has {} devices ({}); \"device\" in the manifest names one.",
                count, names.empty() ? "none" : names);
  return fail(ErrorCode::kNotFound, "The support library has no device {}; there are: {}.", name,
              names.empty() ? "none" : names);
}

}  // namespace hearth::drivers::support_library
