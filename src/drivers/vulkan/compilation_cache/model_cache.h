// SPDX-License-Identifier: Apache-2.0
// Writes prepared models of this driver to a client's cache files, and reads them from there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "drivers/vulkan/compilation_cache/cached_family.h"
#include "drivers/vulkan/compilation_cache/cached_plan.h"
#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/context/pipelines.h"
#include "drivers/vulkan/plan/plan.h"
#include "graph/model.h"
#include "hal/device.h"
#include "memory/mapping.h"

namespace hearth::vulkan {

// The model cache has the plan and its pipelines, the data cache the constants as the GPU gets
// them; of a model with unknown dimensions the model and several plans, and the constants of all.
inline constexpr hal::CacheFileCounts kCacheFileCounts = {1, 1};

// A model that saveModel() wrote.
struct SavedModel {
  CachedPlan cached;
  memory::Mapping constants;  // a private copy; at least plan.constantBytes
};

// What a model with unknown dimensions runs for some shapes of its inputs.
struct FamilyMember {
  std::vector<graph::Dimensions> shapes;
  Plan plan;
  std::vector<std::span<const uint8_t>> constants;  // ConstantBytes::pieces()
  std::shared_ptr<const void> owner;                // of what the constants refer to
  bool isTuned = false;                             // CachedPlan::isTuned
};

// A model that saveFamily() wrote.
struct SavedFamily {
  std::shared_ptr<const graph::Model> model;  // owns its constants; valid
  std::vector<FamilyMember> members;
  std::vector<SavedPipeline> pipelines;
};

// A digest of this build of the driver, the GPU, its driver and the driver's version: what is found
// out or compiled for one is of no use to another. Error: kOpFailed without a build identifier.
Result<base::Sha256Digest> buildAndGpu(const GpuFacts& facts);

// The pipelines that a plan runs.
std::set<PipelineKey> pipelinesOf(const Plan& plan);

// Writes a plan whose pipelines are compiled to the cache files, and registers them with the
// mapping manager for this build, this GPU and its driver. `constants` are ConstantBytes::pieces().
// Errors: kBadData for another number of files; kOpFailed; kIo.
Status saveModel(const Plan& plan, bool isTuned,
                 std::span<const std::span<const uint8_t>> constants, Pipelines& pipelines,
                 const GpuFacts& facts, const hal::Cache& cache);

// The same of a model with unknown dimensions, for the shapes of `members`.
Status saveFamily(const graph::Model& model, std::span<const FamilyMember> members,
                  Pipelines& pipelines, const GpuFacts& facts, const hal::Cache& cache);

// Writes the files again, with their plans as `choose` changes them: it chooses other constants of
// shaders, which are compiled then, and says whether they are in parts that were found by
// measuring. Errors as loadModel(), saveModel() and Pipelines::find().
Status saveChosenParts(const std::function<bool(Plan*)>& choose, Pipelines& pipelines,
                       const GpuFacts& facts, const hal::Cache& cache);

// Loads a model from private copies of the files. Errors: kNotFound for files that the mapping
// manager does not know for this build, GPU and token, which are not interpreted then; those of
// parsePlan(), parseFamily() and graph::decodeModel(). After any error the client compiles the
// model.
Result<std::variant<SavedModel, SavedFamily>> loadModel(const GpuFacts& facts,
                                                        const hal::Cache& cache);

}  // namespace hearth::vulkan
