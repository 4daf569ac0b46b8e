// SPDX-License-Identifier: Apache-2.0
// Valid containers, and containers whose sizes and offsets are wrong.
#include "frontends/tflite/container/container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "frontends/tflite/model_file.h"
#include "frontends/tflite/testing/container_writer.h"
#include "frontends/tflite/testing/model_writer.h"
#include "frontends/tflite/testing/sample_models.h"

namespace hearth::tflite {
namespace {

using schema::BuiltinOperator;
using schema::TensorType;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Bytes = std::vector<uint8_t>;

Bytes model(const std::string& name) {
  const std::vector<SampleModel> models = sampleModels();
  return std::ranges::find(models, name, &SampleModel::name)->bytes;
}

Bytes container(const std::string& name) {
  const std::vector<SampleContainer> containers = sampleContainers();
  return std::ranges::find(containers, name, &SampleContainer::name)->bytes;
}

Container read(const Bytes& bytes) {
  auto read = readContainer(bytes);
  if (read && *read) return **std::move(read);
  ADD_FAILURE() << (read ? "It is no container." : read.error().message());
  return {};
}

std::string problemOf(const Bytes& bytes) {
  const auto read = readContainer(bytes);
  return read ? "" : read.error().message();
}

std::vector<std::string> namesOf(const Container& container) {
  std::vector<std::string> names;
  for (const Part& part : container.parts) names.push_back(part.name);
  return names;
}

Bytes bytesOf(const Bytes& file, const Part& part) {
  const auto begin = file.begin() + static_cast<ptrdiff_t>(part.offset);
  return Bytes(begin, begin + static_cast<ptrdiff_t>(part.size));
}

// Opens the model in memory of exactly this size, and imports it.
Status open(const Bytes& bytes, const std::string& part) {
  auto file = ModelFile::fromPool(memory::Pool::borrowed(bytes.data(), bytes.size()), part);
  if (!file) return std::unexpected(file.error());
  const auto imported = (*file)->importSubgraph(0);
  if (!imported) return std::unexpected(imported.error());
  return {};
}

std::string openProblem(const Bytes& bytes, const std::string& part) {
  const Status opened = open(bytes, part);
  return opened ? "" : opened.error().message();
}

template <typename T>
void put(Bytes* bytes, size_t offset, T number) {
  ASSERT_LE(offset + sizeof(number), bytes->size());
  std::memcpy(bytes->data() + offset, &number, sizeof(number));
}

// A model whose constant, two 32-bit integers 1 and 2, lies after the FlatBuffer.
Bytes modelWithOutsideBuffer() {
  ModelWriter writer;
  writer.addTensor(TensorType::INT32, {2});
  const int32_t constant = writer.addConstant<int32_t>(TensorType::INT32, {2}, {0, 0});
  writer.addTensor(TensorType::INT32, {2});
  writer.addOperator(BuiltinOperator::ADD, {0, constant}, {2});
  writer.setArguments({0}, {2});
  schema::BufferT& buffer = *writer.model.buffers[writer.tensor(constant).buffer];
  buffer.data.clear();
  buffer.offset = 16;
  buffer.size = 8;
  Bytes bytes = writer.write();
  bytes.resize((bytes.size() + 15) / 16 * 16);
  buffer.offset = bytes.size();
  Bytes written = writer.write();
  written.resize(bytes.size());
  for (const uint8_t value : {1, 0, 0, 0, 2, 0, 0, 0}) written.push_back(value);
  return written;
}

// Expects the model's constant to be correct and to lie in the file's own bytes.
void expectOutsideBuffer(const ModelFile& file) {
  const auto imported = file.importSubgraph(0);
  ASSERT_TRUE(imported) << imported.error().message();
  const graph::Model& model = *imported->model;
  const graph::Operand& operand = model.main().operands[model.main().operations[0].inputs[1]];
  EXPECT_EQ(operand.lifetime, graph::Lifetime::kConstantReference);
  int32_t values[2];
  std::memcpy(values, model.constantData(operand), sizeof(values));
  EXPECT_THAT(values, ElementsAre(1, 2));
}

TEST(ContainerTest, AModelIsNoContainerEvenWithAnArchiveBehindIt) {
  Bytes bytes = model("bits");
  EXPECT_FALSE(*readContainer(bytes));
  const Bytes labels = zipOf({{"labels.txt", {'a'}}}, {.offset = bytes.size()});
  bytes.insert(bytes.end(), labels.begin(), labels.end());
  EXPECT_FALSE(*readContainer(bytes));
  EXPECT_EQ(openProblem(bytes, ""), "");
  EXPECT_THAT(openProblem(bytes, "bits"), HasSubstr("leave the part out"));
  // A model whose root table lies where an archive has its signature.
  Bytes unlucky = {'P', 'K', 3, 4, 'T', 'F', 'L', '3', 0, 0, 0, 0};
  EXPECT_FALSE(*readContainer(unlucky));
}

TEST(ContainerTest, ReadsAnArchive) {
  const Bytes file = container("two.task");
  const Container read = tflite::read(file);
  EXPECT_EQ(read.format, ContainerFormat::kZip);
  ASSERT_THAT(namesOf(read), ElementsAre("bits.tflite", "folder/space.tflite"));
  for (const Part& part : read.parts) {
    EXPECT_EQ(part.kind, PartKind::kModel);
    EXPECT_EQ(part.type, "stored");
    EXPECT_EQ(part.problem, "");
    EXPECT_EQ(part.offset % 4, 0u);
  }
  EXPECT_EQ(bytesOf(file, read.parts[0]), model("bits"));
  EXPECT_EQ(bytesOf(file, read.parts[1]), model("space"));
  EXPECT_EQ(openProblem(file, "bits.tflite"), "");
  EXPECT_EQ(openProblem(file, "folder/space.tflite"), "");
}

TEST(ContainerTest, ReadsZip64AndComments) {
  const Bytes zip64 = container("zip64.task");
  EXPECT_EQ(bytesOf(zip64, tflite::read(zip64).parts.at(0)), model("bits"));
  EXPECT_EQ(openProblem(zip64, ""), "");
  const Bytes commented = container("comment.task");
  EXPECT_EQ(bytesOf(commented, tflite::read(commented).parts.at(0)), model("space"));
  EXPECT_TRUE(tflite::read(container("empty.task")).parts.empty());
}

TEST(ContainerTest, ReadsArchivesInArchives) {
  const Bytes file = container("nested.task");
  const Container read = tflite::read(file);
  ASSERT_THAT(namesOf(read),
              ElementsAre("inner.task", "inner.task/detector.tflite", "inner.task/empty.txt",
                          "inner.task/labels.txt", "bits.tflite"));
  EXPECT_EQ(read.parts[0].kind, PartKind::kContainer);
  EXPECT_EQ(bytesOf(file, read.parts[1]), model("conv_uint8"));
  EXPECT_EQ(read.parts[2].kind, PartKind::kOther);
  EXPECT_EQ(openProblem(file, "inner.task/detector.tflite"), "");

  Bytes deep = container("one.task");
  for (int i = 0; i < 5; ++i) deep = zipOf({{"in.task", deep}});
  const Container whole = tflite::read(deep);
  ASSERT_EQ(whole.parts.size(), 4u);
  EXPECT_THAT(whole.parts.back().problem, HasSubstr("deeper than 4 levels"));

  Bytes damaged = container("one.task");
  damaged.resize(damaged.size() - 1);
  const Container outer = tflite::read(zipOf({{"in.task", damaged}, {"a", model("bits")}}));
  ASSERT_THAT(namesOf(outer), ElementsAre("in.task", "a"));
  EXPECT_THAT(outer.parts[0].problem, HasSubstr("its end is missing"));
}

TEST(ContainerTest, ReadsALitertlmFile) {
  const Bytes file = container("model.litertlm");
  const Container read = tflite::read(file);
  EXPECT_EQ(read.format, ContainerFormat::kLitertlm);
  EXPECT_EQ(read.version, "1.4.0");
  ASSERT_EQ(read.metadata.size(), 1u);
  EXPECT_EQ(read.metadata[0].key, "Authors");
  EXPECT_EQ(std::get<std::string>(read.metadata[0].value), "Hearth");
  ASSERT_THAT(namesOf(read),
              ElementsAre("LlmMetadataProto", "SP_Tokenizer", "prefill_decode", "embedder"));
  EXPECT_EQ(read.parts[0].kind, PartKind::kMetadata);
  EXPECT_EQ(read.parts[1].kind, PartKind::kTokenizer);
  const Part& model = read.parts[2];
  EXPECT_EQ(model.kind, PartKind::kModel);
  EXPECT_EQ(model.type, "TFLiteModel");
  ASSERT_EQ(model.metadata.size(), 2u);
  EXPECT_EQ(model.metadata[1].key, "backend_constraint");
  EXPECT_EQ(std::get<std::string>(model.metadata[1].value), "cpu");
  EXPECT_EQ(bytesOf(file, model), tflite::model("bits"));
  EXPECT_EQ(openProblem(file, "prefill_decode"), "");
  EXPECT_EQ(openProblem(file, "embedder"), "");
}

TEST(ContainerTest, ReadsMetadataOfAllTypes) {
  litertlm::HeaderT header;
  header.system = std::make_unique<litertlm::EntriesT>();
  const auto add = [&](auto value, auto number) {
    auto entry = std::make_unique<litertlm::EntryT>();
    value.value = number;
    entry->value.Set(std::move(value));
    header.system->entries.push_back(std::move(entry));
  };
  add(litertlm::UInt8T(), uint8_t{200});
  add(litertlm::Int8T(), int8_t{-2});
  add(litertlm::UInt16T(), uint16_t{60000});
  add(litertlm::Int16T(), int16_t{-3});
  add(litertlm::UInt32T(), 4000000000u);
  add(litertlm::Int32T(), -4);
  add(litertlm::Float32T(), 0.5f);
  add(litertlm::BoolT(), true);
  add(litertlm::UInt64T(), std::numeric_limits<uint64_t>::max());
  add(litertlm::Int64T(), std::numeric_limits<int64_t>::min());
  add(litertlm::Float64T(), 0.25);
  header.system->entries.push_back(std::make_unique<litertlm::EntryT>());
  std::vector<MetadataValue> values;
  for (const MetadataEntry& entry : tflite::read(litertlmHeaderOf(header)).metadata)
    values.push_back(entry.value);
  EXPECT_EQ(values,
            (std::vector<MetadataValue>{
                uint64_t{200}, int64_t{-2}, uint64_t{60000}, int64_t{-3}, uint64_t{4000000000},
                int64_t{-4}, 0.5, true, std::numeric_limits<uint64_t>::max(),
                std::numeric_limits<int64_t>::min(), 0.25, std::monostate()}));
}

TEST(ContainerTest, ChoosesTheModel) {
  EXPECT_EQ(openProblem(container("one.task"), ""), "");
  const Bytes two = container("two.task");
  EXPECT_EQ(openProblem(two, ""),
            "The container has 2 models; name one of the parts: bits.tflite, folder/space.tflite.");
  EXPECT_EQ(openProblem(two, "space.tflite"),
            "The container has no part \"space.tflite\"; its models are: bits.tflite, "
            "folder/space.tflite.");
  EXPECT_EQ(openProblem(container("model.litertlm"), "SP_Tokenizer"),
            "The part \"SP_Tokenizer\" (SP_Tokenizer) is no model; the models are: "
            "prefill_decode, embedder.");
  EXPECT_EQ(openProblem(container("empty.litertlm"), ""),
            "The container has 0 parts, and none is a .tflite model.");
  EXPECT_EQ(openProblem(zipOf({{"a", model("bits")}, {"a", model("space")}}), "a"),
            "The container has 2 models with the name \"a\".");
  // A long list is shortened.
  std::vector<ZipMember> many;
  for (int i = 0; i < 50; ++i) many.push_back({"m" + std::to_string(i), model("bits")});
  EXPECT_THAT(openProblem(zipOf(many), ""),
              AllOf(HasSubstr("m31 and 18 more."), Not(HasSubstr("m32"))));
  many.resize(32);
  EXPECT_THAT(openProblem(zipOf(many), ""), HasSubstr("m31."));
}

TEST(ContainerTest, NamesArchivesOfOtherKinds) {
  const Bytes any = {1, 2, 3, 4};
  EXPECT_THAT(
      openProblem(zipOf({{"metadata.json", any}, {"config.json", any}, {"model.weights.h5", any}}),
                  ""),
      HasSubstr("Keras"));
  EXPECT_THAT(openProblem(zipOf({{"net/data.pkl", any}, {"net/data/0", any}}), ""),
              HasSubstr("PyTorch"));
  EXPECT_THAT(openProblem(zipOf({{"export/saved_model.pb", any}}), ""), HasSubstr("SavedModel"));
  EXPECT_THAT(openProblem(zipOf({{"x.npy", any}, {"y.npy", any}}), ""), HasSubstr(".npz"));
  EXPECT_EQ(openProblem(zipOf({{"labels.txt", any}}), ""),
            "The container has 1 part, and none is a .tflite model.");
}

TEST(ContainerTest, SaysWhatToDoWithACompressedModel) {
  const Bytes file = container("deflated.task");
  EXPECT_THAT(openProblem(file, "bits.tflite"),
              AllOf(HasSubstr("compressed"), HasSubstr("unpack the archive")));
  EXPECT_THAT(openProblem(file, "secret.tflite"), HasSubstr("encrypted"));
  const auto part = chooseModel(tflite::read(file), "bits.tflite");
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().code(), ErrorCode::kUnsupported);
}

TEST(ContainerTest, TakesModelsAtMultiplesOfFour) {
  for (size_t shift = 0; shift < 8; ++shift) {
    // The length of the name moves the model's bytes.
    const Bytes file = zipOf({{std::string(shift + 1, 'x'), model("bits")}}, {.alignment = 1});
    const Part part = tflite::read(file).parts.at(0);
    const bool isAligned = part.offset % 4 == 0;
    EXPECT_EQ(openProblem(file, "").empty(), isAligned) << part.offset;
    EXPECT_THAT(part.problem, HasSubstr(isAligned ? "" : "not a multiple of 4"));
  }
  // A member of an aligned archive in an archive that is not aligned.
  const Bytes inner = zipOf({{"bits", model("bits")}});
  const Bytes outer = zipOf({{"xx", inner}}, {.alignment = 1});
  const Container read = tflite::read(outer);
  ASSERT_EQ(read.parts.size(), 2u);
  EXPECT_EQ(read.parts[1].problem.empty(), read.parts[1].offset % 4 == 0);
}

TEST(ContainerTest, NamesAreMadePrintable) {
  const Container read =
      tflite::read(zipOf({{std::string("a\0b\n\xFF", 5), model("bits")}, {"", model("bits")}}));
  EXPECT_THAT(namesOf(read), ElementsAre("a?b??", ""));
}

TEST(ContainerTest, RefusesInconsistentArchives) {
  const Bytes file = zipOf({{"a", model("bits")}, {"b", model("space")}});
  const size_t end = file.size() - 22;
  uint32_t directory = 0;
  std::memcpy(&directory, file.data() + end + 16, sizeof(directory));
  const auto with = [&](size_t offset, auto number) {
    Bytes changed = file;
    put(&changed, offset, number);
    return problemOf(changed);
  };
  EXPECT_EQ(problemOf(file), "");
  EXPECT_THAT(problemOf(Bytes(file.begin(), file.end() - 1)), HasSubstr("its end is missing"));
  EXPECT_THAT(problemOf({'P', 'K', 3, 4}), HasSubstr("its end is missing"));
  // The end record.
  EXPECT_THAT(with(end + 16, uint32_t{0xFFFFFFF0}), HasSubstr("its directory of"));
  EXPECT_THAT(with(end + 12, uint32_t{0xFFFFFFF0}), HasSubstr("its directory of"));
  EXPECT_THAT(with(end + 16, directory - 1), HasSubstr("no whole record at byte 0"));
  EXPECT_THAT(with(end + 12, uint32_t{50}), HasSubstr("no whole record at byte 47"));
  // The first record of the directory.
  EXPECT_THAT(with(directory + 28, uint16_t{0xFFFF}), HasSubstr("no whole record"));
  EXPECT_THAT(with(directory + 42, uint32_t{2}), HasSubstr("no member begins"));
  EXPECT_THAT(with(directory + 42, uint32_t{0xFFFFFFF0}), HasSubstr("no member begins"));
  EXPECT_THAT(with(directory + 42, uint32_t{0xFFFFFFFF}), HasSubstr("ZIP64 field of a"));
  EXPECT_THAT(with(directory + 20, uint32_t{0xFFFFFFF0}), HasSubstr("the archive only"));
  EXPECT_THAT(with(directory + 24, uint32_t{1}), HasSubstr("differs from what the directory says"));
  EXPECT_THAT(with(directory + 10, uint16_t{8}), HasSubstr("differs from what the directory says"));
  EXPECT_THAT(with(directory + 46, uint8_t{'c'}),
              HasSubstr("differs from what the directory says"));
  // The second member's record points to the first member.
  Bytes twice = file;
  put(&twice, directory + 47 + 46, uint8_t{'a'});
  uint32_t first = 0;
  uint32_t size = 0;
  std::memcpy(&first, file.data() + directory + 42, sizeof(first));
  std::memcpy(&size, file.data() + directory + 20, sizeof(size));
  put(&twice, directory + 47 + 42, first);
  put(&twice, directory + 47 + 20, size);
  put(&twice, directory + 47 + 24, size);
  EXPECT_THAT(problemOf(twice), HasSubstr("a and a lie over each other"));
  // A member that reaches into the directory.
  Bytes into = zipOf({{"a", model("bits")}});
  std::memcpy(&directory, into.data() + into.size() - 6, sizeof(directory));
  std::memcpy(&size, into.data() + directory + 20, sizeof(size));
  put(&into, directory + 20, size + 4);
  put(&into, directory + 24, size + 4);
  EXPECT_THAT(problemOf(into), HasSubstr("a and the directory lie over each other"));
}

TEST(ContainerTest, RefusesInconsistentZip64) {
  const Bytes file = container("zip64.task");
  const size_t locator = file.size() - 42;
  const size_t end = locator - 56;
  const auto with = [&](size_t offset, uint64_t number) {
    Bytes changed = file;
    put(&changed, offset, number);
    return problemOf(changed);
  };
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max() - 8;
  EXPECT_THAT(with(locator + 8, kHuge), HasSubstr("no ZIP64 end record"));
  EXPECT_THAT(with(locator + 8, 0), HasSubstr("no ZIP64 end record"));
  EXPECT_THAT(with(locator + 8, end + 1), HasSubstr("no ZIP64 end record"));
  EXPECT_THAT(with(end + 40, kHuge), HasSubstr("its directory of"));
  EXPECT_THAT(with(end + 48, kHuge), HasSubstr("its directory of"));
  uint64_t directory = 0;
  std::memcpy(&directory, file.data() + end + 48, sizeof(directory));
  const size_t field = directory + 46 + std::strlen("bits.tflite");
  EXPECT_THAT(with(field + 4 + 8, kHuge), HasSubstr("the archive only"));
  EXPECT_THAT(with(field + 4 + 16, kHuge), HasSubstr("no member begins"));
  Bytes shortened = file;
  put(&shortened, field + 2, uint16_t{20});
  EXPECT_THAT(problemOf(shortened), HasSubstr("ZIP64 field of bits.tflite"));
}

TEST(ContainerTest, RefusesInconsistentLitertlmFiles) {
  const Bytes file = container("model.litertlm");
  const auto with = [&](size_t offset, auto number) {
    Bytes changed = file;
    put(&changed, offset, number);
    return problemOf(changed);
  };
  EXPECT_EQ(problemOf(file), "");
  EXPECT_THAT(with(8, uint32_t{2}), HasSubstr("format version 2, only 1 is known"));
  EXPECT_THAT(with(24, uint64_t{31}), HasSubstr("its header ends at byte 31"));
  EXPECT_THAT(with(24, uint64_t{file.size() + 1}), HasSubstr("its header ends"));
  EXPECT_THAT(with(24, std::numeric_limits<uint64_t>::max()), HasSubstr("its header ends"));
  EXPECT_THAT(with(32, uint32_t{0x7FFFFFFF}), HasSubstr("refers to places outside itself"));
  EXPECT_THAT(with(24, uint64_t{32}), HasSubstr("refers to places outside itself"));
  EXPECT_THAT(problemOf(Bytes(file.begin(), file.begin() + 20)), HasSubstr("ends after 20 bytes"));
  EXPECT_THAT(problemOf(Bytes(file.begin(), file.end() - 1)),
              HasSubstr("section 3 (embedder) lies at"));

  const auto sections = [](std::initializer_list<std::pair<uint64_t, uint64_t>> ranges) {
    litertlm::HeaderT header;
    header.sections = std::make_unique<litertlm::SectionsT>();
    for (const auto& [begin, end] : ranges) {
      auto section = std::make_unique<litertlm::SectionT>();
      section->type = litertlm::SectionType::TFLiteModel;
      section->begin_offset = begin;
      section->end_offset = end;
      header.sections->sections.push_back(std::move(section));
    }
    Bytes bytes = litertlmHeaderOf(header);
    bytes.resize(4096);
    return problemOf(bytes);
  };
  EXPECT_EQ(sections({{2048, 4096}, {1024, 2048}, {2048, 2048}}), "");
  EXPECT_THAT(sections({{2048, 1024}}), HasSubstr("lies at bytes 2048 to 1024"));
  EXPECT_THAT(sections({{1024, 2048}, {2047, 3000}}),
              HasSubstr("section 0 (TFLiteModel) and section 1 (TFLiteModel) lie over each other"));
  EXPECT_THAT(sections({{8, 2048}}), HasSubstr("the header and section 0"));
}

// Whatever is damaged, the result is an error or parts inside the file.
TEST(ContainerTest, SurvivesRandomDamage) {
  std::mt19937_64 random(5);
  size_t refused = 0;
  for (const SampleContainer& sample : sampleContainers()) {
    for (int i = 0; i < 2000; ++i) {
      Bytes bytes = sample.bytes;
      for (int n = 0; n < 3; ++n) bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
      if (i % 4 == 0) bytes.resize(random() % bytes.size());
      // A copy of exact size, so that a sanitizer detects reads past its end.
      const Bytes exact(bytes);
      const auto read = readContainer(exact);
      if (!read) {
        ++refused;
        continue;
      }
      if (!*read) continue;
      for (const Part& part : (*read)->parts) {
        ASSERT_LE(part.offset, exact.size());
        ASSERT_LE(part.size, exact.size() - part.offset);
        (void)open(exact, part.name);
      }
    }
  }
  EXPECT_GT(refused, 1000u);
}

// Offsets of buffers outside the FlatBuffer count from the beginning of the model.
TEST(ContainerTest, OutsideBuffersLieInTheirModel) {
  const Bytes inner = modelWithOutsideBuffer();
  expectOutsideBuffer(**ModelFile::fromPool(poolOf(inner)));
  const Bytes archive = zipOf({{"first", model("bits")}, {"big.tflite", inner}});
  expectOutsideBuffer(**ModelFile::fromPool(poolOf(archive), "big.tflite"));
  // Bytes of the container after the model do not belong to the model.
  const Bytes cut(inner.begin(), inner.end() - 4);
  const Bytes shorter = zipOf({{"big.tflite", cut}, {"rest", Bytes(4096)}});
  EXPECT_THAT(openProblem(shorter, "big.tflite"), HasSubstr("outside the"));
}

class ContainerFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "hearth-container-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(ContainerFileTest, AModelIsARangeOfTheFile) {
  const std::string path = folder_ / "two.task";
  const Bytes bytes = zipOf({{"a", model("bits")}, {"b", modelWithOutsideBuffer()}});
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const auto file = ModelFile::open(path, "b");
  ASSERT_TRUE(file) << file.error().message();
  expectOutsideBuffer(**file);
  const auto imported = (*file)->importSubgraph(0);
  ASSERT_TRUE(imported);
  const memory::Pool& pool = *imported->model->pools.at(0);
  const Part part = *chooseModel(tflite::read(bytes), "b");
  EXPECT_EQ(pool.offset(), part.offset);
  EXPECT_EQ(pool.size(), part.size);
  EXPECT_GE(pool.fd(), 0);
  EXPECT_EQ((*file)->summary().fileBytes, part.size);

  const auto unknown = ModelFile::open(path);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(unknown.error().toString(), HasSubstr(path));
}

// Language models have archives of more than 4 GiB, whose numbers need ZIP64.
TEST_F(ContainerFileTest, AnArchiveMayBeLargerThan4GiB) {
  const std::string path = folder_ / "large.task";
  constexpr uint64_t kOffset = (uint64_t{4} << 30) + 4096;
  const Bytes first = zipOf({{"a", {}}});
  const Bytes rest = zipOf({{"b", modelWithOutsideBuffer()}}, {.isZip64 = true, .offset = kOffset});
  std::ofstream stream(path, std::ios::binary);
  // A local header, as archives begin; the directory is at the end.
  stream.write(reinterpret_cast<const char*>(first.data()), 30);
  stream.seekp(static_cast<std::streamoff>(kOffset));
  stream.write(reinterpret_cast<const char*>(rest.data()),
               static_cast<std::streamsize>(rest.size()));
  ASSERT_TRUE(stream.flush());
  const auto file = ModelFile::open(path, "b");
  ASSERT_TRUE(file) << file.error().message();
  expectOutsideBuffer(**file);
}

}  // namespace
}  // namespace hearth::tflite
