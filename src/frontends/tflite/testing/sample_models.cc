// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/testing/sample_models.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "frontends/tflite/testing/model_writer.h"
#include "frontends/tflite/testing/sample_layers.h"
#include "frontends/tflite/testing/sample_media.h"

namespace hearth::tflite {
namespace {

using schema::BuiltinOperator;
using schema::TensorType;

ModelWriter elementwise() {
  ModelWriter model;
  const int32_t left = model.addTensor(TensorType::FLOAT32, {2, 3});
  const int32_t right = model.addTensor(TensorType::FLOAT32, {1, 3});
  int32_t last = left;
  const auto next = [&] {
    return model.addTensor(TensorType::FLOAT32, {2, 3});
  };
  for (const BuiltinOperator code :
       {BuiltinOperator::ADD, BuiltinOperator::SQUARED_DIFFERENCE, BuiltinOperator::MAXIMUM}) {
    const int32_t result = next();
    model.addOperator(code, {last, right}, {result});
    last = result;
  }
  for (const BuiltinOperator code :
       {BuiltinOperator::COS, BuiltinOperator::LEAKY_RELU, BuiltinOperator::ELU,
        BuiltinOperator::SOFTMAX, BuiltinOperator::LOG_SOFTMAX}) {
    const int32_t result = next();
    model.addOperator(code, {last}, {result});
    last = result;
  }
  model.setArguments({left, right}, {last});
  return model;
}

ModelWriter shapes() {
  ModelWriter model;
  const auto add = [&](ModelWriter::Shape shape) {
    return model.addTensor(TensorType::FLOAT32, std::move(shape));
  };
  const int32_t input = add({2, 4});
  const int32_t reshaped = add({4, 2});
  const int32_t padded = add({6, 2});
  const int32_t sliced = add({4, 2});
  const int32_t first = add({1, 2});
  const int32_t second = add({3, 2});
  const int32_t joined = add({4, 2});
  const int32_t row0 = add({4});
  const int32_t row1 = add({4});
  const int32_t packed = add({2, 4});
  const int32_t transposed = add({4, 2});
  const int32_t reversed = add({4, 2});
  const int32_t padding = model.addConstant<int32_t>(TensorType::INT32, {2, 2}, {1, 1, 0, 0});
  const int32_t zero = model.addConstant<float>(TensorType::FLOAT32, {}, {0.0f});
  const int32_t one = model.addConstant<int32_t>(TensorType::INT32, {}, {0});
  schema::UnpackOptionsT unpack;
  unpack.num = 2;
  unpack.axis = 1;
  model.addOperator(BuiltinOperator::RESHAPE, {input, model.ints({-1, 2})}, {reshaped});
  model.addOperator(BuiltinOperator::PADV2, {reshaped, padding, zero}, {padded});
  model.addOperator(BuiltinOperator::STRIDED_SLICE,
                    {padded, model.ints({1}), model.ints({5}), model.ints({1})}, {sliced});
  model.addOperator(BuiltinOperator::SPLIT_V, {sliced, model.ints({1, -1}), one}, {first, second});
  model.addOperator(BuiltinOperator::CONCATENATION, {first, second}, {joined});
  model.addOperator(BuiltinOperator::UNPACK, {joined}, {row0, row1}, unpack);
  model.addOperator(BuiltinOperator::PACK, {row0, row1}, {packed});
  model.addOperator(BuiltinOperator::TRANSPOSE, {packed, model.ints({1, 0})}, {transposed});
  model.addOperator(BuiltinOperator::REVERSE_V2, {transposed, model.ints({0, 1})}, {reversed});
  model.setArguments({input}, {reversed});
  return model;
}

ModelWriter space() {
  ModelWriter model;
  const auto add = [&](ModelWriter::Shape shape) {
    return model.addTensor(TensorType::FLOAT32, std::move(shape));
  };
  const int32_t input = add({1, 4, 4, 1});
  const int32_t batched = add({4, 2, 2, 1});
  const int32_t back = add({1, 3, 4, 1});
  const int32_t resized = add({1, 2, 2, 1});
  const int32_t deep = add({1, 1, 1, 4});
  const int32_t blocks = model.ints({2, 2});
  const int32_t none = model.addConstant<int32_t>(TensorType::INT32, {2, 2}, {0, 0, 0, 0});
  const int32_t crops = model.addConstant<int32_t>(TensorType::INT32, {2, 2}, {1, 0, 0, 0});
  schema::SpaceToDepthOptionsT options;
  options.block_size = 2;
  model.addOperator(BuiltinOperator::SPACE_TO_BATCH_ND, {input, blocks, none}, {batched});
  model.addOperator(BuiltinOperator::BATCH_TO_SPACE_ND, {batched, blocks, crops}, {back});
  model.addOperator(BuiltinOperator::RESIZE_BILINEAR, {back, model.ints({2, 2})}, {resized});
  model.addOperator(BuiltinOperator::SPACE_TO_DEPTH, {resized}, {deep}, options);
  model.setArguments({input}, {deep});
  return model;
}

ModelWriter reductions() {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {2, 3});
  const int32_t mean = model.addTensor(TensorType::FLOAT32, {2});
  const int32_t sum = model.addTensor(TensorType::FLOAT32, {2});
  const int32_t indices = model.addTensor(TensorType::INT64, {2});
  const int32_t best = model.addTensor(TensorType::FLOAT32, {2, 1});
  const int32_t places = model.addTensor(TensorType::INT32, {2, 1});
  const int32_t axis = model.ints({1});
  const int32_t count = model.addConstant<int32_t>(TensorType::INT32, {}, {1});
  model.addOperator(BuiltinOperator::MEAN, {input, axis}, {mean});
  model.addOperator(BuiltinOperator::SUM, {input, axis}, {sum});
  model.addOperator(BuiltinOperator::ARG_MAX, {input, axis}, {indices});
  model.addOperator(BuiltinOperator::TOPK_V2, {input, count}, {best, places});
  model.setArguments({input}, {mean, sum, indices, best, places});
  return model;
}

ModelWriter lookups() {
  ModelWriter model;
  const int32_t indices = model.addTensor(TensorType::INT32, {3});
  const int32_t rows = model.addTensor(TensorType::FLOAT32, {3, 2});
  const int32_t embedded = model.addTensor(TensorType::FLOAT32, {3, 2});
  const int32_t table = model.addWeights(TensorType::FLOAT32, {4, 2});
  model.addOperator(BuiltinOperator::GATHER, {table, indices}, {rows});
  model.addOperator(BuiltinOperator::EMBEDDING_LOOKUP, {indices, table}, {embedded});
  model.setArguments({indices}, {rows, embedded});
  auto signature = std::make_unique<schema::SignatureDefT>();
  signature->signature_key = "lookup";
  auto name = std::make_unique<schema::TensorMapT>();
  name->name = "tokens";
  signature->inputs.push_back(std::move(name));
  model.model.signature_defs.push_back(std::move(signature));
  return model;
}

// Operations on indices, counts and sequences, which NNAPI lacks.
ModelWriter indices() {
  ModelWriter model;
  const int32_t numbers = model.addTensor(TensorType::INT32, {3});
  const int32_t data = model.addTensor(TensorType::FLOAT32, {3, 2});
  const auto result = [&](TensorType type, ModelWriter::Shape shape) {
    return model.addTensor(type, std::move(shape));
  };
  const int32_t sums = result(TensorType::FLOAT32, {3, 2});
  schema::CumsumOptionsT cumsum;
  cumsum.exclusive = true;
  model.addOperator(BuiltinOperator::CUMSUM, {data, model.ints({0})}, {sums}, cumsum);
  const int32_t hot = result(TensorType::FLOAT32, {3, 4});
  const int32_t one = model.addConstant<float>(TensorType::FLOAT32, {}, {1});
  const int32_t zero = model.addConstant<float>(TensorType::FLOAT32, {}, {0});
  schema::OneHotOptionsT oneHot;
  oneHot.axis = -1;
  model.addOperator(BuiltinOperator::ONE_HOT, {numbers, model.ints({4}), one, zero}, {hot}, oneHot);
  const int32_t column = result(TensorType::INT32, {3, 1});
  model.addOperator(BuiltinOperator::RESHAPE, {numbers, model.ints({3, 1})}, {column});
  const int32_t scattered = result(TensorType::FLOAT32, {4, 2});
  model.addOperator(BuiltinOperator::SCATTER_ND, {column, sums, model.ints({4, 2})}, {scattered});
  const int32_t reversed = result(TensorType::FLOAT32, {3, 2});
  schema::ReverseSequenceOptionsT sequence;
  sequence.seq_dim = 1;
  model.addOperator(BuiltinOperator::REVERSE_SEQUENCE, {sums, numbers}, {reversed}, sequence);
  const int32_t places = result(TensorType::INT64, {1, 2});
  model.addOperator(BuiltinOperator::WHERE, {hot}, {places});
  const int32_t shape = result(TensorType::INT32, {2});
  model.addOperator(BuiltinOperator::SHAPE, {places}, {shape});
  model.setArguments({numbers, data}, {scattered, reversed, shape});
  return model;
}

// Operations on bits, buckets and diagonals.
ModelWriter bits() {
  ModelWriter model;
  const int32_t numbers = model.addTensor(TensorType::INT32, {4});
  const int32_t mask = model.addTensor(TensorType::INT32, {1});
  const int32_t data = model.addTensor(TensorType::FLOAT32, {2, 3, 2});
  const auto result = [&](TensorType type, ModelWriter::Shape shape) {
    return model.addTensor(type, std::move(shape));
  };
  const int32_t mixed = result(TensorType::INT32, {4});
  model.addOperator(BuiltinOperator::BITWISE_XOR, {numbers, mask}, {mixed});
  const int32_t shifted = result(TensorType::INT32, {4});
  model.addOperator(BuiltinOperator::RIGHT_SHIFT, {numbers, mask}, {shifted});
  const int32_t real = result(TensorType::FLOAT32, {4});
  model.addOperator(BuiltinOperator::BITCAST, {mixed}, {real});
  const int32_t buckets = result(TensorType::INT32, {4});
  schema::BucketizeOptionsT options;
  options.boundaries = {-1, 0.5f, 3};
  model.addOperator(BuiltinOperator::BUCKETIZE, {shifted}, {buckets}, options);
  const int32_t matrix = result(TensorType::INT32, {4, 4});
  model.addOperator(BuiltinOperator::MATRIX_DIAG, {buckets}, {matrix});
  const int32_t diagonals = model.addTensor(TensorType::FLOAT32, {2, 2});
  const int32_t replaced = result(TensorType::FLOAT32, {2, 3, 2});
  model.addOperator(BuiltinOperator::MATRIX_SET_DIAG, {data, diagonals}, {replaced});
  model.setArguments({numbers, mask, data, diagonals}, {real, matrix, replaced});
  return model;
}

// A tensor that has one value except at a few places.
ModelWriter places() {
  ModelWriter model;
  const int32_t indices = model.addTensor(TensorType::INT32, {2, 2});
  const int32_t values = model.addTensor(TensorType::FLOAT32, {2});
  const int32_t rest = model.addConstant<float>(TensorType::FLOAT32, {}, {0.5f});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {3, 4});
  model.addOperator(BuiltinOperator::SPARSE_TO_DENSE, {indices, model.ints({3, 4}), values, rest},
                    {output});
  model.setArguments({indices, values}, {output});
  return model;
}

