// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/known_answers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "drivers/vulkan/compilation_cache/model_cache.h"
#include "drivers/vulkan/plan/products.h"
#include "drivers/vulkan/prepared_model.h"
#include "drivers/vulkan/sample_models.h"
#include "hal/interpreted_model.h"
#include "ops/half.h"

namespace hearth::vulkan {
namespace {

// The fact that names the shaders which are right.
constexpr char kFact[] = "vulkan-gpu shaders with known answers";
constexpr uint8_t kEndOfName = '\n';

// Sums of a hundred products in another order, and functions of GPUs, which Vulkan lets be off by a
// few bits; and a rounding to float16.
constexpr float kTolerance = 1e-4f;
constexpr float kHalfTolerance = 4e-3f;

Result<std::vector<uint8_t>> compute(hal::PreparedModel& prepared, const SampleModel& sample) {
  const graph::Subgraph& main = sample.model->main();
  std::vector<std::vector<uint8_t>> inputs = sample.inputs;
  HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(main.operands[main.outputs[0]]));
  std::vector<uint8_t> output(bytes);
  const auto argumentOf = [](std::vector<uint8_t>& values) {
    hal::Argument argument;
    argument.kind = hal::Argument::Kind::kPointer;
    argument.pointer = values.data();
    argument.length = values.size();
    return argument;
  };
  hal::Request request;
  for (std::vector<uint8_t>& input : inputs) request.inputs.push_back(argumentOf(input));
  request.outputs.push_back(argumentOf(output));
  HEARTH_ASSIGN(const auto execution, prepared.createExecution(std::move(request)));
  HEARTH_TRY(execution->compute({}).status);
  return output;
}

template <typename T>
bool areNear(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b, float tolerance) {
  for (size_t at = 0; at < a.size(); at += sizeof(T)) {
    T left, right;
    std::memcpy(&left, a.data() + at, sizeof left);
    std::memcpy(&right, b.data() + at, sizeof right);
    const auto expected = static_cast<float>(right);
    const float most = tolerance * std::max(1.0f, std::abs(expected));
    // Not so for NaN.
    if (!(std::abs(static_cast<float>(left) - expected) <= most)) return false;
  }
  return true;
}

Result<bool> isRight(const OpenGpu& open, const SampleModel& sample, uint32_t part) {
  OpenGpu unchecked = open;
  unchecked.answers = nullptr;
  unchecked.tuner = nullptr;
  unchecked.part = part;
  HEARTH_ASSIGN(const auto prepared,
                VulkanPreparedModel::create(std::move(unchecked), *sample.model, {}, {}));
  HEARTH_ASSIGN(const auto reference, hal::prepareInterpreted(sample.model, {}, nullptr, "",
                                                              nullptr, ops::KernelSet::kReference));
  const auto outcome = compute(*prepared, sample);
  // The inputs of samples are right: whoever finds them wrong is.
  if (!outcome && outcome.error().code() == ErrorCode::kBadData) return false;
  HEARTH_ASSIGN(const std::vector<uint8_t> computed, outcome);
  HEARTH_ASSIGN(const std::vector<uint8_t> expected, compute(*reference, sample));
  const graph::Subgraph& main = sample.model->main();
  switch (main.operands[main.outputs[0]].type) {
    case graph::OperandType::kTensorFloat32:
      return areNear<float>(computed, expected, kTolerance);
    case graph::OperandType::kTensorFloat16:
      return areNear<ops::Half>(computed, expected, kHalfTolerance);
    default:
      return computed == expected;
  }
}

}  // namespace

void KnownAnswers::recall(const OpenGpu& open) {
  if (std::exchange(hasRecalled_, true) || !openStore_) return;
  const auto build = buildAndGpu(open.gpu->facts());
  if (!build) return;
  key_ = std::string(kFact) + '\0';
  key_.append(build->begin(), build->end());
  store_ = openStore_();
  if (store_ == nullptr) return;
  const auto names = store_->recall(key_).value_or(std::vector<uint8_t>());
  for (auto first = names.begin(); first != names.end();) {
    const auto last = std::find(first, names.end(), kEndOfName);
    isRight_.emplace(std::string(first, last), true);
    first = last == names.end() ? last : last + 1;
  }
}

void KnownAnswers::remember() {
  if (store_ == nullptr) return;
  cache::Fact fact{key_, {}};
  for (const auto& [shader, isGood] : isRight_) {
    if (!isGood) continue;
    fact.value.insert(fact.value.end(), shader.begin(), shader.end());
    fact.value.push_back(kEndOfName);
  }
  store_->afterPublishing([weak = std::weak_ptr(store_), fact = std::move(fact)] {
    if (const auto store = weak.lock()) store->remember({&fact, 1});
  });
}

void KnownAnswers::flush() {
  std::shared_ptr<cache::SegmentStore> store;
  {
    const std::lock_guard lock(mutex_);
    store = store_;
  }
  if (store != nullptr) store->flush();
}

Status KnownAnswers::check(const OpenGpu& open, const std::string& shader, uint32_t part) {
  const std::string name =
      part == 0 ? shader : base::formatText("{} in parts of {}", shader, kParts[part]);
  const std::lock_guard lock(mutex_);
  recall(open);
  auto tried = isRight_.find(name);
  if (tried == isRight_.end()) {
    bool isGood = true;
    if (const std::optional<SampleModel> sample = sampleModelOf(shader)) {
      HEARTH_ASSIGN(isGood, isRight(open, *sample, part));
    }
    if (!isGood)
      base::logWarn("The GPU {} computes wrongly with the shader {}, which is not used.",
                    open.gpu->facts().name, name);
    tried = isRight_.emplace(name, isGood).first;
    if (isGood) remember();
  }
  if (tried->second) return {};
  return fail(ErrorCode::kUnsupported, "The GPU {} computes wrongly with the shader {}.",
              open.gpu->facts().name, name);
}

std::vector<std::string> KnownAnswers::wrongShaders() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> wrong;
  for (const auto& [shader, isGood] : isRight_)
    if (!isGood) wrong.push_back(shader);
  return wrong;
}

}  // namespace hearth::vulkan
