// SPDX-License-Identifier: Apache-2.0
// Computes with an operation of a driver's extension, and goes on with one of NNAPI on another
// device: the first Fibonacci numbers, and the same times 10. It uses the C++ form of the API,
// whose functions throw when a call fails; the library then has said why on standard error.
//
//   HEARTH_DRIVER_PATH=FOLDER_OF_THE_MANIFEST ./fibonacci 12
#include <android/NeuralNetworksExtensions.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <hearth/nnapi.hpp>
#include <utility>
#include <vector>

#include "extension.h"

namespace ndk = hearth::ndk;

namespace {

ndk::Type typeOf(const ndk::Model& model, uint16_t code, std::vector<uint32_t> dimensions) {
  ndk::Type type;
  ndk::check(ANeuralNetworksModel_getExtensionOperandType(model.get(), EXAMPLE_FIBONACCI_EXTENSION,
                                                          code, &type.code),
             "getExtensionOperandType");
  type.dimensions = std::move(dimensions);
  return type;
}

ndk::Model makeModel() {
  // How many numbers there are is known only at run time.
  const std::vector<uint32_t> unknown = {0};
  const ndk::Type floats = {ANEURALNETWORKS_TENSOR_FLOAT32, unknown};
  ndk::Model model;
  const uint32_t howMany = model.operand(typeOf(model, EXAMPLE_INT64, {}));
  const uint32_t exact = model.operand(typeOf(model, EXAMPLE_TENSOR_QUANT64_ASYMM, unknown));
  const ExampleQuant64 halves = {0.5, 100};
  ndk::check(ANeuralNetworksModel_setOperandExtensionData(model.get(), static_cast<int32_t>(exact),
                                                          &halves, sizeof halves),
             "setOperandExtensionData");
  const uint32_t numbers = model.operand(floats);
  const uint32_t products = model.operand(floats);
  const uint32_t ten = model.constant<float>({ANEURALNETWORKS_TENSOR_FLOAT32, {1}}, {10});
  int32_t fibonacci = 0;
  ndk::check(ANeuralNetworksModel_getExtensionOperationType(
                 model.get(), EXAMPLE_FIBONACCI_EXTENSION, EXAMPLE_FIBONACCI, &fibonacci),
             "getExtensionOperationType");
  model.operation(fibonacci, {howMany}, {exact});
  model.operation(fibonacci, {howMany}, {numbers});
  model.operation(ANEURALNETWORKS_MUL, {numbers, ten, model.int32(ANEURALNETWORKS_FUSED_NONE)},
                  {products});
  model.finish({howMany}, {exact, products});
  return model;
}

void run(int64_t howMany) {
  const ndk::Model model = makeModel();
  ndk::Compilation compilation(model);
  compilation.finish();
  const std::array<int64_t, 1> count = {howMany};
  std::array<int64_t, 92> exact{};
  std::array<float, 92> products{};
  ndk::Execution execution(compilation);
  execution.input(0, count).output(0, exact).output(1, products).compute();
  const size_t length = execution.outputDimensions(1)[0];
  for (size_t i = 0; i < length; ++i)
    std::printf("%" PRId64 " %.0f\n", (exact[i] - 100) / 2, static_cast<double>(products[i]));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? std::atoi(argv[1]) : 12);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
  return 0;
}