// Numbers and classes drawn with seeds, whose positions are states.
ModelWriter random() {
  ModelWriter model;
  schema::RandomOptionsT options;
  options.seed = 1;
  options.seed2 = 2;
  const int32_t shape = model.ints({2, 3});
  const int32_t even = model.addTensor(TensorType::FLOAT32, {2, 3});
  model.addOperator(BuiltinOperator::RANDOM_UNIFORM, {shape}, {even}, options);
  const int32_t normal = model.addTensor(TensorType::FLOAT32, {2, 3});
  model.addOperator(BuiltinOperator::RANDOM_STANDARD_NORMAL, {shape}, {normal}, options);
  const int32_t logits = model.addTensor(TensorType::FLOAT32, {2, 4});
  const int32_t count = model.ints({5});
  const int32_t classes = model.addTensor(TensorType::INT32, {2, 5});
  model.addOperator(BuiltinOperator::MULTINOMIAL, {logits, count}, {classes}, options);
  model.setArguments({logits}, {even, normal, classes});
  return model;
}

// Distinct elements, whose number is known only at run time.
ModelWriter different() {
  ModelWriter model;
  const int32_t numbers = model.addTensor(TensorType::INT32, {6});
  const int32_t found = model.addTensor(TensorType::INT32, {6});
  const int32_t places = model.addTensor(TensorType::INT32, {6});
  model.addOperator(BuiltinOperator::UNIQUE, {numbers}, {found, places}, schema::UniqueOptionsT());
  model.setArguments({numbers}, {found, places});
  return model;
}

