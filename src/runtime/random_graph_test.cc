// SPDX-License-Identifier: Apache-2.0
// Random models must give the results of the documented formulas on both built-in devices, when
// partitioned between the two, and with the fast kernels of src/ops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>

#include "base/format.h"
#include "hal/cts/guarded_memory.h"
#include "hal/interpreted_model.h"
#include "hal/testing/stub_devices.h"
#include "ops/half.h"
#include "runtime/device_manager.h"
#include "runtime/partitioned_model.h"
#include "runtime/testing/random_graph.h"
#include "runtime/testing/random_graph_forms.h"
#include "runtime/testing/random_graph_shapes.h"

namespace hearth::runtime {
namespace {

using graph::OperandType;
using hal::cts::GuardedMemory;
using Tensors = std::vector<std::vector<uint8_t>>;

// A device that supports only the chosen operations of one model.
class PickyDevice final : public hal::ForwardingDevice {
 public:
  PickyDevice(std::shared_ptr<hal::Device> device, std::vector<bool> takes)
      : ForwardingDevice(std::move(device)), takes_(std::move(takes)) {}
  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override {
    HEARTH_ASSIGN(std::vector<hal::OperationSupport> support,
                  ForwardingDevice::supportedOperations(model));
    for (size_t i = 0; i < takes_.size(); ++i)
      if (!takes_[i]) support[i] = {false, "", "The test keeps it."};
    return support;
  }

 private:
  const std::vector<bool> takes_;
};

// An execution with memory of its own. A kernel that goes beyond the end of an input or output ends
// the process.
class BoundExecution {
 public:
  // With the dimensions that `shapes`, which has the same inputs, gives them.
  static Result<BoundExecution> create(const RandomGraph& graph, const graph::Model& shapes,
                                       hal::PreparedModel& prepared) {
    BoundExecution made;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      std::ranges::copy(graph.inputs[i], made.add(graph.inputs[i].size(), &made.request_.inputs));
      made.request_.inputs.back().dimensions =
          shapes.main().operands[shapes.main().inputs[i]].dimensions;
    }
    for (const std::vector<uint8_t>& output : graph.outputs)
      std::fill_n(made.add(output.size(), &made.request_.outputs), output.size(), uint8_t{0xA5});
    HEARTH_ASSIGN(made.execution_, prepared.createExecution(made.request_));
    return made;
  }

  Result<Tensors> compute() {
    // The second run begins with the memory that the first one has written.
    for (int i = 0; i < 2; ++i) HEARTH_TRY(execution_->compute({}).status);
    Tensors outputs;
    for (const hal::Argument& output : request_.outputs) {
      const auto* data = static_cast<const uint8_t*>(output.pointer);
      outputs.emplace_back(data, data + output.length);
    }
    return outputs;
  }

 private:
  uint8_t* add(size_t size, std::vector<hal::Argument>* arguments) {
    memory_.emplace_back(size, GuardedMemory::Place::kAtEnd);
    hal::Argument argument;
    argument.kind = hal::Argument::Kind::kPointer;
    argument.pointer = memory_.back().data();
    argument.length = size;
    arguments->push_back(argument);
    return memory_.back().data();
  }

