// SPDX-License-Identifier: Apache-2.0
// Writes small .tflite models for tests and for the fuzzer's first inputs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memory/pool.h"
#include "tflite_schema_generated.h"

namespace hearth::tflite {

// Builds a model in the schema's object form; tests may change `model` before write().
class ModelWriter {
 public:
  using Shape = std::vector<int32_t>;

  ModelWriter();

  // Tensors and operations are added to the last subgraph.
  int32_t addSubgraph(const std::string& name);
  int32_t addTensor(schema::TensorType type, Shape shape, float scale = 0.0f,
                    int64_t zeroPoint = 0);
  // A tensor without quantisation, or with a scale if its type has 8 bits.
  int32_t addActivation(schema::TensorType type, Shape shape);
  // The same with a constant value, which repeats after 61 bytes.
  int32_t addWeights(schema::TensorType type, Shape shape);
  int32_t addVariable(schema::TensorType type, Shape shape, float scale = 0.0f,
                      int64_t zeroPoint = 0);
  template <typename T>
  int32_t addConstant(schema::TensorType type, Shape shape, std::initializer_list<T> values,
                      float scale = 0.0f, int64_t zeroPoint = 0) {
    const std::vector<T> list(values);
    const auto* bytes = reinterpret_cast<const uint8_t*>(list.data());
    return addConstantBytes(type, std::move(shape),
                            std::vector<uint8_t>(bytes, bytes + list.size() * sizeof(T)), scale,
                            zeroPoint);
  }
  int32_t addConstantBytes(schema::TensorType type, Shape shape, std::vector<uint8_t> bytes,
                           float scale = 0.0f, int64_t zeroPoint = 0);
  int32_t ints(std::initializer_list<int32_t> values);
  int32_t addStrings(Shape shape, const std::vector<std::string_view>& strings);
  // Adds a HASHTABLE to the last subgraph and returns its handle.
  int32_t addTable(int32_t id, schema::TensorType keys, schema::TensorType values);

  schema::OperatorT& addOperator(schema::BuiltinOperator code, std::vector<int32_t> inputs,
                                 std::vector<int32_t> outputs, int32_t version = 1);
  template <typename Options>
  schema::OperatorT& addOperator(schema::BuiltinOperator code, std::vector<int32_t> inputs,
                                 std::vector<int32_t> outputs, Options options) {
    schema::OperatorT& added = addOperator(code, std::move(inputs), std::move(outputs));
    added.builtin_options.Set(std::move(options));
    return added;
  }
  // Adds a custom operation; `options` are its custom options.
  schema::OperatorT& addCustom(const std::string& name, std::vector<int32_t> inputs,
                               std::vector<int32_t> outputs, std::vector<uint8_t> options = {},
                               int32_t version = 1);
  // Adds a STABLEHLO_COMPOSITE; `attributes` is a FlexBuffer, or empty.
  void addComposite(const std::string& name, int32_t decomposition, std::vector<uint8_t> attributes,
                    std::vector<int32_t> inputs, std::vector<int32_t> outputs);
  // Adds INT4 weights of [rows, columns] with a scale for each block of `blockSize` elements of a
  // row.
  int32_t addBlockwise(Shape shape, std::vector<uint8_t> pairs, int32_t scales, int32_t blockSize);
  void setArguments(std::vector<int32_t> inputs, std::vector<int32_t> outputs);

  schema::SubGraphT& subgraph() { return *model.subgraphs.back(); }
  schema::TensorT& tensor(int32_t index) { return *subgraph().tensors[index]; }

  std::vector<uint8_t> write() const;

  schema::ModelT model;
};

// A FlexBuffer with a map of numbers and of lists of whole numbers.
std::vector<uint8_t> flexMap(
    const std::vector<std::pair<std::string, double>>& numbers,
    const std::vector<std::pair<std::string, std::vector<int32_t>>>& lists = {});

// A FlexBuffer with the options of tftext:Ngrams.
std::vector<uint8_t> ngramOptions(int64_t width, const std::string& separator,
                                  const std::string& reduction = "STRING_JOIN");
// A FlexBuffer with the options of RaggedTensorToTensor.
std::vector<uint8_t> raggedOptions(const std::vector<std::string>& partitions);

// A copy of the bytes in memory of its own, as of a file.
memory::PoolRef poolOf(const std::vector<uint8_t>& bytes);

}  // namespace hearth::tflite
