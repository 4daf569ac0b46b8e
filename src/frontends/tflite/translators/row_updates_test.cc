// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/row_updates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontends/tflite/testing/import_testing.h"
#include "frontends/tflite/testing/sample_models.h"
#include "ops/interpreter.h"

namespace hearth::tflite {
namespace {

constexpr int32_t kRows = 4;

schema::ConcatenationOptionsT along(int32_t axis) {
  schema::ConcatenationOptionsT options;
  options.axis = axis;
  return options;
}

// Row `number` of `data` becomes `item`, as TensorFlow's converter writes it. Tests change a part
// before write().
struct RowWriter : ModelWriter {
  explicit RowWriter(TensorType type = TensorType::FLOAT32) {
    data = addActivation(type, {kRows, 2, 3});
    item = addActivation(type, {2, 3});
    number = addTensor(TensorType::INT32, {});
    addUpdate(type);
    setArguments({data, item, number}, {result});
  }

  // To a subgraph that has `data`, `item` and `number`.
  void addUpdate(TensorType type = TensorType::FLOAT32) {
    const auto part = [&] {
      const int32_t added = addActivation(type, {1, 2, 3});
      tensor(added).shape_signature = {-1, 2, 3};
      return added;
    };
    numbers = addTensor(TensorType::INT32, {1});
    addOperator(BuiltinOperator::RESHAPE, {number, ints({1})}, {numbers});
    size = addTensor(TensorType::INT32, {3});
    allColumns = ints({-1, -1});
    addOperator(BuiltinOperator::CONCATENATION, {numbers, allColumns}, {size}, along(0));
    before = part();
    noBegin = ints({0, 0, 0});
    addOperator(BuiltinOperator::SLICE, {data, noBegin, size}, {before});
    next = addTensor(TensorType::INT32, {});
    step = addConstant<int32_t>(TensorType::INT32, {}, {1});
    addOperator(BuiltinOperator::ADD, {number, step}, {next});
    nexts = addTensor(TensorType::INT32, {1});
    addOperator(BuiltinOperator::RESHAPE, {next, ints({1})}, {nexts});
    begin = addTensor(TensorType::INT32, {3});
    firstColumns = ints({0, 0});
    addOperator(BuiltinOperator::CONCATENATION, {nexts, firstColumns}, {begin}, along(0));
    behind = part();
    all = ints({-1, -1, -1});
    addOperator(BuiltinOperator::SLICE, {data, begin, all}, {behind});
    row = addActivation(type, {1, 2, 3});
    addOperator(BuiltinOperator::RESHAPE, {item, ints({1, 2, 3})}, {row});
    result = addActivation(type, {kRows, 2, 3});
    addOperator(BuiltinOperator::CONCATENATION, {before, row, behind}, {result}, along(0));
  }

  void setInts(int32_t constant, std::vector<int32_t> values) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(values.data());
    model.buffers[tensor(constant).buffer]->data.assign(bytes,
                                                        bytes + values.size() * sizeof(values[0]));
    tensor(constant).shape = {static_cast<int32_t>(values.size())};
  }

  // The operator that writes a tensor.
  schema::OperatorT& writerOf(int32_t written) {
    const auto& operators = subgraph().operators;
    return **std::ranges::find_if(operators, [&](const auto& found) {
      return found->outputs == std::vector<int32_t>{written};
    });
  }

  // A tensor in place of a constant, given as an input: what it holds is not seen.
  void hide(int32_t constant) {
    const int32_t given = addTensor(TensorType::INT32, tensor(constant).shape);
    for (const auto& found : subgraph().operators)
      std::ranges::replace(found->inputs, constant, given);
    subgraph().inputs.push_back(given);
  }