  std::vector<GuardedMemory> memory_;
  hal::Request request_;
  std::unique_ptr<hal::Execution> execution_;  // reads the memory, so it ends first
};

Result<Tensors> run(const RandomGraph& graph, const graph::Model& shapes,
                    hal::PreparedModel& prepared) {
  HEARTH_ASSIGN(BoundExecution execution, BoundExecution::create(graph, shapes, prepared));
  return execution.compute();
}

bool isReal(OperandType type) {
  return type == OperandType::kTensorFloat32 || type == OperandType::kTensorFloat16 ||
         type == OperandType::kTensorQuant8Asymm || type == OperandType::kTensorQuant8AsymmSigned ||
         type == OperandType::kTensorQuant16Symm;
}

// The real value of an element of such a type. +0 and -0 compare equal.
double realAt(const graph::Operand& operand, const std::vector<uint8_t>& bytes, size_t index) {
  const auto as = [&]<typename T>(T value) {
    std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
    return static_cast<double>(value);
  };
  switch (operand.type) {
    case OperandType::kTensorFloat32:
      return as(float{});
    case OperandType::kTensorFloat16:
      return static_cast<double>(static_cast<float>([&] {
        ops::Half value;
        std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
        return value;
      }()));
    case OperandType::kTensorQuant8Asymm:
      return operand.scale * (as(uint8_t{}) - operand.zeroPoint);
    case OperandType::kTensorQuant16Symm:
      return operand.scale * as(int16_t{});
    default:
      return operand.scale * (as(int8_t{}) - operand.zeroPoint);
  }
}

// The first output that is not within its tolerance; empty if all are.
std::string difference(const RandomGraph& graph, const Tensors& made) {
  const graph::Subgraph& main = graph.model->main();
  for (size_t o = 0; o < made.size(); ++o) {
    if (made[o] == graph.outputs[o]) continue;
    const graph::Operand& operand = main.operands[main.outputs[o]];
    const std::string name = base::formatText("Output {}, {}, ", o, graph::describe(operand));
    if (!isReal(operand.type)) return name + "has other bytes";
    const size_t count = made[o].size() / graph::elementSize(operand.type);
    for (size_t i = 0; i < count; ++i) {
      const double have = realAt(operand, made[o], i);
      const double want = realAt(operand, graph.outputs[o], i);
      if (!(std::abs(have - want) <= graph.tolerances[o]))
        return name + base::formatText("element {} is {}, it must be {} within {}", i, have, want,
                                       graph.tolerances[o]);
    }
  }
  return {};
}

std::string describeOperations(const graph::Model& model) {
  std::string text;
  for (const graph::Operation& operation : model.main().operations) {
    text += base::formatText("  {}", graph::nameOf(operation.type));
    for (const uint32_t input : operation.inputs)
      text += base::formatText(" {}:{}", input, graph::describe(model.main().operands[input]));
    text += " ->";
    for (const uint32_t output : operation.outputs)
      text += base::formatText(" {}:{}", output, graph::describe(model.main().operands[output]));
    text += "\n";
  }
  return text;
}

class RandomGraphTest : public testing::Test {
 protected:
  // Expects the right results of the model, partitioned among these devices. `shapes` has the
  // dimensions of its inputs.
  void expectResults(const RandomGraph& graph,
                     const std::vector<std::shared_ptr<hal::Device>>& devices) {
    expectResults(graph, *graph.model, devices);
  }
  void expectResults(const RandomGraph& graph, const graph::Model& shapes,
                     const std::vector<std::shared_ptr<hal::Device>>& devices) {
    PartitioningOptions options;
    options.prepare.threads = 2;
    options.prepare.driverOptions = {{"store_mode", "off"}};
    const auto plan = preparePartitioned(graph.model, devices, options);
    ASSERT_TRUE(plan) << plan.error().toString();
    const auto made = run(graph, shapes, *plan->prepared);
    ASSERT_TRUE(made) << describeParts(*plan) << "\n" << made.error().toString();
    ASSERT_EQ(difference(graph, *made), "") << describeParts(*plan) << "\n"
                                            << describeOperations(*graph.model);
  }

  // hearth-cpu runs the fast kernels for operations that nothing else computes, and for models
  // whose shapes are known only at run time.
  void expectResultsOfFastKernels(const RandomGraph& graph) {
    const auto prepared = hal::prepareInterpreted(graph.model, {}, nullptr, "a test");
    ASSERT_TRUE(prepared) << prepared.error().toString();
    const auto made = run(graph, *graph.model, **prepared);
    ASSERT_TRUE(made) << made.error().toString();
    ASSERT_EQ(difference(graph, *made), "") << describeOperations(*graph.model);
  }

