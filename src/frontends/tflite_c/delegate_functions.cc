// SPDX-License-Identifier: Apache-2.0
// Delegates. Those for XNNPACK and NNAPI take no nodes: their options mean Hearth's.
#include <algorithm>
#include <memory>
#include <string>

#include "frontends/tflite_c/own_delegate.h"
#include "frontends/tflite_c/reporter.h"
#include "runtime/device_manager.h"

using hearth::ErrorCode;
using hearth::fail;
using hearth::Result;
using hearth::Status;
using hearth::delegate::DelegateOptions;
using hearth::tflite_c::guardedPointer;
using hearth::tflite_c::OwnDelegate;
using hearth::tflite_c::Reporter;

struct TfLiteXNNPackDelegateWeightsCache {};

struct TfLiteBackendBuffer {
  void* pointer = nullptr;
};

struct TfLiteSynchronization {
  void* pointer = nullptr;
};

namespace {

std::string textOf(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

class XnnpackDelegate final : public OwnDelegate {
 public:
  explicit XnnpackDelegate(const TfLiteXNNPackDelegateOptions& options)
      : OwnDelegate(kTfLiteDelegateFlagsAllowDynamicTensors),
        weightCache_(textOf(options.weight_cache_file_path)),
        options_(options) {
    options_.weight_cache_file_path = weightCache_.empty() ? nullptr : weightCache_.c_str();
  }

  Status addTo(DelegateOptions* options) const override {
    if (options_.num_threads > 0) options->threads = static_cast<unsigned>(options_.num_threads);
    if (!weightCache_.empty()) options->compilation.prepare.driverOptions["bundle"] = weightCache_;
    return {};
  }

  const TfLiteXNNPackDelegateOptions& options() const { return options_; }

 private:
  const std::string weightCache_;
  TfLiteXNNPackDelegateOptions options_;
};

class NnapiDelegate final : public OwnDelegate {
 public:
  explicit NnapiDelegate(const TfLiteNnapiDelegateOptions& options)
      : OwnDelegate(0),
        preference_(options.execution_preference),
        device_(textOf(options.accelerator_name)),
        cacheFolder_(textOf(options.cache_dir)),
        modelToken_(textOf(options.model_token)),
        allowsFp16_(options.allow_fp16 != 0) {}

  Status addTo(DelegateOptions* options) const override {
    if (!device_.empty()) {
      HEARTH_ASSIGN(options->compilation.devices,
                    hearth::runtime::DeviceManager::shared().select(device_));
    }
    constexpr int32_t kUndefined = -1;
    constexpr int32_t kLast = 2;
    if (preference_ < kUndefined || preference_ > kLast)
      return fail(ErrorCode::kBadData, "There is no execution preference {}.", preference_);
    if (preference_ != kUndefined)
      options->compilation.prepare.preference = static_cast<hearth::hal::Preference>(preference_);
    // As with NNAPI, caching takes both.
    if (!cacheFolder_.empty() && !modelToken_.empty()) {
      options->cacheFolder = cacheFolder_;
      options->modelToken = modelToken_;
    }
    options->allowsFp16 = options->allowsFp16 || allowsFp16_;
    return {};
  }

 private:
  const int32_t preference_;
  const std::string device_;
  const std::string cacheFolder_;
  const std::string modelToken_;
  const bool allowsFp16_;
};

void deleteOwn(TfLiteDelegate* delegate) {
  delete OwnDelegate::from(delegate);
}

const XnnpackDelegate* xnnpackOf(const TfLiteDelegate* delegate) {
  return dynamic_cast<const XnnpackDelegate*>(OwnDelegate::from(delegate));
}

// An opaque delegate of the program: the structure that others see, and a copy of what it is made
// of.
struct OpaqueDelegate {
  TfLiteDelegate handle{};
  TfLiteOpaqueDelegateBuilder builder{};
};

}  // namespace

extern "C" {

TfLiteDelegate TfLiteDelegateCreate() {
  return {};
}

TfLiteOpaqueDelegate* TfLiteOpaqueDelegateCreate(const TfLiteOpaqueDelegateBuilder* builder) {
  if (builder == nullptr) return nullptr;
  return guardedPointer(Reporter(), [&]() -> Result<TfLiteOpaqueDelegate*> {
    auto made = std::make_unique<OpaqueDelegate>();
    made->builder = *builder;
    made->handle.data_ = builder->data;
    made->handle.flags = builder->flags;
    made->handle.opaque_delegate_builder = &made->builder;
    return &made.release()->handle;
  });
}

void TfLiteOpaqueDelegateDelete(TfLiteOpaqueDelegate* delegate) {
  // The structure is the first member.
  if (delegate != nullptr) delete reinterpret_cast<OpaqueDelegate*>(delegate);
}

void* TfLiteOpaqueDelegateGetData(const TfLiteOpaqueDelegate* delegate) {
  return delegate == nullptr ? nullptr : delegate->data_;
}

TfLiteNnapiDelegateOptions TfLiteNnapiDelegateOptionsDefault() {
  TfLiteNnapiDelegateOptions options{};
  options.execution_preference = -1;
  options.disallow_nnapi_cpu = 1;
  options.max_number_delegated_partitions = 3;
  return options;
}

TfLiteDelegate* TfLiteNnapiDelegateCreate(const TfLiteNnapiDelegateOptions* options) {
  return guardedPointer(Reporter(), [&]() -> Result<TfLiteDelegate*> {
    const TfLiteNnapiDelegateOptions defaults = TfLiteNnapiDelegateOptionsDefault();
    return (new NnapiDelegate(options == nullptr ? defaults : *options))->handle();
  });
}

void TfLiteNnapiDelegateDelete(TfLiteDelegate* delegate) {
  deleteOwn(delegate);
}

TfLiteXNNPackDelegateOptions TfLiteXNNPackDelegateOptionsDefault() {
  // The kernels for int8 and uint8.
  constexpr uint32_t kQuantizedFlags = 3;
  TfLiteXNNPackDelegateOptions options{};
  options.flags = kQuantizedFlags;
  return options;
}

TfLiteDelegate* TfLiteXNNPackDelegateCreate(const TfLiteXNNPackDelegateOptions* options) {
  return guardedPointer(Reporter(), [&]() -> Result<TfLiteDelegate*> {
    const TfLiteXNNPackDelegateOptions defaults = TfLiteXNNPackDelegateOptionsDefault();
    return (new XnnpackDelegate(options == nullptr ? defaults : *options))->handle();
  });
}

TfLiteDelegate* TfLiteXNNPackDelegateCreateWithThreadpool(
    const TfLiteXNNPackDelegateOptions* options, TfLiteContext* /*context*/) {
  return TfLiteXNNPackDelegateCreate(options);
}

void TfLiteXNNPackDelegateDelete(TfLiteDelegate* delegate) {
  deleteOwn(delegate);
}

int TfLiteXNNPackDelegateGetFlags(TfLiteDelegate* delegate) {
  const XnnpackDelegate* const own = xnnpackOf(delegate);
  return own == nullptr ? 0 : static_cast<int>(own->options().flags);
}

const TfLiteXNNPackDelegateOptions* TfLiteXNNPackDelegateGetOptions(TfLiteDelegate* delegate) {
  const XnnpackDelegate* const own = xnnpackOf(delegate);
  return own == nullptr ? nullptr : &own->options();
}

// Hearth's threads serve no other code.
void* TfLiteXNNPackDelegateGetThreadPool(TfLiteDelegate* /*delegate*/) {
  return nullptr;
}

// All interpreters of a process share packed weights without such a cache.
TfLiteXNNPackDelegateWeightsCache* TfLiteXNNPackDelegateWeightsCacheCreate() {
  return new (std::nothrow) TfLiteXNNPackDelegateWeightsCache();
}

TfLiteXNNPackDelegateWeightsCache* TfLiteXNNPackDelegateWeightsCacheCreateWithSize(
    size_t /*size*/) {
  return TfLiteXNNPackDelegateWeightsCacheCreate();
}

bool TfLiteXNNPackDelegateWeightsCacheFinalizeSoft(TfLiteXNNPackDelegateWeightsCache* cache) {
  return cache != nullptr;
}

bool TfLiteXNNPackDelegateWeightsCacheFinalizeHard(TfLiteXNNPackDelegateWeightsCache* cache) {
  return cache != nullptr;
}

void TfLiteXNNPackDelegateWeightsCacheDelete(TfLiteXNNPackDelegateWeightsCache* cache) {
  delete cache;
}

TfLiteBackendBuffer* TfLiteBackendBufferCreate() {
  return new (std::nothrow) TfLiteBackendBuffer();
}

void TfLiteBackendBufferDelete(TfLiteBackendBuffer* buffer) {
  delete buffer;
}

void TfLiteBackendBufferSetPtr(TfLiteBackendBuffer* buffer, void* pointer) {
  if (buffer != nullptr) buffer->pointer = pointer;
}

void* TfLiteBackendBufferGetPtr(const TfLiteBackendBuffer* buffer) {
  return buffer == nullptr ? nullptr : buffer->pointer;
}

TfLiteSynchronization* TfLiteSynchronizationCreate() {
  return new (std::nothrow) TfLiteSynchronization();
}

void TfLiteSynchronizationDelete(TfLiteSynchronization* synchronization) {
  delete synchronization;
}

void TfLiteSynchronizationSetPtr(TfLiteSynchronization* synchronization, void* pointer) {
  if (synchronization != nullptr) synchronization->pointer = pointer;
}

void* TfLiteSynchronizationGetPtr(const TfLiteSynchronization* synchronization) {
  return synchronization == nullptr ? nullptr : synchronization->pointer;
}

// No interpreter reports to a profiler, so there are no settings to ask about.
const TfLiteTelemetryConversionMetadata* TfLiteTelemetryInterpreterSettingsGetConversionMetadata(
    const TfLiteTelemetryInterpreterSettings* /*settings*/) {
  return nullptr;
}

size_t TfLiteTelemetryInterpreterSettingsGetNumSubgraphInfo(
    const TfLiteTelemetryInterpreterSettings* /*settings*/) {
  return 0;
}

const TfLiteTelemetrySubgraphInfo* TfLiteTelemetryInterpreterSettingsGetSubgraphInfo(
    const TfLiteTelemetryInterpreterSettings* /*settings*/) {
  return nullptr;
}

const int32_t* TfLiteTelemetryConversionMetadataGetModelOptimizationModes(
    const TfLiteTelemetryConversionMetadata* /*metadata*/) {
  return nullptr;
}

size_t TfLiteTelemetryConversionMetadataGetNumModelOptimizationModes(
    const TfLiteTelemetryConversionMetadata* /*metadata*/) {
  return 0;
}

size_t TfLiteTelemetrySubgraphInfoGetNumQuantizations(
    const TfLiteTelemetrySubgraphInfo* /*subgraph*/) {
  return 0;
}

const TfLiteQuantization* TfLiteTelemetrySubgraphInfoGetQuantizations(
    const TfLiteTelemetrySubgraphInfo* /*subgraph*/) {
  return nullptr;
}

int32_t TfLiteTelemetryGpuDelegateSettingsGetBackend(
    const TfLiteTelemetryGpuDelegateSettings* /*settings*/) {
  return 0;
}

size_t TfLiteTelemetryGpuDelegateSettingsGetNumNodesDelegated(
    const TfLiteTelemetryGpuDelegateSettings* /*settings*/) {
  return 0;
}

}  // extern "C"
