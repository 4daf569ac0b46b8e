// SPDX-License-Identifier: Apache-2.0
// Versions, models and the options of interpreters.
#include <cstring>
#include <memory>
#include <utility>

#include "base/log.h"
#include "frontends/tflite_c/interpreter.h"
#include "memory/constant_pool.h"
#include "runtime/device_manager.h"
#include "tflite_abi/context.h"

using hearth::ErrorCode;
using hearth::fail;
using hearth::Result;
using hearth::memory::Pool;
using hearth::memory::PoolRef;
using hearth::tflite::ModelFile;
using hearth::tflite_c::guarded;
using hearth::tflite_c::guardedPointer;
using hearth::tflite_c::Reporter;

namespace {

// The version whose interface this is; programs compare it.
constexpr const char* kVersion = "2.17.1";

// Programs know these sentences; what is wrong exactly is in the log.
Result<TfLiteModel*> modelOf(PoolRef pool) {
  hearth::runtime::DeviceManager::warmUp();
  auto bytes = pool->kind() == hearth::memory::PoolKind::kBorrowed
                   ? std::make_shared<const hearth::tflite_c::ProgramBytes>(pool)
                   : nullptr;
  auto file = ModelFile::fromPool(std::move(pool));
  if (!file && file.error().code() == ErrorCode::kBadData) {
    hearth::base::logInfo("{}", file.error().toString());
    return fail(ErrorCode::kBadData, "The model is not a valid Flatbuffer buffer");
  }
  if (!file) return std::unexpected(std::move(file.error()));
  return new TfLiteModel{std::move(bytes), *std::move(file)};
}

Result<TfLiteModel*> modelAt(const char* path) {
  hearth::runtime::DeviceManager::warmUp();
  auto file = ModelFile::open(path);
  if (!file && file.error().code() != ErrorCode::kBadData)
    return fail(file.error().code(), "Could not open '{}'. {}", path, file.error().toString());
  if (!file) return std::unexpected(std::move(file.error()));
  return new TfLiteModel{nullptr, *std::move(file)};
}

// The bytes stay where they are, as the interface promises; the reader needs them aligned.
Result<PoolRef> poolOf(const void* data, size_t size) {
  if (data == nullptr) return fail(ErrorCode::kUnexpectedNull, "The model's bytes are null.");
  if (size == 0) return fail(ErrorCode::kBadData, "The model has no bytes.");
  if (reinterpret_cast<uintptr_t>(data) % sizeof(uint32_t) == 0) return Pool::borrowed(data, size);
  return hearth::memory::constantPool(size,
                                      [&](uint8_t* bytes) { std::memcpy(bytes, data, size); });
}

}  // namespace

