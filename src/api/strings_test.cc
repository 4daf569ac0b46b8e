// SPDX-License-Identifier: Apache-2.0
// Models with strings, through hearth.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "frontends/tflite/testing/model_writer.h"
#include "hearth/hearth.hpp"
#include "ops/testing/sentencepiece_writer.h"

namespace hearth {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tflite::ModelWriter;
using tflite::schema::BuiltinOperator;
using tflite::schema::TensorType;

Compilation compile(const ModelWriter& writer, const std::string& device) {
  const std::vector<uint8_t> bytes = writer.write();
  CompileOptions options;
  options.device = device;
  options.cache = HEARTH_CACHE_OFF;
  return Model(bytes.data(), bytes.size()).compile(options);
}

// An output of a run. Its numbers are those of an INT64, an INT32 or a BOOL.
struct Output {
  std::vector<uint32_t> shape;
  std::vector<std::string> texts;
  std::vector<int64_t> numbers;
};

template <typename T>
std::vector<int64_t> numbersOf(const std::vector<uint64_t>& words, size_t count) {
  const auto* const first = reinterpret_cast<const T*>(words.data());
  return {first, first + count};
}

std::vector<Output> runOnce(const Compilation& compilation, Execution& execution) {
  const std::vector<TensorInfo> infos = compilation.outputs();
  std::vector<std::vector<uint64_t>> words(infos.size());
  for (size_t i = 0; i < infos.size(); ++i) {
    words[i].resize(64);
    execution.setOutput(i, words[i].data(),
                        infos[i].byteSize != 0 ? infos[i].byteSize : 8 * words[i].size());
  }
  execution.run();
  std::vector<Output> outputs(infos.size());
  for (size_t i = 0; i < infos.size(); ++i) {
    outputs[i].shape = execution.outputShape(i);
    const size_t count = std::accumulate(outputs[i].shape.begin(), outputs[i].shape.end(),
                                         size_t{1}, std::multiplies<>());
    if (infos[i].type == HEARTH_TYPE_STRING)
      for (size_t k = 0; k < count; ++k) outputs[i].texts.push_back(execution.string(words[i][k]));
    else if (infos[i].type == HEARTH_TYPE_INT64)
      outputs[i].numbers = numbersOf<int64_t>(words[i], count);
    else if (infos[i].type == HEARTH_TYPE_INT32)
      outputs[i].numbers = numbersOf<int32_t>(words[i], count);
    else
      outputs[i].numbers = numbersOf<uint8_t>(words[i], count);
  }
  return outputs;
}

// What a call throws.
template <typename Call>
std::string errorOf(const Call& call) {
  try {
    call();
  } catch (const Exception& exception) {
    return exception.what();
  }
  return "";
}

class StringsTest : public testing::TestWithParam<std::string> {
 protected:
  std::vector<Output> run(const ModelWriter& model, const std::vector<std::string>& input,
                          const std::vector<uint32_t>& dimensions = {}) {
    const Compilation compilation = compile(model, GetParam());
    Execution execution = compilation.createExecution();
    if (!compilation.inputs().empty()) execution.setInputStrings(0, input, dimensions);
    return runOnce(compilation, execution);
  }
  std::string failure(const ModelWriter& model, const std::vector<std::string>& input) {
    return errorOf([&] { run(model, input); });
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, StringsTest, testing::Values("hearth-cpu", "nnapi-reference"),
                         [](const auto& info) {
                           return info.param == "hearth-cpu" ? "Cpu" : "Reference";
                         });

// input [2] -> input; joined [2,2] with a constant; its column 1; whether each is "b"; [4].
ModelWriter moves() {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::STRING, {2});
  const int32_t constant = model.addStrings({2}, {"b", std::string_view("c\0d", 3)});
  const int32_t packed = model.addTensor(TensorType::STRING, {2, 2});
  tflite::schema::PackOptionsT pack;
  pack.values_count = 2;
  model.addOperator(BuiltinOperator::PACK, {input, constant}, {packed}, pack);
  const int32_t column = model.addTensor(TensorType::STRING, {2, 1});
  model.addOperator(BuiltinOperator::GATHER, {packed, model.ints({1})}, {column});
  model.subgraph().operators.back()->builtin_options.Set([] {
    tflite::schema::GatherOptionsT gather;
    gather.axis = 1;
    return gather;
  }());
  const int32_t isB = model.addTensor(TensorType::BOOL, {2, 2});
  model.addOperator(BuiltinOperator::EQUAL, {packed, model.addStrings({1}, {"b"})}, {isB});
  const int32_t flat = model.addTensor(TensorType::STRING, {4});
  model.addOperator(BuiltinOperator::RESHAPE, {packed, model.ints({4})}, {flat});
  const int32_t joined = model.addTensor(TensorType::STRING, {4, 1});
  tflite::schema::ConcatenationOptionsT concatenation;
  concatenation.axis = 0;
  model.addOperator(BuiltinOperator::CONCATENATION, {column, column}, {joined}, concatenation);
  model.setArguments({input}, {packed, column, isB, flat, joined, input});
  return model;
}

TEST_P(StringsTest, AreMovedAndCompared) {
  const std::vector<Output> outputs = run(moves(), {"a", "b"});
  const std::string withZero("c\0d", 3);
  EXPECT_THAT(outputs[0].texts, ElementsAre("a", "b", "b", withZero));
  EXPECT_THAT(outputs[1].texts, ElementsAre("b", withZero));
  EXPECT_THAT(outputs[2].numbers, ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(outputs[3].texts, ElementsAre("a", "b", "b", withZero));
  EXPECT_THAT(outputs[4].texts, ElementsAre("b", withZero, "b", withZero));
  EXPECT_THAT(outputs[5].texts, ElementsAre("a", "b"));
}

// SLICE, STRIDED_SLICE, UNPACK, EXPAND_DIMS, SQUEEZE, SELECT_V2, NOT_EQUAL and SHAPE.
TEST_P(StringsTest, ArePartsOfTensors) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::STRING, {1, 3});
  const auto strings = [&](ModelWriter::Shape shape) {
    return model.addTensor(TensorType::STRING, std::move(shape));
  };
  const int32_t slice = strings({1, 2});
  model.addOperator(BuiltinOperator::SLICE, {input, model.ints({0, 1}), model.ints({1, 2})},
                    {slice});
  const int32_t strided = strings({1, 2});
  model.addOperator(BuiltinOperator::STRIDED_SLICE,
                    {input, model.ints({0, 0}), model.ints({1, 3}), model.ints({1, 2})}, {strided},
                    tflite::schema::StridedSliceOptionsT());
  tflite::schema::UnpackOptionsT unpack;
  unpack.num = 3;
  unpack.axis = 1;
  const std::vector<int32_t> parts = {strings({1}), strings({1}), strings({1})};
  model.addOperator(BuiltinOperator::UNPACK, {input}, parts, unpack);
  const int32_t expanded = strings({1, 1, 3});
  model.addOperator(BuiltinOperator::EXPAND_DIMS, {input, model.ints({0})}, {expanded});
  tflite::schema::SqueezeOptionsT squeeze;
  squeeze.squeeze_dims = {0};
  const int32_t squeezed = strings({3});
  model.addOperator(BuiltinOperator::SQUEEZE, {input}, {squeezed}, squeeze);
  const int32_t differs = model.addTensor(TensorType::BOOL, {1, 3});
  model.addOperator(BuiltinOperator::NOT_EQUAL, {input, model.addStrings({}, {"x"})}, {differs});
  const int32_t selected = strings({1, 3});
  model.addOperator(BuiltinOperator::SELECT_V2, {differs, input, model.addStrings({1}, {"was x"})},
                    {selected});
  const int32_t shape = model.addTensor(TensorType::INT32, {2});
  model.addOperator(BuiltinOperator::SHAPE, {input}, {shape});
  model.setArguments({input}, {slice, strided, parts[2], expanded, squeezed, selected, shape});
  const std::vector<Output> outputs = run(model, {"x", "y", ""});
  EXPECT_THAT(outputs[0].texts, ElementsAre("y", ""));
  EXPECT_THAT(outputs[1].texts, ElementsAre("x", ""));
  EXPECT_THAT(outputs[2].texts, ElementsAre(""));
  EXPECT_THAT(outputs[3].texts, ElementsAre("x", "y", ""));
  EXPECT_THAT(outputs[4].texts, ElementsAre("x", "y", ""));
  EXPECT_THAT(outputs[5].texts, ElementsAre("was x", "y", ""));
  EXPECT_THAT(outputs[6].numbers, ElementsAre(1, 3));
}

