// SPDX-License-Identifier: Apache-2.0
// The model functions of hearth.h.
#include "api/handles.h"
#include "api/inspection.h"
#include "base/format.h"
#include "base/trace.h"
#include "memory/constant_pool.h"
#include "memory/pool.h"
#include "runtime/device_manager.h"

using hearth::Result;
using hearth::Status;
using hearth::api::guarded;
using hearth::api::nullArgument;
using hearth::tflite::ModelFile;

namespace {

std::string_view textOf(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

// An error of a file, which names the file.
Status failureOf(hearth::Error error, const char* path) {
  if (error.toString().contains(path)) return std::unexpected(std::move(error));
  return std::unexpected(
      std::move(error).addContext(hearth::base::formatText("while loading the model {}", path)));
}

template <typename Open>
Status loadModel(Open open, hearth_model** model) {
  if (model == nullptr) return nullArgument("model");
  const hearth::base::TraceSpan span("api", "load model");
  const auto begin = std::chrono::steady_clock::now();
  hearth::runtime::DeviceManager::warmUp();
  auto made = std::make_unique<hearth_model>();
  HEARTH_ASSIGN(made->file, open());
  made->signatureKeys = made->file->signatureKeys();
  if (made->signatureKeys.empty()) made->signatureKeys.emplace_back();
  made->loadMs = hearth::api::millisecondsSince(begin);
  *model = made.release();
  return {};
}

}  // namespace

extern "C" {

hearth_status hearth_model_load_file(const char* path, hearth_model** model, hearth_error** error) {
  return hearth_model_load_file_part(path, nullptr, model, error);
}

hearth_status hearth_model_load_memory(const void* data, size_t size, hearth_model** model,
                                       hearth_error** error) {
  return hearth_model_load_memory_part(data, size, nullptr, model, error);
}

hearth_status hearth_model_load_file_part(const char* path, const char* part, hearth_model** model,
                                          hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (path == nullptr) return nullArgument("path");
    Status loaded = loadModel([&] { return ModelFile::open(path, textOf(part)); }, model);
    if (!loaded) return failureOf(std::move(loaded.error()), path);
    (*model)->path = path;
    (*model)->part = textOf(part);
    return {};
  });
}

hearth_status hearth_model_load_memory_part(const void* data, size_t size, const char* part,
                                            hearth_model** model, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (data == nullptr) return nullArgument("data");
    if (size == 0) return hearth::fail(hearth::ErrorCode::kBadData, "The model has no bytes.");
    HEARTH_ASSIGN(const hearth::memory::PoolRef pool,
                  hearth::memory::constantPool(
                      size, [&](uint8_t* bytes) { std::memcpy(bytes, data, size); }));
    return loadModel([&] { return ModelFile::fromPool(pool, textOf(part)); }, model);
  });
}

void hearth_model_free(hearth_model* model) {
  delete model;
}

size_t hearth_model_signature_count(const hearth_model* model) {
  return model == nullptr ? 0 : model->signatureKeys.size();
}

const char* hearth_model_signature_key(const hearth_model* model, size_t index) {
  if (model == nullptr || index >= model->signatureKeys.size()) return nullptr;
  return model->signatureKeys[index].c_str();
}

hearth_status hearth_model_inspect(const hearth_model* model, char** json, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (model == nullptr) return nullArgument("model");
    if (json == nullptr) return nullArgument("json");
    *json = hearth::api::copyString(
        hearth::api::inspectModel(*model->file, hearth::runtime::DeviceManager::shared()));
    return {};
  });
}

hearth_status hearth_model_signature_describe(const hearth_model* model, size_t index, char** json,
                                              hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (model == nullptr) return nullArgument("model");
    if (json == nullptr) return nullArgument("json");
    if (index >= model->signatureKeys.size())
      return hearth::fail(hearth::ErrorCode::kNotFound, "There is no signature {}; there are {}.",
                          index, model->signatureKeys.size());
    *json = hearth::api::copyString(
        hearth::api::describeSignature(*model->file, model->signatureKeys[index]));
    return {};
  });
}

hearth_status hearth_container_describe(const char* path, char** json, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (path == nullptr) return nullArgument("path");
    if (json == nullptr) return nullArgument("json");
    auto description = hearth::api::describeContainer(path);
    if (!description) return failureOf(std::move(description.error()), path);
    *json = hearth::api::copyString(*description);
    return {};
  });
}

}  // extern "C"