// An operator that only a program can provide.
ModelWriter custom() {
  ModelWriter model;
  const int32_t numbers = model.addTensor(TensorType::FLOAT32, {2, 3});
  const int32_t factors = model.addConstant<int8_t>(TensorType::INT8, {3}, {1, 2, 3}, 0.5f, 0);
  const int32_t product = model.addTensor(TensorType::FLOAT32, {});
  model.addCustom("Sample", {numbers, -1, factors}, {product}, {1, 2, 3, 4});
  model.setArguments({numbers}, {product});
  return model;
}

// Sizes, crops and counts that are known only at run time.
ModelWriter openSizes() {
  ModelWriter model;
  const int32_t image = model.addTensor(TensorType::FLOAT32, {4, 2, 2, 1});
  const int32_t crops = model.addTensor(TensorType::INT32, {2, 2});
  const int32_t size = model.addTensor(TensorType::INT32, {2});
  const int32_t count = model.addTensor(TensorType::INT64, {});
  const auto addOpen = [&](TensorType type, ModelWriter::Shape signature) {
    ModelWriter::Shape shape = signature;
    for (int32_t& dimension : shape)
      if (dimension < 0) dimension = 1;
    const int32_t tensor = model.addTensor(type, std::move(shape));
    model.tensor(tensor).shape_signature = std::move(signature);
    return tensor;
  };
  const int32_t cropped = addOpen(TensorType::FLOAT32, {1, -1, -1, 1});
  const int32_t resized = addOpen(TensorType::FLOAT32, {1, -1, -1, 1});
  const int32_t reshaped = addOpen(TensorType::FLOAT32, {-1, -1});
  const int32_t rows = addOpen(TensorType::FLOAT32, {-1, -1});
  const int32_t best = addOpen(TensorType::FLOAT32, {-1, -1});
  const int32_t places = addOpen(TensorType::INT32, {-1, -1});
  const int32_t filled = addOpen(TensorType::INT64, {-1, -1});
  model.addOperator(BuiltinOperator::BATCH_TO_SPACE_ND, {image, model.ints({2, 2}), crops},
                    {cropped});
  model.addOperator(BuiltinOperator::RESIZE_NEAREST_NEIGHBOR, {cropped, size}, {resized});
  const int32_t row = model.addTensor(TensorType::INT32, {1, 2});
  model.addOperator(BuiltinOperator::RESHAPE, {size, model.ints({1, 2})}, {row});
  model.addOperator(BuiltinOperator::RESHAPE, {resized, row}, {reshaped});
  model.addOperator(BuiltinOperator::STRIDED_SLICE,
                    {reshaped, model.ints({0}), model.ints({9}), model.ints({2})}, {rows});
  model.addOperator(BuiltinOperator::TOPK_V2, {rows, count}, {best, places});
  model.addOperator(BuiltinOperator::FILL, {size, count}, {filled});
  model.setArguments({image, crops, size, count}, {best, places, filled});
  return model;
}

