// SPDX-License-Identifier: Apache-2.0
// For tests: imports hand-made models and shows the result as text.
#pragma once

#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/model_file.h"
#include "frontends/tflite/testing/model_writer.h"
#include "ops/interpreter.h"

namespace hearth::tflite {

// The names that tests of translators use in every line.
using schema::BuiltinOperator;
using schema::TensorType;
using testing::ElementsAre;
using testing::HasSubstr;

// One element of a constant.
template <typename T>
T valueOf(const graph::Model& model, const graph::Operand& operand, size_t index = 0) {
  T value;
  std::memcpy(&value, model.constantData(operand) + index * sizeof(T), sizeof(T));
  return value;
}

// One line for each operation of a subgraph, such as "ADD t0 t1 3 -> t2". "3", "0.5f" and "true"
// are scalars, "{1,2}" an INT32 constant without a name, "-" an omitted argument, "%" an operand
// that a translator added, "#1" a subgraph; anything else is the name of a tensor.
std::vector<std::string> linesOf(const graph::Model& model, size_t subgraph = 0);

Result<ImportedGraph> tryImport(const ModelWriter& writer);
// When the import fails, fails the test and returns a model of three empty subgraphs.
ImportedGraph import(const ModelWriter& writer);
std::vector<std::string> translate(const ModelWriter& writer);
// "imported" when there is no error.
std::string errorOf(const ModelWriter& writer);

// The elements of each float output of a model, for elements of each input; the test fails where
// the model is refused or does not run.
std::vector<std::vector<float>> outputsOf(const ModelWriter& writer,
                                          std::vector<std::vector<float>> inputs,
                                          ops::KernelSet kernels);

// A model with float tensors of the given shapes: inputs t0, t1, …, then the outputs.
struct FloatModel : ModelWriter {
  FloatModel(std::vector<Shape> inputs, std::vector<Shape> outputs);

  std::vector<int32_t> in, out;
};

}  // namespace hearth::tflite
