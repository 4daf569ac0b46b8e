// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernel_explanation.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>

#include "drivers/cpu/model_division.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "graph/step_model.h"
#include "ops/specialized_model.h"

namespace hearth::cpu {
namespace {

using Kernels = std::vector<PlanBuilder::OperationKernel>;

// The kernels of the execution graph, by operation. Error: why the model cannot be planned.
Result<Kernels> kernelsOf(const graph::Model& model) {
  PlanBuilder builder(model, nullptr, {});
  HEARTH_TRY(builder.build());
  return builder.takeKernels();
}

// The words of a reason as a sentence.
std::string sentenceOf(std::string words) {
  if (words.empty()) return words;
  if (words[0] >= 'a' && words[0] <= 'z') words[0] = static_cast<char>(words[0] - 'a' + 'A');
  return words + ".";
}

class KernelExplanation {
 public:
  explicit KernelExplanation(std::vector<hal::OperationSupport>* support) : support_(*support) {}

  // `numbers` are the operations' indices in the whole model.
  void explain(const graph::Model& model, std::span<const uint32_t> numbers, unsigned divisions) {
    const Result<Kernels> kernels = kernelsOf(model);
    if (kernels) return set(numbers, *kernels);
    std::vector<graph::Dimensions> shapes;
    for (const uint32_t input : model.main().inputs) {
      shapes.push_back(model.main().operands[input].dimensions);
      for (uint32_t& dimension : shapes.back()) dimension = std::max(dimension, 1u);
    }
    if (const auto specialized = ops::specialize(model, shapes)) {
      if (const auto ofShapes = kernelsOf(*specialized->model)) {
        // The results of operations that are gone are constants.
        setAll(numbers, {"none", ""});
        const std::span left(specialized->operations.data(), ofShapes->size());
        return set(numbersOf(left, numbers), *ofShapes);
      }
    }
    const auto partly = ops::specializePartly(model, shapes);
    if (!partly || partly->open.empty() || divisions == kMostDivisions)
      return setAll(numbers, {"reference", "it is interpreted: " + kernels.error().message()});
    setAll(numbers, {"none", ""});
    const std::vector<uint32_t> left = numbersOf(partly->operations, numbers);
    const ModelDivision division = divideModel(partly->model->main(), partly->open);
    setAll(numbersOf(division.cut, left),
           {"reference", "it is interpreted, since a shape depends on values"});
    for (const std::vector<uint32_t>* part : {&division.front, &division.rest})
      if (!part->empty())
        explain(*graph::makeStepModel(*partly->model, *part).model, numbersOf(*part, left),
                divisions + 1);
  }

 private:
  void set(std::span<const uint32_t> numbers, const Kernels& kernels) {
    for (size_t i = 0; i < kernels.size(); ++i) set(numbers[i], kernels[i]);
  }
  void setAll(std::span<const uint32_t> numbers, const PlanBuilder::OperationKernel& kernel) {
    for (const uint32_t number : numbers) set(number, kernel);
  }
  void set(uint32_t number, const PlanBuilder::OperationKernel& kernel) {
    support_[number].kernel = kernel.kind;
    support_[number].reason = sentenceOf(kernel.whySlow);
  }

  std::vector<hal::OperationSupport>& support_;
};

}  // namespace

void explainKernels(const graph::Model& model, std::vector<hal::OperationSupport>* support) {
  std::vector<uint32_t> numbers(support->size());
  std::iota(numbers.begin(), numbers.end(), 0);
  KernelExplanation(support).explain(model, numbers, 0);
}

}  // namespace hearth::cpu