// Lists of indices, and rows that are combined by their numbers.
ModelWriter segments() {
  ModelWriter model;
  const int32_t data = model.addTensor(TensorType::FLOAT32, {2, 3, 2});
  const int32_t lists = model.addTensor(TensorType::INT32, {2, 3});
  const int32_t count = model.addTensor(TensorType::INT32, {});
  const int32_t gathered = model.addTensor(TensorType::FLOAT32, {2, 3, 2});
  schema::GatherOptionsT options;
  options.axis = 1;
  options.batch_dims = 1;
  model.addOperator(BuiltinOperator::GATHER, {data, lists}, {gathered}, options);
  std::vector<int32_t> outputs;
  for (const BuiltinOperator code :
       {BuiltinOperator::UNSORTED_SEGMENT_PROD, BuiltinOperator::UNSORTED_SEGMENT_MAX,
        BuiltinOperator::UNSORTED_SEGMENT_SUM, BuiltinOperator::UNSORTED_SEGMENT_MIN}) {
    outputs.push_back(model.addTensor(TensorType::FLOAT32, {1, 2}));
    model.tensor(outputs.back()).shape_signature = {-1, 2};
    model.addOperator(code, {gathered, lists, count}, {outputs.back()});
  }
  model.setArguments({data, lists, count}, outputs);
  return model;
}