// The words of the input and their numbers in a table.
ModelWriter vocabulary() {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::STRING, {1});
  model.tensor(input).shape_signature = {-1};
  const int32_t table = model.addTable(7, TensorType::STRING, TensorType::INT64);
  const int32_t keys = model.addStrings({4}, {"cat", "ant", "", "cat"});
  const int32_t values = model.addConstant<int64_t>(TensorType::INT64, {4}, {3, 1, 0, 9});
  model.addOperator(BuiltinOperator::HASHTABLE_IMPORT, {table, keys, values}, {});
  const int32_t missing = model.addConstant<int64_t>(TensorType::INT64, {1}, {-5});
  const int32_t found = model.addTensor(TensorType::INT64, {1});
  model.tensor(found).shape_signature = {-1};
  model.addOperator(BuiltinOperator::HASHTABLE_FIND, {table, input, missing}, {found});
  const int32_t size = model.addTensor(TensorType::INT64, {1});
  model.addOperator(BuiltinOperator::HASHTABLE_SIZE, {table}, {size});
  // And back to words.
  const int32_t words = model.addTable(8, TensorType::INT64, TensorType::STRING);
  model.addOperator(BuiltinOperator::HASHTABLE_IMPORT, {words, values, keys}, {});
  const int32_t back = model.addTensor(TensorType::STRING, {1});
  model.tensor(back).shape_signature = {-1};
  model.addOperator(BuiltinOperator::HASHTABLE_FIND, {words, found, model.addStrings({}, {"?"})},
                    {back});
  model.setArguments({input}, {found, size, back});
  return model;
}

