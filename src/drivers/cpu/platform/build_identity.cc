// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/platform/build_identity.h"

#include <hearth_xnnpack.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/build_id.h"
#include "base/env.h"
#include "base/immortal.h"
#include "base/trace.h"
#include "drivers/cpu/microkernels/portable/qd8_f32_qb4w_gemm.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "drivers/cpu/platform/processor_features.h"
#include "drivers/cpu/platform/xnn_operator.h"

namespace hearth::cpu {
namespace {

Result<base::Sha256Digest> driverIdentity() {
  const std::span<const uint8_t> id =
      base::buildIdOf(reinterpret_cast<const void*>(&driverIdentity));
  if (id.empty())
    return fail(ErrorCode::kOpFailed,
                "The library of hearth-cpu has no build identifier; link it with --build-id.");
  return base::Sha256::of(id);
}

// A weights cache that keeps nothing and hashes the packings.
class PackingRecorder {
 public:
  PackingRecorder() {
    provider_.context = this;
    provider_.look_up = [](void* self, const xnn_weights_cache_look_up_key* key) {
      static_cast<PackingRecorder*>(self)->hash_.update(&key->seed, sizeof key->seed);
      return SIZE_MAX;
    };
    provider_.reserve_space = [](void* self, size_t size) -> void* {
      return static_cast<PackingRecorder*>(self)->reserve(size);
    };
    provider_.look_up_or_insert = [](void* self, const xnn_weights_cache_look_up_key*, void* data,
                                     size_t size) {
      static_cast<PackingRecorder*>(self)->hash_.update(data, size);
      return reinterpret_cast<size_t>(data);
    };
    provider_.is_finalized = [](void*) {
      return true;
    };
    provider_.offset_to_addr = [](void*, size_t offset) {
      return reinterpret_cast<void*>(offset);
    };
    provider_.delete_cache = [](void*) {
      return xnn_status_success;
    };
  }

  xnn_weights_cache_t provider() { return &provider_; }
  base::Sha256& hash() { return hash_; }

 private:
  void* reserve(size_t size) {
    constexpr size_t kAlignment = 64;
    // Only one packing is alive at a time: its operator is deleted before the next one.
    memory_.assign(size + kAlignment, 0);
    void* start = memory_.data();
    size_t space = memory_.size();
    return std::align(kAlignment, size, start, space);
  }