  void expectResultsEverywhere(uint64_t seed) {
    std::mt19937_64 random(seed);
    const size_t count = 5 + random() % 46;
    const RandomGraph graph = makeRandomGraph(seed, count);
    ASSERT_TRUE(graph::validate(*graph.model));
    ASSERT_FALSE(graph.outputs.empty());
    expectResultsOfFastKernels(graph);
    if (HasFatalFailure()) return;
    expectResults(graph, {reference_});
    if (HasFatalFailure()) return;
    expectResults(graph, {cpu_});
    // All partitionings of the smallest graphs, three of each larger one.
    const bool isSmall = count <= 5;
    for (uint64_t i = 0; i < (isSmall ? uint64_t{1} << count : 3); ++i) {
      if (HasFatalFailure()) return;
      std::vector<bool> takes(count);
      for (size_t o = 0; o < count; ++o) takes[o] = isSmall ? (i >> o & 1) != 0 : random() % 2 != 0;
      expectResults(graph, {std::make_shared<PickyDevice>(cpu_, takes), reference_});
    }
  }

  // Calls check(seed) for so many seeds, or for 5000 in the long mode, up to a fatal failure.
  template <typename Check>
  void forSeeds(uint64_t count, const Check& check) {
    const char* text = std::getenv("HEARTH_TEST_LONG");
    const bool isLong = text != nullptr && *text != 0 && std::strcmp(text, "0") != 0;
    const char* first = std::getenv("HEARTH_TEST_SEED");
    const uint64_t begin = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
    for (uint64_t seed = begin; seed < begin + (isLong ? 5000 : count); ++seed) {
      SCOPED_TRACE(base::formatText("seed {}", seed));
      check(seed);
      if (HasFatalFailure()) return;
    }
  }

  void expectResultsInOtherForms(uint64_t seed) {
    std::mt19937_64 random(seed);
    const RandomGraph graph = makeRandomGraph(seed, 5 + random() % 26);
    for (const RandomGraph& form : {graph, inBranches(graph), inLoop(graph)}) {
      for (const auto& device : {cpu_, reference_}) {
        expectResults(form, {device});
        if (HasFatalFailure()) return;
        SCOPED_TRACE("with unknown shapes");
        expectResults(withUnknownShapes(form, seed), *form.model, {device});
        if (HasFatalFailure()) return;
      }
    }
  }

  // A device is given the whole model, which it divides where shapes depend on values.
  void expectResultsWithComputedShapes(uint64_t seed) {
    std::mt19937_64 random(seed);
    const RandomGraph graph = makeRandomGraph(seed, 5 + random() % 26);
    const std::optional<RandomGraph> form = withComputedShapes(graph, seed);
    if (!form) return;
    ASSERT_TRUE(graph::validate(*form->model));
    for (const auto& device : {cpu_, reference_}) {
      expectResults(*form, {device});
      if (HasFatalFailure()) return;
      SCOPED_TRACE("with unknown shapes");
      expectResults(withUnknownShapes(*form, seed), *form->model, {device});
      if (HasFatalFailure()) return;
    }
  }

  // Expects the right results of one prepared model whose executions have these shapes in turn.
  void expectResultsInTurn(const std::vector<RandomGraph>& graphs, uint64_t seed,
                           const std::vector<std::shared_ptr<hal::Device>>& devices) {
    PartitioningOptions options;
    options.prepare.threads = 2;
    options.prepare.driverOptions = {{"store_mode", "off"}};
    const std::shared_ptr<const graph::Model> model = ofUnknownShapes(graphs, seed);
    ASSERT_TRUE(graph::validate(*model));
    const auto plan = preparePartitioned(model, devices, options);
    ASSERT_TRUE(plan) << plan.error().toString();
    std::vector<BoundExecution> executions;
    const auto expect = [&](size_t which, BoundExecution& execution) {
      const auto made = execution.compute();
      ASSERT_TRUE(made) << "shape " << which << ", " << made.error().toString();
      ASSERT_EQ(difference(graphs[which], *made), "")
          << "shape " << which << ", " << describeParts(*plan) << "\n"
          << describeOperations(*model);
    };
    // The first shape comes again after another one, and between two others.
    std::vector<size_t> order = {0, 1, 0};
    if (graphs.size() > 2) order.push_back(2);
    for (const size_t which : order) {
      auto execution = BoundExecution::create(graphs[which], *graphs[which].model, *plan->prepared);
      ASSERT_TRUE(execution) << "shape " << which << ", " << execution.error().toString();
      expect(which, *execution);
      if (HasFatalFailure()) return;
      executions.push_back(*std::move(execution));
    }
    // Executions keep their shapes.
    for (size_t i = 0; i < executions.size() && !HasFatalFailure(); ++i)
      expect(order[i], executions[i]);
  }

