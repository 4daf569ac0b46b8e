// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/testing/model_writer.h"

#include <flatbuffers/flexbuffers.h>

#include <cstring>
#include <memory>

#include "base/format.h"
#include "memory/packed_strings.h"

namespace hearth::tflite {

ModelWriter::ModelWriter() {
  model.version = 3;
  model.buffers.push_back(std::make_unique<schema::BufferT>());
  addSubgraph("main");
}

int32_t ModelWriter::addSubgraph(const std::string& name) {
  auto added = std::make_unique<schema::SubGraphT>();
  added->name = name;
  model.subgraphs.push_back(std::move(added));
  return static_cast<int32_t>(model.subgraphs.size()) - 1;
}

int32_t ModelWriter::addTensor(schema::TensorType type, Shape shape, float scale,
                               int64_t zeroPoint) {
  auto added = std::make_unique<schema::TensorT>();
  added->name = base::formatText("t{}", subgraph().tensors.size());
  added->type = type;
  added->shape = std::move(shape);
  if (scale != 0.0f) {
    added->quantization = std::make_unique<schema::QuantizationParametersT>();
    added->quantization->scale = {scale};
    added->quantization->zero_point = {zeroPoint};
  }
  subgraph().tensors.push_back(std::move(added));
  return static_cast<int32_t>(subgraph().tensors.size()) - 1;
}

int32_t ModelWriter::addActivation(schema::TensorType type, Shape shape) {
  const bool isByte = type == schema::TensorType::INT8 || type == schema::TensorType::UINT8;
  return addTensor(type, std::move(shape), isByte ? 0.5f : 0.0f,
                   type == schema::TensorType::UINT8 ? 128 : 0);
}

int32_t ModelWriter::addWeights(schema::TensorType type, Shape shape) {
  const bool isWide = type == schema::TensorType::FLOAT32 || type == schema::TensorType::INT32;
  size_t bytes = isWide ? 4 : 1;
  for (const int32_t dimension : shape) bytes *= static_cast<size_t>(dimension);
  auto buffer = std::make_unique<schema::BufferT>();
  for (size_t i = 0; i < bytes; ++i) buffer->data.push_back(static_cast<uint8_t>(i % 61));
  model.buffers.push_back(std::move(buffer));
  const int32_t added = addActivation(type, std::move(shape));
  tensor(added).buffer = static_cast<uint32_t>(model.buffers.size()) - 1;
  return added;
}

int32_t ModelWriter::addVariable(schema::TensorType type, Shape shape, float scale,
                                 int64_t zeroPoint) {
  const int32_t added = addTensor(type, std::move(shape), scale, zeroPoint);
  tensor(added).is_variable = true;
  return added;
}

int32_t ModelWriter::addConstantBytes(schema::TensorType type, Shape shape,
                                      std::vector<uint8_t> bytes, float scale, int64_t zeroPoint) {
  auto buffer = std::make_unique<schema::BufferT>();
  buffer->data = std::move(bytes);
  model.buffers.push_back(std::move(buffer));
  const int32_t added = addTensor(type, std::move(shape), scale, zeroPoint);
  tensor(added).buffer = static_cast<uint32_t>(model.buffers.size()) - 1;
  return added;
}

int32_t ModelWriter::addStrings(Shape shape, const std::vector<std::string_view>& strings) {
  return addConstantBytes(schema::TensorType::STRING, std::move(shape),
                          *memory::packStrings(strings));
}

int32_t ModelWriter::addTable(int32_t id, schema::TensorType keys, schema::TensorType values) {
  const int32_t handle = addTensor(schema::TensorType::RESOURCE, {1});
  schema::HashtableOptionsT options;
  options.table_id = id;
  options.key_dtype = keys;
  options.value_dtype = values;
  addOperator(schema::BuiltinOperator::HASHTABLE, {}, {handle}, options);
  return handle;
}

int32_t ModelWriter::ints(std::initializer_list<int32_t> values) {
  return addConstant<int32_t>(schema::TensorType::INT32, {static_cast<int32_t>(values.size())},
                              values);
}

schema::OperatorT& ModelWriter::addOperator(schema::BuiltinOperator code,
                                            std::vector<int32_t> inputs,
                                            std::vector<int32_t> outputs, int32_t version) {
  auto operatorCode = std::make_unique<schema::OperatorCodeT>();
  operatorCode->builtin_code = code;
  operatorCode->deprecated_builtin_code =
      static_cast<int8_t>(std::min<int32_t>(static_cast<int32_t>(code), 127));
  operatorCode->version = version;
  model.operator_codes.push_back(std::move(operatorCode));
  auto added = std::make_unique<schema::OperatorT>();
  added->opcode_index = static_cast<uint32_t>(model.operator_codes.size()) - 1;
  added->inputs = std::move(inputs);
  added->outputs = std::move(outputs);
  subgraph().operators.push_back(std::move(added));
  return *subgraph().operators.back();
}

schema::OperatorT& ModelWriter::addCustom(const std::string& name, std::vector<int32_t> inputs,
                                          std::vector<int32_t> outputs,
                                          std::vector<uint8_t> options, int32_t version) {
  schema::OperatorT& added =
      addOperator(schema::BuiltinOperator::CUSTOM, std::move(inputs), std::move(outputs), version);
  model.operator_codes.back()->custom_code = name;
  added.custom_options = std::move(options);
  return added;
}

void ModelWriter::addComposite(const std::string& name, int32_t decomposition,
                               std::vector<uint8_t> attributes, std::vector<int32_t> inputs,
                               std::vector<int32_t> outputs) {
  schema::StableHLOCompositeOptionsT options;
  options.name = name;
  options.decomposition_subgraph_index = decomposition;
  options.composite_attributes = std::move(attributes);
  addOperator(schema::BuiltinOperator::STABLEHLO_COMPOSITE, std::move(inputs), std::move(outputs))
      .builtin_options_2.Set(std::move(options));
}

int32_t ModelWriter::addBlockwise(Shape shape, std::vector<uint8_t> pairs, int32_t scales,
                                  int32_t blockSize) {
  const int32_t added =
      addConstantBytes(schema::TensorType::INT4, std::move(shape), std::move(pairs), 1.0f);
  schema::BlockwiseQuantizationT blocks;
  blocks.scales = scales;
  blocks.zero_points = -1;
  blocks.block_size = blockSize;
  tensor(added).quantization = std::make_unique<schema::QuantizationParametersT>();
  tensor(added).quantization->details.Set(std::move(blocks));
  return added;
}

void ModelWriter::setArguments(std::vector<int32_t> inputs, std::vector<int32_t> outputs) {
  subgraph().inputs = std::move(inputs);
  subgraph().outputs = std::move(outputs);
}

std::vector<uint8_t> ModelWriter::write() const {
  flatbuffers::FlatBufferBuilder builder;
  schema::FinishModelBuffer(builder, schema::Model::Pack(builder, &model));
  return std::vector<uint8_t>(builder.GetBufferPointer(),
                              builder.GetBufferPointer() + builder.GetSize());
}

std::vector<uint8_t> flexMap(
    const std::vector<std::pair<std::string, double>>& numbers,
    const std::vector<std::pair<std::string, std::vector<int32_t>>>& lists) {
  flexbuffers::Builder builder;
  builder.Map([&] {
    for (const auto& [name, value] : numbers) builder.Double(name.c_str(), value);
    for (const auto& [name, values] : lists)
      builder.TypedVector(name.c_str(), [&] {
        for (const int32_t value : values) builder.Int(value);
      });
  });
  builder.Finish();
  return builder.GetBuffer();
}

std::vector<uint8_t> ngramOptions(int64_t width, const std::string& separator,
                                  const std::string& reduction) {
  flexbuffers::Builder builder;
  builder.Map([&] {
    builder.Int("width", width);
    builder.Int("axis", -1);
    builder.String("reduction_type", reduction);
    builder.String("string_separator", separator);
  });
  builder.Finish();
  return builder.GetBuffer();
}

std::vector<uint8_t> raggedOptions(const std::vector<std::string>& partitions) {
  flexbuffers::Builder builder;
  builder.Map([&] {
    builder.Vector("row_partition_types", [&] {
      for (const std::string& partition : partitions) builder.String(partition);
    });
  });
  builder.Finish();
  return builder.GetBuffer();
}

memory::PoolRef poolOf(const std::vector<uint8_t>& bytes) {
  auto pool = memory::Pool::anonymous(std::max<size_t>(bytes.size(), 1));
  if (!bytes.empty()) std::memcpy((*pool)->mutableData(), bytes.data(), bytes.size());
  return *pool;
}

}  // namespace hearth::tflite