  xnn_weights_cache_provider provider_{};
  base::Sha256 hash_;
  std::vector<uint8_t> memory_;
};

// Digest of the packings of one fully connected layer and one convolution of each packed type. They
// are small but have more channels than any tile.
Result<base::Sha256Digest> packingIdentity() {
  constexpr size_t kInputs = 37;
  constexpr size_t kOutputs = 70;
  constexpr uint32_t kKernel = 3;
  constexpr float kScale = 1.0f / 256;
  std::vector<float> floats(kOutputs * kInputs * kKernel * kKernel);
  std::vector<int8_t> bytes(floats.size());
  for (size_t i = 0; i < floats.size(); ++i) {
    bytes[i] = static_cast<int8_t>(i * 37 + i / 251);
    floats[i] = static_cast<float>(bytes[i]) * kScale;
  }
  const auto* unsignedBytes = reinterpret_cast<const uint8_t*>(bytes.data());
  std::vector<float> floatBias(kOutputs);
  std::vector<int32_t> bias(kOutputs);
  std::vector<float> scales(kOutputs + XNN_EXTRA_QUANTIZATION_PARAMS);
  for (size_t i = 0; i < kOutputs; ++i) {
    bias[i] = static_cast<int32_t>(i * 3) - 50;
    floatBias[i] = static_cast<float>(bias[i]);
  }
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = kScale / static_cast<float>(i + 1);

  PackingRecorder recorder;
  const xnn_weights_cache_t cache = recorder.provider();
  const auto record = [&](auto create) -> Status {
    xnn_operator_t raw = nullptr;
    const xnn_status status = create(&raw);
    const XnnOperator op(raw);
    if (status != xnn_status_success)
      return std::unexpected(xnnError(status, "the packing of fixed weights"));
    return {};
  };
  const float lowest = -std::numeric_limits<float>::infinity();
  const float highest = std::numeric_limits<float>::infinity();
  HEARTH_TRY(record([&](xnn_operator_t* op) {
    return xnn_create_fully_connected_nc_f32(kInputs, kOutputs, kInputs, kOutputs, floats.data(),
                                             floatBias.data(), lowest, highest, 0, nullptr, cache,
                                             op);
  }));
  HEARTH_TRY(record([&](xnn_operator_t* op) {
    return xnn_create_fully_connected_nc_qs8_qc8w(kInputs, kOutputs, kInputs, kOutputs, 3, 1.0f,
                                                  scales.data(), bytes.data(), bias.data(), -5,
                                                  1.0f, -128, 127, 0, nullptr, cache, op);
  }));
  HEARTH_TRY(record([&](xnn_operator_t* op) {
    return xnn_create_fully_connected_nc_qd8_f32_qc8w(kInputs, kOutputs, kInputs, kOutputs,
                                                      scales.data(), bytes.data(), floatBias.data(),
                                                      lowest, highest, 0, nullptr, cache, op);
  }));
  HEARTH_TRY(record([&](xnn_operator_t* op) {
    return xnn_create_fully_connected_nc_qu8(kInputs, kOutputs, kInputs, kOutputs, 3, 1.0f, 7,
                                             kScale, unsignedBytes, bias.data(), 9, 1.0f, 0, 255, 0,
                                             nullptr, cache, op);
  }));
  HEARTH_TRY(record([&](xnn_operator_t* op) {
    return xnn_create_convolution2d_nhwc_f32(
        1, 1, 1, 1, kKernel, kKernel, 1, 1, 1, 1, 1, kInputs, kOutputs, kInputs, kOutputs,
        floats.data(), floatBias.data(), lowest, highest, 0, nullptr, cache, op);
  }));
  HEARTH_TRY(record([&](xnn_operator_t* op) {
    return xnn_create_convolution2d_nhwc_qs8_qc8w(
        1, 1, 1, 1, kKernel, kKernel, 1, 1, 1, 1, 1, kInputs, kOutputs, kInputs, kOutputs, 3, 1.0f,
        scales.data(), bytes.data(), bias.data(), -5, 1.0f, -128, 127, 0, nullptr, cache, op);
  }));
  HEARTH_TRY(record([&](xnn_operator_t* op) {
    return xnn_create_convolution2d_nhwc_qu8(
        1, 1, 1, 1, kKernel, kKernel, 1, 1, 1, 1, 1, kInputs, kOutputs, kInputs, kOutputs, 3, 1.0f,
        7, kScale, unsignedBytes, bias.data(), 9, 1.0f, 0, 255, 0, nullptr, cache, op);
  }));
  HEARTH_TRY(record([&](xnn_operator_t* op) {
    return xnn_create_convolution2d_nhwc_f32(
        1, 1, 1, 1, kKernel, kKernel, 1, 1, 1, 1, kOutputs, 1, 1, kOutputs, kOutputs, floats.data(),
        floatBias.data(), lowest, highest, XNN_FLAG_DEPTHWISE_CONVOLUTION, nullptr, cache, op);
  }));
  const bool ownGemms[] = {hasAvx512Vnni(), hasAvx2(), hasAvxVnni(),
                           hasInt4ChannelProduct(kInt4Columns)};
  recorder.hash().update(&ownGemms, sizeof ownGemms);
  const std::string salt = base::envString(base::Env::kPackingSalt);
  recorder.hash().update(salt.data(), salt.size());
  return recorder.hash().finish();
}

base::Sha256Digest xnnpackIdentity() {
  return base::Sha256::of(
      {static_cast<const uint8_t*>(xnn_experimental_get_build_identifier_data()),
       xnn_experimental_get_build_identifier_size()});
}

std::optional<base::Sha256Digest> findProcessorIdentity() {
  const auto driver = driverIdentity();
  if (!driver) return std::nullopt;
  base::Sha256 hash;
  hash.update(*driver);
  hash.update(xnnpackIdentity());
  addProcessor(hash);
  const std::string salt = base::envString(base::Env::kPackingSalt);
  hash.update(salt.data(), salt.size());
  return hash.finish();
}

}  // namespace

Result<BuildIdentity> findBuildIdentity() {
  const base::TraceSpan span("start", "build identity");
  HEARTH_ASSIGN(const base::Sha256Digest packing, packingIdentity());
  return buildIdentityWith(packing);
}

Result<BuildIdentity> buildIdentityWith(const base::Sha256Digest& packing) {
  BuildIdentity identity;
  HEARTH_ASSIGN(identity.driver, driverIdentity());
  identity.xnnpack = xnnpackIdentity();
  identity.packing = packing;
  identity.architecture = kArchitecture;
  identity.cpuFeatures = cpuFeatures();
  return identity;
}

std::optional<base::Sha256Digest> processorIdentity() {
  // Computed once: each start needs it several times.
  static constinit base::Immortal<std::optional<base::Sha256Digest>> identity;
  return identity.get(findProcessorIdentity);
}

base::Sha256Digest storeFingerprint() {
  return processorIdentity().value_or(base::Sha256Digest{});
}

base::Sha256Digest BuildIdentity::fingerprint() const {
  base::Sha256 hash;
  hash.update(driver);
  hash.update(xnnpack);
  hash.update(packing);
  return hash.finish();
}

std::string BuildIdentity::target() const {
  std::string text = architecture;
  for (size_t i = 0; i < cpuFeatures.size(); ++i) {
    const bool isLast = i + 1 == cpuFeatures.size();
    text += i == 0 ? " with " : isLast ? " and " : ", ";
    text += cpuFeatures[i];
  }
  return text;
}

}  // namespace hearth::cpu