  // Returns whether the graph can be computed in several shapes.
  bool expectResultsOfShapesInTurn(uint64_t seed) {
    constexpr double kHeadroom = 2;
    std::mt19937_64 random(seed);
    std::vector<RandomGraph> graphs = {makeRandomGraph(seed, 3 + random() % 10, kHeadroom)};
    for (RandomGraph& smaller : inSmallerShapes(graphs[0], seed, 2))
      graphs.push_back(std::move(smaller));
    if (graphs.size() == 1) return false;
    std::ranges::shuffle(graphs, random);  // a plan for a larger shape may follow or precede others
    const auto as = [&](const auto& form) {
      std::vector<RandomGraph> made;
      for (const RandomGraph& graph : graphs) made.push_back(form(graph));
      return made;
    };
    for (const auto& form : {graphs, as(inBranches), as(inLoop)}) {
      for (const auto& device : {cpu_, reference_}) {
        expectResultsInTurn(form, seed, {device});
        if (HasFatalFailure()) return true;
      }
    }
    return true;
  }

  // Expects the right results of a graph whose operations run on the device as far as it takes
  // them. Returns how many those are.
  size_t expectResultsOfDriver(uint64_t seed, const std::shared_ptr<hal::Device>& driver) {
    std::mt19937_64 random(seed);
    const RandomGraph graph = makeRandomGraph(seed, 5 + random() % 26);
    const auto supported = driver->supportedOperations(*graph.model);
    EXPECT_TRUE(supported) << supported.error().toString();
    if (!supported) return 0;
    expectResults(graph, {driver, reference_});
    if (HasFatalFailure()) return 0;
    SCOPED_TRACE("with unknown shapes");
    expectResults(withUnknownShapes(graph, seed), *graph.model, {driver, reference_});
    return static_cast<size_t>(
        std::ranges::count_if(*supported, &hal::OperationSupport::supported));
  }