extern "C" {

const char* TfLiteVersion() {
  return kVersion;
}

const char* TfLiteExtensionApisVersion() {
  return kVersion;
}

int TfLiteSchemaVersion() {
  return 3;
}

TfLiteModel* TfLiteModelCreate(const void* data, size_t size) {
  return TfLiteModelCreateWithErrorReporter(data, size, nullptr, nullptr);
}

TfLiteModel* TfLiteModelCreateWithErrorReporter(const void* data, size_t size,
                                                TfLiteReporter reporter, void* user_data) {
  return guardedPointer(Reporter{reporter, user_data}, [&]() -> Result<TfLiteModel*> {
    HEARTH_ASSIGN(PoolRef pool, poolOf(data, size));
    return modelOf(std::move(pool));
  });
}

TfLiteModel* TfLiteModelCreateFromFile(const char* path) {
  return TfLiteModelCreateFromFileWithErrorReporter(path, nullptr, nullptr);
}

TfLiteModel* TfLiteModelCreateFromFileWithErrorReporter(const char* path, TfLiteReporter reporter,
                                                        void* user_data) {
  return guardedPointer(Reporter{reporter, user_data}, [&]() -> Result<TfLiteModel*> {
    if (path == nullptr) return fail(ErrorCode::kUnexpectedNull, "The model's path is null.");
    return modelAt(path);
  });
}

void TfLiteModelDelete(TfLiteModel* model) {
  delete model;
}

TfLiteInterpreterOptions* TfLiteInterpreterOptionsCreate() {
  return guardedPointer(Reporter(), []() -> Result<TfLiteInterpreterOptions*> {
    return new TfLiteInterpreterOptions();
  });
}

TfLiteInterpreterOptions* TfLiteInterpreterOptionsCopy(const TfLiteInterpreterOptions* from) {
  if (from == nullptr) return nullptr;
  return guardedPointer(from->reporter, [&]() -> Result<TfLiteInterpreterOptions*> {
    return new TfLiteInterpreterOptions(*from);
  });
}

void TfLiteInterpreterOptionsDelete(TfLiteInterpreterOptions* options) {
  delete options;
}

void TfLiteInterpreterOptionsSetNumThreads(TfLiteInterpreterOptions* options, int32_t threads) {
  if (options != nullptr) options->threads = threads;
}

void TfLiteInterpreterOptionsAddDelegate(TfLiteInterpreterOptions* options,
                                         TfLiteDelegate* delegate) {
  if (options == nullptr || delegate == nullptr) return;
  guarded(options->reporter, [&] { options->delegates.push_back(delegate); });
}

void TfLiteInterpreterOptionsSetErrorReporter(TfLiteInterpreterOptions* options,
                                              TfLiteReporter reporter, void* user_data) {
  if (options != nullptr) options->reporter = {reporter, user_data};
}

TfLiteStatus TfLiteInterpreterOptionsEnableCancellation(TfLiteInterpreterOptions* options,
                                                        bool enable) {
  if (options == nullptr) return kTfLiteError;
  options->isCancellable = enable;
  return kTfLiteOk;
}

void TfLiteInterpreterOptionsSetEnableDelegateFallback(TfLiteInterpreterOptions* options,
                                                       bool enable) {
  if (options != nullptr) options->fallsBack = enable;
}

void TfLiteInterpreterOptionsAddBuiltinOp(TfLiteInterpreterOptions* options, int32_t op,
                                          const TfLiteRegistration* registration,
                                          int32_t min_version, int32_t max_version) {
  if (options == nullptr || registration == nullptr) return;
  guarded(options->reporter, [&] {
    TfLiteOperator custom = hearth::tflite_abi::operatorOf(*registration);
    custom.builtinCode = op;
    options->added.push_back({std::move(custom), min_version, max_version});
  });
}

void TfLiteInterpreterOptionsAddCustomOp(TfLiteInterpreterOptions* options, const char* name,
                                         const TfLiteRegistration* registration,
                                         int32_t min_version, int32_t max_version) {
  if (options == nullptr || name == nullptr || registration == nullptr) return;
  guarded(options->reporter, [&] {
    TfLiteOperator custom;
    custom.customName = name;
    custom.isCustom = true;
    custom.version = min_version;
    custom.init = registration->init;
    custom.release = registration->free;
    custom.prepare = registration->prepare;
    custom.invoke = registration->invoke;
    options->added.push_back({std::move(custom), min_version, max_version});
  });
}

void TfLiteInterpreterOptionsAddOperator(TfLiteInterpreterOptions* options,
                                         TfLiteOperator* registration) {
  if (options == nullptr || registration == nullptr) return;
  guarded(options->reporter, [&] { options->operators.push_back(registration); });
}

void TfLiteInterpreterOptionsSetOpResolver(TfLiteInterpreterOptions* options,
                                           TfLiteFindBuiltinOp find_builtin,
                                           TfLiteFindCustomOp find_custom, void* user_data) {
  if (options != nullptr)
    options->resolver = {find_builtin, find_custom, nullptr, nullptr, user_data};
}

void TfLiteInterpreterOptionsSetOpResolverExternal(TfLiteInterpreterOptions* options,
                                                   TfLiteFindBuiltinOperator find_builtin,
                                                   TfLiteFindCustomOperator find_custom,
                                                   void* user_data) {
  if (options != nullptr)
    options->resolver = {nullptr, nullptr, find_builtin, find_custom, user_data};
}

void TfLiteInterpreterOptionsSetOpResolverExternalWithFallback(
    TfLiteInterpreterOptions* options, TfLiteFindBuiltinOperator find_builtin,
    TfLiteFindCustomOperator find_custom, TfLiteFindBuiltinOp find_builtin_registration,
    TfLiteFindCustomOp find_custom_registration, void* user_data) {
  if (options != nullptr)
    options->resolver = {find_builtin_registration, find_custom_registration, find_builtin,
                         find_custom, user_data};
}

// The structures of these versions are shorter at their ends only.
void TfLiteInterpreterOptionsSetOpResolverV1(TfLiteInterpreterOptions* options,
                                             TfLiteFindBuiltinOp find_builtin,
                                             TfLiteFindCustomOp find_custom, void* user_data) {
  TfLiteInterpreterOptionsSetOpResolver(options, find_builtin, find_custom, user_data);
}

void TfLiteInterpreterOptionsSetOpResolverV2(TfLiteInterpreterOptions* options,
                                             TfLiteFindBuiltinOp find_builtin,
                                             TfLiteFindCustomOp find_custom, void* user_data) {
  TfLiteInterpreterOptionsSetOpResolver(options, find_builtin, find_custom, user_data);
}

void TfLiteInterpreterOptionsSetOpResolverV3(TfLiteInterpreterOptions* options,
                                             TfLiteFindBuiltinOp find_builtin,
                                             TfLiteFindCustomOp find_custom, void* user_data) {
  TfLiteInterpreterOptionsSetOpResolver(options, find_builtin, find_custom, user_data);
}

// NNAPI's devices are Hearth's anyway.
void TfLiteInterpreterOptionsSetUseNNAPI(TfLiteInterpreterOptions* /*options*/, bool /*enable*/) {}

// Nothing is measured for profilers of programs.
void TfLiteInterpreterOptionsSetTelemetryProfiler(TfLiteInterpreterOptions* /*options*/,
                                                  TfLiteTelemetryProfilerStruct* /*profiler*/) {}

}  // extern "C"
