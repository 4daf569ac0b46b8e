// SPDX-License-Identifier: Apache-2.0
#include "ipc/testing/honest_client.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <utility>

#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"

namespace hearth::ipc {
namespace {

using graph::OperandType;

constexpr uint32_t kStateCount = 100;
constexpr size_t kStateBytes = kStateCount * sizeof(float);
constexpr int kSteps = 6;

// Integers and real numbers, with weights and without.
const std::set<std::string> kModels = {
    "chain",           "convolution_float",    "convolution_int8", "convolution_uint8",
    "depthwise_uint8", "fully_connected_int8", "resize_float",     "softmax_uint8"};

}  // namespace

std::vector<uint8_t> valuesFor(const graph::Operand& operand, std::mt19937& random) {
  std::vector<uint8_t> values(graph::byteSize(operand).value_or(0));
  if (operand.type != OperandType::kTensorFloat32) {
    for (uint8_t& value : values) value = static_cast<uint8_t>(random());
    return values;
  }
  for (size_t at = 0; at < values.size(); at += sizeof(float)) {
    const float value = static_cast<float>(random() % 4001) / 1000 - 2;
    std::memcpy(values.data() + at, &value, sizeof value);
  }
  return values;
}

Result<std::vector<uint8_t>> computeModel(hal::PreparedModel& prepared, const graph::Model& model,
                                          const std::vector<std::vector<uint8_t>>& inputs,
                                          const base::Deadline& deadline) {
  const graph::Subgraph& main = model.main();
  HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(main.operands[main.outputs[0]]));
  std::vector<uint8_t> output(bytes);
  hal::Request request;
  for (const std::vector<uint8_t>& input : inputs)
    request.inputs.push_back(hal::cts::pointerArgument(input.data(), input.size()));
  request.outputs.push_back(hal::cts::argumentFor(output));
  HEARTH_TRY(hal::cts::computeOnce(prepared, std::move(request), deadline).status);
  return output;
}

graph::Model stepModel(uint32_t count) {
  hal::cts::ModelBuilder builder;
  const OperandType real = OperandType::kTensorFloat32;
  const uint32_t state = builder.input(real, {count});
  const uint32_t step = builder.input(real, {count});
  const uint32_t half = builder.temporary(real, {count});
  const uint32_t none = builder.scalar(int32_t{0});
  builder.operation(graph::OperationType::kMul,
                    {state, builder.constant(real, {1}, std::vector<float>{0.5f}), none}, {half});
  builder.operation(graph::OperationType::kAdd, {half, step, none},
                    {builder.output(real, {count})});
  return builder.model();
}

HonestClient::HonestClient(std::shared_ptr<hal::Device> device) : device_(std::move(device)) {
  prepareAll();
  if (testing::Test::HasFatalFailure() || cases_.empty()) return;
  thread_ = std::thread([this] {
    while (!isOver_) {
      std::string wrong = computeAll();
      if (wrong.empty()) wrong = computeState();
      if (!wrong.empty()) {
        const std::lock_guard lock(mutex_);
        problem_ = std::move(wrong);
        return;
      }
      ++rounds_;
    }
  });
}

HonestClient::~HonestClient() {
  isOver_ = true;
  if (thread_.joinable()) thread_.join();
}

std::string HonestClient::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void HonestClient::prepareAll() {
  std::mt19937 random(41);
  for (hal::cts::NamedModel& sample : hal::cts::sampleModels()) {
    if (!kModels.contains(sample.name)) continue;
    Case made{
        sample.name, std::make_shared<const graph::Model>(std::move(sample.model)), {}, {}, {}};
    auto prepared = device_->prepareModel(made.model, {}, {});
    ASSERT_TRUE(prepared) << sample.name << ": " << prepared.error().toString();
    made.prepared = *std::move(prepared);
    const graph::Subgraph& main = made.model->main();
    for (const uint32_t input : main.inputs)
      made.inputs.push_back(valuesFor(main.operands[input], random));
    cases_.push_back(std::move(made));
  }
  ASSERT_EQ(cases_.size(), kModels.size());
  auto step =
      device_->prepareModel(std::make_shared<const graph::Model>(stepModel(kStateCount)), {}, {});
  ASSERT_TRUE(step) << step.error().toString();
  step_ = *std::move(step);
  for (int side = 0; side < 2; ++side) {
    auto buffer = device_->allocate({}, {{step_, true, 0}, {step_, false, 0}});
    ASSERT_TRUE(buffer) << buffer.error().toString();
    sides_.push_back(*std::move(buffer));
  }
  ASSERT_EQ(computeAll(), "");
  ASSERT_EQ(computeState(), "");
}

std::string HonestClient::check(const std::string& name, Result<std::vector<uint8_t>> computed,
                                std::vector<uint8_t>* expected) {
  if (!computed) return name + ": " + computed.error().toString();
  if (expected->empty()) *expected = *computed;
  return *computed == *expected ? "" : name + " has another result.";
}

std::string HonestClient::computeAll() {
  for (Case& each : cases_)
    if (std::string wrong = check(each.name, computeModel(*each.prepared, *each.model, each.inputs),
                                  &each.expected);
        !wrong.empty())
      return wrong;
  return "";
}

std::string HonestClient::computeState() {
  const auto compute = [&]() -> Result<std::vector<uint8_t>> {
    HEARTH_ASSIGN(const memory::PoolRef pool, memory::Pool::anonymous(kStateBytes));
    std::memset(pool->mutableData(), 0, kStateBytes);
    HEARTH_TRY(sides_[0]->copyFrom(pool, {kStateCount}));
    for (int i = 0; i < kSteps; ++i) {
      std::vector<float> step(kStateCount);
      for (size_t at = 0; at < step.size(); ++at)
        step[at] = 0.1f * static_cast<float>(at) - static_cast<float>(i);
      hal::Argument from, to;
      from.kind = to.kind = hal::Argument::Kind::kBuffer;
      from.token = sides_[i % 2]->token();
      to.token = sides_[(i + 1) % 2]->token();
      HEARTH_TRY(hal::cts::computeOnce(*step_, {{from, hal::cts::argumentFor(step)}, {to}}).status);
    }
    HEARTH_TRY(sides_[kSteps % 2]->copyTo(pool));
    return std::vector<uint8_t>(pool->data(), pool->data() + kStateBytes);
  };
  return check("the state", compute(), &expectedState_);
}

}  // namespace hearth::ipc