// A counter that is read and assigned, and initialised by a subgraph that runs once.
ModelWriter resources() {
  ModelWriter model;
  const auto addHandle = [&] {
    const int32_t handle = model.addTensor(TensorType::RESOURCE, {1});
    schema::VarHandleOptionsT options;
    options.shared_name = "counter";
    model.addOperator(BuiltinOperator::VAR_HANDLE, {}, {handle}, options);
    return handle;
  };
  const int32_t input = model.addTensor(TensorType::FLOAT32, {2});
  schema::CallOnceOptionsT once;
  once.init_subgraph_index = 1;
  model.addOperator(BuiltinOperator::CALL_ONCE, {}, {}, once);
  const int32_t handle = addHandle();
  const int32_t before = model.addTensor(TensorType::FLOAT32, {2});
  const int32_t after = model.addTensor(TensorType::FLOAT32, {2});
  model.addOperator(BuiltinOperator::READ_VARIABLE, {handle}, {before});
  model.addOperator(BuiltinOperator::ADD_N, {before, input, input}, {after});
  model.addOperator(BuiltinOperator::ASSIGN_VARIABLE, {handle, after}, {});
  model.setArguments({input}, {after});
  model.addSubgraph("once");
  const int32_t inner = addHandle();
  const int32_t value = model.addConstant<float>(TensorType::FLOAT32, {2}, {1, 2});
  model.addOperator(BuiltinOperator::ASSIGN_VARIABLE, {inner, value}, {});
  return model;
}

// The words of a sentence, their numbers in a table that a subgraph fills, and which one is "b".
ModelWriter strings() {
  ModelWriter model;
  const int32_t sentence = model.addTensor(TensorType::STRING, {1});
  const int32_t words = model.addTensor(TensorType::STRING, {1, 1});
  model.tensor(words).shape_signature = {1, -1};
  model.addCustom("tftext:WhitespaceTokenizer", {sentence}, {words});
  schema::CallOnceOptionsT once;
  once.init_subgraph_index = 1;
  model.addOperator(BuiltinOperator::CALL_ONCE, {}, {}, once);
  const int32_t table = model.addTable(5, TensorType::STRING, TensorType::INT64);
  const int32_t missing = model.addConstant<int64_t>(TensorType::INT64, {1}, {-1});
  const int32_t numbers = model.addTensor(TensorType::INT64, {1, 1});
  model.tensor(numbers).shape_signature = {1, -1};
  model.addOperator(BuiltinOperator::HASHTABLE_FIND, {table, words, missing}, {numbers});
  const int32_t size = model.addTensor(TensorType::INT64, {1});
  model.addOperator(BuiltinOperator::HASHTABLE_SIZE, {table}, {size});
  const int32_t isB = model.addTensor(TensorType::BOOL, {1, 1});
  model.tensor(isB).shape_signature = {1, -1};
  model.addOperator(BuiltinOperator::EQUAL, {words, model.addStrings({1}, {"b"})}, {isB});
  model.setArguments({sentence}, {words, numbers, size, isB});
  model.addSubgraph("once");
  const int32_t inner = model.addTable(5, TensorType::STRING, TensorType::INT64);
  const int32_t keys = model.addStrings({3}, {"c", "a", "b"});
  const int32_t values = model.addConstant<int64_t>(TensorType::INT64, {3}, {30, 10, 20});
  model.addOperator(BuiltinOperator::HASHTABLE_IMPORT, {inner, keys, values}, {});
  return model;
}

ModelWriter controlFlow() {
  ModelWriter model;
  model.addTensor(TensorType::INT32, {1});
  model.addTensor(TensorType::INT32, {1});
  model.addTensor(TensorType::BOOL, {1});
  model.addTensor(TensorType::INT32, {1});
  addWhile(&model);
  schema::IfOptionsT branch;
  branch.then_subgraph_index = 2;
  branch.else_subgraph_index = 3;
  model.addOperator(BuiltinOperator::IF, {2, 1}, {3}, branch);
  model.setArguments({0, 2}, {3});
  addCountingLoop(&model);
  model.addSubgraph("identity");
  model.addTensor(TensorType::INT32, {1});
  model.setArguments({0}, {0});
  return model;
}