TEST_P(StringsTest, AreLookedUpInTables) {
  const std::vector<Output> outputs = run(vocabulary(), {"ant", "bee", "cat", "", "catt"}, {5});
  EXPECT_THAT(outputs[0].numbers, ElementsAre(1, -5, 3, 0, -5));
  // Of two equal keys the first counts.
  EXPECT_THAT(outputs[1].numbers, ElementsAre(3));
  EXPECT_THAT(outputs[2].texts, ElementsAre("ant", "?", "cat", "", "?"));
}

TEST_P(StringsTest, ATableMayHaveNoKeys) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::STRING, {2});
  const int32_t table = model.addTable(1, TensorType::STRING, TensorType::INT64);
  const int32_t keys = model.addStrings({0}, {});
  const int32_t values = model.addConstant<int64_t>(TensorType::INT64, {1}, {1});
  model.tensor(values).shape = {0};
  model.addOperator(BuiltinOperator::HASHTABLE_IMPORT, {table, keys, values}, {});
  const int32_t found = model.addTensor(TensorType::INT64, {2});
  model.addOperator(BuiltinOperator::HASHTABLE_FIND,
                    {table, input, model.addConstant<int64_t>(TensorType::INT64, {1}, {4})},
                    {found});
  model.setArguments({input}, {found});
  EXPECT_THAT(failure(model, {"a", "b"}), HasSubstr("with 0 keys and 1 values"));
  model.model.buffers[model.tensor(values).buffer]->data.clear();
  EXPECT_THAT(failure(model, {"a", "b"}), HasSubstr("is no constant"));
}

// "tftext:WhitespaceTokenizer" with padding and without, of texts of rank 1.
TEST_P(StringsTest, AreSplitAtWhitespace) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::STRING, {3});
  const int32_t padded = model.addTensor(TensorType::STRING, {});
  model.addCustom("tftext:WhitespaceTokenizer", {input}, {padded});
  const int32_t words = model.addTensor(TensorType::STRING, {1});
  const int32_t splits = model.addTensor(TensorType::INT64, {4});
  model.addCustom("tftext:WhitespaceTokenizer", {input}, {words, splits});
  model.setArguments({input}, {padded, words, splits});
  // An ideographic space, and bytes that end the reading.
  const std::vector<Output> outputs =
      run(model, {" one  two\tthree\n", "", "v\u00e4\u3000\u017e \xff lost"});
  EXPECT_THAT(outputs[0].shape, ElementsAre(3, 3));
  EXPECT_THAT(outputs[0].texts,
              ElementsAre("one", "two", "three", "", "", "", "v\u00e4", "\u017e", ""));
  EXPECT_THAT(outputs[1].texts, ElementsAre("one", "two", "three", "v\u00e4", "\u017e"));
  EXPECT_THAT(outputs[2].numbers, ElementsAre(0, 3, 3, 5));
}