  // In this process or behind hosts.
  const std::shared_ptr<hal::Device> cpu_ = DeviceManager::shared().find("hearth-cpu");
  const std::shared_ptr<hal::Device> reference_ = DeviceManager::shared().reference();
};

TEST_F(RandomGraphTest, GivesTheFormulasResultsOnBothDevicesAndOnAllDivisions) {
  forSeeds(300, [&](uint64_t seed) { expectResultsEverywhere(seed); });
}

TEST_F(RandomGraphTest, ShapesMayBeUnknownAndOperationsInBranchesAndLoops) {
  forSeeds(60, [&](uint64_t seed) { expectResultsInOtherForms(seed); });
}

// Also in the branches of an IF and the body of a WHILE, whose operands do not tell them either.
TEST_F(RandomGraphTest, OnePreparedModelRunsWithSeveralShapesInTurn) {
  constexpr uint64_t kSeeds = 100;
  uint64_t tried = 0;
  uint64_t changeable = 0;
  forSeeds(kSeeds, [&](uint64_t seed) {
    ++tried;
    if (expectResultsOfShapesInTurn(seed)) ++changeable;
  });
  EXPECT_GT(changeable, tried / 4);
}

TEST_F(RandomGraphTest, ShapesMayDependOnValues) {
  forSeeds(100, [&](uint64_t seed) { expectResultsWithComputedShapes(seed); });
}

// Each driver along HEARTH_DRIVER_PATH, with the reference for what it does not take.
TEST_F(RandomGraphTest, InstalledDriversGiveTheFormulasResults) {
  bool isThereOne = false;
  for (const std::shared_ptr<hal::Device>& driver : DeviceManager::shared().devices()) {
    if (driver == cpu_ || driver == reference_) continue;
    SCOPED_TRACE(driver->name());
    isThereOne = true;
    uint64_t taken = 0;
    forSeeds(12, [&](uint64_t seed) { taken += expectResultsOfDriver(seed, driver); });
    EXPECT_GT(taken, 0u);
  }
  if (!isThereOne) GTEST_SKIP() << "HEARTH_DRIVER_PATH names no driver that is there.";
}

// A result whose greatest number has the wrong sign is detected, for each output with a telling
// tolerance.
TEST_F(RandomGraphTest, ADifferenceIsNoticed) {
  size_t noticed = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const RandomGraph graph = makeRandomGraph(seed, 20);
    const graph::Subgraph& main = graph.model->main();
    ASSERT_EQ(difference(graph, graph.outputs), "");
    for (size_t o = 0; o < graph.outputs.size(); ++o) {
      const graph::Operand& operand = main.operands[main.outputs[o]];
      const size_t size = graph::elementSize(operand.type);
      size_t greatest = 0;
      if (isReal(operand.type))
        for (size_t i = 0; i < graph.outputs[o].size() / size; ++i)
          if (std::abs(realAt(operand, graph.outputs[o], i)) >
              std::abs(realAt(operand, graph.outputs[o], greatest)))
            greatest = i;
      Tensors changed = graph.outputs;
      changed[o][greatest * size + size - 1] ^= 0x80;
      if (isReal(operand.type) &&
          std::abs(realAt(operand, changed[o], greatest) -
                   realAt(operand, graph.outputs[o], greatest)) <= graph.tolerances[o])
        continue;
      EXPECT_NE(difference(graph, changed), "") << seed << ", output " << o;
      ++noticed;
    }
  }
  EXPECT_GT(noticed, 50u);
}

// The graphs have many kinds of operations and types, and tolerances small enough to detect errors.
TEST_F(RandomGraphTest, GraphsAreVariedAndTelling) {
  std::set<graph::OperationType> operations;
  std::set<OperandType> types;
  size_t exact = 0;
  size_t telling = 0;
  size_t outputs = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const RandomGraph graph = makeRandomGraph(seed, 30);
    const graph::Subgraph& main = graph.model->main();
    EXPECT_EQ(main.operations.size(), 30u);
    for (const graph::Operation& operation : main.operations) operations.insert(operation.type);
    for (const graph::Operand& operand : main.operands) types.insert(operand.type);
    for (size_t o = 0; o < graph.outputs.size(); ++o) {
      ++outputs;
      const graph::Operand& operand = main.operands[main.outputs[o]];
      double greatest = 0;
      if (graph.tolerances[o] == 0) {
        ++exact;
        continue;
      }
      for (size_t i = 0; i < graph.outputs[o].size() / graph::elementSize(operand.type); ++i)
        greatest = std::max(greatest, std::abs(realAt(operand, graph.outputs[o], i)));
      if (graph.tolerances[o] < 0.1 * greatest) ++telling;
    }
  }
  EXPECT_GE(operations.size(), 45u);
  EXPECT_GE(types.size(), 10u);
  EXPECT_TRUE(operations.contains(graph::OperationType::kUnidirectionalSequenceLstm));
  EXPECT_TRUE(operations.contains(graph::OperationType::kUnsortedSegmentMax));
  EXPECT_TRUE(operations.contains(graph::OperationType::kTopkV2));
  EXPECT_TRUE(operations.contains(graph::OperationType::kNonMaxSuppression));
  EXPECT_TRUE(types.contains(OperandType::kTensorInt64));
  EXPECT_TRUE(types.contains(OperandType::kTensorQuant16Symm));
  EXPECT_GT(exact, outputs / 10);
  EXPECT_GT(exact + telling, outputs * 8 / 10);
}

}  // namespace
}  // namespace hearth::runtime