// As converters of TensorFlow 1 wrote a picture that is enlarged to twice its size: no shape behind
// the input is known.
ModelWriter unsaidShapes() {
  ModelWriter model;
  const auto unknown = [&](TensorType type) {
    return model.addTensor(type, {});
  };
  const int32_t picture = model.addTensor(TensorType::FLOAT32, {1, 2, 3, 1});
  const int32_t shape = unknown(TensorType::INT32);
  model.addOperator(BuiltinOperator::SHAPE, {picture}, {shape});
  std::vector<int32_t> sides;
  schema::StridedSliceOptionsT one;
  one.shrink_axis_mask = 1;
  for (const int32_t axis : {1, 2}) {
    const int32_t side = unknown(TensorType::INT32);
    model.addOperator(BuiltinOperator::STRIDED_SLICE,
                      {shape, model.ints({axis}), model.ints({axis + 1}), model.ints({1})}, {side},
                      one);
    sides.push_back(unknown(TensorType::INT32));
    model.addOperator(BuiltinOperator::MUL, {side, model.ints({2})}, {sides.back()});
  }
  const int32_t size = unknown(TensorType::INT32);
  schema::PackOptionsT pack;
  pack.values_count = 2;
  model.addOperator(BuiltinOperator::PACK, sides, {size}, pack);
  const int32_t list = unknown(TensorType::INT32);
  model.addOperator(BuiltinOperator::RESHAPE, {size, model.ints({2})}, {list});
  const int32_t enlarged = unknown(TensorType::FLOAT32);
  model.addOperator(BuiltinOperator::RESIZE_NEAREST_NEIGHBOR, {picture, list}, {enlarged});
  const int32_t joined = unknown(TensorType::FLOAT32);
  schema::ConcatenationOptionsT concatenation;
  concatenation.axis = 3;
  model.addOperator(BuiltinOperator::CONCATENATION, {enlarged, enlarged}, {joined}, concatenation);
  const int32_t mean = unknown(TensorType::FLOAT32);
  model.addOperator(BuiltinOperator::MEAN, {joined, model.ints({0, 1, 2, 3})}, {mean});
  model.setArguments({picture}, {joined, mean});
  return model;
}

}  // namespace

void addWhile(ModelWriter* model) {
  schema::WhileOptionsT options;
  options.cond_subgraph_index = 1;
  options.body_subgraph_index = 2;
  model->addOperator(BuiltinOperator::WHILE, {0}, {1}, options);
}

void addCountingLoop(ModelWriter* model) {
  model->addSubgraph("condition");
  model->addTensor(TensorType::INT32, {1});
  model->addTensor(TensorType::BOOL, {1});
  model->addOperator(BuiltinOperator::LESS, {0, model->ints({10})}, {1});
  model->setArguments({0}, {1});
  model->addSubgraph("body");
  model->addTensor(TensorType::INT32, {1});
  model->addTensor(TensorType::INT32, {1});
  model->addOperator(BuiltinOperator::ADD, {0, model->ints({1})}, {1});
  model->setArguments({0}, {1});
}

std::vector<SampleModel> sampleModels() {
  std::vector<SampleModel> models = sampleLayers();
  std::ranges::move(sampleMedia(), std::back_inserter(models));
  SampleModel others[] = {{"elementwise", elementwise().write()},
                          {"shapes", shapes().write()},
                          {"space", space().write()},
                          {"reductions", reductions().write()},
                          {"lookups", lookups().write()},
                          {"indices", indices().write()},
                          {"bits", bits().write()},
                          {"different", different().write()},
                          {"random", random().write()},
                          {"places", places().write()},
                          {"custom", custom().write()},
                          {"open_sizes", openSizes().write()},
                          {"segments", segments().write()},
                          {"unsaid_shapes", unsaidShapes().write()},
                          {"resources", resources().write()},
                          {"strings", strings().write()},
                          {"control_flow", controlFlow().write()}};
  std::ranges::move(others, std::back_inserter(models));
  return models;
}

}  // namespace hearth::tflite