// TFSentencepieceTokenizeOp, whose codes become a tensor of rows, as sentence encoders have it.
TEST_P(StringsTest, AreSegmentedBySentencepiece) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::STRING, {3});
  const std::vector<uint8_t> bytes = ops::smallSentencepieceModel().write();
  const int32_t pieces =
      model.addConstantBytes(TensorType::UINT8, {static_cast<int32_t>(bytes.size())}, bytes);
  const int32_t best = model.ints({0});
  const int32_t alpha = model.addConstant<float>(TensorType::FLOAT32, {}, {0});
  const int32_t no = model.addConstantBytes(TensorType::BOOL, {}, {0});
  const int32_t yes = model.addConstantBytes(TensorType::BOOL, {}, {1});
  const int32_t codes = model.addTensor(TensorType::INT32, {1});
  const int32_t splits = model.addTensor(TensorType::INT32, {4});
  model.addCustom("TFSentencepieceTokenizeOp", {pieces, input, best, alpha, yes, no, no},
                  {codes, splits});
  const int32_t any = model.ints({-1, 5});
  const int32_t padding = model.addConstant<int32_t>(TensorType::INT32, {}, {-1});
  const int32_t rows = model.addTensor(TensorType::INT32, {1, 5});
  model.addCustom("RaggedTensorToTensor", {any, codes, padding, splits}, {rows},
                  tflite::raggedOptions({"ROW_SPLITS"}));
  model.setArguments({input}, {codes, splits, rows});
  const std::vector<Output> outputs = run(model, {"ab  b", "", "xyz"});
  EXPECT_THAT(outputs[0].numbers, ElementsAre(1, 7, 8, 1, 1, 3, 0));
  EXPECT_THAT(outputs[1].numbers, ElementsAre(0, 3, 4, 7));
  EXPECT_THAT(outputs[2].shape, ElementsAre(3, 5));
  EXPECT_THAT(outputs[2].numbers, ElementsAre(1, 7, 8, -1, -1, 1, -1, -1, -1, -1, 1, 3, 0, -1, -1));
  // The same operator under tensorflow-text's name, with a model that is none.
  ModelWriter wrong;
  wrong.addTensor(TensorType::STRING, {1});
  const int32_t zeros = wrong.addConstantBytes(TensorType::UINT8, {40}, std::vector<uint8_t>(40));
  const int32_t one = wrong.ints({1});
  const int32_t off = wrong.addConstantBytes(TensorType::BOOL, {}, {0});
  wrong.addTensor(TensorType::INT32, {1});
  wrong.addTensor(TensorType::INT32, {2});
  wrong.addCustom("TFText>FastSentencepieceTokenize", {zeros, 0, one, one, off, off, off}, {4, 5});
  wrong.setArguments({0}, {4, 5});
  EXPECT_THAT(failure(wrong, {"a"}), HasSubstr("none of SentencePiece"));
}

TEST_P(StringsTest, AreJoinedToNgrams) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::STRING, {2, 3});
  const int32_t pairs = model.addTensor(TensorType::STRING, {2, 2});
  model.addCustom("tftext:Ngrams", {input}, {pairs}, tflite::ngramOptions(2, "-"));
  const int32_t row = model.addTensor(TensorType::STRING, {6});
  model.addOperator(BuiltinOperator::RESHAPE, {input, model.ints({6})}, {row});
  const int32_t splits = model.addConstant<int64_t>(TensorType::INT64, {4}, {0, 2, 2, 6});
  const int32_t ragged = model.addTensor(TensorType::STRING, {1});
  const int32_t raggedSplits = model.addTensor(TensorType::INT64, {4});
  model.addCustom("tftext:Ngrams", {row, splits}, {ragged, raggedSplits},
                  tflite::ngramOptions(3, ""));
  model.setArguments({input}, {pairs, ragged, raggedSplits});
  const std::vector<Output> outputs = run(model, {"a", "b", "c", "d", "e", "f"});
  EXPECT_THAT(outputs[0].shape, ElementsAre(2, 2));
  EXPECT_THAT(outputs[0].texts, ElementsAre("a-b", "b-c", "d-e", "e-f"));
  EXPECT_THAT(outputs[1].texts, ElementsAre("cde", "def"));
  EXPECT_THAT(outputs[2].numbers, ElementsAre(0, 0, 0, 2));
}

