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

// The kernels of the execution graph, by operation; none where the model cannot be planned.
std::optional<std::vector<std::string>> kernelsOf(const graph::Model& model) {
  PlanBuilder builder(model, nullptr, {});
  if (!builder.build()) return std::nullopt;
  return builder.takeKernels();
}

class KernelExplanation {
 public:
  explicit KernelExplanation(std::vector<hal::OperationSupport>* support) : support_(*support) {}

  // `numbers` are the operations' indices in the whole model.
  void explain(const graph::Model& model, std::span<const uint32_t> numbers, unsigned divisions) {
    if (const auto kernels = kernelsOf(model)) return set(numbers, *kernels);
    std::vector<graph::Dimensions> shapes;
    for (const uint32_t input : model.main().inputs) {
      shapes.push_back(model.main().operands[input].dimensions);
      for (uint32_t& dimension : shapes.back()) dimension = std::max(dimension, 1u);
    }
    if (const auto specialized = ops::specialize(model, shapes)) {
      if (const auto kernels = kernelsOf(*specialized->model)) {
        // The results of operations that are gone are constants.
        setAll(numbers, "none");
        const std::span left(specialized->operations.data(), kernels->size());
        return set(numbersOf(left, numbers), *kernels);
      }
    }
    const auto partly = ops::specializePartly(model, shapes);
    if (!partly || partly->open.empty() || divisions == kMostDivisions)
      return setAll(numbers, "reference");  // it is interpreted
    setAll(numbers, "none");
    const std::vector<uint32_t> left = numbersOf(partly->operations, numbers);
    const ModelDivision division = divideModel(partly->model->main(), partly->open);
    setAll(numbersOf(division.cut, left), "reference");
    for (const std::vector<uint32_t>* part : {&division.front, &division.rest})
      if (!part->empty())
        explain(*graph::makeStepModel(*partly->model, *part).model, numbersOf(*part, left),
                divisions + 1);
  }

 private:
  void set(std::span<const uint32_t> numbers, std::span<const std::string> kernels) {
    for (size_t i = 0; i < kernels.size(); ++i) support_[numbers[i]].kernel = kernels[i];
  }
  void setAll(std::span<const uint32_t> numbers, const char* kernel) {
    for (const uint32_t number : numbers) support_[number].kernel = kernel;
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
