// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/graph_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "frontends/delegate/partition.h"
#include "frontends/delegate/testing/fake_runtime.h"
#include "ops/operation.h"
#include "tflite_abi/builtin_params.h"

namespace hearth::delegate {
namespace {

using testing::SizeIs;
using tflite::schema::BuiltinOperator;

// A product of two numbers with a constant that lies in a mapped file, as the names of all tensors.
class GraphReaderTest : public testing::Test {
 protected:
  static constexpr size_t kSize = 2 * 4096;
  static constexpr float kFactors[] = {3, 5};
  static constexpr size_t kFactorsAt = 4096, kNameAt = 16;

  GraphReaderTest() {
    std::string name = (std::filesystem::temp_directory_path() / "hearth-graph-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    std::string bytes(kSize, 0);
    std::memcpy(bytes.data() + kNameAt, "tensor", 6);
    std::memcpy(bytes.data() + kFactorsAt, kFactors, sizeof(kFactors));
    std::ofstream(folder_ / "model.tflite") << bytes;
    const int file = ::open((folder_ / "model.tflite").c_str(), O_RDONLY);
    data_ = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
    if (data_ == MAP_FAILED) std::abort();
    const auto* const bytesOfFile = static_cast<const char*>(data_);
    tensors_ = {
        runtime_.addTensor(kTfLiteFloat32, {2}),
        runtime_.addConstant(kTfLiteFloat32, {2}, bytesOfFile + kFactorsAt, sizeof(kFactors)),
        runtime_.addTensor(kTfLiteFloat32, {2})};
    for (const int32_t tensor : tensors_) runtime_.tensor(tensor).name = bytesOfFile + kNameAt;
    runtime_.addNode(BuiltinOperator::MUL, {tensors_[0], tensors_[1]}, {tensors_[2]}, &none_);
  }
  ~GraphReaderTest() override {
    ::munmap(data_, kSize);
    std::filesystem::remove_all(folder_);
  }

  Result<PartitionSource> read() {
    GraphReader reader(runtime_.context());
    HEARTH_ASSIGN(const GraphReader::Node node, reader.node(0));
    if (!node.source) return fail(ErrorCode::kUnsupported, "The node is not taken.");
    const SourceNode* const source = &*node.source;
    return reader.partition({&source, 1}, node.inputs, node.outputs);
  }

  std::filesystem::path folder_;
  void* data_ = nullptr;
  tflite_abi::ActivationParams none_{0};
  FakeRuntime runtime_;
  std::vector<int32_t> tensors_;
};

const graph::Operand& constantOf(const graph::Model& model) {
  return *std::ranges::find_if(model.main().operands, [](const graph::Operand& operand) {
    return operand.lifetime == graph::Lifetime::kConstantReference;
  });
}

TEST_F(GraphReaderTest, AGraphOfOneFileHasNoPoolButTheFile) {
  const auto source = read();
  ASSERT_TRUE(source) << source.error().toString();
  EXPECT_TRUE(source->isOfFile);
  const auto translated = translate(*source);
  ASSERT_TRUE(translated) << translated.error().toString();
  const graph::Model& model = *translated->model;
  ASSERT_THAT(model.pools, SizeIs(1));
  EXPECT_EQ(model.pools[0]->size(), kSize);
  EXPECT_EQ(std::memcmp(model.constantData(constantOf(model)), kFactors, sizeof(kFactors)), 0);
}

// The content of the file does not tell the scales of such a graph, for instance.
TEST_F(GraphReaderTest, TablesThatAreElsewhereStayAPool) {
  for (const int32_t tensor : tensors_) {
    const char* const inFile = runtime_.tensor(tensor).name;
    for (const char* const elsewhere : {"name", static_cast<const char*>(nullptr)}) {
      runtime_.tensor(tensor).name = elsewhere;
      const auto source = read();
      ASSERT_TRUE(source) << source.error().toString();
      EXPECT_FALSE(source->isOfFile);
      const auto translated = translate(*source);
      ASSERT_TRUE(translated) << translated.error().toString();
      const graph::Model& model = *translated->model;
      ASSERT_THAT(model.pools, SizeIs(2));
      EXPECT_EQ(std::memcmp(model.constantData(constantOf(model)), kFactors, sizeof(kFactors)), 0);
    }
    runtime_.tensor(tensor).name = inFile;
  }
}

TEST_F(GraphReaderTest, AConstantInOtherMemoryIsNotOfTheFile) {
  const int32_t second = runtime_.addConstant(kTfLiteFloat32, {2}, kFactors, sizeof(kFactors));
  runtime_.tensor(second).name = static_cast<const char*>(data_) + kNameAt;
  const int32_t output = runtime_.addTensor(kTfLiteFloat32, {2});
  runtime_.tensor(output).name = static_cast<const char*>(data_) + kNameAt;
  runtime_.addNode(BuiltinOperator::MUL, {tensors_[2], second}, {output}, &none_);
  GraphReader reader(runtime_.context());
  std::vector<const SourceNode*> sources;
  std::vector<GraphReader::Node> nodes;
  for (const int32_t index : {0, 1}) {
    auto node = reader.node(index);
    ASSERT_TRUE(node && node->source);
    nodes.push_back(std::move(*node));
  }
  for (const GraphReader::Node& node : nodes) sources.push_back(&*node.source);
  const int32_t inputs[] = {tensors_[0]};
  const int32_t outputs[] = {output};
  auto source = reader.partition(sources, inputs, outputs);
  ASSERT_TRUE(source) << source.error().toString();
  EXPECT_FALSE(source->isOfFile);
  ASSERT_TRUE(copyConstants(&*source));
  const auto translated = translate(*source);
  ASSERT_TRUE(translated) << translated.error().toString();
  EXPECT_THAT(translated->model->pools, SizeIs(3));
}

}  // namespace
}  // namespace hearth::delegate