  int32_t data, item, number, numbers, size, allColumns, before, noBegin, next, step, nexts, begin,
      firstColumns, behind, all, row, result;
};

std::vector<std::string> typesOf(const graph::Model& model, size_t subgraph = 0) {
  std::vector<std::string> types;
  for (const graph::Operation& operation : model.subgraphs[subgraph].operations)
    types.push_back(graph::nameOf(operation.type));
  return types;
}

bool hasUpdate(const ModelWriter& writer, size_t subgraph = 0) {
  const auto imported = tryImport(writer);
  EXPECT_TRUE(imported) << imported.error().toString();
  return imported &&
         std::ranges::contains(typesOf(*imported->model, subgraph), "DYNAMIC_UPDATE_SLICE");
}

// What a model of float data computes; nothing where it refuses the number. `more` are integers.
std::optional<std::vector<float>> resultOf(const ModelWriter& writer, int32_t number,
                                           std::vector<int32_t> more, ops::KernelSet kernels) {
  const ImportedGraph imported = import(writer);
  const graph::Subgraph& main = imported.model->main();
  const auto interpreter = ops::Interpreter::create(imported.model, {.kernels = kernels});
  EXPECT_TRUE(interpreter);
  std::vector<float> data(size_t{kRows} * 6);
  std::iota(data.begin(), data.end(), 1.0f);
  std::vector<float> item(6);
  std::iota(item.begin(), item.end(), 100.0f);
  const std::vector<std::pair<void*, size_t>> inputs = {
      {data.data(), data.size() * sizeof(float)},
      {item.data(), item.size() * sizeof(float)},
      {&number, sizeof number},
      {more.data(), more.size() * sizeof(int32_t)}};
  std::vector<ops::RunArgument> arguments;
  for (size_t i = 0; i < main.inputs.size(); ++i)
    arguments.push_back({.data = inputs[i].first,
                         .length = inputs[i].second,
                         .dimensions = main.operands[main.inputs[i]].dimensions,
                         .isPresent = true});
  std::vector<float> made(data.size());
  const ops::RunArgument output{.data = made.data(),
                                .length = made.size() * sizeof(float),
                                .dimensions = {},
                                .isPresent = true};
  const ops::RunResult result = (*interpreter)->run(arguments, {output}, {});
  if (result.status) return made;
  EXPECT_EQ(result.status.error().code(), ErrorCode::kBadData) << result.status.error().toString();
  return std::nullopt;
}

TEST(RowUpdates, OneOperationInPlaceOfFive) {
  const RowWriter model;
  EXPECT_THAT(
      linesOf(*import(model).model),
      ElementsAre("RESHAPE t2 t4 -> t3", "RESHAPE t1 t18 -> t17", "CONCATENATION t3 t14 0 -> %",
                  "DYNAMIC_UPDATE_SLICE t0 t17 % true -> t19"));
}

TEST(RowUpdates, ResultsAndErrorsAreThoseOfTheSlices) {
  const RowWriter model;
  RowWriter slices;
  slices.hide(slices.allColumns);
  ASSERT_TRUE(hasUpdate(model));
  ASSERT_FALSE(hasUpdate(slices));
  for (const ops::KernelSet kernels : {ops::KernelSet::kFast, ops::KernelSet::kReference})
    for (const int32_t number : {-1 << 31, -2, -1, 0, 1, 2, 3, 4, 5, 0x7fffffff}) {
      const auto made = resultOf(model, number, {}, kernels);
      EXPECT_EQ(made, resultOf(slices, number, {-1, -1}, kernels)) << number;
      EXPECT_EQ(made.has_value(), number >= 0 && number < kRows) << number;
    }
}

TEST(RowUpdates, OtherFormsOfTheSame) {
  RowWriter sizes;
  sizes.setInts(sizes.allColumns, {2, -1});
  sizes.setInts(sizes.all, {-1, -1, 3});
  EXPECT_TRUE(hasUpdate(sizes));
  RowWriter axis;
  axis.writerOf(axis.result).builtin_options.AsConcatenationOptions()->axis = -3;
  EXPECT_TRUE(hasUpdate(axis));
  RowWriter exchanged;
  std::ranges::reverse(exchanged.writerOf(exchanged.next).inputs);
  EXPECT_TRUE(hasUpdate(exchanged));
  EXPECT_TRUE(hasUpdate(RowWriter(TensorType::INT8)));
}

// As a loop does, which counts by the same sum.
TEST(RowUpdates, WhatOthersReadStays) {
  RowWriter model;
  model.subgraph().outputs.push_back(model.next);
  model.subgraph().outputs.push_back(model.begin);
  EXPECT_THAT(typesOf(*import(model).model),
              ElementsAre("RESHAPE", "ADD", "RESHAPE", "CONCATENATION", "RESHAPE", "CONCATENATION",
                          "DYNAMIC_UPDATE_SLICE"));
}

// Two tensors that get a row each at the same place.
TEST(RowUpdates, TwoOfOneNumber) {
  RowWriter model;
  const int32_t first = model.result;
  const int32_t size = model.size;
  const int32_t begin = model.begin;
  model.data = model.addTensor(TensorType::FLOAT32, {kRows, 2, 3});
  model.addUpdate();
  model.writerOf(model.before).inputs[2] = size;
  model.writerOf(model.behind).inputs[1] = begin;
  model.setArguments({0, model.item, model.number, model.data}, {first, model.result});
  const std::vector<std::string> types = typesOf(*import(model).model);
  EXPECT_EQ(std::ranges::count(types, "DYNAMIC_UPDATE_SLICE"), 2);
  EXPECT_FALSE(std::ranges::contains(types, "SLICE"));
}

TEST(RowUpdates, AllElseIsLeftAlone) {
  const std::vector<std::pair<const char*, std::function<void(RowWriter&)>>> changes = {
      {"the first slice begins later",
       [](RowWriter& m) {
         m.setInts(m.noBegin, {1, 0, 0});
       }},
      {"in another column",
       [](RowWriter& m) {
         m.setInts(m.noBegin, {0, 0, 1});
       }},
      {"it takes one column",
       [](RowWriter& m) {
         m.setInts(m.allColumns, {-1, 1});
       }},
      {"it takes no column",
       [](RowWriter& m) {
         m.setInts(m.allColumns, {0, -1});
       }},
      {"its size is computed",
       [](RowWriter& m) {
         m.hide(m.allColumns);
       }},
      {"the second slice begins later",
       [](RowWriter& m) {
         m.setInts(m.firstColumns, {1, 0});
       }},
      {"its begin is computed",
       [](RowWriter& m) {
         m.hide(m.firstColumns);
       }},
      {"it takes one row",
       [](RowWriter& m) {
         m.setInts(m.all, {1, -1, -1});
       }},
      {"it takes one column",
       [](RowWriter& m) {
         m.setInts(m.all, {-1, 1, -1});
       }},
      {"its size is computed",
       [](RowWriter& m) {
         m.hide(m.all);
       }},
      {"it begins two rows later",
       [](RowWriter& m) {
         m.model.buffers[m.tensor(m.step).buffer]->data = {2, 0, 0, 0};
       }},
      {"it begins at another row",
       [](RowWriter& m) {
         m.writerOf(m.next).inputs[0] = m.addTensor(TensorType::INT32, {});
         m.subgraph().inputs.push_back(m.writerOf(m.next).inputs[0]);
       }},
      {"the sum has an activation",
       [](RowWriter& m) {
         schema::AddOptionsT options;
         options.fused_activation_function = schema::ActivationFunctionType::RELU6;
         m.writerOf(m.next).builtin_options.Set(options);
       }},
      {"it is a slice of another tensor",
       [](RowWriter& m) {
         m.writerOf(m.behind).inputs[0] = m.addTensor(TensorType::FLOAT32, {kRows, 2, 3});
         m.subgraph().inputs.push_back(m.writerOf(m.behind).inputs[0]);
       }},
      {"a slice is read by others",
       [](RowWriter& m) {
         m.subgraph().outputs.push_back(m.before);
       }},
      {"the other one, too",
       [](RowWriter& m) {
         m.subgraph().outputs.push_back(m.behind);
       }},
      {"a slice is joined twice",
       [](RowWriter& m) {
         m.writerOf(m.result).inputs[2] = m.before;
       }},
      {"the slices are exchanged",
       [](RowWriter& m) {
         std::ranges::reverse(m.writerOf(m.result).inputs);
       }},
      {"columns are joined",
       [](RowWriter& m) {
         m.writerOf(m.result).builtin_options.AsConcatenationOptions()->axis = 1;
       }},
      {"the join has an activation",
       [](RowWriter& m) {
         auto& options = *m.writerOf(m.result).builtin_options.AsConcatenationOptions();
         options.fused_activation_function = schema::ActivationFunctionType::RELU;
         m.tensor(m.result).shape_signature = {-1, 2, 3};
       }},
      {"four are joined",
       [](RowWriter& m) {
         m.writerOf(m.result).inputs.push_back(m.row);
         m.tensor(m.result).shape_signature = {-1, 2, 3};
       }},
      {"the result has any number of rows",
       [](RowWriter& m) {
         m.tensor(m.result).shape_signature = {-1, 2, 3};
       }},
      {"so have the data",
       [](RowWriter& m) {
         m.tensor(m.data).shape_signature = {-1, 2, 3};
       }},
      {"the file says that one row is before it",
       [](RowWriter& m) {
         m.tensor(m.before).shape_signature.clear();
       }},
      {"or behind it",
       [](RowWriter& m) {
         m.tensor(m.behind).shape_signature.clear();
       }},
      {"there may be several rows",
       [](RowWriter& m) {
         m.tensor(m.row).shape_signature = {-1, 2, 3};
       }},
  };
  for (const auto& [what, change] : changes) {
    RowWriter model;
    change(model);
    EXPECT_FALSE(hasUpdate(model)) << what;
  }
}

// CONCATENATION gives 8-bit numbers the scale of its result.
TEST(RowUpdates, RowsOfOtherScalesAreLeftAlone) {
  for (const bool isItem : {true, false}) {
    RowWriter model(TensorType::INT8);
    for (const int32_t index :
         isItem ? std::vector{model.item, model.row} : std::vector{model.result})
      model.tensor(index).quantization->scale = {0.25f};
    EXPECT_FALSE(hasUpdate(model)) << isItem;
    RowWriter offset(TensorType::INT8);
    for (const int32_t index :
         isItem ? std::vector{offset.item, offset.row} : std::vector{offset.result})
      offset.tensor(index).quantization->zero_point = {3};
    EXPECT_FALSE(hasUpdate(offset)) << isItem;
  }
}

// while (number < 3) { data[number] = item; ++number }, of any number of rows and columns.
struct LoopWriter : RowWriter {
  // `first` is where the number begins; kGiven: at an input.
  static constexpr int32_t kGiven = -100;
  explicit LoopWriter(int32_t first, bool isCounted = true, bool isBodyOfTwo = false) {
    model.subgraphs.clear();
    addSubgraph("main");
    const auto open = [this](int32_t tensorIndex, std::vector<int32_t> signature) {
      tensor(tensorIndex).shape_signature = std::move(signature);
    };
    const auto addState = [&] {
      data = addTensor(TensorType::FLOAT32, {kRows, 2, 3});
      open(data, {-1, -1, 3});
      item = addTensor(TensorType::FLOAT32, {2, 3});
      open(item, {-1, 3});
      number = addTensor(TensorType::INT32, {});
    };
    addState();
    const int32_t begin0 =
        first == kGiven ? number : addConstant<int32_t>(TensorType::INT32, {}, {first});
    schema::WhileOptionsT options;
    options.cond_subgraph_index = 1;
    options.body_subgraph_index = 2;
    std::vector<int32_t> given = {data, item, begin0};
    for (int i = 0; i < (isBodyOfTwo ? 2 : 1); ++i) {
      std::vector<int32_t> made;
      for (const int32_t input : {data, item, number}) {
        made.push_back(addTensor(tensor(input).type, tensor(input).shape));
        tensor(made.back()).shape_signature = tensor(input).shape_signature;
      }
      addOperator(BuiltinOperator::WHILE, given, made, options);
      given = made;
    }
    setArguments(first == kGiven ? std::vector{data, item, number} : std::vector{data, item},
                 {given[0]});
    addSubgraph("condition");
    addState();
    const int32_t goesOn = addTensor(TensorType::BOOL, {});
    addOperator(BuiltinOperator::LESS, {number, addConstant<int32_t>(TensorType::INT32, {}, {3})},
                {goesOn});
    setArguments({data, item, number}, {goesOn});
    addSubgraph("body");
    addState();
    addUpdate();
    for (const int32_t part : {before, behind}) open(part, {-1, -1, 3});
    open(row, {1, -1, 3});
    open(result, {-1, -1, 3});
    int32_t counted = next;
    if (!isCounted) {
      counted = addTensor(TensorType::INT32, {});
      addOperator(BuiltinOperator::SUB, {next, addConstant<int32_t>(TensorType::INT32, {}, {3})},
                  {counted});
    }
    setArguments({data, item, number}, {result, item, counted});
  }
};

TEST(RowUpdates, OfAnyNumberOfRowsInALoopThatCountsThem) {
  constexpr size_t kBody = 2;
  EXPECT_TRUE(hasUpdate(LoopWriter(0), kBody));
  EXPECT_TRUE(hasUpdate(LoopWriter(2), kBody));
  EXPECT_FALSE(hasUpdate(LoopWriter(-1), kBody));
  EXPECT_FALSE(hasUpdate(LoopWriter(LoopWriter::kGiven), kBody));
  EXPECT_FALSE(hasUpdate(LoopWriter(0, false), kBody));
  EXPECT_FALSE(hasUpdate(LoopWriter(0, true, true), kBody));
}

// The operations around the loop change, too.
TEST(RowUpdates, OfALoopInAGraphThatWritesARow) {
  LoopWriter model(0);
  const auto body = std::move(model.model.subgraphs.back());
  model.model.subgraphs.pop_back();
  const auto condition = std::move(model.model.subgraphs.back());
  model.model.subgraphs.pop_back();
  const int32_t looped = model.subgraph().outputs[0];
  model.data = model.addTensor(TensorType::FLOAT32, {kRows, 2, 3});
  model.item = model.addTensor(TensorType::FLOAT32, {2, 3});
  model.number = model.addTensor(TensorType::INT32, {});
  model.addUpdate();
  std::vector<int32_t> inputs = model.subgraph().inputs;
  inputs.insert(inputs.end(), {model.data, model.item, model.number});
  model.setArguments(inputs, {looped, model.result});
  model.model.subgraphs.push_back(std::make_unique<schema::SubGraphT>(*condition));
  model.model.subgraphs.push_back(std::make_unique<schema::SubGraphT>(*body));
  EXPECT_TRUE(hasUpdate(model, 0));
  EXPECT_TRUE(hasUpdate(model, 2));
}

TEST(RowUpdates, DamagedFilesAreModelsOrErrors) {
  const std::vector<uint8_t> bytes = LoopWriter(0).write();
  for (size_t i = 0; i < bytes.size(); ++i)
    for (const uint8_t value : {0x01, 0xff}) {
      // Of its exact size, so that a sanitizer detects reads past the end.
      std::vector<uint8_t> damaged = bytes;
      damaged[i] = value;
      const auto file = ModelFile::fromPool(memory::Pool::borrowed(damaged.data(), damaged.size()));
      if (!file) continue;
      const auto imported = (*file)->importSubgraph(0);
      if (imported) EXPECT_TRUE(graph::validate(*imported->model)) << i;
    }
}

}  // namespace
}  // namespace hearth::tflite