TEST_P(StringsTest, RaggedRowsBecomeATensor) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::STRING, {5});
  const int32_t splits = model.addConstant<int64_t>(TensorType::INT64, {4}, {0, 2, 2, 5});
  const int32_t any = model.addConstant<int64_t>(TensorType::INT64, {}, {-1});
  const int32_t padding = model.addStrings({}, {"."});
  const int32_t whole = model.addTensor(TensorType::STRING, {1, 1});
  model.addCustom("RaggedTensorToTensor", {any, input, padding, splits}, {whole},
                  tflite::raggedOptions({"ROW_SPLITS"}));
  const int32_t rows = model.ints({4});
  const int32_t ids = model.ints({0, 0, 0, 1, 3});
  const int32_t wanted = model.ints({-1, 2});
  const int32_t cut = model.addTensor(TensorType::STRING, {1, 1});
  model.addCustom("RaggedTensorToTensor", {wanted, input, padding, rows, ids}, {cut},
                  tflite::raggedOptions({"FIRST_DIM_SIZE", "VALUE_ROWIDS"}));
  model.setArguments({input}, {whole, cut});
  const std::vector<Output> outputs = run(model, {"a", "b", "c", "d", "e"});
  EXPECT_THAT(outputs[0].shape, ElementsAre(3, 3));
  EXPECT_THAT(outputs[0].texts, ElementsAre("a", "b", ".", ".", ".", ".", "c", "d", "e"));
  EXPECT_THAT(outputs[1].shape, ElementsAre(4, 2));
  EXPECT_THAT(outputs[1].texts, ElementsAre("a", "b", "d", ".", ".", ".", "e", "."));
}

TEST_P(StringsTest, HostileRowsAreErrors) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::STRING, {2});
  const int32_t splits = model.addConstant<int64_t>(TensorType::INT64, {3}, {0, 3, 2});
  const int32_t ragged = model.addTensor(TensorType::STRING, {1});
  const int32_t raggedSplits = model.addTensor(TensorType::INT64, {3});
  model.addCustom("tftext:Ngrams", {input, splits}, {ragged, raggedSplits},
                  tflite::ngramOptions(1, ""));
  model.setArguments({input}, {ragged, raggedSplits});
  EXPECT_THAT(failure(model, {"a", "b"}), HasSubstr("has the elements [0, 3) of 2"));

  ModelWriter dense;
  const int32_t values = dense.addTensor(TensorType::STRING, {2});
  const int32_t rows = dense.ints({2});
  const int32_t ids = dense.ints({0, 2});
  const int32_t any = dense.addConstant<int64_t>(TensorType::INT64, {}, {-1});
  const int32_t output = dense.addTensor(TensorType::STRING, {1, 1});
  dense.addCustom("RaggedTensorToTensor", {any, values, dense.addStrings({}, {""}), rows, ids},
                  {output}, tflite::raggedOptions({"FIRST_DIM_SIZE", "VALUE_ROWIDS"}));
  dense.setArguments({values}, {output});
  EXPECT_THAT(failure(dense, {"a", "b"}), HasSubstr("belongs to row 2 of 2"));
}

TEST_P(StringsTest, RunsAfterOneAnotherKeepTheirOwn) {
  const Compilation compilation = compile(vocabulary(), GetParam());
  Execution execution = compilation.createExecution();
  Execution other = compilation.createExecution();
  execution.setInputStrings(0, {"ant", "none"}, {2});
  other.setInputStrings(0, {"cat"}, {1});
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(runOnce(compilation, execution)[2].texts, ElementsAre("ant", "?"));
    EXPECT_THAT(runOnce(compilation, other)[2].texts, ElementsAre("cat"));
  }
  execution.setInputStrings(0, {"cat"}, {1});
  EXPECT_THAT(runOnce(compilation, execution)[0].numbers, ElementsAre(3));
}

TEST_P(StringsTest, ThreadsRunAtOnce) {
  const Compilation compilation = compile(vocabulary(), GetParam());
  std::array<bool, 3> areRight{};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < areRight.size(); ++i)
    threads.emplace_back([&, i] {
      Execution execution = compilation.createExecution();
      areRight[i] = true;
      for (int round = 0; round < 20; ++round) {
        execution.setInputStrings(0, {"cat", std::to_string(round), "ant"}, {3});
        areRight[i] = areRight[i] && runOnce(compilation, execution)[2].texts ==
                                         std::vector<std::string>{"cat", "?", "ant"};
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(areRight, testing::Each(true));
}

TEST_P(StringsTest, RunsInAThreadOfTheLibrary) {
  const Compilation compilation = compile(moves(), GetParam());
  Execution execution = compilation.createExecution();
  execution.setInputStrings(0, {"b", "b"});
  runOnce(compilation, execution);
  std::vector<std::vector<uint64_t>> words(6, std::vector<uint64_t>(8));
  for (size_t i = 0; i < words.size(); ++i)
    execution.setOutput(i, words[i].data(), compilation.outputs()[i].byteSize);
  execution.start().wait();
  EXPECT_EQ(execution.string(words[0][3]), std::string("c\0d", 3));
}

TEST_P(StringsTest, ForgetsWhatARunNoLongerHas) {
  const Compilation compilation = compile(moves(), GetParam());
  Execution execution = compilation.createExecution();
  std::vector<std::vector<uint64_t>> words(6, std::vector<uint64_t>(8));
  for (size_t i = 0; i < words.size(); ++i)
    execution.setOutput(i, words[i].data(), compilation.outputs()[i].byteSize);
  execution.setInputStrings(0, {"only in the first run", "b"});
  execution.run();
  const uint64_t element = words[0][0];
  EXPECT_EQ(execution.string(element), "only in the first run");
  execution.setInputStrings(0, {"a", "b"});
  EXPECT_EQ(execution.string(element), "only in the first run");
  execution.run();
  EXPECT_THAT(errorOf([&] { execution.string(element); }),
              HasSubstr("has no string of the element"));
}

TEST_P(StringsTest, WrongArgumentsAreErrors) {
  const Compilation compilation = compile(moves(), GetParam());
  EXPECT_EQ(compilation.inputs()[0].type, HEARTH_TYPE_STRING);
  EXPECT_EQ(compilation.inputs()[0].byteSize, 16u);
  Execution execution = compilation.createExecution();
  EXPECT_THAT(errorOf([&] { execution.setInputStrings(0, {"a"}); }), HasSubstr("gets 8 bytes"));
  EXPECT_THAT(errorOf([&] { execution.setInputStrings(3, {"a"}); }), HasSubstr("no input 3"));
  const std::vector<uint64_t> elements(2);
  EXPECT_THAT(errorOf([&] { execution.setInput(0, elements); }),
              HasSubstr("which hearth_execution_set_input_strings sets"));
  hearth_error* error = nullptr;
  const char* const texts[] = {"a", nullptr};
  EXPECT_EQ(
      hearth_execution_set_input_strings(execution.get(), 0, texts, nullptr, 2, nullptr, 0, &error),
      HEARTH_UNEXPECTED_NULL);
  hearth_error_free(error);

  ModelWriter numbers;
  numbers.addTensor(TensorType::FLOAT32, {1});
  numbers.addTensor(TensorType::FLOAT32, {1});
  numbers.addOperator(BuiltinOperator::RELU, {0}, {1});
  numbers.setArguments({0}, {1});
  const Compilation relu = compile(numbers, GetParam());
  Execution computing = relu.createExecution();
  EXPECT_THAT(errorOf([&] { computing.setInputStrings(0, {"1"}); }),
              HasSubstr("is not of strings"));
}

TEST_P(StringsTest, HostileConstantsAreErrors) {
  ModelWriter model = moves();
  std::vector<uint8_t>& bytes = model.model.buffers[model.tensor(1).buffer]->data;
  const std::vector<uint8_t> good = bytes;
  bytes[0] = 200;
  EXPECT_THAT(failure(model, {"a", "b"}), HasSubstr("says that it has 200 strings"));
  bytes = good;
  bytes[8] = 3;
  EXPECT_THAT(failure(model, {"a", "b"}), HasSubstr("Offset 1 of a buffer of strings is 3"));
  bytes = good;
  model.tensor(1).shape = {3};
  EXPECT_THAT(failure(model, {"a", "b"}), HasSubstr("of the shape [3] has 2 strings"));
  bytes.resize(6);
  EXPECT_THAT(failure(model, {"a", "b"}), HasSubstr("has 6 bytes"));
}

TEST_P(StringsTest, ArithmeticRefusesThem) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::STRING, {2});
  const int32_t output = model.addTensor(TensorType::STRING, {2});
  model.addOperator(BuiltinOperator::ADD, {input, input}, {output}, tflite::schema::AddOptionsT());
  model.setArguments({input}, {output});
  EXPECT_THAT(failure(model, {"a", "b"}), HasSubstr("TENSOR_STRING"));
  model.subgraph().operators[0]->inputs = {input, input};
  model.model.operator_codes[0]->builtin_code = BuiltinOperator::LESS;
  model.model.operator_codes[0]->deprecated_builtin_code =
      static_cast<int8_t>(BuiltinOperator::LESS);
  model.tensor(output).type = TensorType::BOOL;
  EXPECT_THAT(failure(model, {"a", "b"}), HasSubstr("TENSOR_STRING"));
}

}  // namespace
}  // namespace hearth
